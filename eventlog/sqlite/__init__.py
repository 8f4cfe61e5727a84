"""The SQLite store: one file, several processes.

WAL, ``synchronous=FULL`` unless the URL says otherwise, ``BEGIN IMMEDIATE`` for every write. SQLite lets one writer in
at a time, so the order of positions is the order of commits and a tail can never be shown a gap that fills later.

Modules by reason to change: ``address`` (the URL), ``schema`` (tables and migrations), ``connection`` (who may talk to
the file, and when), ``memo`` (what the writer remembers), ``append`` (what becomes of a batch, with ``..planning``),
``reading``, ``schedule``, ``keeping`` (snapshots and checkpoints), ``views``, ``waiting``, ``indexes`` (what a
hand dropped). Statements live in ``sql/``.
"""

from __future__ import annotations

from contextlib import closing

from ..clock import Clock, system_clock
from ..errors import StoreSchemaError
from ..inspecting import missing_indexes_of
from ..log import EventLog
from .address import parse_address
from .connection import Database
from .schema import prepare_file
from .store import SqliteLog

__all__ = ["SqliteLog", "open_sqlite", "prepare_sqlite"]


def open_sqlite(url: str, *, clock: Clock = system_clock, create: bool = True, read_only: bool = False) -> EventLog:
    """The log in the file that ``url`` names: ``sqlite:///relative.db``, ``sqlite:////absolute.db``.

    Parameters: ``?synchronous=full|normal|off`` (default ``full``) and ``?busy_timeout_ms=N`` (default 10000).
    With ``read_only`` the right to write is not asked for, nothing is made, and everything that writes raises
    ``TerminalError``. Raises ``InvalidUrl``; ``StoreSchemaError`` when the file is missing and ``create`` is false, is no event log, or was made by
    a newer release; ``LogUnavailable`` when it cannot be opened or written to.
    """
    address = parse_address(url)
    prepare_file(address, create=create and not read_only, read_only=read_only)
    return SqliteLog(url, clock, Database(address, read_only=read_only))


def prepare_sqlite(url: str) -> bool:
    """Make the log in ``url``, bring it up to date, and make indexes anew that somebody dropped; whether there was anything to do.

    A file that needs nothing needs no right to write either. Raises as ``open_sqlite`` does; ``StoreSchemaError`` also for rows that are in an
    index's way.
    """
    try:
        with closing(open_sqlite(url, create=False, read_only=True)) as log:
            if not missing_indexes_of(log):
                return False
    except StoreSchemaError:  # what cannot be made, or brought up to date, says so now
        pass
    return prepare_file(parse_address(url), create=True, repair=True)
