"""Snapshots and checkpoints: small tables that only their own statements know."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ..log import Snapshot
from .connection import Database
from .faults import misplaced
from .ranges import is_storable
from .statements import marks, statement

_NAMES_AT_ONCE: Final = 500


class SqliteSnapshots:
    """The latest snapshot of each stream."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def save(self, stream: str, snapshot: Snapshot) -> None:
        with self._database.write() as connection:
            connection.execute(statement("save_snapshot"), (stream, snapshot.version, snapshot.fingerprint, snapshot.data))

    def load(self, streams: Sequence[str]) -> dict[str, Snapshot]:
        found: dict[str, Snapshot] = {}
        wanted = [stream for stream in streams if is_storable(stream)]
        for begin in range(0, len(wanted), _NAMES_AT_ONCE):
            names = wanted[begin : begin + _NAMES_AT_ONCE]
            sql = statement("find_snapshots").replace(":names", marks(len(names)))
            for stream, version, fingerprint, data in self._database.rows(sql, names):
                if type(version) is int and type(fingerprint) is str and type(data) is bytes:  # what is none is ignored like any other (S-8.2)
                    found[stream] = Snapshot(version, fingerprint, data)
        return found

    def delete(self, stream: str | None = None) -> int:
        with self._database.write() as connection:
            if stream is None:
                return connection.execute("DELETE FROM snapshots WHERE true").rowcount
            return connection.execute("DELETE FROM snapshots WHERE stream = ?", (stream,)).rowcount


class SqliteCheckpoints:
    """Positions by name; they only grow until somebody resets them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def load(self, name: str) -> int:
        found = self._database.rows("SELECT position FROM checkpoints WHERE name = ?", (name,))
        return whole_position(self._database.path, name, found[0][0]) if found else 0

    def save(self, name: str, position: int) -> None:
        if position <= 0:
            return
        with self._database.write() as connection:
            connection.execute(statement("save_checkpoint"), (name, position))

    def reset(self, name: str) -> None:
        with self._database.write() as connection:
            connection.execute("DELETE FROM checkpoints WHERE name = ?", (name,))

    def all(self) -> dict[str, int]:
        found = self._database.rows("SELECT name, position FROM checkpoints")
        return {name: whole_position(self._database.path, name, position) for name, position in found}


def whole_position(path: Path, name: object, position: object) -> int:
    """A checkpoint as it was read. Raises ``StoreSchemaError`` for what nobody can have saved."""
    if type(position) is int and isinstance(name, str):
        return position
    raise misplaced(path, "checkpoints", f"name {name!r:.200}", "position", position, "a place in the log (an integer)")
