"""Views: a projection's bytes by key. Writes gather in memory and become durable with the checkpoint, in one short commit.

Nothing is locked in the file while a projection works, so appends go on and may even be made from inside the block. Two
processes that write one view at once are found out when the second one commits: its block is undone with ``LeaseLost``.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from heapq import merge
from operator import itemgetter
from typing import Any, Final

from ..errors import LeaseLost
from ..log import ParkedEvent
from .connection import Database
from .faults import misplaced
from .keeping import whole_position
from .ranges import behind, is_storable, next_text
from .statements import for_rows, statement

_ROWS: Final = 128
_VALUE: Final = 1


class _Stored:
    """A view's committed rows."""

    def __init__(self, name: str, database: Database) -> None:
        self._name = name
        self._database = database

    def get(self, key: str) -> bytes | None:
        if not is_storable(key):
            return None
        found = self._database.rows("SELECT value FROM view_rows WHERE view = ? AND key = ?", (self._name, key))
        return found[0][0] if found else None

    def items(self, prefix: str = "") -> Iterator[tuple[str, bytes]]:
        for rows in self.chunks(prefix):
            yield from rows

    def chunks(self, prefix: str) -> Iterator[list[tuple[str, bytes]]]:
        if not is_storable(prefix):
            return
        end, begin, done = behind(prefix), prefix, False
        while not done:
            rows, done = self._database.chunk(statement("list_view_rows"), (self._name, begin, end), _VALUE)
            yield rows
            if rows:
                begin = next_text(rows[-1][0])


class _Reading(_Stored):
    """The view that a name means, for reading only."""

    def get(self, key: str) -> bytes | None:
        if not is_storable(key):
            return None
        found = self._database.rows(statement("find_meant_row"), (self._name, key))
        return found[0][0] if found else None

    def items(self, prefix: str = "") -> Iterator[tuple[str, bytes]]:
        meant, cleared = self._database.rows(statement("find_meant"), (self._name,))[0]
        for rows in _Stored(meant, self._database).chunks(prefix):
            # Asked for behind the rows: when it is as it was, they were there, too.
            if self._database.rows("SELECT coalesce((SELECT cleared FROM views WHERE name = ?), 0)", (meant,)) != [(cleared,)]:
                raise LeaseLost(f"View {meant!r} was cleared during a walk through it, so the walk would not be whole. Begin it again.")
            yield from rows

    def put(self, key: str, value: bytes) -> None:
        raise TypeError(f"View {self._name!r} is open for reading, so {key!r:.80} cannot be written. Write inside views.transaction({self._name!r}).")

    def delete(self, key: str) -> None:
        raise TypeError(f"View {self._name!r} is open for reading, so {key!r:.80} cannot be deleted. Write inside views.transaction({self._name!r}).")


class _Writing:
    """The changes of one transaction, over what is committed."""

    def __init__(self, stored: _Stored, position: int) -> None:
        self.position = position
        self.changes: dict[str, bytes | None] = {}
        #: By position; None: no longer.
        self.parked: dict[int, ParkedEvent | None] = {}
        self._stored = stored

    def get(self, key: str) -> bytes | None:
        return self.changes[key] if key in self.changes else self._stored.get(key)

    def put(self, key: str, value: bytes) -> None:
        if not isinstance(value, bytes):
            raise TypeError(f"The value of {key!r:.80} must be bytes, not {type(value).__name__}: {value!r:.80}")
        if not is_storable(key):
            raise ValueError(f"The key {key!r:.80} holds a lone surrogate, which has no UTF-8 form. Encode it in some other way.")
        self.changes[key] = value

    def delete(self, key: str) -> None:
        self.changes[key] = None

    def items(self, prefix: str = "") -> Iterator[tuple[str, bytes]]:
        changes = self.changes
        mine = sorted((key, value) for key, value in changes.items() if value is not None and key.startswith(prefix))
        theirs = (row for row in self._stored.items(prefix) if row[0] not in changes)
        return merge(mine, theirs, key=itemgetter(0))

    def checkpoint(self, position: int) -> None:
        self.position = max(self.position, position)

    def park(self, event: ParkedEvent) -> None:
        self.parked[event.position] = event

    def unpark(self, position: int) -> None:
        self.parked[position] = None


