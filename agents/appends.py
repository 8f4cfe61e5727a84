"""The appends a worker makes, as values: what goes in, where it goes, when the stream needs attention next. Pure.

Every append of a worker states the exact version it was decided at and the fencing token of its lease. Arrivals of
others may come in between, and then the append is made again behind them; anything else means that the key is not this
worker's any more (S-3.4).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import attrs

from ..eventlog.codec import Codec, preencoded
from ..eventlog.events import NewEvent, StoredEvent
from ..eventlog.ids import IdMaker
from ..eventlog.log import AppendRequest, Claim, Fence, StreamAppend, Wake
from ..eventlog.versions import ANY
from . import facts
from .evolve import take
from .intents import fact_id
from .requests import TurnEnd
from .run import Activation, RunState, next_attention

TURNS: Final = "turn"
"""The queue in which streams wait for a worker."""
RETRIES: Final = "retry"
"""Not waited in: holds the streams whose failed turn will be tried again, so that "is anything left to do?" is one question."""
EFFECTS: Final = "effect"
"""The queue whose leases decide which effector carries out a stream's intents."""


@attrs.frozen
class Appends:
    """Builds requests for one app's streams."""

    codec: Codec
    new_id: IdMaker

    def _stage(self, events: Iterable[object], activation: Activation, arguments: Mapping[str, bytes] = MappingProxyType({})) -> list[NewEvent]:
        correlation, causation = activation.input_event_id, trigger(activation)
        codec, new_id = self.codec, self.new_id
        staged = []
        for event in events:
            kind = type(event)
            if kind is facts.IntentStaged and event.intent_id in arguments:
                e = event
                short = facts.IntentStaged(e.intent_id, e.seq, e.step, e.tool, preencoded(arguments[e.intent_id]), e.digest, e.expires_at, e.key)  # type: ignore[arg-type]
                plain = functools.partial(_same, event)
                staged.append(codec.stage_checked(short, event_id=new_id(), correlation=correlation, causation=causation, plain=plain)[0])
            elif kind in _TRUSTED:
                staged.append(codec.stage_checked(event, event_id=new_id(), correlation=correlation, causation=causation)[0])
            else:
                staged.append(codec.stage(event, event_id=new_id(), correlation=correlation, causation=causation))
        return staged

    def journal(
        self, claim: Claim, version: int, activation: Activation, cached: facts.ModelCallCached | facts.ToolCallCached, request: bytes | None
    ) -> tuple[AppendRequest, Any]:
        """One answer, before the agent sees it, and the same answer as it will be read back.

        The lease stays and so does the wake-up: a crash leaves the stream due. ``request`` is a model call's request as it
        was encoded for its digest.
        """
        codec, causation = self.codec, trigger(activation)
        if request is not None:
            c = cached
            assert isinstance(c, facts.ModelCallCached)
            short = facts.ModelCallCached(c.seq, c.step, c.now, c.digest, preencoded(request), c.response, c.seen)  # type: ignore[arg-type]
            plain = functools.partial(_same, cached)
            event, stored = codec.stage_checked(short, event_id=self.new_id(), correlation=activation.input_event_id, causation=causation, plain=plain)
        else:
            event = codec.stage(cached, event_id=self.new_id(), correlation=activation.input_event_id, causation=causation)
            stored = codec.decode(event.type, event.schema, event.data)
        return AppendRequest((StreamAppend(claim.name, (event,), version),), (_fence(claim),)), stored

    def turn(self, claim: Claim, version: int, run: RunState, activation: Activation, end: TurnEnd) -> AppendRequest:
        """A turn's one append (S-3.2): everything it staged, its closing fact, the next wake-up and the lease's end.

        ``run`` is advanced over the runtime's facts among them, to know when attention is needed next.
        """
        events = self._stage(end.staged, activation, end.arguments)
        wakes = (Wake(RETRIES, None),) if activation.failures else ()
        for event in end.staged:
            if type(event) in _FACTS:
                take(run, event)
        return self._closing(claim, version, run, events, wakes)

    def timers(self, claim: Claim, version: int, activation: Activation, fired: Sequence[facts.TimerFired]) -> AppendRequest:
        """Due timers, recorded before the turn they cause, so that a re-run of that turn sees what the first run saw."""
        return AppendRequest((StreamAppend(claim.name, self._stage(fired, activation), version),), (_fence(claim),))

    def failure(self, claim: Claim, version: int, run: RunState, activation: Activation, failed: facts.ActivationFailed) -> AppendRequest:
        """The one event a failed turn leaves (S-3.3)."""
        events = self._stage((failed,), activation)
        take(run, failed)
        return self._closing(claim, version, run, events, (Wake(RETRIES, failed.retry_at),))

    def blocked(self, claim: Claim, version: int, failure: facts.Failure) -> AppendRequest:
        """An unreadable stream stops, once, visibly (S-8.3); it goes behind whatever is there."""
        event = self.codec.stage(facts.StreamBlocked(version, failure), event_id=fact_id("blocked", version, failure.message))
        return AppendRequest((StreamAppend(claim.name, (event,), ANY, (Wake(TURNS, None),)),), (_fence(claim, release=True),))

    def silenced(self, claim: Claim) -> AppendRequest:
        """An unreadable stream that has said so already: no wake-up, and the lease's end."""
        return AppendRequest((StreamAppend(claim.name, (), ANY, (Wake(TURNS, None),)),), (_fence(claim, release=True),))

    def hand_back(self, claim: Claim, version: int, run: RunState) -> AppendRequest:
        """Nothing to do now: the wake-up as it should be, and the lease's end, provided nothing arrived meanwhile."""
        return self._closing(claim, version, run, [])

    def _closing(self, claim: Claim, version: int, run: RunState, events: list[NewEvent], more: tuple[Wake, ...] = ()) -> AppendRequest:
        wakes = (Wake(TURNS, next_attention(run)), *more)
        return AppendRequest((StreamAppend(claim.name, events, version, wakes),), (_fence(claim, release=True),))


_FACTS: Final = frozenset(facts.FACTS)
#: Facts whose every value is made by the runtime, never by a user's code.
_TRUSTED: Final = frozenset({facts.Suspended, facts.TimerArmed, facts.TimerFired, facts.ActivationFailed})


def _same(event: object) -> object:
    return event


def _fence(claim: Claim, release: bool = False) -> Fence:
    return Fence(claim.queue, claim.name, claim.token, release)


def trigger(activation: Activation) -> bytes:
    """Event id of what caused the turn: the input, or the settlement that ended the wait."""
    if not activation.turns or not activation.results:
        return activation.input_event_id
    return fact_id("settled", activation.results[-1])


def only_arrivals(events: Sequence[StoredEvent]) -> bool:
    """Whether all of ``events`` are things that others may append without touching the turn's decision (S-3.4)."""
    return all(event.type in facts.ARRIVALS for event in events)
