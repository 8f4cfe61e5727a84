"""Who may talk to the file, and when: one writing connection behind a lock, a pool of reading ones.

Writes are ``BEGIN IMMEDIATE`` … ``COMMIT``. Reads are single statements that end at once, so no reader keeps the
write-ahead log from being checkpointed, however long somebody takes to look at the rows.
"""

from __future__ import annotations

import random
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from ..errors import LogUnavailable
from ..odd import as_text
from .address import Address
from .faults import closed, is_busy, is_no_text, locked, translated
from .looking import STILL, WRITABLE, for_reading_only, signature, way_to_read
from .memo import Memo

_FIRST_PAUSE: Final = 0.0005
_LONGEST_PAUSE: Final = 0.01
#: Rows fetched between two looks at how much memory they take; the largest events are 20 MB and more.
_BLOCK: Final = 16
_CHUNK_ROWS: Final = 2_048
_CHUNK_BYTES: Final = 4 << 20
_LEAST_BYTES: Final = 64
_READER_CACHE_KIB: Final = 4_096
_WRITER_CACHE_KIB: Final = 32_768
#: Larger logs were not faster: pages that are written again in place cost less than a file that grows.
_CHECKPOINT_PAGES: Final = 1_000
#: What a write-ahead log that once grew large is cut back to.
_LOG_BYTES: Final = 64 << 20