class SqliteViews:
    """Where projections keep what they build."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._guard = threading.Lock()
        self._writers: dict[str, threading.Lock] = {}

    @contextmanager
    def transaction(self, name: str) -> Iterator[_Writing]:
        with self._writer(name):
            revision, position = self._state(name)
            writing = _Writing(_Stored(name, self._database), position)
            yield writing
            self._commit(name, writing, revision)

    def read(self, name: str) -> _Reading:
        self._state(name)  # a closed log says so here
        return _Reading(name, self._database)

    def point(self, name: str, view: str | None, *, expected: str | None) -> bool:
        with self._database.write() as connection:
            found = connection.execute("SELECT view FROM pointed WHERE name = ?", (name,)).fetchone()
            if (found[0] if found else None) != expected:
                return False
            if view is None:
                connection.execute("DELETE FROM pointed WHERE name = ?", (name,))
                return True
            if expected is not None and _checkpoint(connection, view) < _checkpoint(connection, expected):
                return False
            connection.execute(statement("point"), (name, view))
            return True

    def pointed(self) -> dict[str, str]:
        return dict(self._database.rows("SELECT name, view FROM pointed ORDER BY name"))

    def clear(self, name: str) -> None:
        with self._writer(name), self._database.write() as connection:
            connection.execute(statement("clear_view"), (name,))
            connection.execute("DELETE FROM view_rows WHERE view = ?", (name,))
            connection.execute("DELETE FROM checkpoints WHERE name = ?", (name,))
            connection.execute("DELETE FROM parked WHERE projection = ?", (name,))

    def parked(self, name: str | None = None) -> list[ParkedEvent]:
        return [ParkedEvent(*row) for row in self._database.rows(statement("list_parked"), (name,))]

    def _state(self, name: str) -> tuple[int, int]:
        sql = "SELECT coalesce((SELECT revision FROM views WHERE name = ?1), 0), coalesce((SELECT position FROM checkpoints WHERE name = ?1), 0)"
        revision, position = self._database.rows(sql, (name,))[0]
        if type(revision) is not int:
            raise misplaced(self._database.path, "views", f"name {name!r:.200}", "revision", revision, "an integer")
        return revision, whole_position(self._database.path, name, position)

    def _commit(self, name: str, writing: _Writing, revision: int) -> None:
        gone = [key for key, value in writing.changes.items() if value is None and is_storable(key)]
        kept: list[Any] = [each for key, value in writing.changes.items() if value is not None for each in (name, key, value)]
        with self._database.write() as connection:
            found = connection.execute("SELECT revision FROM views WHERE name = ?", (name,)).fetchone()
            if (found[0] if found else 0) != revision:
                raise LeaseLost(
                    f"Another process wrote to view {name!r} in the meantime, so nothing of this block was kept. "
                    "Run each projection in one process, or run the block again."
                )
            connection.execute(statement("touch_view"), (name,))
            connection.executemany("DELETE FROM view_rows WHERE view = ? AND key = ?", [(name, key) for key in gone])
            for begin in range(0, len(kept), 3 * _ROWS):
                part = kept[begin : begin + 3 * _ROWS]
                connection.execute(for_rows("put_view_rows", 3, len(part) // 3), part)
            connection.execute(statement("save_checkpoint"), (name, writing.position))
            for position, event in writing.parked.items():
                if event is None:
                    connection.execute("DELETE FROM parked WHERE projection = ? AND position = ?", (name, position))
                else:
                    connection.execute(statement("park"), (name, position, event.stream, event.version, event.error, event.parked_at))

    def _writer(self, name: str) -> threading.Lock:
        with self._guard:
            return self._writers.setdefault(name, threading.Lock())


def _checkpoint(connection: sqlite3.Connection, view: str) -> int:
    (position,) = connection.execute("SELECT coalesce((SELECT position FROM checkpoints WHERE name = ?), 0)", (view,)).fetchone()
    return int(position)
