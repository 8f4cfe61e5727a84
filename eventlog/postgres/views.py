"""Views: a projection's bytes by key. Writes gather in memory and become durable with the checkpoint, in one short commit.

One block at a time writes a view, in whatever process: it holds an advisory lock, in a transaction that has no id until
the block ends, for a transaction that has one keeps every tail from going on. A projection that writes tables of its own
with ``execute`` begins to write then and there: keep such blocks short.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import psycopg

from ..log import ParkedEvent
from ..viewing import Meant, Overlay
from .arrays import blobs, texts
from .connection import Database
from .pooling import Connection
from .statements import statement
from .texts import is_storable, ranged

_ROWS: Final = 500
_BYTES: Final = 4 << 20
_POSITION: Final = "SELECT coalesce((SELECT position FROM checkpoints WHERE name = $1), 0)"
_KEYS_AT_ONCE: Final = 64
_MOST_KEYS: Final = 1_000


class _Rows:
    """A view's rows as one source of statements sees them."""

    def __init__(self, name: str, source: Any) -> None:
        self._name = name
        #: ``source(sql, parameters)`` gives rows.
        self._source = source

    def get(self, key: str) -> bytes | None:
        if not is_storable(key):
            return None
        found = self._source("SELECT value FROM view_rows WHERE view = $1 AND key = $2", (self._name, key))
        return found[0][0] if found else None

    def items(self, prefix: str = "") -> Iterator[tuple[str, bytes]]:
        for rows in self.chunks(prefix):
            yield from rows

    def chunks(self, prefix: str) -> Iterator[list[tuple[str, bytes]]]:
        """Rows in key order, as many at once as have some megabytes."""
        if not is_storable(prefix):
            return
        last: str | None = None
        count = _KEYS_AT_ONCE
        while True:
            rows = self._source(*ranged(statement("list_view_rows"), "key", [self._name, count], prefix, last))
            yield rows
            if len(rows) < count:
                return
            last = rows[-1][0]
            count = max(1, min(_MOST_KEYS, 4 * count, _BYTES // (sum(len(value) for _, value in rows) // count + 1)))


class PostgresViewTransaction(Overlay):
    """The changes of one block, over what is committed."""

    def __init__(self, name: str, connection: Connection, translated: Callable[[Exception], Exception]) -> None:
        self._connection = connection
        self._translated = translated
        stored = _Rows(name, self.execute)
        position = self.execute(_POSITION, (name,))[0][0]
        super().__init__(position, stored.get, stored.items, is_storable, "a lone surrogate or a NUL, which no text column can hold")

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement (``$1``, ``$2`` … for its parameters) in the transaction that saves the checkpoint; its rows, if it gives any.

        For tables of the projection's own in the same database, with their schema named: they and the checkpoint become
        durable together. Only on PostgreSQL. Errors are ours, with the server's as their cause; after one the block can
        only end. From the first write on, tails wait for the block to end.
        """
        try:
            cursor = self._connection.execute(sql.encode(), parameters, binary=True)
            return cursor.fetchall() if cursor.description is not None else []
        except psycopg.Error as error:
            raise self._translated(error) from error


class PostgresViews:
    """Where projections keep what they build."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._guard = threading.Lock()
        self._writers: dict[str, threading.Lock] = {}

    @contextmanager
    def transaction(self, name: str) -> Iterator[PostgresViewTransaction]:
        with self._alone(name) as connection:
            writing = PostgresViewTransaction(name, connection, self._database.translated)
            yield writing
            self._store(name, writing)

    def read(self, name: str) -> Meant:
        self._database.rows("SELECT 1")  # a closed log says so here
        return Meant(name, self._database, statement, is_storable, lambda meant, prefix: _Rows(meant, self._database.rows).chunks(prefix))

    def point(self, name: str, view: str | None, *, expected: str | None) -> bool:
        with self._database.transaction() as connection:
            connection.execute(statement("lock_name").encode(), (name,))
            found = connection.execute(b"SELECT view FROM pointed WHERE name = $1", (name,)).fetchone()
            if (found[0] if found else None) != expected:
                return False
            if view is None:
                connection.execute(b"DELETE FROM pointed WHERE name = $1", (name,))
                return True
            if expected is not None:
                connection.execute(statement("hold_views").encode(), (texts(sorted({view, expected})),))
                positions = [connection.execute(_POSITION.encode(), (each,)).fetchall()[0][0] for each in (view, expected)]
                if positions[0] < positions[1]:
                    return False
            connection.execute(statement("point").encode(), (name, view))
            return True

    def pointed(self) -> dict[str, str]:
        return dict(self._database.rows("SELECT name, view FROM pointed ORDER BY name"))

    def clear(self, name: str) -> None:
        with self._alone(name) as connection:
            connection.execute(statement("clear_view").encode(), (name,))
            connection.execute(b"DELETE FROM view_rows WHERE view = $1", (name,))
            connection.execute(b"DELETE FROM checkpoints WHERE name = $1", (name,))
            connection.execute(b"DELETE FROM parked WHERE projection = $1", (name,))

    def parked(self, name: str | None = None) -> list[ParkedEvent]:
        where, values = ("", ()) if name is None else ("WHERE projection = $1", (name,))
        return [ParkedEvent(*row) for row in self._database.rows(statement("list_parked").replace(":where", where), values)]

    def _store(self, name: str, writing: PostgresViewTransaction) -> None:
        """Row locks come last, and that of the view first: who points a name at it then knows where it stands."""
        execute = writing.execute
        execute(statement("touch_view"), (name,))
        gone = [key for key, value in writing.changes.items() if value is None and is_storable(key)]
        for begin in range(0, len(gone), _ROWS):
            execute("DELETE FROM view_rows WHERE view = $1 AND key = ANY($2)", (name, texts(gone[begin : begin + _ROWS])))
        for part in _parts(writing.changes):
            execute(statement("put_view_rows"), (name, texts(part), blobs(list(part.values()))))
        if writing.position > 0:
            execute(statement("save_checkpoint"), (name, writing.position))
        for position, event in writing.parked.items():
            if event is None:
                execute("DELETE FROM parked WHERE projection = $1 AND position = $2", (name, position))
            else:
                execute(statement("park"), (name, position, event.stream, event.version, _text(event.error), event.parked_at))

    @contextmanager
    def _alone(self, name: str) -> Iterator[Connection]:
        """A transaction that holds the view. Threads of this process queue up here, without a connection each."""
        with self._guard:
            writer = self._writers.setdefault(name, threading.Lock())
        with writer, self._database.transaction() as connection:
            connection.execute(statement("lock_view").encode(), (name,))
            yield connection


def _parts(changes: dict[str, bytes | None]) -> Iterator[dict[str, bytes]]:
    """What is to be written, in parts of some rows and megabytes."""
    part: dict[str, bytes] = {}
    size = 0
    for key, value in changes.items():
        if value is None:
            continue
        if part and (len(part) >= _ROWS or size + len(value) > _BYTES):
            yield part
            part, size = {}, 0
        part[key] = value
        size += len(value)
    if part:
        yield part


def _text(text: str) -> str:
    """``text`` with what no column can hold spelled out: an error may quote anything."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")
