"""Who may talk to the server, and how: pooled connections that are set up alike, and errors that are ours.

Every connection is in autocommit mode and reads what is committed. A statement is one transaction; none stays open between
two calls, because a transaction that stays open holds back what every tail may show.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import psycopg

from .address import Address
from .faults import closed, for_reading_only, is_lost, translated
from .pooling import Connection, Pool, Rows

#: Beside the pool for everything else: connections whose commits do not wait for the disk.
_MOST_HASTY: Final = 4
_FAULTS: Final = (psycopg.Error, UnicodeEncodeError)


class Database:
    """Connections to one schema. Every error that leaves here is one of ours."""

    def __init__(self, address: Address, *, read_only: bool = False) -> None:
        self.address = address
        self.read_only = read_only
        self._closed = False
        self._guard = threading.Lock()
        self._pool = Pool(address, read_only=read_only, durable=True, size=address.pool_size)
        self._hasty: Pool | None = None

    def rows(self, sql: str, parameters: Sequence[Any] = (), *, durable: bool = True) -> Rows:
        """Every row that one statement gives.

        When the connection turns out to be lost it is run once more on another one, so it must be a statement that may be run twice.
        ``durable=False`` does not wait for the disk: what is written survives the death of every client, but not that of the server.
        """
        try:
            return self._rows(sql, parameters, durable)
        except psycopg.Error as error:
            if not is_lost(error):
                raise self._translated(error) from error
        except UnicodeEncodeError as error:
            raise self._translated(error) from error
        try:
            return self._rows(sql, parameters, durable)
        except _FAULTS as error:
            raise self._translated(error) from error

    def execute(self, sql: str, parameters: Sequence[Any] = (), *, durable: bool = True) -> int:
        """Run one writing statement, never twice; how many rows it touched."""
        self._check_writable()
        try:
            with self._borrowed(durable) as connection:
                return connection.execute(sql, parameters).rowcount
        except _FAULTS as error:
            raise self._translated(error) from error

    def call(self, sql: str, parameters: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """Run one writing statement, never twice, and give its row, if any. What the statement itself raises (``psycopg.Error``) is the caller's."""
        self._check_writable()
        with self._borrowed(True) as connection:
            return connection.execute(sql, parameters, binary=True, prepare=True).fetchone()

    @contextmanager
    def transaction(self, *, durable: bool = True, read_only: bool = False) -> Iterator[Connection]:
        """One transaction, committed when the block ends and undone when it raises; ``read_only`` gives it one view of everything.

        ``psycopg.Error`` raised in the block comes out as one of ours, ``LogUnavailable`` when the fate of the commit is unknown.
        """
        if not read_only:
            self._check_writable()
        try:
            with self._borrowed(durable) as connection:
                connection.read_only = read_only or None
                connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ if read_only else None
                with connection.transaction():
                    yield connection
        except _FAULTS as error:
            raise self._translated(error) from error

    def close(self) -> None:
        """Give every connection back; those in use follow when their statement ends."""
        with self._guard:
            self._closed = True
            hasty = self._hasty
        self._pool.close()
        if hasty is not None:
            hasty.close()

    def translated(self, error: Exception) -> Exception:
        """``error`` as one of ours."""
        return self._translated(error)

    def _translated(self, error: Exception) -> Exception:
        if self.read_only and getattr(error, "sqlstate", None) == "25006":
            return for_reading_only(self.address)
        return translated(error, self.address)

    def _rows(self, sql: str, parameters: Sequence[Any], durable: bool) -> Rows:
        with self._borrowed(durable) as connection:
            return connection.execute(sql, parameters, binary=True).fetchall()

    def _check_writable(self) -> None:
        if self.read_only:
            raise closed(self.address) if self._closed else for_reading_only(self.address)

    @contextmanager
    def _borrowed(self, durable: bool) -> Iterator[Connection]:
        pool = self._pool if durable else self._hasty or self._make_hasty()
        connection = pool.take()
        try:
            yield connection
        except psycopg.Error as error:
            if is_lost(error):
                pool.distrust(connection)
            raise
        finally:
            pool.give_back(connection)

    def _make_hasty(self) -> Pool:
        with self._guard:
            if self._closed:
                raise closed(self.address)
            if self._hasty is None:
                self._check_writable()
                size = min(_MOST_HASTY, self.address.pool_size)
                self._hasty = Pool(self.address, read_only=False, durable=False, size=size)
            return self._hasty
