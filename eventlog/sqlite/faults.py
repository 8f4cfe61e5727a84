"""From SQLite's errors to ours, with the file and the way out in the message."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from ..errors import LogError, LogUnavailable, StoreSchemaError, TerminalError
from ..odd import shown

_NOT_OURS: Final = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)
_BUSY: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_READ_ONLY: Final = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM)


def primary_code(error: sqlite3.Error) -> int:
    """SQLite's result code without its extension; -1 when the error came from the driver itself."""
    code = getattr(error, "sqlite_errorcode", None)
    return -1 if code is None else code & 0xFF


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection stood in the way, so that waiting may help."""
    return primary_code(error) in _BUSY


def is_no_text(error: sqlite3.Error) -> bool:
    """Whether a column holds text that is not UTF-8."""
    return "Could not decode to UTF-8" in str(error)


def locked(path: Path, seconds: float) -> LogUnavailable:
    """Somebody kept the write lock for too long."""
    return LogUnavailable(
        f"{path} stayed locked by another writer for {seconds:g} s. Find the process that holds a transaction open (fuser {path}), "
        "or wait longer with ?busy_timeout_ms=…; then send the same requests again."
    )


def closed(path: Path) -> LogUnavailable:
    """The log object has been closed."""
    return LogUnavailable(f"The log on {path} has been closed. Open a new one with open_log.")


def misplaced(path: Path, table: str, row: str, column: str, value: object, expected: str) -> StoreSchemaError:
    """A cell holds what no release has ever written there: somebody edited the file."""
    return StoreSchemaError(
        f"{path} was edited by hand: table {table}, {row}: {column} is {shown(value)}, where {expected} belongs. "
        "Put the right value back, or restore the file from a backup."
    )


def translated(error: sqlite3.Error, path: Path) -> LogError:
    """The error of our tree that means the same."""
    code = primary_code(error)
    if code in _BUSY:
        return LogUnavailable(f"{path} is locked by another process: {error}. Try again, or find who holds it with: fuser {path}")
    if code in _NOT_OURS:
        return StoreSchemaError(
            f"{path} is not an SQLite database, or is damaged: {error}. Name another file, or look at it with: sqlite3 {path} 'PRAGMA integrity_check'"
        )
    if is_no_text(error):
        return StoreSchemaError(f"{path} holds text that is no text: {error}. It was edited by hand or is damaged; restore it from a backup.")
    if "no such table" in str(error) or "no such column" in str(error):
        return StoreSchemaError(f"{path} lacks a part of its own: {error}. Restore it from a backup, or make a new log with: eventlog init")
    if code in _READ_ONLY:
        return LogUnavailable(f"{path} cannot be written to: {error}. Give this user write permission on the file and its folder (WAL files lie beside it).")
    if code == sqlite3.SQLITE_FULL:
        return LogUnavailable(f"No room left for {path}: {error}. Nothing of this write was kept; free some space and try again.")
    if isinstance(error, sqlite3.DataError) or code == sqlite3.SQLITE_TOOBIG:
        return TerminalError(f"{path} cannot hold a value this large: {error}. Keep things near 1 GB elsewhere and record a reference to them.")
    if isinstance(error, sqlite3.ProgrammingError) or getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_CONSTRAINT_NOTNULL:
        return TerminalError(f"A value given to {path} has a type that its column cannot hold: {error}. Nothing of this write was kept.")
    if isinstance(error, sqlite3.IntegrityError):
        return StoreSchemaError(f"{path} refused a row that its own index said would fit: {error}. Check it with: sqlite3 {path} 'PRAGMA integrity_check'")
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    return LogUnavailable(f"{path} failed: {error} ({name}). Check the disk and the permissions, then try again.")
