"""The SQLite store: a file of its own, for the effectors of one machine.

Attempts and outcomes are on the disk before the call returns. Claims, renewals and hand-backs are not waited for: they
survive the death of every process, and with the machine their owners die too (docs/decisions/0005).
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, Final

from ...eventlog.clock import Micros
from ...eventlog.errors import InvalidUrl, LogError, RetryableError
from ...eventlog.sqlite.address import Address, parse_address
from ...eventlog.sqlite.connection import Database, connect, switch_to_wal
from ...eventlog.sqlite.faults import translated
from .errors import DedupSchemaError, InvalidDedupUrl, StoreUnavailable
from .kept import KeptStore
from .rules import Record
from .statements import sql
from .store import Busy, Done, Free

APPLICATION_ID: Final = 0x69647570
"""``idup`` in ASCII: what ``PRAGMA application_id`` says of a dedup store."""
SCHEMA: Final = 1
"""``PRAGMA user_version`` of a file of this release."""


class SqliteStore(KeptStore):
    """A ``DedupStore`` in one file, several processes allowed."""

    def __init__(self, url: str, address: Address, database: Database) -> None:
        super().__init__(url)
        self._path, self._database = address.path, database
        self._writing: sqlite3.Connection | None = None
        if address.synchronous != "full":
            self.caveats = (f"synchronous={address.synchronous}: a power cut may take attempts and results of the last moments with it",)

    def _look(self, intent_id: str, now: Micros) -> Done | Busy | Free:
        with _ours():
            rows = self._database.rows(sql("sqlite_look"), (intent_id, now))
        if not rows:
            return Free(0)
        *fields, result = rows[0]
        record = Record(*fields)
        return Done(record.status or "", result) if record.done(now) else self._seen(intent_id, record, now)

    @contextmanager
    def _locked(self, *, durable: bool) -> Iterator[None]:
        with _ours(), self._database.write(durable=durable) as connection:
            self._writing = connection
            yield

    def _find(self, intent_id: str) -> Record | None:
        row = self._run("sqlite_find", (intent_id,)).fetchone()
        return None if row is None else Record(*row)

    def _outcome(self, intent_id: str) -> Done:
        return Done(*self._run("sqlite_outcome", (intent_id,)).fetchone())

    def _put(self, intent_id: str, record: Record, result: bytes | None = None) -> None:
        self._run("sqlite_put", (intent_id, record.owner, record.token, record.until, record.attempts, record.status, record.expires_at, result))

    def _sweep(self, before: Micros, most: int) -> None:
        self._run("sqlite_sweep", (before, most))

    def _run(self, name: str, parameters: tuple[Any, ...]) -> sqlite3.Cursor:
        assert self._writing is not None, "only within _locked"
        return self._writing.execute(sql(name), parameters)

    def _ping(self) -> None:
        """Whether it can be written to: a full disk answers questions."""
        with _ours(), self._database.write(durable=False):
            pass

    def _close(self) -> None:
        self._database.close()


def open_sqlite(url: str, *, create: bool = True) -> SqliteStore:
    """The store in the file that ``url`` names, made if it is not there and ``create``; parameters as for a log.

    Raises ``InvalidDedupUrl``, ``DedupSchemaError`` and ``StoreUnavailable``.
    """
    try:
        address = parse_address(url)
    except InvalidUrl as problem:
        raise InvalidDedupUrl(str(problem)) from problem
    _check_place(address, create)
    with _ours():
        try:
            with closing(connect(address, timeout=address.busy_timeout, way="mode=rwc" if create else "mode=rw")) as connection:
                _prepare(connection, address, create)
        except sqlite3.Error as error:
            raise translated(error, address.path) from error
        return SqliteStore(url, address, Database(address))


@contextmanager
def _ours() -> Iterator[None]:
    """The log's SQLite layer speaks in the log's errors; here they are ours."""
    try:
        yield
    except RetryableError as problem:
        raise StoreUnavailable(str(problem)) from problem
    except LogError as problem:
        raise DedupSchemaError(str(problem)) from problem


def _check_place(address: Address, create: bool) -> None:
    path = address.path
    if path.is_dir():
        raise DedupSchemaError(f"{path} is a folder, not a file. Name a file in it, for example sqlite:///{path / 'dedup.db'}")
    if path.exists():
        if not os.access(path, os.R_OK | os.W_OK):
            raise StoreUnavailable(f"This user may not read and write {path}. Change its permissions or name another file.")
    elif not create:
        raise DedupSchemaError(f"There is no dedup store at {path}. Open it once with create=True, or name the file that is there.")
    elif not path.parent.is_dir():
        raise DedupSchemaError(f"The folder {path.parent} of {path} does not exist. Make it first, with: mkdir -p {path.parent}")


def _prepare(connection: sqlite3.Connection, address: Address, create: bool) -> None:
    if _version(connection, address) == 0 and not create:
        raise DedupSchemaError(f"{address.path} holds no dedup store yet. Open it once with create=True.")
    switch_to_wal(connection, address)
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _version(connection, address) == 0:
            for command in sql("sqlite_tables").split(";"):
                connection.execute(command)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA}")
        _check_table(connection, address)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _check_table(connection: sqlite3.Connection, address: Address) -> None:
    try:
        connection.execute("SELECT intent_id, owner, token, until, attempts, status, expires_at, result FROM records LIMIT 0")
    except sqlite3.OperationalError as error:
        raise DedupSchemaError(
            f"{address.path} lacks a part of its own: {error}. Restore it from a backup. A new file knows of no outcome: intents delivered again run again."
        ) from error


def _version(connection: sqlite3.Connection, address: Address) -> int:
    """0 for an empty file. Raises ``DedupSchemaError`` for a file of something else or of a newer release."""
    version, owner, tables = connection.execute(
        "SELECT user_version, application_id, (SELECT count(*) FROM sqlite_master) FROM pragma_user_version, pragma_application_id"
    ).fetchone()
    if owner != APPLICATION_ID and (tables or owner):
        raise DedupSchemaError(
            f"{address.path} is a database of something else (application id {owner}, {tables} tables and indexes). "
            "A dedup store has a file of its own, apart from the log: name another one."
        )
    if version > SCHEMA:
        raise DedupSchemaError(f"{address.path} was made by a newer release: its schema is {version}, this one knows up to {SCHEMA}. Upgrade intentlog.")
    return int(version)
