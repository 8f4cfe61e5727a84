"""From PostgreSQL's errors to ours, with the log's URL and the way out in the message."""

from __future__ import annotations

from typing import Final

import psycopg
from psycopg import errors as states

from ..errors import LogError, LogUnavailable, StoreSchemaError, TerminalError
from .address import Address

_MISSING: Final = ("3F000", "42P01", "42703", "42P02")
_SHUTTING_DOWN: Final = ("57P01", "57P02", "57P03")
_ROOM: Final = ("53100", "53200")
#: What a server says that has no connection left: for all, for this database or role, for those who are no superusers.
_FULL: Final = ("too many clients", "too many connections", "remaining connection slots")
#: What a server says that comes up, goes down, or replays its journal.
_NOT_YET: Final = ("starting up", "shutting down", "in recovery", "not yet accepting connections", "not accepting connections")
_TURN: Final = ("40001", "40P01")


def is_lost(error: psycopg.Error) -> bool:
    """Whether the connection, not the statement, is what failed, so that another connection may do better."""
    state = error.sqlstate
    if state is None:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return state.startswith("08") or state in _SHUTTING_DOWN or state == "25006"


def closed(address: Address) -> LogUnavailable:
    """The log object has been closed."""
    return LogUnavailable(f"The log on {address.shown} has been closed. Open a new one with open_log.")


def exhausted(address: Address) -> LogUnavailable:
    """Every connection stayed in use for too long."""
    return LogUnavailable(
        f"All {address.pool_size} connections to {address.shown} stayed in use for {address.pool_timeout:g} s. "
        "Let fewer threads share this log, or give it more with ?pool_size=… (the server's max_connections must allow it); then try again."
    )


def unreachable(address: Address, error: BaseException) -> LogUnavailable:
    """No connection could be made. libpq gives no state to an error of the first handshake, only its text."""
    said = first_line(error, address)
    if any(words in said for words in _FULL):
        return _full(said, address)
    if "read-only" in said:
        return _no_writes(said, address)
    if any(words in said for words in _NOT_YET):
        return LogUnavailable(f"{address.shown} takes no connections now: {said}. It is alive: wait for it, and try again; nothing has to be opened anew.")
    return LogUnavailable(
        f"There is no connection to {address.shown}: {said}. Check that the server runs and lets this user in, then try again; nothing has to be opened anew."
    )


def read_only_server(address: Address) -> LogUnavailable:
    """The server stopped taking writes, as one does that was replaced in a fail-over."""
    return LogUnavailable(f"{address.shown} takes no writes now: its server turned read-only. The next call looks for the one that takes them.")


def for_reading_only(address: Address) -> TerminalError:
    """Somebody asked a log that was opened for reading to write."""
    return TerminalError(f"The log on {address.shown} is open for reading only, so nothing can be written to it. Open it with open_log(url) to write.")


def misplaced(address: Address, table: str, row: str, column: str, value: object, expected: str) -> StoreSchemaError:
    """A cell holds what no release has ever written there: somebody edited the table."""
    return StoreSchemaError(
        f"{address.shown} was edited by hand: table {address.schema}.{table}, {row}: {column} is {value!r:.80}, where {expected} belongs. "
        "Put the right value back, or restore the schema from a backup."
    )


def first_line(error: BaseException, address: Address) -> str:
    """What the server or the driver says, without its context and hints, and without a password of the URL."""
    text = str(error).strip()
    line = text.splitlines()[0].rstrip(".") if text else type(error).__name__
    for secret in address.secrets:
        line = line.replace(secret, "***")
    return line


def translated(error: Exception, address: Address) -> LogError:
    """The error of our tree that means the same."""
    said = first_line(error, address)
    if isinstance(error, UnicodeEncodeError):
        return TerminalError(f"A text given to {address.shown} has no UTF-8 form: {said}. Nothing of this write was kept.")
    state = getattr(error, "sqlstate", None)
    found = _by_state(state, said, address) if state else None
    if found is not None:
        return found
    if isinstance(error, psycopg.DataError | psycopg.ProgrammingError | states.NotNullViolation):
        return TerminalError(f"A value given to {address.shown} does not fit its column: {said}. Nothing of this write was kept.")
    if isinstance(error, psycopg.IntegrityError):
        return StoreSchemaError(f"{address.shown} refused a row that its own index said would fit: {said}. Check the indexes with amcheck.")
    return LogUnavailable(
        f"{address.shown} failed: {said} ({state or type(error).__name__}). What it was doing may or may not be done; the same can be sent again."
    )


def _by_state(state: str, said: str, address: Address) -> LogError | None:
    if state == "57014" and "statement timeout" in said:
        return LogUnavailable(
            f"{address.shown} gave a statement up after {address.statement_timeout:g} s: {said}. Look for what holds it up in pg_stat_activity and pg_locks, "
            "or allow more time with ?statement_timeout=… (seconds); then try again."
        )
    if state == "55P03":
        return LogUnavailable(
            f"{address.shown} has a table that another session holds a lock on, and this one gave up waiting for it: {said}. Find who holds it in pg_locks "
            "and pg_stat_activity (VACUUM FULL and whoever changes a table do), or wait longer with ?lock_timeout=… (seconds); then try again."
        )
    if state == "42883":
        return StoreSchemaError(
            f"{address.shown} lacks a function of the log in schema {address.schema!r}: {said}. No event is lost with it; "
            "make it anew with: eventlog init, as the schema's owner"
        )
    if state in _MISSING:
        return StoreSchemaError(
            f"{address.shown} lacks a part of the log in schema {address.schema!r}: {said}. "
            "Restore it from a backup, or make a log with: eventlog init, as the schema's owner"
        )
    if state == "42501":
        return StoreSchemaError(
            f"{address.shown}: this user lacks a right on schema {address.schema!r}: {said}. As the schema's owner: "
            f"GRANT USAGE ON SCHEMA {address.schema} TO …; GRANT SELECT (and INSERT, UPDATE, DELETE to write) ON ALL TABLES IN SCHEMA {address.schema} TO …. "
            "What a worker, an effector or a reader needs, and no more, is printed by: eventlog grants"
        )
    if state == "3D000":
        return StoreSchemaError(f"{address.shown}: {said}. Make the database first, with: createdb")
    if state == "25006":
        return _no_writes(said, address)
    if state.startswith("53") and state not in _ROOM:
        return _full(said, address)
    if state in _ROOM:
        return LogUnavailable(f"{address.shown} has no room left: {said}. Nothing of this write was kept; make some and try again.")
    if state in _TURN:
        return LogUnavailable(f"{address.shown} let another transaction go first: {said}. Nothing of this one was kept; try again.")
    if state.startswith("54"):
        return TerminalError(f"{address.shown} cannot hold a value this large: {said}. Keep things near 1 GB elsewhere and record a reference to them.")
    return None


def _full(said: str, address: Address) -> LogUnavailable:
    return LogUnavailable(f"{address.shown} has no connection left: {said}. Lower ?pool_size=… or raise the server's max_connections, then try again.")


def _no_writes(said: str, address: Address) -> LogUnavailable:
    return LogUnavailable(
        f"{address.shown} takes no writes now: {said}. If the server has failed over, the next call connects to the one that takes them; otherwise look at "
        "default_transaction_read_only."
    )
