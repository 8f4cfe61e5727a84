"""Views: a projection's bytes by key. Writes gather in memory and become durable with the checkpoint, in one short commit.

Nothing is locked in the file while a projection works, so appends go on and may even be made from inside the block. Two
processes that write one view at once are found out when the second one commits: its block is undone with ``LeaseLost``.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from ..errors import LeaseLost
from ..log import ParkedEvent
from ..viewing import Meant, Overlay
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


class SqliteViews:
    """Where projections keep what they build."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._guard = threading.Lock()
        self._writers: dict[str, threading.Lock] = {}

    @contextmanager
    def transaction(self, name: str) -> Iterator[Overlay]:
        with self._writer(name):
            revision, position = self._state(name)
            stored = _Stored(name, self._database)
            writing = Overlay(position, stored.get, stored.items, is_storable, "a lone surrogate, which has no UTF-8 form")
            yield writing
            self._commit(name, writing, revision)

    def read(self, name: str) -> Meant:
        self._state(name)  # a closed log says so here
        return Meant(name, self._database, statement, is_storable, lambda meant, prefix: _Stored(meant, self._database).chunks(prefix))

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

    def _commit(self, name: str, writing: Overlay, revision: int) -> None:
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
