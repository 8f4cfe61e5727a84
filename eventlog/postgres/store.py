"""The log as its callers see it, put together from the parts that know PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable

from ..clock import Clock
from ..composed import ComposedLog
from ..inspecting import Inspector
from .append import Appender
from .connection import Database
from .indexes import missing
from .keeping import PostgresCheckpoints, PostgresSnapshots
from .reading import Reader
from .schedule import PostgresSchedule
from .statements import statement
from .views import PostgresViews
from .waiting import Signal
from .watchdog import HorizonHeld, Watching, horizon


class PostgresLog(ComposedLog):
    """An ``EventLog`` in one schema of a PostgreSQL database."""

    served = True
    _appender: Appender
    _signal: Signal

    def __init__(self, clock: Clock, database: Database) -> None:
        signal = Signal(database.address, read_only=database.read_only)
        reader = Reader(database)
        inspector = Inspector(database.rows, statement, lambda: missing(database.rows, database.address))
        super().__init__(database.address.shown, clock, reader, Appender(database, clock, reader, signal), signal, inspector)
        self.snapshots = PostgresSnapshots(database)
        self.checkpoints = PostgresCheckpoints(database)
        self.schedule = PostgresSchedule(database)
        self.views = PostgresViews(database)
        self._database = database

    def horizon(self) -> HorizonHeld | None:
        """Who keeps committed events from being shown now; ``None`` while there are none such."""
        return horizon(self._database)

    def watch(self, on_trouble: Callable[[str], None]) -> Watching:
        """Say who holds the log back for more than five seconds, every minute again, and when it is over, while the block lasts."""
        return Watching(self._database, on_trouble)

    def close(self) -> None:
        self._signal.close()
        self._database.close()
