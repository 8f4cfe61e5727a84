"""The indexes of the file: which are missing, and making them anew. Those of primary keys cannot be dropped, and are not looked for."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any, Final

from ..errors import StoreSchemaError
from ..inspecting import Index, in_the_way
from .address import Address
from .statements import statement

_EVENTS: Final = "events"
#: As the migration makes them.
INDEXES: Final = (
    Index("events_by_version", _EVENTS, ("stream_id", "version"), "one event at a version of a stream"),
    Index("events_by_id", _EVENTS, ("event_id", "stream_id"), "an event from being recorded twice in a stream"),
    Index("schedule_by_wake", "schedule", ("queue", "wake_at"), "the search for due names short", unique=False, where="wake_at IS NOT NULL"),
    Index("schedule_by_owner", "schedule", ("owner",), "the search for held names short", unique=False, where="owner IS NOT NULL"),
)
_SHOWN: Final = 3
_TABLES: Final = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"


def made_by(index: Index) -> str:
    """The command that makes ``index``."""
    where = f" WHERE {index.where}" if index.where else ""
    return f"CREATE {'UNIQUE ' if index.unique else ''}INDEX {index.name} ON {index.table} ({', '.join(index.columns)}){where}"


def missing(rows: Callable[[str], list[Any]]) -> list[Index]:
    """The indexes that are not there, or under whose name there is another one; ``rows`` runs a reading statement."""
    there = {name: _plain(sql) for name, sql in rows(_TABLES)}
    return [index for index in INDEXES if there.get(index.name) != _plain(made_by(index))]


def make_anew(connection: sqlite3.Connection, address: Address) -> bool:
    """Make those that are missing, all or none; whether there were any. Raises ``StoreSchemaError`` with the rows that stand in the way."""
    if not missing(lambda sql: connection.execute(sql).fetchall()):
        return False
    connection.execute("BEGIN IMMEDIATE")
    try:
        for index in missing(lambda sql: connection.execute(sql).fetchall()):  # somebody else may have been quicker
            connection.execute(f"DROP INDEX IF EXISTS {index.name}")
            try:
                connection.execute(made_by(index))
            except sqlite3.IntegrityError as problem:
                raise StoreSchemaError(f"{address.path} {in_the_way(index, _twice(connection, index))}") from problem
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return True


def _twice(connection: sqlite3.Connection, index: Index) -> Iterator[str]:
    """Rows of ``events`` that are the same in the index's columns, the first few; only indexes of that table are unique."""
    columns = ", ".join(index.columns)
    sql = statement("find_twice").replace(":columns", columns)
    for stream, version, event_id, positions in connection.execute(sql, (_SHOWN,)):
        what = f"version {version!r:.40}" if "version" in index.columns else f"event {event_id.hex() if isinstance(event_id, bytes) else repr(event_id):.40}"
        yield f"{what} of {stream!s:.200} at positions {positions}"


def _plain(sql: str) -> str:
    return re.sub(r"\s+", " ", sql).strip(" ;").lower()
