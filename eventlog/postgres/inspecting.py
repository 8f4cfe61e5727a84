"""What stands in the schema and no reader of streams sees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..events import StoredEvent
from ..inspecting import Index
from .connection import Database
from .indexes import missing
from .reading import to_event
from .statements import statement

_BEFORE_ALL: Final = -(1 << 63)
#: Events that one statement looks at, so that none runs for long or holds a snapshot.
_WINDOW: Final = 50_000


class Inspector:
    """The part of the log that asks behind its readers."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def unseen(self) -> Iterator[StoredEvent]:
        after = _BEFORE_ALL
        while (end := self._database.rows(statement("end_of_window"), (after, _WINDOW))[0][0]) is not None:
            yield from map(to_event, self._database.rows(statement("find_unseen"), (after, end)))
            after = end

    def missing_indexes(self) -> list[Index]:
        return missing(self._database.rows, self._database.address)
