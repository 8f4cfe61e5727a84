"""An application with text ids, as a user of the library would write it.

``python bank.py ID CENTS`` is another process, on the log that its environment names.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import datetime

from eventsourcing.application import Application
from eventsourcing.domain import BaseAggregate, CanInitAggregate, CanMutateAggregate, CanSnapshotAggregate, event

SQLITE = "intentlog.eventlog.recorders.sqlite"


@dataclass(frozen=True)
class Recorded:
    originator_id: str
    originator_version: int
    timestamp: datetime


class Account(BaseAggregate[str]):
    TOPIC = "account"

    @dataclass(frozen=True)
    class Event(CanMutateAggregate[str], Recorded):
        pass

    @dataclass(frozen=True)
    class Opened(CanInitAggregate[str], Event):
        TOPIC = "account.opened"
        originator_topic: str
        number: str
        owner: str

    @dataclass(frozen=True)
    class Deposited(Event):
        TOPIC = "account.deposited"
        cents: int

    @dataclass(frozen=True)
    class Snapshot(CanSnapshotAggregate[str], Recorded):
        topic: str
        state: dict[str, object]

    def __init__(self, number: str, owner: str) -> None:
        self.owner = owner
        self.cents = 0

    @staticmethod
    def create_id(number: str) -> str:
        return number

    @event(Deposited)
    def deposit(self, cents: int) -> None:
        self.cents += cents


class Bank(Application[str]):
    env = {"PERSISTENCE_MODULE": SQLITE, "ORIGINATOR_ID_TYPE": "text", "EVENTLOG_CATEGORY": "account"}
    snapshotting_intervals = {Account: 3}

    def open(self, number: str, owner: str) -> None:
        self.save(Account(number, owner))

    def deposit(self, number: str, cents: int) -> None:
        account: Account = self.repository.get(number)
        account.deposit(cents)
        self.save(account)

    def cents(self, number: str, version: int | None = None) -> int:
        account: Account = self.repository.get(number, version=version)
        return account.cents


if __name__ == "__main__":
    account_id, amount = sys.argv[1:]
    with Bank() as other:
        other.deposit(account_id, int(amount))
