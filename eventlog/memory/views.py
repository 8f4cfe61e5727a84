"""Views in memory: bytes by key, written through an overlay that becomes visible together with the checkpoint."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ..log import ParkedEvent
from .gate import Gate
from .keeping import MemoryCheckpoints


class _Reading:
    """A view as it stands; ``items`` walks what was there when it was asked."""

    def __init__(self, name: str, gate: Gate, rows: Mapping[str, Mapping[str, bytes]], pointed: Mapping[str, str]) -> None:
        self._name = name
        self._gate = gate
        self._rows = rows
        self._pointed = pointed

    def get(self, key: str) -> bytes | None:
        with self._gate:
            return self._meant().get(key)

    def put(self, key: str, value: bytes) -> None:
        raise TypeError(f"View {self._name!r} is open for reading, so {key!r:.80} cannot be written. Write inside views.transaction({self._name!r}).")

    def delete(self, key: str) -> None:
        raise TypeError(f"View {self._name!r} is open for reading, so {key!r:.80} cannot be deleted. Write inside views.transaction({self._name!r}).")

    def items(self, prefix: str = "") -> Iterator[tuple[str, bytes]]:
        with self._gate:
            return iter(_sorted(self._meant(), prefix))

    def _meant(self) -> Mapping[str, bytes]:
        return self._rows.get(self._pointed.get(self._name, self._name), {})


class _Writing:
    """The overlay of one transaction: nothing in it is visible outside before the commit."""

    def __init__(self, rows: Mapping[str, bytes], position: int) -> None:
        self.position = position
        self.changes: dict[str, bytes | None] = {}
        #: By position; None: no longer.
        self.parked: dict[int, ParkedEvent | None] = {}
        self._rows = rows

    def get(self, key: str) -> bytes | None:
        return self.changes[key] if key in self.changes else self._rows.get(key)

    def put(self, key: str, value: bytes) -> None:
        if not isinstance(value, bytes):
            raise TypeError(f"The value of {key!r:.80} must be bytes, not {type(value).__name__}: {value!r:.80}")
        self.changes[key] = value

    def delete(self, key: str) -> None:
        self.changes[key] = None

    def items(self, prefix: str = "") -> Iterator[tuple[str, bytes]]:
        merged = {**self._rows, **self.changes}
        return iter(_sorted({key: value for key, value in merged.items() if value is not None}, prefix))

    def checkpoint(self, position: int) -> None:
        self.position = max(self.position, position)

    def park(self, event: ParkedEvent) -> None:
        self.parked[event.position] = event

    def unpark(self, position: int) -> None:
        self.parked[position] = None


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
    def transaction(self, name: str) -> Iterator[_Writing]:
        with self._writer(name):
            with self._gate:
                writing = _Writing(self._rows.get(name, {}), self._checkpoints.load(name))
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

    def _commit(self, name: str, writing: _Writing) -> None:
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
