"""``eventsourcing``: an aggregate with decorated methods, its SQLite recorder, JSON transcoder, no cache, no snapshot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
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


def prepare(path: Path, events: list[Any]) -> Callable[[], Account]:
    """Write the same history; what comes back reads the aggregate from the file."""
    application = Application[UUID](env={"PERSISTENCE_MODULE": "eventsourcing.sqlite", "SQLITE_DBNAME": str(path)})
    account = Account(events[0].number, events[0].owner)
    for each in events[1:]:
        _act(account, each)
    application.save(account)

    def get() -> Account:
        found: Account = application.repository.get(account.id)
        return found

    return get


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
