"""The indexes of the schema: which are missing, and making them anew. They are known by what they are on, whatever their names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import psycopg

from ..errors import StoreSchemaError
from ..inspecting import Index, in_the_way
from .address import Address
from .pooling import Connection
from .statements import statement

_EVENTS: Final = "events"


def _key(table: str, *columns: str, name: str = "", purpose: str = "") -> Index:
    return Index(name or f"{table}_pkey", table, columns, purpose or f"one row for each {' and '.join(columns)}", primary=True)


#: As the migrations make them.
INDEXES: Final = (
    _key("meta", "single"),
    _key("streams", "id"),
    Index("streams_name_key", "streams", ("name",), "one stream of a name"),
    _key(_EVENTS, "position", name="events_by_position", purpose="one event at a position"),
    Index("events_by_version", _EVENTS, ("stream_id", "version"), "one event at a version of a stream"),
    Index("events_by_id", _EVENTS, ("event_id", "stream_id"), "an event from being recorded twice in a stream"),
    _key("blobs", "digest"),
    _key("schedule", "queue", "name"),
    Index("schedule_by_wake", "schedule", ("queue", "wake_at"), "the search for due names short", unique=False, where="wake_at IS NOT NULL"),
    Index("schedule_by_owner", "schedule", ("owner",), "the search for held names short", unique=False, where="owner IS NOT NULL"),
    _key("snapshots", "stream"),
    _key("checkpoints", "name"),
    _key("views", "name"),
    _key("pointed", "name"),
    _key("view_rows", "view", "key"),
    _key("parked", "id"),
    Index("parked_projection_position_key", "parked", ("projection", "position"), "an event from being parked twice"),
)
_SHOWN: Final = 3


def missing(rows: Callable[[str, Sequence[Any]], list[Any]], address: Address) -> list[Index]:
    """The indexes that are not there, or not whole; ``rows`` runs a reading statement."""
    there = {(table, unique, tuple(columns), partial) for table, unique, columns, partial in rows(statement("find_indexes"), (address.schema,))}
    return [index for index in INDEXES if (index.table, index.unique, index.columns, bool(index.where)) not in there]


def make_anew(connection: Connection, address: Address) -> None:
    """Make those that are missing, all or none. Raises ``StoreSchemaError`` with the rows that stand in the way; ``psycopg.Error``."""
    wanted: Index | None = None
    try:
        with connection.transaction():
            for wanted in missing(lambda sql, values: connection.execute(sql, values).fetchall(), address):
                # Whatever bears the name is not what it says.
                connection.execute(f"ALTER TABLE {wanted.table} DROP CONSTRAINT IF EXISTS {wanted.name}")
                connection.execute(f"DROP INDEX IF EXISTS {wanted.name}")
                connection.execute(_made_by(wanted))
    except psycopg.errors.UniqueViolation as problem:
        if wanted is None:
            raise
        raise StoreSchemaError(f"{address.shown}: schema {address.schema!r} {in_the_way(wanted, _twice(connection, wanted))}") from problem


def _made_by(index: Index) -> str:
    columns = ", ".join(index.columns)
    if not index.unique:
        return f"CREATE INDEX {index.name} ON {index.table} ({columns}) WHERE {index.where}"
    return f"ALTER TABLE {index.table} ADD CONSTRAINT {index.name} {'PRIMARY KEY' if index.primary else 'UNIQUE'} ({columns})"


def _twice(connection: Connection, index: Index) -> list[str]:
    """Rows that are the same in the index's columns, the first few."""
    columns = ", ".join(f"e.{each}" for each in index.columns)
    if index.table == _EVENTS:
        found = connection.execute(statement("find_twice").replace(":columns", columns), (_SHOWN,)).fetchall()
        return [
            f"{f'version {version}' if 'version' in index.columns else f'event {event_id}'} of {stream:.200} at positions {positions}"
            for stream, version, event_id, positions in found
        ]
    shown = ", ".join(f"e.{each}::text" for each in index.columns)
    sql = f"SELECT count(*), {shown} FROM {index.table} e GROUP BY {columns} HAVING count(*) > 1 ORDER BY {columns} LIMIT $1"
    return [f"{count} with {_named(index.columns, values)}" for count, *values in connection.execute(sql, (_SHOWN,)).fetchall()]


def _named(columns: Sequence[str], values: Sequence[Any]) -> str:
    return ", ".join(f"{name} {value!r:.80}" for name, value in zip(columns, values, strict=True))
