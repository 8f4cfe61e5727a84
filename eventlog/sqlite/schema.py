"""The tables of the file: are they there, are they ours, are they of this release; and making them, step by step.

``PRAGMA application_id`` says that a file is an event log, ``PRAGMA user_version`` how many migrations it has seen. All
that are missing are one transaction that looks again under the write lock, so two processes may open a new file at once, and one that dies
leaves nothing behind.
"""

from __future__ import annotations

import os
import sqlite3
from typing import Final

from ..errors import LogUnavailable, StoreSchemaError
from .address import Address
from .connection import connect, switch_to_wal
from .faults import translated
from .indexes import make_anew
from .looking import WRITABLE, way_to_read
from .statements import statement

#: "ilog" in ASCII.
APPLICATION_ID: Final = 0x696C6F67
#: Names in ``sql/`` of the migrations, in order; the n-th brings a file to version n.
MIGRATIONS: Final = ("001_first_tables", "002_pointed_views")
#: The tables of a file that has seen them all.
TABLES: Final = ("streams", "events", "schedule", "snapshots", "checkpoints", "views", "view_rows", "parked", "pointed")


def prepare_file(address: Address, *, create: bool, read_only: bool = False, repair: bool = False) -> bool:
    """Make sure that ``address`` holds an event log of this release; whether anything had to be done for it.

    With ``create`` a missing file is made and an older one migrated; with ``repair`` indexes that somebody dropped are made anew; with
    ``read_only`` nothing is written, and the right to write is not asked for. Raises ``StoreSchemaError`` or ``LogUnavailable``.
    """
    _check_place(address, create, read_only)
    try:
        connection = connect(address, timeout=address.busy_timeout, way=way_to_read(address.path) if read_only else "mode=rwc" if create else WRITABLE)
        try:
            changed = _prepare(connection, address, create, read_only)
            mended = repair and make_anew(connection, address)
            return changed or mended
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise translated(error, address.path) from error


def _check_place(address: Address, create: bool, read_only: bool) -> None:
    path = address.path
    if path.is_dir():
        raise StoreSchemaError(f"{path} is a folder, not a file. Name a file in it, for example sqlite:///{path / 'eventlog.db'}")
    if not path.exists():
        if not create:
            raise StoreSchemaError(f"There is no event log at {path}. Make one with: eventlog init --log sqlite:///{path}")
        if not path.parent.is_dir():
            raise StoreSchemaError(f"The folder {path.parent} of {path} does not exist. Make it first, with: mkdir -p {path.parent}")
        if not os.access(path.parent, os.W_OK):
            raise LogUnavailable(
                f"{path} cannot be made: this user may not write to the folder {path.parent.absolute()}. Change its permissions or name another place."
            )
    elif read_only:
        if not os.access(path, os.R_OK):
            raise LogUnavailable(f"This user may not read {path}. Change its permissions or name another file.")
    elif not os.access(path, os.R_OK | os.W_OK):
        raise LogUnavailable(f"This user may not read and write {path}. Change its permissions or name another file.")


def _prepare(connection: sqlite3.Connection, address: Address, create: bool, read_only: bool) -> bool:
    version = _version(connection, address)
    if version < len(MIGRATIONS):
        if not create:
            state = f"was made by an older release (schema {version}, this one has {len(MIGRATIONS)})" if version else "holds no event log yet"
            raise StoreSchemaError(f"{address.path} {state}. Bring it up to date with: eventlog init --log sqlite:///{address.path}")
        switch_to_wal(connection, address)
        _migrate(connection, address)
    elif not read_only and connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
        switch_to_wal(connection, address)
    _check_tables(connection, address)
    return version < len(MIGRATIONS)


def _version(connection: sqlite3.Connection, address: Address) -> int:
    version, owner, tables = _told(connection)
    if owner != APPLICATION_ID and (tables or owner):
        raise StoreSchemaError(
            f"{address.path} is a database of something else (application id {owner}, {tables} tables and indexes). Name another file for the event log."
        )
    if version > len(MIGRATIONS):
        raise StoreSchemaError(
            f"{address.path} was made by a newer release: its schema is {version}, this one knows up to {len(MIGRATIONS)}. Upgrade intentlog to read it."
        )
    return int(version)


def _told(connection: sqlite3.Connection) -> tuple[int, int, int]:
    """Schema version, application id and number of tables, all of one moment: another process may just be making the file."""
    own = not connection.in_transaction
    if own:
        connection.execute("BEGIN")
    try:
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (owner,) = connection.execute("PRAGMA application_id").fetchone()
    finally:
        if own:
            connection.execute("ROLLBACK")
    return version, owner, tables


def _check_tables(connection: sqlite3.Connection, address: Address) -> None:
    """Every table that the migrations made must still be there."""
    there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    missing = [name for name in TABLES if name not in there]
    if missing:
        raise StoreSchemaError(
            f"{address.path} lacks its table{'s' if len(missing) > 1 else ''} {', '.join(missing)}: somebody dropped what no release drops. "
            "Restore the file from a backup, or begin a new log elsewhere with: eventlog init --log sqlite:///other.db"
        )


def _migrate(connection: sqlite3.Connection, address: Address) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        for migration in MIGRATIONS[_version(connection, address) :]:
            for command in _commands(statement(migration)):
                connection.execute(command)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _commands(script: str) -> list[str]:
    """The single commands of a script; ``executescript`` would commit the transaction it runs in."""
    commands, current = [], ""
    for line in script.splitlines(keepends=True):
        current += line
        if sqlite3.complete_statement(current):
            commands.append(current)
            current = ""
    return commands
