"""Snapshots and checkpoints: small tables that only their own statements know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..log import Snapshot
from .arrays import texts
from .connection import Database
from .statements import statement
from .texts import is_storable

_NAMES_AT_ONCE: Final = 500


class PostgresSnapshots:
    """The latest snapshot of each stream. Saving one does not wait for the disk: a snapshot that is lost loses nothing (S-8.2)."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def save(self, stream: str, snapshot: Snapshot) -> None:
        values = (stream, snapshot.version, snapshot.fingerprint, snapshot.data)
        self._database.execute(statement("save_snapshot"), values, durable=False)

    def load(self, streams: Sequence[str]) -> dict[str, Snapshot]:
        found: dict[str, Snapshot] = {}
        wanted = [stream for stream in streams if is_storable(stream)]
        for begin in range(0, len(wanted), _NAMES_AT_ONCE):
            names = texts(wanted[begin : begin + _NAMES_AT_ONCE])
            for stream, version, fingerprint, data in self._database.rows(statement("find_snapshots"), (names,)):
                found[stream] = Snapshot(version, fingerprint, data)
        return found

    def delete(self, stream: str | None = None) -> int:
        if stream is None:
            return self._database.execute("DELETE FROM snapshots")
        return self._database.execute("DELETE FROM snapshots WHERE stream = $1", (stream,))


class PostgresCheckpoints:
    """Positions by name; they only grow until somebody resets them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def load(self, name: str) -> int:
        found = self._database.rows("SELECT position FROM checkpoints WHERE name = $1", (name,))
        return int(found[0][0]) if found else 0

    def save(self, name: str, position: int) -> None:
        if position > 0:
            self._database.execute(statement("save_checkpoint"), (name, position))

    def reset(self, name: str) -> None:
        self._database.execute("DELETE FROM checkpoints WHERE name = $1", (name,))

    def all(self) -> dict[str, int]:
        return dict(self._database.rows("SELECT name, position FROM checkpoints"))
