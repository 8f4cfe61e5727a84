"""What becomes of each request of a batch, decided in memory; a store's ``append`` fetches what is needed and writes the result.

The rules are those of ``append_batch`` in ``log.py``: ids, then fences, then versions, each request seeing the earlier
ones. Looking for ids costs a query, so requests that state exact versions and meet them are taken at their word: the
unique index over ids refuses a repetition, and the batch is then planned again with every id looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import attrs

from .clock import Micros
from .errors import EventIdConflict, LeaseLost
from .events import NewEvent
from .log import Appended, AppendRequest, Duplicate, Fence, Outcome, StreamAppend
from .names import category_of, check_stream
from .versions import EMPTY, NO_STREAM, Expect, ExpectedVersion, matches

KEEP: Final = 0
SET: Final = 1
SOONER: Final = 2

_ID_SIZE: Final = 16
#: Of what a column of four bytes holds.
_LARGEST_SCHEMA: Final = 2**31 - 1
#: No stream has more events, and a version behind it still fits eight bytes.
_LONGEST: Final = 2**62


class LookCloser(Exception):
    """A request may be a repetition: plan again with the ids of all requests looked up. No caller of a log sees it."""


class Mismatch(NamedTuple):
    """A ``WrongExpectedVersion`` to be: what was appended since is read after the batch has been written."""

    stream: str
    expected: ExpectedVersion
    actual: int


class Recorded(Protocol):
    """An event that is there already, as far as a repetition is compared with it."""

    @property
    def version(self) -> int: ...
    @property
    def position(self) -> int: ...
    @property
    def type(self) -> str: ...
    @property
    def schema(self) -> int: ...
    @property
    def data(self) -> bytes: ...


class Known(NamedTuple):
    """An event that is in its stream already, or earlier in this batch."""

    version: int
    position: int
    type: str
    schema: int
    data: bytes


Move: TypeAlias = "tuple[int, Micros | None, bool]"
"""What happens to one (queue, name): ``KEEP``, ``SET`` or ``SOONER``; the moment; whether the lease is handed back."""

Decision: TypeAlias = Outcome | Mismatch


@attrs.define(slots=True)
class Plan:
    """State of one batch: what is known about the store, and what is to be written."""

    now: Micros
    #: Last position given so far.
    position: int
    #: Ids and heads of the batch's streams; a stream without an id does not exist.
    ids: dict[str, int]
    heads: dict[str, int]
    #: (queue, name) → token it is held under, for the names fenced in the batch.
    held: dict[tuple[str, str], int]
    #: The id that the next new stream gets.
    next_id: int
    #: Events that are there already, by stream and event id; ``None``: nobody looked.
    known: dict[str, dict[bytes, Known]] | None = None
    #: Whether the ids of every request were looked up, or only those of requests without exact versions.
    thorough: bool = False
    #: Parameters of the rows to insert, one after the other.
    values: list[Any] = attrs.field(factory=list)
    new_streams: list[tuple[int, str, str]] = attrs.field(factory=list)
    moves: dict[tuple[str, str], Move] = attrs.field(factory=dict)

    def decide(self, request: AppendRequest) -> Decision:
        """The outcome of ``request`` after all earlier ones. Raises ``LookCloser`` when ids must be looked up first."""
        if self.known is not None and (self.thorough or not is_exact(request)):
            outcome = repeated(request, self.known, self.heads.__getitem__)
            if outcome is not None:
                return outcome
        fences, parts = request.fences, request.parts
        for fence in fences:
            if self.held.get((fence.queue, fence.name)) != fence.token:
                return self._loser(request, lost(fence))
        mismatch = self._mismatch(parts)
        if mismatch is not None:
            return self._loser(request, mismatch)
        for fence in fences:
            if fence.release:
                key = (fence.queue, fence.name)
                self.held.pop(key, None)
                mode, at, _ = self.moves.get(key, _STAY)
                self.moves[key] = (mode, at, True)
        if len(parts) == 1:
            first, positions = self._take(parts[0])
            return Appended((first,), (positions,))
        places = [self._take(part) for part in parts]
        return Appended(tuple(first for first, _ in places), tuple(positions for _, positions in places))

    def _mismatch(self, parts: Sequence[StreamAppend]) -> Mismatch | None:
        """The first part whose stream is not where it should be, each part seeing the ones before it."""
        heads = self.heads
        if len(parts) == 1:
            (part,) = parts
            head, expected = heads[part.stream], part.expected
            if expected == head or matches(EMPTY if expected is NO_STREAM else expected, head):
                return None
            return Mismatch(part.stream, expected, head)
        grown: dict[str, int] = {}
        for part in parts:
            head = grown[part.stream] if part.stream in grown else heads[part.stream]
            if not matches(EMPTY if part.expected is NO_STREAM else part.expected, head):
                return Mismatch(part.stream, part.expected, head)
            grown[part.stream] = head + len(part.events)
        return None

    def _loser(self, request: AppendRequest, decision: Decision) -> Decision:
        """A repetition is a duplicate whatever it expected, so look before calling it a loser."""
        if not self.thorough and (self.known is None or is_exact(request)) and any(part.events for part in request.parts):
            raise LookCloser
        return decision

    def _take(self, part: StreamAppend) -> tuple[int, tuple[int, ...]]:
        stream = part.stream
        first = version = self.heads[stream] + 1
        begin = position = self.position + 1
        if part.events:
            number = self.ids.get(stream)
            if number is None:
                number = self._new_stream(stream)
            values, now = self.values, self.now
            known = None if self.known is None else self.known.setdefault(stream, {})
            for event in part.events:
                event_id, kind, schema, content = event.event_id, event.type, event.schema, event.data
                values += (position, number, version, event_id, kind, schema, now, event.correlation, event.causation, content)
                if known is not None:
                    known[event_id] = Known(version, position, kind, schema, content)
                version += 1
                position += 1
            self.heads[stream] = version - 1
            self.position = position - 1
        for wake in part.wakes:
            key = (wake.queue, stream)
            mode, at, release = self.moves.get(key, _STAY)
            if not wake.sooner:
                self.moves[key] = (SET, wake.at, release)
            elif wake.at is not None:
                self.moves[key] = (SOONER if mode == KEEP else mode, wake.at if at is None else min(at, wake.at), release)
        return first, tuple(range(begin, position))

    def _new_stream(self, stream: str) -> int:
        number = self.ids[stream] = self.next_id
        self.next_id += 1
        self.new_streams.append((number, stream, category_of(stream)))
        return number


_STAY: Final[Move] = (KEEP, None, False)
_NOTHING: Final[Mapping[bytes, Recorded]] = {}


def check_requests(requests: Sequence[AppendRequest], known_streams: Container[str]) -> None:
    """Refuse what no store could take, before anything is written.

    Raises ``InvalidName`` for a stream, ``TypeError`` or ``ValueError`` for an expected version or a value of an event that is none.
    """
    for request in requests:
        for part in request.parts:
            if part.stream not in known_streams:
                check_stream(part.stream)
            expected = part.expected
            if expected.__class__ is not Expect and (not isinstance(expected, int) or not -_LONGEST <= expected <= _LONGEST):
                raise _bad_expected(part.stream, expected)
            for event in part.events:
                event_id, correlation, causation = event.event_id, event.correlation, event.causation
                if (
                    event_id.__class__ is not bytes
                    or len(event_id) != _ID_SIZE
                    or event.data.__class__ is not bytes
                    or event.schema.__class__ is not int
                    or not 0 <= event.schema <= _LARGEST_SCHEMA
                    or (correlation is not None and (correlation.__class__ is not bytes or len(correlation) != _ID_SIZE))
                    or (causation is not None and (causation.__class__ is not bytes or len(causation) != _ID_SIZE))
                ):
                    _check_event(part.stream, event)


def is_exact(request: AppendRequest) -> bool:
    """Whether every part names the version it expects."""
    return all(part.expected is NO_STREAM or isinstance(part.expected, int) for part in request.parts)


def _bad_expected(stream: str, expected: object) -> Exception:
    if not isinstance(expected, int):
        return TypeError(f"The expected version of {stream} must be an int or one of NO_STREAM, EXISTS, ANY, not {expected!r:.80}")
    return ValueError(f"The expected version of {stream} must be -1 to {_LONGEST}, or one of NO_STREAM, EXISTS, ANY, not {expected!r:.80}")


def _check_event(stream: str, event: NewEvent) -> None:
    """Say which value of ``event`` no store could take, if there is one."""
    what = f"of a {event.type} event for {stream} must be"
    for field in ("event_id", "correlation", "causation"):
        found = getattr(event, field)
        if found is None and field != "event_id":
            continue
        if not isinstance(found, bytes):
            raise TypeError(f"{field} {what} bytes, not {type(found).__name__}: {found!r:.80}")
        if len(found) != _ID_SIZE:
            raise ValueError(f"{field} {what} {_ID_SIZE} bytes, not {len(found)}: {found!r:.80}")
    if not isinstance(event.data, bytes):
        raise TypeError(f"data {what} bytes, not {type(event.data).__name__}: {event.data!r:.80}")
    if not isinstance(event.schema, int) or isinstance(event.schema, bool):
        raise TypeError(f"schema {what} an int, not {type(event.schema).__name__}: {event.schema!r:.80}")
    if not 0 <= event.schema <= _LARGEST_SCHEMA:
        raise ValueError(f"schema {what} 0 to {_LARGEST_SCHEMA}, not {event.schema!r:.80}")


def lost(fence: Fence) -> LeaseLost:
    """What becomes of a request whose claim is no longer held."""
    return LeaseLost(
        f"Token {fence.token} for {fence.name} in queue {fence.queue!r} is no longer current: the lease was handed back or somebody else took over. "
        "Claim it again and reload."
    )


def repeated(request: AppendRequest, known: Mapping[str, Mapping[bytes, Recorded]], head: Callable[[str], int]) -> Duplicate | EventIdConflict | None:
    """What the event ids alone decide; ``None`` when all of them are new.

    ``known`` has what is there by stream and event id, ``head`` gives the version of a stream's last event.
    """
    seen: set[tuple[str, bytes]] = set()
    places: list[list[Recorded]] = []
    for part in request.parts:
        there = known.get(part.stream, _NOTHING)
        found: list[Recorded] = []
        for event in part.events:
            key = (part.stream, event.event_id)
            if key in seen:
                return EventIdConflict(f"Event id {event.event_id.hex()} is twice in one request for {part.stream}. Give every event its own id.")
            seen.add(key)
            old = there.get(event.event_id)
            if old is None:
                continue
            if (old.type, old.schema, old.data) != (event.type, event.schema, event.data):
                return EventIdConflict(
                    f"Event id {event.event_id.hex()} is version {old.version} of {part.stream} with other bytes ({old.type} {old.schema}, now sent as "
                    f"{event.type} {event.schema}). An id stands for one event for ever: give the new event a new id."
                )
            found.append(old)
        places.append(found)
    count = sum(map(len, places))
    if not count:
        return None
    if count < len(seen):
        return EventIdConflict(
            f"{count} of the request's {len(seen)} event ids are there already and the others are not ({', '.join(part.stream for part in request.parts)}). "
            "Send the same events together again, or give new events new ids."
        )
    firsts = tuple(found[0].version if found else head(part.stream) + 1 for part, found in zip(request.parts, places, strict=True))
    return Duplicate(firsts, tuple(tuple(old.position for old in found) for found in places))
