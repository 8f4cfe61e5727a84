"""A bundle as a log: everything that reads a log reads this; everything that writes is refused."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from typing import Final, NoReturn

import attrs

from ...agents.queues import TURNS
from ...eventlog.clock import Clock, Micros, system_clock
from ...eventlog.events import NewEvent, Row, StoredEvent
from ...eventlog.listed import as_rows, passing, shown
from ...eventlog.log import Appended, AppendRequest, Claim, Duplicate, Outcome, ParkedEvent, Snapshot, View, ViewTransaction, Wake
from ...eventlog.names import category_of
from ...eventlog.odd import OddCell, odd_cells
from ...eventlog.versions import EMPTY, ExpectedVersion
from ..errors import BundleIsReadOnly
from .layout import AGAIN, Manifest

_CHUNK: Final = 1_000


def _refuse(doing: str) -> NoReturn:
    raise BundleIsReadOnly(f"A bundle is read-only: {doing} is not possible. What-if: eventlog fork STREAM --log BUNDLE --at N")


class BundleLog:
    """An ``EventLog`` over the streams of a bundle, in memory. Positions, times and ids are those of the log it was made from."""

    served = False

    def __init__(
        self, url: str, manifest: Manifest, events: Mapping[str, Sequence[StoredEvent]], snapshots: Mapping[str, Snapshot], clock: Clock = system_clock
    ) -> None:
        self.url = url
        self.clock = clock
        self.manifest = manifest
        #: Versions in which something was redacted, by stream: a replay that differs there cannot say anything.
        self.redacted: dict[str, frozenset[int]] = {each.name: frozenset(each.redacted) for each in manifest.streams if each.redacted}
        self._events = events
        self._names = sorted(events)
        self._all = sorted((event for each in events.values() for event in each), key=lambda event: event.position)
        self._positions = [event.position for event in self._all]
        self.snapshots = _Snapshots(snapshots)
        self.checkpoints = _Checkpoints()
        self.schedule = _Schedule({each.name: each.wake for each in manifest.streams if each.known})
        self.views = _Views()

    def append(self, stream: str, events: Sequence[NewEvent], expected: ExpectedVersion, *, wakes: Sequence[Wake] = ()) -> Appended | Duplicate:
        _refuse(f"an append to {stream}")

    def append_batch(self, requests: Sequence[AppendRequest]) -> list[Outcome]:
        _refuse("an append")

    def read(
        self, stream: str, *, after: int = -1, upto: int | None = None, limit: int | None = None, backwards: bool = False, payloads: bool = True
    ) -> Iterator[StoredEvent]:
        found = self._range(stream, after, upto)
        return shown(islice(reversed(found) if backwards else iter(found), limit), payloads)

    def rows(self, stream: str, *, after: int = -1, upto: int | None = None) -> Iterator[Sequence[Row]]:
        found = self._range(stream, after, upto)
        return (as_rows(found[begin : begin + _CHUNK]) for begin in range(0, len(found), _CHUNK))

    def rows_of(self, after: Mapping[str, int], *, most: int | None = None) -> dict[str, list[Row]]:
        return {name: as_rows(self._range(name, version, None)[:most]) for name, version in after.items()}

    def _range(self, stream: str, after: int, upto: int | None) -> Sequence[StoredEvent]:
        events = self._events.get(stream, ())
        if events and events[-1].version != len(events) - 1:  # a history with a hole, kept as it was found
            return [event for event in events if event.version > after and (upto is None or event.version <= upto)]
        return events[max(after, EMPTY) + 1 : len(events) if upto is None else max(upto + 1, 0)]

    def read_all(
        self,
        *,
        after: int = 0,
        upto: int | None = None,
        types: Iterable[str] = (),
        categories: Iterable[str] = (),
        limit: int | None = None,
        payloads: bool = True,
    ) -> Iterator[StoredEvent]:
        begin = bisect_right(self._positions, after)
        end = len(self._all) if upto is None else bisect_right(self._positions, upto)
        return shown(islice(passing(types, categories, islice(self._all, begin, end)), limit), payloads)

    def head(self, stream: str) -> int:
        events = self._events.get(stream)
        return events[-1].version if events else EMPTY

    def last_position(self) -> int:
        return self._positions[-1] if self._positions else 0

    def streams(self, prefix: str = "") -> Iterator[str]:
        return (name for name in self._names[bisect_left(self._names, prefix) :] if name.startswith(prefix))

    def wait(self, after: int, timeout: float) -> bool:
        """Whether there is something behind ``after``; nothing ever comes."""
        if self.last_position() > after:
            return True
        threading.Event().wait(timeout)
        return False

    def odd_cells(self, *, events: bool = True) -> Iterator[OddCell]:
        """Columns of events that hold what no append writes, in the log that the bundle was made from or by the hand that made it."""
        for stored in self._all if events else ():
            yield from odd_cells(stored, f"{self.url} holds what no log writes: ", AGAIN, " --log BUNDLE")

    def close(self) -> None:
        """Nothing is held open."""


@attrs.frozen
class _Snapshots:
    _kept: Mapping[str, Snapshot]

    def save(self, stream: str, snapshot: Snapshot) -> None:
        _refuse("saving a snapshot")

    def load(self, streams: Sequence[str]) -> dict[str, Snapshot]:
        return {stream: self._kept[stream] for stream in streams if stream in self._kept}

    def delete(self, stream: str | None = None) -> int:
        _refuse("deleting snapshots")


class _Checkpoints:
    def load(self, name: str) -> int:
        return 0

    def save(self, name: str, position: int) -> None:
        _refuse("saving a checkpoint")

    def reset(self, name: str) -> None:
        _refuse("resetting a checkpoint")

    def all(self) -> dict[str, int]:
        return {}


@attrs.frozen
class _Schedule:
    _wakes: Mapping[str, Micros | None]

    def claim_due(self, queue: str, owner: str, *, now: Micros, until: Micros, limit: int, categories: Iterable[str] = ()) -> list[Claim]:
        _refuse("claiming a stream")

    def acquire(self, queue: str, names: Sequence[str], owner: str, *, now: Micros, until: Micros) -> dict[str, int]:
        _refuse("leasing a stream")

    def renew(self, claims: Sequence[Claim], *, until: Micros) -> list[Claim]:
        return list(claims)

    def release(self, claims: Sequence[Claim], wake_at: Micros | None = None, *, keep_wake: bool = True) -> None:
        _refuse("handing a lease back")

    def wake(self, queue: str, name: str, at: Micros) -> None:
        _refuse("waking a stream")

    def next_wake(self, queue: str, *, categories: Iterable[str] = ()) -> Micros | None:
        of = frozenset(categories)
        return min((at for name, at in self._of(queue).items() if at is not None and (not of or category_of(name) in of)), default=None)

    def wakes(self, queue: str, names: Sequence[str]) -> dict[str, Micros | None]:
        known = self._of(queue)
        return {name: known[name] for name in names if name in known}

    def due(self, queue: str, *, now: Micros, categories: Iterable[str] = ()) -> int:
        of = frozenset(categories)
        return sum(at is not None and at <= now and (not of or category_of(name) in of) for name, at in self._of(queue).items())

    def owners(self) -> set[str]:
        return set()

    def evict(self, owner: str) -> int:
        return 0

    def _of(self, queue: str) -> Mapping[str, Micros | None]:
        return self._wakes if queue == TURNS else {}


class _NoView:
    def get(self, key: str) -> bytes | None:
        return None

    def put(self, key: str, value: bytes) -> None:
        _refuse("writing to a view")

    def delete(self, key: str) -> None:
        _refuse("writing to a view")

    def items(self, prefix: str = "") -> Iterator[tuple[str, bytes]]:
        return iter(())


class _Views:
    """A bundle has no views: they are folded from the whole log."""

    def transaction(self, name: str) -> AbstractContextManager[ViewTransaction]:
        _refuse("writing to a view")

    def read(self, name: str) -> View:
        return _NoView()

    def point(self, name: str, view: str | None, *, expected: str | None) -> bool:
        _refuse("pointing a view")

    def pointed(self) -> dict[str, str]:
        return {}

    def clear(self, name: str) -> None:
        _refuse("clearing a view")

    def parked(self, name: str | None = None) -> list[ParkedEvent]:
        return []
