"""A log's file through ``sqlite3``; inserts with the settings that the store gives a connection: FULL sync, page cache, checkpoints."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from intentlog.eventlog.sqlite.address import parse_address
from intentlog.eventlog.sqlite.connection import Database
from intentlog.eventlog.sqlite.statements import statement

from . import Raw, Weight

_END: Final = (1 << 63) - 1


class BareSqlite:
    """See ``Bare``."""

    def __init__(self, url: str) -> None:
        self._address = parse_address(url)
        self._connection = sqlite3.connect(f"{self._address.path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None)
        self.columns = [name for (name,) in self._connection.execute("SELECT name FROM pragma_table_info('events') ORDER BY cid")]

    def written(self, *, but: Sequence[str]) -> list[Raw]:
        left_out = ",".join("?" * len(but))
        return self._connection.execute(f"SELECT * FROM events WHERE type NOT IN ({left_out}) ORDER BY stream_id, version", tuple(but)).fetchall()

    def last(self, stream: str) -> Raw:
        sql = "SELECT * FROM events WHERE stream_id = (SELECT id FROM streams WHERE name = ?) ORDER BY version DESC LIMIT 1"
        row: Raw = self._connection.execute(sql, (stream,)).fetchone()
        return row

    def insert(self, commits: Sequence[Sequence[Raw]]) -> float:
        (last,) = self._connection.execute("SELECT coalesce(max(position), 0) FROM events").fetchone()
        parts: list[list[Raw]] = []
        for commit in commits:
            parts.append([(last + place, *row[1:]) for place, row in enumerate(commit, 1)])
            last += len(commit)
        sql = f"INSERT INTO events VALUES ({','.join('?' * len(self.columns))})"
        database = Database(self._address)
        began = time.perf_counter()
        for part in parts:
            with database.write() as connection:
                connection.executemany(sql, part)
        seconds = time.perf_counter() - began
        database.close()
        return seconds

    def stream(self, name: str) -> Callable[[], list[Any]]:
        (number,) = self._connection.execute("SELECT id FROM streams WHERE name = ?", (name,)).fetchone()
        sql = statement("read_rows")
        return lambda: self._connection.execute(sql, (number, -1, _END)).fetchall()

    def weigh(self) -> Weight:
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        (pages,), (free,), (size,) = (self._connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "freelist_count", "page_size"))
        payload, events = self._connection.execute("SELECT coalesce(sum(length(data)), 0), count(*) FROM events").fetchone()
        return Weight((pages - free) * size, payload, events)

    def close(self) -> None:
        self._connection.close()
