"""The log itself: streams, ids and the order of everything. Positions are places in one list, counted from 1."""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from ..clock import Clock, Micros
from ..errors import WrongExpectedVersion
from ..events import NewEvent, Row, StoredEvent
from ..listed import as_rows, passing, shown
from ..log import Appended, AppendRequest, Duplicate, Outcome, StreamAppend, Wake
from ..planning import check_requests, lost, repeated
from ..versions import EMPTY, NO_STREAM, ExpectedVersion, matches
from .gate import Gate
from .keeping import MemoryCheckpoints, MemorySnapshots
from .schedule import MemorySchedule
from .views import MemoryViews

_SINCE_LIMIT: Final = 1_000
_CHUNK: Final = 1_000


class MemoryLog:
    """An ``EventLog`` in this process's memory."""

    served = False

    def __init__(self, url: str, clock: Clock) -> None:
        self.url = url
        self.clock = clock
        self._gate = Gate(url)
        self._events: list[StoredEvent] = []
        self._streams: dict[str, list[StoredEvent]] = {}
        self._by_id: dict[str, dict[bytes, StoredEvent]] = {}
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
        known = repeated(request, self._by_id, self._head)
        if known is not None:
            return known
        for fence in request.fences:
            if not self.schedule.holds(fence):
                return lost(fence)
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

    def _write(self, part: StreamAppend, now: Micros) -> tuple[int, tuple[int, ...]]:
        stream = self._streams.get(part.stream)
        if stream is None:
            stream = []
            if part.events:
                self._streams[part.stream], self._by_id[part.stream] = stream, {}
                insort(self._names, part.stream)
        first, begin = len(stream), len(self._events) + 1
        by_id = self._by_id.get(part.stream, {})
        for offset, event in enumerate(part.events):
            version = first + offset
            stored = StoredEvent(
                begin + offset, part.stream, version, event.event_id, event.type, event.schema, event.data, now, event.correlation, event.causation
            )
            stream.append(stored)
            by_id[event.event_id] = stored
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
        return [] if stream is None else stream[max(after, EMPTY) + 1 :][:_SINCE_LIMIT]

    # Reading. What a read covers is fixed when it is asked for; lists only grow, so walking them needs no lock.

    def read(
        self, stream: str, *, after: int = -1, upto: int | None = None, limit: int | None = None, backwards: bool = False, payloads: bool = True
    ) -> Iterator[StoredEvent]:
        events, places = self._range(stream, after, upto)
        chosen = reversed(places) if backwards else iter(places)
        return shown(map(events.__getitem__, islice(chosen, limit)), payloads)

    def rows(self, stream: str, *, after: int = -1, upto: int | None = None) -> Iterator[Sequence[Row]]:
        events, places = self._range(stream, after, upto)
        return (as_rows(events[begin : min(begin + _CHUNK, places.stop)]) for begin in range(places.start, places.stop, _CHUNK))

    def rows_of(self, after: Mapping[str, int], *, most: int | None = None) -> dict[str, list[Row]]:
        with self._gate:
            return {name: as_rows(self._tail(name, max(version, EMPTY) + 1, most)) for name, version in after.items()}

    def _tail(self, name: str, begin: int, most: int | None) -> Sequence[StoredEvent]:
        return self._streams[name][begin : None if most is None else begin + most] if name in self._streams else []

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
        return shown(islice(passing(types, categories, found), limit), payloads)

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
        return EMPTY if found is None else len(found) - 1

    def _range(self, stream: str, after: int, upto: int | None) -> tuple[Sequence[StoredEvent], range]:
        with self._gate:
            found = self._streams.get(stream)
            if found is None:
                return (), range(0)
            end = len(found)
            return found, range(max(after, EMPTY) + 1, end if upto is None else min(end, upto + 1))
