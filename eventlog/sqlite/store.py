"""The log as its callers see it, put together from the parts that know SQLite."""

from __future__ import annotations

from ..clock import Clock
from ..composed import ComposedLog
from ..inspecting import Inspector
from .append import Appender
from .connection import Database
from .indexes import missing
from .keeping import SqliteCheckpoints, SqliteSnapshots
from .odd import odd_cells
from .reading import Reader
from .schedule import SqliteSchedule
from .statements import statement
from .views import SqliteViews
from .waiting import Signal


class SqliteLog(ComposedLog):
    """An ``EventLog`` in one SQLite file."""

    served = False

    def __init__(self, url: str, clock: Clock, database: Database) -> None:
        signal = Signal()
        inspector = Inspector(database.rows, statement, lambda: missing(database.rows), lambda events: odd_cells(database.rows, database.path, events=events))
        super().__init__(url, clock, Reader(database), Appender(database, clock, signal), signal, inspector)
        self.snapshots = SqliteSnapshots(database)
        self.checkpoints = SqliteCheckpoints(database)
        self.schedule = SqliteSchedule(database)
        self.views = SqliteViews(database)
        self._database = database

    def close(self) -> None:
        self._database.close()