class Database:
    """Connections to one file. Every error that leaves here is one of ours."""

    def __init__(self, address: Address, *, read_only: bool = False) -> None:
        self.path = address.path
        self.memo = Memo()
        self._address = address
        self._lock = threading.Lock()
        self._readers: deque[sqlite3.Connection] = deque()
        self._closed = False
        self._durable = True
        self._data_version = -1
        self._way = way_to_read(address.path) if read_only else WRITABLE
        self._seen = signature(address.path) if self._way == STILL else ()
        self._writer: sqlite3.Connection | None = None
        if read_only:
            self._readers.append(self._connect_reader())  # what cannot be read says so now
            return
        try:
            self._writer = self._connect(writing=True)
        except sqlite3.Error as error:
            raise translated(error, self.path) from error

    @contextmanager
    def write(self, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """The write lock, inside a transaction that commits when the block ends and is undone when it raises.

        ``durable=False`` does not wait for the disk: what is written survives the death of every process, but not of the
        machine. That is enough for leases, whose owners die with it; the next durable commit makes them so too.

        Raises ``LogUnavailable`` when the lock could not be had within the busy timeout, or the commit failed.
        """
        writer = self._writer
        if writer is None:
            raise closed(self.path) if self._closed else for_reading_only(self.path)
        deadline = time.monotonic() + self._address.busy_timeout
        if not self._lock.acquire(timeout=self._address.busy_timeout):
            raise locked(self.path, self._address.busy_timeout)
        try:
            if self._closed:
                raise closed(self.path)
            self._level(writer, durable)
            self._begin(writer, deadline)
            try:
                self._notice_others(writer)
                yield writer
                writer.execute("COMMIT")
            except BaseException:
                self._undo(writer)
                raise
        except sqlite3.Error as error:
            raise translated(error, self.path) from error
        finally:
            self._lock.release()

    def _level(self, writer: sqlite3.Connection, durable: bool) -> None:
        if durable is not self._durable and self._address.synchronous == "full":
            writer.execute("PRAGMA synchronous = FULL" if durable else "PRAGMA synchronous = NORMAL")
            self._durable = durable

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Every row of one reading statement; text that is none comes as ``NotText``."""
        reader = self._borrow()
        try:
            try:
                return reader.execute(sql, parameters).fetchall()
            except sqlite3.OperationalError as error:
                if not is_no_text(error):
                    raise
                with _as_it_is(reader):
                    return reader.execute(sql, parameters).fetchall()
        except sqlite3.Error as error:
            raise translated(error, self.path) from error
        finally:
            self._give_back(reader)

    def chunk(self, sql: str, parameters: Sequence[Any], data_column: int, most_rows: int = _CHUNK_ROWS) -> tuple[list[Any], bool]:
        """The first rows of a reading statement, bounded in number and bytes, and whether those were all of them; text as in ``rows``."""
        reader = self._borrow()
        try:
            try:
                return _first(reader.execute(sql, parameters), data_column, most_rows)
            except sqlite3.OperationalError as error:
                if not is_no_text(error):
                    raise
                with _as_it_is(reader):
                    return _first(reader.execute(sql, parameters), data_column, most_rows)
        except sqlite3.Error as error:
            raise translated(error, self.path) from error
        finally:
            self._give_back(reader)

    def close(self) -> None:
        """Close every connection; waits for a write that is under way."""
        with self._lock:
            self._closed = True
            if self._writer is not None:
                self._writer.close()
            while self._readers:
                self._readers.popleft().close()

    def _begin(self, writer: sqlite3.Connection, deadline: float) -> None:
        pause = _FIRST_PAUSE
        while True:
            try:
                writer.execute("BEGIN IMMEDIATE")
                break
            except sqlite3.OperationalError as error:
                if not is_busy(error):
                    raise
                if time.monotonic() >= deadline:
                    raise locked(self.path, self._address.busy_timeout) from error
            time.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(pause * 1.5, _LONGEST_PAUSE)

    def _notice_others(self, writer: sqlite3.Connection) -> None:
        (version,) = writer.execute("PRAGMA data_version").fetchone()
        if version != self._data_version:
            self.memo.forget()
            self._data_version = version

    def _undo(self, writer: sqlite3.Connection) -> None:
        self.memo.forget()
        if writer.in_transaction:
            writer.execute("ROLLBACK")

    def _borrow(self) -> sqlite3.Connection:
        if self._closed:
            raise closed(self.path)
        if self._seen:
            self._look_again()
        try:
            return self._readers.pop()
        except IndexError:
            return self._connect_reader()

    def _look_again(self) -> None:
        """Nobody wrote when the bare file was opened; once somebody has, what was read of it is over."""
        now = signature(self.path)
        if now != self._seen:
            self._drain()
            self._way = way_to_read(self.path)
            self._seen = now if self._way == STILL else ()

    def _connect_reader(self) -> sqlite3.Connection:
        try:
            return self._connect(writing=False)
        except sqlite3.Error as error:
            raise translated(error, self.path) from error

    def _give_back(self, reader: sqlite3.Connection) -> None:
        self._readers.append(reader)
        if self._closed:
            self._drain()

    def _drain(self) -> None:
        """A reader that came back after ``close``: nobody else will close it."""
        try:
            while True:
                self._readers.popleft().close()
        except IndexError:
            return

    def _connect(self, *, writing: bool) -> sqlite3.Connection:
        """A connection that is set up; waits while another process has the whole file, as one does that opens or leaves it."""
        deadline = time.monotonic() + self._address.busy_timeout
        pause = _FIRST_PAUSE
        while True:
            try:
                return self._set_up(writing)
            except sqlite3.OperationalError as error:
                if not is_busy(error) or time.monotonic() >= deadline:
                    raise
            time.sleep(random.uniform(pause / 2, pause))
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _set_up(self, writing: bool) -> sqlite3.Connection:
        connection = connect(self._address, timeout=0.0 if writing else self._address.busy_timeout, way=self._way)
        try:
            if writing:
                connection.execute(f"PRAGMA synchronous = {self._address.synchronous}")
                connection.execute(f"PRAGMA cache_size = -{_WRITER_CACHE_KIB}")
                connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
                connection.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES}")
                connection.execute("PRAGMA temp_store = memory")
            else:
                connection.execute("PRAGMA query_only = on")
                connection.execute(f"PRAGMA cache_size = -{_READER_CACHE_KIB}")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
        except BaseException:
            connection.close()
            raise
        return connection


def _first(cursor: sqlite3.Cursor, data_column: int, most_rows: int) -> tuple[list[Any], bool]:
    rows: list[Any] = []
    left = _CHUNK_BYTES
    size = min(_BLOCK, most_rows)
    while left > 0 and len(rows) < most_rows:
        block = cursor.fetchmany(size)
        rows += block
        if len(block) < size:
            return rows, True
        try:
            for row in block:
                left -= len(row[data_column])
        except TypeError:  # a number where bytes belong: whoever looks at the row says so
            left -= _LEAST_BYTES * len(block)
    cursor.close()
    return rows, False


@contextmanager
def _as_it_is(reader: sqlite3.Connection) -> Iterator[None]:
    """Read text that is none as what it is. Only when the driver has refused to: it calls this for every text, and its own way is quick."""
    reader.text_factory = as_text
    try:
        yield
    finally:
        reader.text_factory = str


def connect(address: Address, *, timeout: float, way: str = WRITABLE) -> sqlite3.Connection:
    """A bare connection in autocommit mode that any thread may use, one at a time. Raises ``sqlite3.Error``."""
    uri = f"{address.path.absolute().as_uri()}?{way}"
    return sqlite3.connect(uri, uri=True, timeout=timeout, isolation_level=None, check_same_thread=False, cached_statements=512)


def switch_to_wal(connection: sqlite3.Connection, address: Address) -> None:
    """Give the file a write-ahead log, and wait while others have it; SQLite's own busy timeout does not cover the moment of the switch.

    The mode stays with the file. Raises ``LogUnavailable`` when the file system cannot have one, or the wait was in vain; ``sqlite3.Error``.
    """
    deadline = time.monotonic() + address.busy_timeout
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = wal").fetchone()
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
        else:
            if mode == "wal":
                return
            raise LogUnavailable(
                f"{address.path} cannot use a write-ahead log (it stays in mode {mode!r}): its file system lacks shared memory. Put it on a local disk."
            )
        if time.monotonic() >= deadline:
            raise locked(address.path, address.busy_timeout)
        time.sleep(_LONGEST_PAUSE)
