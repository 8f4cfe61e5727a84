"""The log itself: streams, ids and the order of everything. Positions are places in one list, counted from 1."""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

import attrs

from ..clock import Clock, Micros
from ..errors import EventIdConflict, LeaseLost, WrongExpectedVersion
from ..events import NewEvent, Row, StoredEvent
from ..log import Appended, AppendRequest, Duplicate, Outcome, StreamAppend, Wake
from ..names import category_of
from ..planning import check_requests
from ..versions import EMPTY, NO_STREAM, ExpectedVersion, matches
from .gate import Gate
from .keeping import MemoryCheckpoints, MemorySnapshots
from .schedule import MemorySchedule
from .views import MemoryViews

_SINCE_LIMIT: Final = 1_000
_CHUNK: Final = 1_000


@attrs.define(slots=True)
class _Stream:
    events: list[StoredEvent] = attrs.field(factory=list)
    versions: dict[bytes, int] = attrs.field(factory=dict)


class MemoryLog:
    """An ``EventLog`` in this process's memory."""

    served = False

    def __init__(self, url: str, clock: Clock) -> None:
        self.url = url
        self.clock = clock
        self._gate = Gate(url)
        self._events: list[StoredEvent] = []
        self._streams: dict[str, _Stream] = {}
        self._names: list[str] = []
        self.snapshots = MemorySnapshots(self._gate)
        self.checkpoints = MemoryCheckpoints(self._gate)
        self.schedule = MemorySchedule(self._gate)
        self.views = MemoryViews(self._gate, self.checkpoints)

    # Appending

    def append(self, stream: str, events: Sequence[NewEvent], expected: ExpectedVersion, *, wakes: Sequence[Wake] = ()) -> Appended | Duplicate:
        (outcome,) = self.append_batch([AppendRequest([StreamAppend(stream, events, expected, wakes)])])
        if isinstance(outcome, Appended | Duplicate):
            return outcome
        raise outcome

    def append_batch(self, requests: Sequence[AppendRequest]) -> list[Outcome]:
        with self._gate:
            check_requests(requests, self._streams)
            now = self.clock()
            outcomes = [self._commit(request, now) for request in requests]
            self._gate.changed.notify_all()
        return outcomes

    def _commit(self, request: AppendRequest, now: Micros) -> Outcome:
        known = self._known(request)
        if known is not None:
            return known
        for fence in request.fences:
            if not self.schedule.holds(fence):
                return LeaseLost(
                    f"Token {fence.token} for {fence.name} in queue {fence.queue!r} is no longer current: somebody else took over. Claim it again and reload."
                )
        heads: dict[str, int] = {}
        for part in request.parts:
            head = heads[part.stream] if part.stream in heads else self._head(part.stream)
            if not matches(part.expected, head):
                return WrongExpectedVersion(part.stream, part.expected, head, self._since(part))
            heads[part.stream] = head + len(part.events)
        for fence in request.fences:
            if fence.release:
                self.schedule.hand_back(fence)
        places = [self._write(part, now) for part in request.parts]
        return Appended(tuple(first for first, _ in places), tuple(positions for _, positions in places))

    def _known(self, request: AppendRequest) -> Duplicate | EventIdConflict | None:
        """What the event ids alone decide; None when all of them are new."""
        seen: set[tuple[str, bytes]] = set()
        places: list[list[StoredEvent]] = []
        for part in request.parts:
            stream = self._streams.get(part.stream)
            found: list[StoredEvent] = []
            for event in part.events:
                key = (part.stream, event.event_id)
                if key in seen:
                    return EventIdConflict(f"Event id {event.event_id.hex()} is twice in one request for {part.stream}. Give every event its own id.")
                seen.add(key)
                version = None if stream is None else stream.versions.get(event.event_id)
                if stream is None or version is None:
                    continue
                old = stream.events[version]
                if (old.type, old.schema, old.data) != (event.type, event.schema, event.data):
                    return EventIdConflict(
                        f"Event id {event.event_id.hex()} is version {version} of {part.stream} with other bytes ({old.type} {old.schema}, sent now as "
                        f"{event.type} {event.schema}). An id stands for one event for ever: give the new event a new id."
                    )
                found.append(old)
            places.append(found)
        count = sum(map(len, places))
        if not count:
            return None
        if count < len(seen):
            known = next(old for found in places for old in found)
            return EventIdConflict(
                f"{count} of the {len(seen)} event ids are there already, such as {known.event_id.hex()} at version {known.version} of {known.stream}, "
                "and the others are not. Send the same events together again, or new ids for new events."
            )
        firsts = tuple(found[0].version if found else self._head(part.stream) + 1 for part, found in zip(request.parts, places, strict=True))
        return Duplicate(firsts, tuple(tuple(old.position for old in found) for found in places))

    def _write(self, part: StreamAppend, now: Micros) -> tuple[int, tuple[int, ...]]:
        stream = self._streams.get(part.stream)
        if stream is None:
            stream = _Stream()
            if part.events:
                self._streams[part.stream] = stream
                insort(self._names, part.stream)
        first, begin = len(stream.events), len(self._events) + 1
        for offset, event in enumerate(part.events):
            version = first + offset
            stored = StoredEvent(
                begin + offset, part.stream, version, event.event_id, event.type, event.schema, event.data, now, event.correlation, event.causation
            )
            stream.events.append(stored)
            stream.versions[event.event_id] = version
            self._events.append(stored)
        for wake in part.wakes:
            self.schedule.apply(part.stream, wake)
        return first, tuple(range(begin, begin + len(part.events)))

    def _since(self, part: StreamAppend) -> list[StoredEvent]:
        """What a writer that lost the race has to look at before it decides again."""
        if isinstance(part.expected, int):
            after = part.expected
        elif part.expected is NO_STREAM:
            after = EMPTY
        else:
            return []
        stream = self._streams.get(part.stream)
        return [] if stream is None else stream.events[max(after, EMPTY) + 1 :][:_SINCE_LIMIT]

    # Reading. What a read covers is fixed when it is asked for; lists only grow, so walking them needs no lock.

    def read(
        self, stream: str, *, after: int = -1, upto: int | None = None, limit: int | None = None, backwards: bool = False, payloads: bool = True
    ) -> Iterator[StoredEvent]:
        events, places = self._range(stream, after, upto)
        chosen = reversed(places) if backwards else iter(places)
        return _with(payloads, map(events.__getitem__, islice(chosen, limit)))

    def rows(self, stream: str, *, after: int = -1, upto: int | None = None) -> Iterator[Sequence[Row]]:
        events, places = self._range(stream, after, upto)
        return (_rows(events[begin : min(begin + _CHUNK, places.stop)]) for begin in range(places.start, places.stop, _CHUNK))

    def rows_of(self, after: Mapping[str, int]) -> dict[str, list[Row]]:
        with self._gate:
            return {name: _rows(self._streams[name].events[max(version, EMPTY) + 1 :] if name in self._streams else []) for name, version in after.items()}

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
        with self._gate:
            end = len(self._events)
        events = self._events
        found = map(events.__getitem__, range(max(after, 0), end if upto is None else min(end, upto)))
        wanted = _filter(frozenset(types), frozenset(categories))
        return _with(payloads, islice(found if wanted is None else filter(wanted, found), limit))

    def head(self, stream: str) -> int:
        with self._gate:
            return self._head(stream)

    def last_position(self) -> int:
        with self._gate:
            return len(self._events)

    def streams(self, prefix: str = "") -> Iterator[str]:
        with self._gate:
            begin = bisect_left(self._names, prefix)
            chunk = self._names[begin : begin + _CHUNK]
        return self._walk(prefix, chunk)

    def _walk(self, prefix: str, chunk: list[str]) -> Iterator[str]:
        while chunk:
            for name in chunk:
                if not name.startswith(prefix):
                    return
                yield name
            with self._gate:
                begin = bisect_right(self._names, chunk[-1])
                chunk = self._names[begin : begin + _CHUNK]

    def wait(self, after: int, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        with self._gate:
            while len(self._events) <= after:
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._gate.wait(left)
            return True

    def close(self) -> None:
        self._gate.close()

    def _head(self, stream: str) -> int:
        found = self._streams.get(stream)
        return EMPTY if found is None else len(found.events) - 1

    def _range(self, stream: str, after: int, upto: int | None) -> tuple[Sequence[StoredEvent], range]:
        with self._gate:
            found = self._streams.get(stream)
            if found is None:
                return (), range(0)
            end = len(found.events)
            return found.events, range(max(after, EMPTY) + 1, end if upto is None else min(end, upto + 1))


def _with(payloads: bool, events: Iterator[StoredEvent]) -> Iterator[StoredEvent]:
    return events if payloads else (event._replace(data=b"") for event in events)


def _rows(events: Iterable[StoredEvent]) -> list[Row]:
    return [(event.version, event.type, event.schema, event.data, event.event_id, event.recorded_at) for event in events]


def _filter(types: frozenset[str], categories: frozenset[str]) -> Callable[[StoredEvent], bool] | None:
    if not types and not categories:
        return None
    return lambda event: (not types or event.type in types) and (not categories or category_of(event.stream) in categories)
