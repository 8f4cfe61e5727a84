"""The PostgreSQL store: one schema, many writers and readers, over psycopg 3.

Nothing locks a table. A position begins with the id of the transaction that wrote it, and the whole log is read only up
to the oldest transaction that is still under way, so a tail sees every event, in one order, however commits interleave.

Modules by reason to change: ``address`` (the URL), ``schema`` (tables and migrations), ``pooling`` and ``connection`` (who
may talk to the server, and how), ``arrays`` (lists as parameters), ``append`` (what becomes of a batch), ``reading``, ``schedule``,
``keeping`` (snapshots and checkpoints), ``views``, ``waiting``, ``watchdog`` (who holds the log back), ``indexes`` (what a
hand dropped). Statements live in ``sql/``.
"""

from __future__ import annotations

from ..clock import Clock, system_clock
from ..log import EventLog
from .address import parse_address
from .connection import Database
from .schema import prepare_schema
from .store import PostgresLog

__all__ = ["PostgresLog", "open_postgres", "prepare_postgres"]


def open_postgres(url: str, *, clock: Clock = system_clock, create: bool = True, read_only: bool = False) -> EventLog:
    """The log in the schema that ``url`` names: ``postgresql://user@host:5432/database?schema=intentlog``.

    Parameters beside libpq's own: ``schema`` (default ``intentlog``), ``pool_size`` (connections, default 10), ``pool_timeout``,
    ``statement_timeout`` and ``lock_timeout`` (seconds, default 30, 60 and 10; the last is for those who only read). With ``read_only`` nothing is
    made, every transaction is a reading one, and everything that
    writes raises ``TerminalError``. Raises ``InvalidUrl``; ``StoreSchemaError`` when the log is missing and ``create`` is false, when this
    user may not make it, or when it was made by a newer release; ``LogUnavailable`` when the server cannot be reached.
    """
    address = parse_address(url)
    prepare_schema(address, create=create and not read_only, read_only=read_only)
    return PostgresLog(clock, Database(address, read_only=read_only))


def prepare_postgres(url: str) -> bool:
    """Make the log in ``url``, bring it up to date, and mend what a restore into another server left; whether there was anything to do.

    Raises as ``open_postgres`` does.
    """
    return prepare_schema(parse_address(url), create=True, repair=True)
