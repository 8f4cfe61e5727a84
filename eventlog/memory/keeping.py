"""Snapshots and checkpoints in memory: two small dicts behind the log's lock."""

from __future__ import annotations

from collections.abc import Sequence

from ..log import Snapshot
from .gate import Gate


class MemorySnapshots:
    """The latest snapshot of each stream."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._kept: dict[str, Snapshot] = {}

    def save(self, stream: str, snapshot: Snapshot) -> None:
        with self._gate:
            old = self._kept.get(stream)
            if old is None or old.fingerprint != snapshot.fingerprint or old.version <= snapshot.version:
                self._kept[stream] = snapshot

    def load(self, streams: Sequence[str]) -> dict[str, Snapshot]:
        with self._gate:
            return {stream: self._kept[stream] for stream in streams if stream in self._kept}

    def delete(self, stream: str | None = None) -> int:
        with self._gate:
            if stream is not None:
                return 0 if self._kept.pop(stream, None) is None else 1
            count = len(self._kept)
            self._kept.clear()
            return count


class MemoryCheckpoints:
    """Positions by name; they only grow until somebody resets them."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._saved: dict[str, int] = {}

    def load(self, name: str) -> int:
        with self._gate:
            return self._saved.get(name, 0)

    def save(self, name: str, position: int) -> None:
        with self._gate:
            if position > self._saved.get(name, 0):
                self._saved[name] = position

    def reset(self, name: str) -> None:
        with self._gate:
            self._saved.pop(name, None)

    def all(self) -> dict[str, int]:
        with self._gate:
            return dict(self._saved)
