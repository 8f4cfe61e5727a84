"""A log's schema through ``psycopg``: one connection in autocommit mode, a prepared statement, values in binary form.

Arrays are encoded by the store's own encoder, which is faster than the driver's: the bound is to be the best that can be done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import psycopg

from intentlog.eventlog.postgres import arrays
from intentlog.eventlog.postgres.address import parse_address
from intentlog.eventlog.postgres.statements import statement

from . import Raw, Weight

_END: Final = (1 << 63) - 1
_MOST: Final = 1 << 31
#: Type of a column → (type of its array, what encodes it).
_ARRAYS: Final[dict[str, tuple[str, Callable[[Sequence[Any]], Any]]]] = {
    "bigint": ("bigint[]", arrays.integers),
    "integer": ("bigint[]", arrays.integers),
    "text": ("text[]", arrays.texts),
    "bytea": ("bytea[]", arrays.blobs),
}
_COLUMNS: Final = """
SELECT attname, format_type(atttypid, NULL) FROM pg_attribute
WHERE attrelid = 'events'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
_WEIGHT: Final = "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
_PAYLOAD: Final = "SELECT coalesce(sum(octet_length(data)), 0)::bigint FROM {}"
#: As the store makes positions: the transaction and the place in it.
_INSERT: Final = """
INSERT INTO events (position, {names})
SELECT (pg_current_xact_id()::text::bigint << 20) | place, {names} FROM unnest({arrays}) WITH ORDINALITY AS w ({names}, place)
"""


class BarePostgres:
    """See ``Bare``."""

    def __init__(self, url: str) -> None:
        address = parse_address(url)
        self._connection = psycopg.connect(
            **{**address.server, "options": f"-c search_path={address.schema}"}, autocommit=True, cursor_factory=psycopg.RawCursor
        )
        arrays.register(self._connection)
        columns = self._rows(_COLUMNS)
        self.columns = [name for name, _ in columns]
        self._kinds = [_ARRAYS[kind] for _, kind in columns[1:]]

    def written(self, *, but: Sequence[str]) -> list[Raw]:
        return self._rows("SELECT * FROM events WHERE type <> ALL ($1) ORDER BY stream_id, version", (arrays.texts(but),))

    def last(self, stream: str) -> Raw:
        sql = "SELECT * FROM events WHERE stream_id = (SELECT id FROM streams WHERE name = $1) ORDER BY version DESC LIMIT 1"
        (row,) = self._rows(sql, (stream,))
        return tuple(row)

    def insert(self, commits: Sequence[Sequence[Raw]]) -> float:
        given = ", ".join(f"${place}::{kind}" for place, (kind, _) in enumerate(self._kinds, 1))
        sql = _INSERT.format(names=", ".join(self.columns[1:]), arrays=given)
        encoders = [encode for _, encode in self._kinds]
        cursor = self._connection.cursor()
        parts = [list(zip(*commit, strict=True))[1:] for commit in commits]
        began = time.perf_counter()
        for part in parts:
            cursor.execute(sql.encode(), [encode(values) for encode, values in zip(encoders, part, strict=True)], prepare=True)
        return time.perf_counter() - began

    def stream(self, name: str) -> Callable[[], list[Any]]:
        sql = statement("read_rows")
        return lambda: self._rows(sql, (name, -1, _END, _MOST))

    def weigh(self) -> Weight:
        for (table,) in self._rows("SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"):
            self._connection.execute(f'VACUUM "{table}"'.encode())
        ((size,),) = self._rows(_WEIGHT)
        payload = sum(self._rows(_PAYLOAD.format(table))[0][0] for table in ("events", "blobs"))
        ((events,),) = self._rows("SELECT count(*) FROM events")
        return Weight(size, payload, events)

    def close(self) -> None:
        self._connection.close()

    def _rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        return self._connection.execute(sql.encode(), parameters, binary=True).fetchall()
