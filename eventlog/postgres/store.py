"""The log as its callers see it; every method belongs to one of the parts it puts together."""

from __future__ import annotations

from ..clock import Clock
from .connection import Database


class PostgresLog:
    """An ``EventLog`` in one schema of a PostgreSQL database."""

    def __init__(self, clock: Clock, database: Database) -> None:
        self.url = database.address.shown
        self.clock = clock
        self._database = database

    def close(self) -> None:
        self._database.close()
