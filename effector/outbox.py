"""The intents that have no outcome yet, as the tail of the log tells it. A pure fold: no clock, no store, no tool.

Intents of one stream stand in the order in which they were staged, which is the order in which they are carried out.
``low_water`` is the position up to which every intent is settled: what a checkpoint may safely say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs

from ..agents import facts
from ..agents.intents import readmission_event_id
from ..agents.signing import Signature
from ..eventlog.codec import Codec
from ..eventlog.errors import NewerSchema, Undecodable
from ..eventlog.events import StoredEvent

TYPES: Final = ("intent.staged", "intent.signed", "intent.attempted", "intent.postponed", "intent.settled", "intent.distrusted", "intent.readmitted")
"""The event types an outbox is made of."""


@attrs.define(eq=False)
class Pending:
    """One intent on its way."""

    stream: str
    position: int
    event_id: bytes
    correlation: bytes | None
    intent: facts.IntentStaged
    #: Attempts recorded so far; one of them may still be running somewhere.
    attempts: int = 0
    #: The attempt that this effector itself makes, 0 while it makes none: the log may tell of another's meanwhile.
    own_attempt: int = 0
    #: When it was recorded: µs since 1970-01-01 UTC.
    staged_at: int = 0
    #: How the attempts ended that were seen to fail in a way that may heal: attempt → what is known of it.
    postponed: dict[int, facts.IntentPostponed] = attrs.field(factory=dict)

    #: ``intent`` as it is stored: what a signature is of.
    schema: int = 0
    data: bytes = b""
    signature: Signature | None = None
    #: Place of ``intent.staged`` in its stream; -1 for a readmission.
    version: int = -1
    #: Why the bytes that stand where its signature belongs, which ``signature`` holds then, are none; empty when they are one.
    unsigned: str = ""
    #: Set when a person vouches for it after it was distrusted.
    readmitted: facts.IntentReadmitted | None = None

    @property
    def unseen(self) -> int:
        """Attempts that were begun and whose end is not recorded."""
        return self.attempts - len(self.postponed)

    @property
    def last_postponed(self) -> facts.IntentPostponed | None:
        """What the last attempt ended in, when that may heal: then nothing of the intent is under way."""
        return self.postponed.get(self.attempts)

    @property
    def not_before(self) -> int:
        """The moment of its next attempt, 0 for now."""
        last = self.last_postponed
        return last.retry_at if last is not None else 0


class Outbox:
    """Takes events in log order; knows what is open. Belongs to one event loop: lanes look at it between any two events."""

    def __init__(self, codec: Codec, after: int = 0) -> None:
        self._codec = codec
        #: Position of the last event taken in.
        self.cursor = after
        #: By stream and intent id: what somebody stages elsewhere under the same id is another intent.
        self._by_id: dict[tuple[str, str], Pending] = {}
        self._lanes: dict[str, dict[str, Pending]] = {}
        self._open: dict[int, tuple[str, str]] = {}
        #: Version of the last event taken of each stream with open intents.
        self._seen: dict[str, int] = {}
        #: What streams told of intents that the tail has not told of yet, by stream and intent id.
        self._ahead: dict[tuple[str, str], list[StoredEvent]] = {}
        #: Streams with an event this code cannot read: stream → why, of the first. Their intents are left alone (S-8.3).
        self.blocked: dict[str, str] = {}
        #: Where the first of those events stands.
        self._stuck_at: int | None = None

    def read(self, event: StoredEvent) -> Any:
        """The event's fact, or the error that says why it cannot be read. Changes nothing, so it may be called from a thread."""
        try:
            return self._codec.decode_stored(event)
        except Undecodable as problem:
            return problem

    def take(self, event: StoredEvent, fact: Any = None) -> None:
        """Take the next event in (``fact`` if it was read before); one that cannot be read blocks its stream and nothing else."""
        self.cursor = event.position
        fact = self.read(event) if fact is None else fact
        self._apply(event, fact)
        if event.stream in self._lanes:
            self._seen[event.stream] = event.version
        if isinstance(fact, facts.IntentStaged):
            for each in self._ahead.pop((event.stream, fact.intent_id), ()):
                self._apply(each, self.read(each))

    def _stand_still(self, event: StoredEvent, why: Undecodable) -> None:
        """Nothing more of this stream here. What code that reads the event makes of it is still to be done, so no checkpoint passes it."""
        self.blocked.setdefault(event.stream, str(why))
        if event.position and self._stuck_at is None:  # what a stream tells ahead of the tail has no position, and comes again
            self._stuck_at = event.position

    def _take_unreadable(self, event: StoredEvent, why: Undecodable) -> None:
        """A signature that is damaged is no signature, of whatever intent stands in front of it; one by newer code may well be one."""
        if event.type != "intent.signed" or isinstance(why, NewerSchema):
            self._stand_still(event, why)
            return
        for pending in self._lanes.get(event.stream, {}).values():
            if pending.version == event.version - 1 and pending.signature is None:
                pending.signature, pending.unsigned = Signature("", event.data), str(why)

    def _apply(self, event: StoredEvent, fact: Any) -> None:
        if isinstance(fact, Undecodable):
            self._take_unreadable(event, fact)
        elif isinstance(fact, facts.IntentStaged):
            if (event.stream, fact.intent_id) in self._by_id:  # no worker does that: whoever it was, the first one stands
                return
            pending = Pending(event.stream, event.position, event.event_id, event.correlation, fact, staged_at=event.recorded_at)
            pending.schema, pending.data, pending.version = event.schema, event.data, event.version
            self._by_id[event.stream, fact.intent_id] = pending
            self._lanes.setdefault(event.stream, {})[fact.intent_id] = pending
            self._open[event.position] = event.stream, fact.intent_id
        elif isinstance(fact, facts.IntentAttempted):
            known = self._by_id.get((event.stream, fact.intent_id))
            if known is not None:
                known.attempts = max(known.attempts, fact.attempt)
        elif isinstance(fact, facts.IntentPostponed):
            known = self._by_id.get((event.stream, fact.intent_id))
            if known is not None:
                known.attempts = max(known.attempts, fact.attempt)
                known.postponed[fact.attempt] = fact
        elif isinstance(fact, facts.IntentSigned):
            known = self._by_id.get((event.stream, fact.intent_id))
            if known is not None and known.signature is None:  # the one in the staging append
                known.signature = Signature(fact.key_id, fact.signature)
        elif isinstance(fact, facts.IntentSettled | facts.IntentDistrusted):
            self.settled(event.stream, fact.intent_id)
        elif isinstance(fact, facts.IntentReadmitted):
            self._readmit(event, fact)

    def _readmit(self, event: StoredEvent, fact: facts.IntentReadmitted) -> None:
        """Open again what was distrusted, from what the fact itself holds: a checkpoint may lie behind the staging by now.

        Once: the event id says which readmission it is, and the store has each id once. What a stream tells ahead of the tail
        is left to the tail.
        """
        known = (event.stream, fact.intent_id) in self._by_id
        if known or not event.position or event.event_id != readmission_event_id(event.stream, fact.intent_id, fact.number):
            return
        try:
            intent = self._codec.decode("intent.staged", fact.schema, fact.payload)
        except Undecodable as problem:  # staged by newer code, or no operator's command wrote it
            self._stand_still(event, problem.at(event.stream, event.version))
            return
        if intent.intent_id != fact.intent_id:
            return
        pending = Pending(
            event.stream,
            event.position,
            event.event_id,
            event.correlation,
            intent,
            fact.attempts,
            event.recorded_at,
            schema=fact.schema,
            data=fact.payload,
            signature=Signature(fact.key_id, fact.signature),
            readmitted=fact,
        )
        self._by_id[event.stream, fact.intent_id] = pending
        self._lanes.setdefault(event.stream, {})[fact.intent_id] = pending
        self._open[event.position] = event.stream, fact.intent_id

    def settled(self, stream: str, intent_id: str) -> None:
        """The intent has its outcome; told twice, by the owner of the lane and by the tail, it changes nothing the second time."""
        pending = self._by_id.pop((stream, intent_id), None)
        if pending is None:
            return
        del self._open[pending.position]
        lane = self._lanes[pending.stream]
        del lane[intent_id]
        if not lane:
            del self._lanes[pending.stream]
            self._seen.pop(pending.stream, None)

    def seen(self, streams: Iterable[str]) -> dict[str, int]:
        """Those of ``streams`` that have open intents, and up to which version the tail has told of them."""
        return {stream: self._seen[stream] for stream in streams if stream in self._lanes}

    def learn(self, stream: str, told: Iterable[tuple[StoredEvent, Any]]) -> None:
        """Take in what a stream itself tells, before the tail does; the tail will tell it again, which changes nothing.

        The tail stops short of what a transaction elsewhere may still write in between; a stream does not. What it tells of an
        intent that is still to come on the tail is kept until then, so that no such intent is begun a second time.
        """
        if stream not in self._lanes:  # the tail has told all of it meanwhile
            return
        seen = self._seen[stream]
        for event, fact in told:
            if event.version <= seen:
                continue
            if isinstance(fact, Undecodable):
                if event.type != "intent.signed":  # the tail tells of it together with its intent
                    self._stand_still(event, fact)
                continue
            intent_id = fact.intent_id
            if isinstance(fact, facts.IntentStaged):
                self._ahead[stream, intent_id] = []
            elif (stream, intent_id) in self._ahead:
                self._ahead[stream, intent_id].append(event)
            else:
                self._apply(event, fact)

    def streams(self) -> list[str]:
        """Streams with open intents, longest waiting first, without the blocked ones."""
        return list(self.in_line())

    def in_line(self) -> Iterator[str]:
        """The same one by one, for who looks at the first of many; not while the outbox changes."""
        return (stream for stream in self._lanes if stream not in self.blocked)

    def first(self, stream: str) -> Pending | None:
        """The stream's next intent."""
        lane = self._lanes.get(stream)
        return next(iter(lane.values())) if lane and stream not in self.blocked else None

    def is_last(self, pending: Pending) -> bool:
        """Whether its stream has no other open intent, as far as is known."""
        return len(self._lanes.get(pending.stream, ())) == 1

    @property
    def low_water(self) -> int:
        """Everything at or below this position is settled, and nothing there is left alone."""
        first = next(iter(self._open)) - 1 if self._open else self.cursor
        return first if self._stuck_at is None else min(first, self._stuck_at - 1)

    @property
    def oldest(self) -> Pending | None:
        """The intent that has waited longest for its outcome."""
        return self._by_id[next(iter(self._open.values()))] if self._open else None

    def __len__(self) -> int:
        return len(self._by_id)
