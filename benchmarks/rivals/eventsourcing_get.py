"""``eventsourcing``: an aggregate with decorated methods, its recorder for SQLite or PostgreSQL, JSON transcoder, no cache, no snapshot."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from eventsourcing.application import Application
from eventsourcing.domain import Aggregate, event


class Account(Aggregate):
    @event("Opened")
    def __init__(self, number: str, owner: str) -> None:
        self.number, self.owner, self.town, self.cents, self.flags = number, owner, "", 0, 0

    @event("Deposited")
    def deposit(self, cents: int, memo: str) -> None:
        self.cents += cents

    @event("Withdrawn")
    def withdraw(self, cents: int, memo: str, teller: str) -> None:
        self.cents -= cents

    @event("Moved")
    def move(self, owner: str, street: str, town: str, country: str) -> None:
        self.owner, self.town = owner, town

    @event("Flagged")
    def flag(self, reason: str, score: float) -> None:
        self.flags += 1


class Prepared:
    """The same history in its own store at ``place``: a folder or the URL of a database."""

    def __init__(self, place: str, events: list[Any]) -> None:
        self._application = Application[UUID](env=_environment(place))
        account = Account(events[0].number, events[0].owner)
        for each in events[1:]:
            _act(account, each)
        self._application.save(account)
        self._id = account.id

    def get(self) -> Account:
        """Read the aggregate from the store."""
        found: Account = self._application.repository.get(self._id)
        return found

    def close(self) -> None:
        """Give the connections back."""
        self._application.close()


def _environment(place: str) -> dict[str, str]:
    if not place.startswith("postgresql://"):
        return {"PERSISTENCE_MODULE": "eventsourcing.sqlite", "SQLITE_DBNAME": str(Path(place) / "eventsourcing.db")}
    url = urlsplit(place)
    where = {"HOST": url.hostname or "", "PORT": str(url.port), "USER": url.username or "", "PASSWORD": url.password or "", "DBNAME": url.path[1:]}
    return {"PERSISTENCE_MODULE": "eventsourcing.postgres", **{f"POSTGRES_{name}": value for name, value in where.items()}}


def _act(account: Account, change: Any) -> None:
    match type(change).__name__:
        case "Deposited":
            account.deposit(change.cents, change.memo)
        case "Withdrawn":
            account.withdraw(change.cents, change.memo, change.teller)
        case "Moved":
            account.move(change.owner, change.street, change.town, change.country)
        case _:
            account.flag(change.reason, change.score)
