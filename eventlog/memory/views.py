"""Views in memory: bytes by key, written through an overlay that becomes visible together with the checkpoint."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from ..log import ParkedEvent
from ..viewing import ForReading, Overlay
from .gate import Gate
from .keeping import MemoryCheckpoints


class _Reading(ForReading):
    """A view as it stands; ``items`` walks what was there when it was asked."""

    def __init__(self, name: str, gate: Gate, rows: Mapping[str, Mapping[str, bytes]], pointed: Mapping[str, str]) -> None:
        super().__init__(name)
        self._gate = gate
        self._rows = rows
        self._pointed = pointed

    def get(self, key: str) -> bytes | None:
        with self._gate:
            return self._meant().get(key)

    def items(self, prefix: str = "") -> Iterator[tuple[str, bytes]]:
        with self._gate:
            return iter(_sorted(self._meant(), prefix))

    def _meant(self) -> Mapping[str, bytes]:
        return self._rows.get(self._pointed.get(self._name, self._name), {})


class MemoryViews:
    """Where projections keep what they build."""

    def __init__(self, gate: Gate, checkpoints: MemoryCheckpoints) -> None:
        self._gate = gate
        self._checkpoints = checkpoints
        self._rows: dict[str, dict[str, bytes]] = {}
        self._writers: dict[str, threading.Lock] = {}
        self._parked: dict[tuple[str, int], ParkedEvent] = {}
        self._pointed: dict[str, str] = {}

    @contextmanager
    def transaction(self, name: str) -> Iterator[Overlay]:
        with self._writer(name):
            with self._gate:
                rows = self._rows.get(name, {})
                writing = Overlay(self._checkpoints.load(name), rows.get, partial(_sorted, rows))
            yield writing
            with self._gate:
                self._commit(name, writing)

    def read(self, name: str) -> _Reading:
        with self._gate:
            return _Reading(name, self._gate, self._rows, self._pointed)

    def point(self, name: str, view: str | None, *, expected: str | None) -> bool:
        with self._gate:
            if self._pointed.get(name) != expected:
                return False
            if view is None:
                self._pointed.pop(name, None)
                return True
            if expected is not None and self._checkpoints.load(view) < self._checkpoints.load(expected):
                return False
            self._pointed[name] = view
            return True

    def pointed(self) -> dict[str, str]:
        with self._gate:
            return dict(self._pointed)

    def clear(self, name: str) -> None:
        with self._writer(name), self._gate:
            self._rows.pop(name, None)
            self._checkpoints.reset(name)
            self._parked = {key: event for key, event in self._parked.items() if event.projection != name}

    def parked(self, name: str | None = None) -> list[ParkedEvent]:
        with self._gate:
            return [event for event in self._parked.values() if name is None or event.projection == name]

    def _commit(self, name: str, writing: Overlay) -> None:
        rows = self._rows.setdefault(name, {})
        for key, value in writing.changes.items():
            if value is None:
                rows.pop(key, None)
            else:
                rows[key] = value
        self._checkpoints.save(name, writing.position)
        for position, event in writing.parked.items():
            if event is None:
                self._parked.pop((name, position), None)
            else:
                self._parked[name, position] = event

    def _writer(self, name: str) -> threading.Lock:
        with self._gate:
            return self._writers.setdefault(name, threading.Lock())


def _sorted(rows: Mapping[str, bytes], prefix: str) -> list[tuple[str, bytes]]:
    return sorted((key, value) for key, value in rows.items() if key.startswith(prefix))
