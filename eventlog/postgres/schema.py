"""The tables of the schema: are they there, are they of this release; and making them, step by step.

``meta`` says how many migrations a schema has seen. All that are missing are one transaction, under an advisory lock and after
another look, so two processes may begin at once, one that fails or dies leaves nothing behind, and nobody meets a new log half made.
"""

from __future__ import annotations

import re
from typing import Any, Final

import psycopg

from ..errors import LogError, StoreSchemaError
from .address import Address
from .faults import first_line, translated, unreachable
from .indexes import make_anew as make_indexes
from .indexes import missing as missing_indexes
from .pooling import Connection, connect
from .statements import statement

#: Names in ``sql/`` of the migrations, in order; the n-th brings a schema to version n.
MIGRATIONS: Final = ("001_first_tables", "002_append", "003_views", "004_vouching")
#: The tables of a schema that has seen them all.
TABLES: Final = ("meta", "streams", "events", "blobs", "schedule", "snapshots", "checkpoints", "views", "view_rows", "parked", "pointed")
#: What the migrations make beside tables.
_CODE: Final = re.compile(r"^CREATE (?:OR REPLACE )?(FUNCTION|VIEW) (\w+)", re.MULTILINE)
#: First key of the advisory lock; the second is a hash of the schema's name.
_MIGRATING: Final = 0x696C6F67
_OLDEST_SERVER: Final = 130_000
_MAY_NOT: Final = "42501"
_TAKEN: Final = ("42P07", "42710", "42723")


def prepare_schema(address: Address, *, create: bool, read_only: bool = False, repair: bool = False) -> bool:
    """Make sure that ``address`` holds an event log of this release; whether anything had to be done for it.

    With ``create`` a missing log is made and an older one migrated. With ``repair`` functions, views and indexes that somebody dropped are made
    anew, and positions are made to go on behind those of a log that was restored into a server whose transaction ids are lower. Raises ``StoreSchemaError`` or
    ``LogUnavailable``.
    """
    try:
        connection = connect(address, read_only=read_only)
    except psycopg.Error as error:
        raise _no_way_in(error, address) from error
    try:
        return _prepare(connection, address, create=create and not read_only, repair=repair)
    except psycopg.Error as error:
        raise translated(error, address) from error
    finally:
        connection.close()


def _no_way_in(error: psycopg.Error, address: Address) -> LogError:
    """libpq gives no state to an error of the first handshake, only its text."""
    said = first_line(error, address)
    if "database" in said and "does not exist" in said:
        return StoreSchemaError(f"{address.shown}: {said}. Make the database first, with: createdb")
    return unreachable(address, error)


def _prepare(connection: Connection, address: Address, *, create: bool, repair: bool) -> bool:
    version = _version(connection, address)
    changed = version < len(MIGRATIONS)
    if changed:
        if not create:
            state = f"was made by an older release (schema {version}, this one has {len(MIGRATIONS)})" if version else "holds no event log yet"
            raise StoreSchemaError(f"{address.shown} {state} in schema {address.schema!r}. Bring it up to date with: eventlog init, as the schema's owner")
        _check_server(connection, address)
        # A table that holds data takes longer to change than a statement may take; so does waiting for another process that migrates.
        connection.execute("SET statement_timeout = 0")
        # Kept until the connection is closed. Not inside a transaction: one that began before the wait would go by the catalogue of that time.
        connection.execute("SELECT pg_advisory_lock($1::int, hashtext($2))", (_MIGRATING, address.schema))
        _migrate(connection, address)
    _check_tables(connection, address)
    if repair and _missing_code(connection, address):
        _make_anew(connection, address)
        changed = True
    if repair and missing_indexes(lambda sql, values: connection.execute(sql, values).fetchall(), address):
        _index_anew(connection, address)
        changed = True
    if _is_behind(connection):
        if not repair:
            raise StoreSchemaError(
                f"{address.shown} was restored into a server whose transaction ids are lower than those in schema {address.schema!r}, so new events would come "
                "before old ones. Nothing has been written; run once, as the schema's owner: eventlog init"
            )
        _raise_offset(connection)
        changed = True
    return changed


def _version(connection: Connection, address: Address) -> int:
    """How many migrations the schema has seen; 0: it is not there, or empty."""
    (there,) = _one(connection, "SELECT to_regclass($1) IS NOT NULL", f"{address.schema}.meta")
    if not there:
        return 0
    found = connection.execute("SELECT schema_version FROM meta").fetchall()
    version = found[0][0] if len(found) == 1 else None
    if type(version) is not int or version < 1:
        raise StoreSchemaError(
            f"Table {address.schema}.meta of {address.shown} holds {found!r:.80} where one row with a schema version belongs. "
            "It is the table of something else, or was edited by hand: name another schema with ?schema=…, or restore it from a backup."
        )
    if version > len(MIGRATIONS):
        raise StoreSchemaError(
            f"{address.shown} was made by a newer release: schema {address.schema!r} is at {version}, this one knows up to {len(MIGRATIONS)}. "
            "Upgrade intentlog to read it."
        )
    return version


