"""Connections to one PostgreSQL server: lent for a statement each, cut off when the server goes silent, thrown away when they fail."""

from __future__ import annotations

import os
import socket
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

from .address import ServerAddress, masked_values
from .errors import InvalidDedupUrl

_MOST_IDLE: Final = 8
_LONGEST_ANSWER_S: Final = 30.0
"""A statement takes milliseconds, one with the largest result seconds; a server that is silent for longer has stopped."""


class Connections:
    """Every error of psycopg passes through."""

    def __init__(self, address: ServerAddress, shown: str) -> None:
        self._parameters = _parameters(address, shown)
        self._idle: deque[psycopg.Connection[tuple[Any, ...]]] = deque()
        self._closed = False

    def rows(self, statement: str, parameters: dict[str, object] | None = None) -> list[Any]:
        """The rows of the (last) statement, committed; none for one that gives none."""
        connection = self._borrow()
        try:
            with _cut_off(connection):
                cursor = connection.execute(statement.encode(), parameters, binary=parameters is not None)
                found = cursor.fetchall() if cursor.description is not None else []
        except (psycopg.OperationalError, psycopg.InterfaceError, psycopg.errors.ReadOnlySqlTransaction):
            # The server went, or turned into a standby: the others lead to the same one.
            connection.close()
            self._drain()
            raise
        except BaseException:
            connection.close()
            raise
        self._give_back(connection)
        return found

    def close(self) -> None:
        """Close what is idle now, and what is in use when it comes back."""
        self._closed = True
        self._drain()

    def _borrow(self) -> psycopg.Connection[tuple[Any, ...]]:
        try:
            return self._idle.pop()
        except IndexError:
            return self._connect()

    def _connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        # No prepared statements: a pooler between us and the server may not know them.
        connection = psycopg.connect(autocommit=True, prepare_threshold=None, **self._parameters)
        try:
            with _cut_off(connection):
                # A database may have it off by default, and an attempt must be on the disk before the tool is called.
                if connection.execute("SHOW synchronous_commit").fetchone() == ("off",):
                    connection.execute("SET synchronous_commit = on")
        except BaseException:
            connection.close()
            raise
        return connection

    def _give_back(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        if len(self._idle) >= _MOST_IDLE:
            connection.close()
            return
        self._idle.append(connection)
        if self._closed:
            self._drain()

    def _drain(self) -> None:
        try:
            while True:
                self._idle.popleft().close()
        except IndexError:
            return


def _parameters(address: ServerAddress, shown: str) -> dict[str, Any]:
    try:
        given = conninfo_to_dict(address.url)
        readable = all(not port or port.isdecimal() for port in str(given.get("port", "")).split(","))
    except psycopg.Error:
        readable = False
    if not readable:
        # libpq's own text quotes the part that it could not read, which may be a piece of the password.
        raise InvalidDedupUrl(
            f"libpq cannot read {masked_values(shown)}. Its form is postgresql://user:password@host:5432/database?sslmode=require, with '@', '/', ':' and '%' "
            "in the password written as %40, %2F, %3A and %25; better still, keep the password in PGPASSFILE."
        )
    return {
        "application_name": "intentlog-dedup",
        "connect_timeout": 5,
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "target_session_attrs": "read-write",
        **given,
    }


@contextmanager
def _cut_off(connection: psycopg.Connection[tuple[Any, ...]]) -> Iterator[None]:
    """End the connection under a statement whose server has stopped: libpq itself would wait for ever."""

    def cut() -> None:
        try:
            with socket.socket(fileno=os.dup(connection.fileno())) as theirs:
                theirs.shutdown(socket.SHUT_RDWR)
        except (OSError, psycopg.Error):
            return  # it ended by itself at this very moment

    timer = threading.Timer(_LONGEST_ANSWER_S, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
