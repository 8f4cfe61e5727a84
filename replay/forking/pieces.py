"""A history in pieces that can be changed: what a fork is put together from, and what may be changed in it.

What the code decided stands in whole appends and is never edited: it is decided anew. What it was told may be edited:
inputs, answers, outcomes, timers, signals, a person's decisions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from ...agents import facts
from ...agents.intents import is_withdrawal
from ...eventlog.codec import Codec
from ...eventlog.errors import Undecodable
from ...eventlog.events import NewEvent, Row, StoredEvent

JOURNAL: Final = frozenset({"model_call.cached", "tool_call.cached", "aggregate.loaded"})
TOLD: Final = facts.ARRIVALS | {"timer.fired"}
CLOSING: Final = frozenset({"activation.suspended", "activation.completed", "activation.continued"})
FAILED: Final = "activation.failed"
INVENTED: Final = -1
"""The origin of a piece that is not on the source."""


@attrs.frozen
class Piece:
    """An event of a fork."""

    type: str
    schema: int
    data: bytes
    event_id: bytes
    recorded_at: int
    correlation: bytes | None = None
    causation: bytes | None = None
    #: Its version on the source, edited or not.
    origin: int = INVENTED

    @classmethod
    def of(cls, stored: StoredEvent) -> Piece:
        """The event as it stands in the source."""
        return cls(stored.type, stored.schema, stored.data, stored.event_id, stored.recorded_at, stored.correlation, stored.causation, stored.version)

    def row(self, version: int) -> Row:
        """For folds."""
        return version, self.type, self.schema, self.data, self.event_id, self.recorded_at

    def new(self) -> NewEvent:
        """For appends."""
        return NewEvent(self.event_id, self.type, self.schema, self.data, self.correlation, self.causation)

    def stored(self, stream: str, version: int) -> StoredEvent:
        """As if it stood in a log of its own."""
        return StoredEvent(version + 1, stream, version, self.event_id, self.type, self.schema, self.data, self.recorded_at, self.correlation, self.causation)


def is_told(codec: Codec, kind: str, schema: int, data: bytes) -> bool:
    """Whether the event came from outside of the code: somebody else recorded it, or time did."""
    if kind != "intent.settled":
        return kind in TOLD
    try:
        return not is_withdrawal(codec.decode(kind, schema, data))
    except Undecodable:
        return True


def likeness(codec: Codec, kind: str, schema: int, data: bytes) -> tuple[str, bytes]:
    """What an event says, without how far its turn had seen: the same in two histories in which other things arrived meanwhile."""
    if kind not in CLOSING and kind not in JOURNAL:
        return kind, data
    try:
        fact = codec.decode(kind, schema, data)
        return kind, codec.encode(attrs.evolve(fact, seen=-1))[2] if hasattr(fact, "seen") else data
    except Undecodable:
        return kind, data


def append_around(codec: Codec, events: Sequence[StoredEvent], version: int) -> tuple[int, int]:
    """First and last version of the turn's append that ``version`` stands in; twice itself for what stands alone."""
    if _alone(codec, events[version]):
        return version, version
    first = last = version
    while first > 0 and not _alone(codec, events[first - 1]) and events[first - 1].type not in CLOSING:
        first -= 1
    while last < len(events) - 1 and events[last].type not in CLOSING and not _alone(codec, events[last + 1]):
        last += 1
    return first, last


def _alone(codec: Codec, event: StoredEvent) -> bool:
    return event.type in JOURNAL or event.type == FAILED or is_told(codec, event.type, event.schema, event.data)