def _check_server(connection: Connection, address: Address) -> None:
    """What the tables need of their server."""
    if connection.info.server_version < _OLDEST_SERVER:
        raise StoreSchemaError(f"{address.shown} is served by PostgreSQL {connection.info.parameter_status('server_version')}; the log needs 13 or newer.")
    (encoding,) = _one(connection, "SELECT current_setting('server_encoding')")
    if encoding != "UTF8":
        raise StoreSchemaError(
            f"The database of {address.shown} stores text as {encoding}; the log needs UTF8. Make another with: createdb -E UTF8 -T template0"
        )


def _migrate(connection: Connection, address: Address) -> None:
    try:
        with connection.transaction():
            version = _version(connection, address)
            if version == len(MIGRATIONS):
                return
            (there,) = _one(connection, "SELECT to_regnamespace($1) IS NOT NULL", address.schema)
            if not there:
                connection.execute(f"CREATE SCHEMA {address.schema}")
            for migration in MIGRATIONS[version:]:
                connection.execute(statement(migration), prepare=False)
            connection.execute("UPDATE meta SET schema_version = $1", (len(MIGRATIONS),))
    except psycopg.Error as error:
        found = _refused(error, address)
        if found is None:
            raise
        raise found from error


def _refused(error: psycopg.Error, address: Address) -> StoreSchemaError | None:
    if error.sqlstate == _MAY_NOT:
        return StoreSchemaError(
            f"This user may not make or change the log's tables in schema {address.schema!r} of {address.shown}: {first_line(error, address)}. "
            "Run eventlog init as a role that owns the schema (or may create one in the database), and grant this user what it needs."
        )
    if error.sqlstate in _TAKEN:
        return StoreSchemaError(
            f"Schema {address.schema!r} of {address.shown} holds tables of something else: {first_line(error, address)}. "
            "Name another schema for the log with ?schema=…"
        )
    return None


def _check_tables(connection: Connection, address: Address) -> None:
    """Every table that the migrations made must still be there."""
    found = connection.execute("SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relkind IN ('r', 'p')", (address.schema,))
    there = {name for (name,) in found}
    missing = [name for name in TABLES if name not in there]
    if missing:
        raise StoreSchemaError(
            f"Schema {address.schema!r} of {address.shown} lacks its table{'s' if len(missing) > 1 else ''} {', '.join(missing)}: somebody dropped what no "
            "release drops. Restore it from a backup, or begin a new log in another schema with: eventlog init"
        )


def _missing_code(connection: Connection, address: Address) -> list[str]:
    """Functions and views that the migrations made and that are there no longer."""
    made = [name for migration in MIGRATIONS for _, name in _CODE.findall(statement(migration))]
    sql = "SELECT proname FROM pg_proc WHERE pronamespace = to_regnamespace($1) UNION SELECT viewname FROM pg_views WHERE schemaname = $1"
    there = {name for (name,) in connection.execute(sql, (address.schema,))}
    return [name for name in made if name not in there]


def _make_anew(connection: Connection, address: Address) -> None:
    """Make all functions and views once more: they hold no data. The migrations behind the first make nothing else."""
    try:
        with connection.transaction():
            # One at a time: two that replace one function at once disturb each other.
            connection.execute("SELECT pg_advisory_xact_lock($1::int, hashtext($2))", (_MIGRATING, address.schema))
            for migration in MIGRATIONS[1:]:
                connection.execute(_CODE.sub(r"CREATE OR REPLACE \1 \2", statement(migration)), prepare=False)
    except psycopg.Error as error:
        found = _refused(error, address)
        if found is None:
            raise
        raise found from error


def _index_anew(connection: Connection, address: Address) -> None:
    # Reading a large table takes longer than a statement may take; so does waiting for whoever writes to it.
    connection.execute("SET statement_timeout = 0")
    connection.execute("SELECT pg_advisory_lock($1::int, hashtext($2))", (_MIGRATING, address.schema))
    try:
        make_indexes(connection, address)
    except psycopg.Error as error:
        found = _refused(error, address)
        if found is None:
            raise
        raise found from error


def _is_behind(connection: Connection) -> bool:
    """Whether the server's next transaction id would give positions that are there already."""
    (behind,) = _one(connection, statement("is_behind"))
    return bool(behind)


def _raise_offset(connection: Connection) -> None:
    with connection.transaction():
        # Every append reads this table before it asks for its transaction id, so none is under way now, nor begins.
        connection.execute("LOCK TABLE meta IN ACCESS EXCLUSIVE MODE")
        if _is_behind(connection):
            connection.execute(statement("raise_offset"))


def _one(connection: Connection, sql: str, *parameters: Any) -> tuple[Any, ...]:
    (row,) = connection.execute(sql, parameters).fetchall()
    return row
