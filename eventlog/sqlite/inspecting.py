"""What stands in the file and no reader of streams sees."""

from __future__ import annotations

from collections.abc import Iterator

from ..events import StoredEvent
from ..inspecting import Index, unseen_in_windows
from .connection import Database
from .indexes import missing
from .reading import to_event
from .statements import statement


class Inspector:
    """The part of the log that asks behind its readers."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def unseen(self) -> Iterator[StoredEvent]:
        rows = unseen_in_windows(self._database.rows, statement("end_of_window"), statement("find_unseen"))
        return map(to_event, rows)

    def missing_indexes(self) -> list[Index]:
        return missing(self._database.rows)
