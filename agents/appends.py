"""The appends a worker makes, as values: what goes in, where it goes, when the stream needs attention next. Pure.

Every append of a worker states the exact version it was decided at and the fencing token of its lease. Arrivals of
others may come in between, and then the append is made again behind them; anything else means that the key is not this
worker's any more (S-3.4).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import attrs

from ..eventlog.codec import Codec, preencoded
from ..eventlog.events import NewEvent, StoredEvent
from ..eventlog.ids import IdMaker
from ..eventlog.log import AppendRequest, Claim, Fence, StreamAppend, Wake
from ..eventlog.versions import ANY
from . import facts
from .intents import fact_id, input_event_id, settlement_event_id
from .lifecycle import ActivationState, IntentState
from .queues import CHECKPOINT as CHECKPOINT  # noqa: PLC0414 - workers find it here
from .queues import EFFECTS as EFFECTS  # noqa: PLC0414 - workers find it here
from .queues import RETRIES as RETRIES  # noqa: PLC0414 - workers find it here
from .queues import TURNS as TURNS  # noqa: PLC0414 - workers find it here
from .requests import TurnEnd
from .run import Activation, RunState, next_attention
from .signing import KeyRing
from .streams import Folder, StreamState
from .vouching import signed_outcome

_NEVER: Final = 2**62
"""A version that no stream has."""


@attrs.frozen
class Appends:
    """Builds requests for one app's streams."""

    codec: Codec
    new_id: IdMaker
    #: Signs what is staged for effectors; ``None``: nothing is signed, and nothing more is written.
    keys: KeyRing | None = None

    def _stage(
        self, events: Iterable[object], activation: Activation, arguments: Mapping[str, bytes] = MappingProxyType({}), read: list[Any] | None = None
    ) -> list[NewEvent]:
        """``events``, encoded. ``read`` is given each as it will be read back, or ``None`` where nobody has looked yet."""
        correlation, causation = activation.input_event_id, trigger(activation)
        codec, new_id = self.codec, self.new_id
        staged = []
        for event in events:
            kind = type(event)
            back: object = None
            if kind in _TRUSTED:
                encoded, back = codec.stage_checked(event, new_id(), correlation, causation)
            elif kind is facts.IntentStaged and event.intent_id in arguments:  # type: ignore[attr-defined]
                e: Any = event
                short = facts.IntentStaged(e.intent_id, e.seq, e.step, e.tool, preencoded(arguments[e.intent_id]), e.digest, e.expires_at, e.key)  # type: ignore[arg-type]
                encoded, back = codec.stage_checked(short, new_id(), correlation, causation, functools.partial(_same, event))
            elif kind is facts.IntentSettled:  # withdrawn before anybody attempted it
                settled_id = settlement_event_id(event.intent_id, 0)  # type: ignore[attr-defined]
                encoded = codec.stage(event, event_id=settled_id, correlation=correlation, causation=causation)
            else:
                encoded = codec.stage(event, event_id=new_id(), correlation=correlation, causation=causation)
            staged.append(encoded)
            if read is not None:
                read.append(back)
        return staged

    def journal(
        self,
        claim: Claim,
        version: int,
        activation: Activation,
        cached: facts.ModelCallCached | facts.ToolCallCached,
        plain: Callable[[], object] | None,
        loads: Sequence[facts.AggregateLoaded] = (),
    ) -> tuple[AppendRequest, Any]:
        """One answer, before the agent sees it, and the same answer as it will be read back.

        The lease stays and so does the wake-up: a crash leaves the stream due. With ``plain``, ``cached`` holds the request
        as it was encoded for its digest, and ``plain()`` is the same fact without that.
        """
        codec, correlation, causation = self.codec, activation.input_event_id, trigger(activation)
        if plain is not None:
            event, stored = codec.stage_checked(cached, self.new_id(), correlation, causation, plain)
        else:
            event = codec.stage(cached, event_id=self.new_id(), correlation=correlation, causation=causation)
            stored = codec.decode(event.type, event.schema, event.data)
        events = (*self._stage(loads, activation), event) if loads else (event,)
        return AppendRequest((StreamAppend(claim.name, events, version),), (_fence(claim),)), stored

    def turn(self, claim: Claim, state: StreamState, folder: Folder, activation: Activation, end: TurnEnd, last: bool) -> AppendRequest:
        """A turn's one append (S-3.2): everything it staged, its closing fact, the next wake-up and the lease's end.

        The lease is kept when the stream is due at once, unless this is the ``last`` turn of its lane. Inputs for other
        streams and the reply to a waiting one are parts of it. ``state`` is folded over what was read back from the very bytes
        that are appended, so that what is live equals what will be read (S-8.1).
        """
        version, retried = state.version, activation.failures
        read: list[Any] = []
        staged = _in_time(end.staged, state.run)
        events = self._stage((*end.loads, *staged) if end.loads else staged, activation, end.arguments, read)
        if self.keys is not None:
            events, read = self._signed(self.keys, claim.name, (*end.loads, *staged), events, read)
        for stream, received in end.sends:
            if stream == claim.name:
                events.append(self._input(received, activation))
                read.append(None)
        folder.fold_staged(state, events, read)
        attention = next_attention(state.run)
        wakes = (Wake(TURNS, attention), Wake(RETRIES, _next_retry(state))) if retried else (Wake(TURNS, attention),)
        parts = [StreamAppend(claim.name, events, version, wakes)]
        if end.sends or end.changes or activation.input.reply_to:
            parts += (*self._sends(end, activation, claim.name), *self._reply(claim, activation, end), *self._changes(end, activation))
        return AppendRequest(parts, (Fence(claim.queue, claim.name, claim.token, last or attention != 0),))

    def _signed(self, keys: KeyRing, stream: str, staged: Sequence[object], events: list[NewEvent], read: list[Any]) -> tuple[list[NewEvent], list[Any]]:
        """``events`` with a signature directly behind each intent, and each withdrawal of one."""
        signed: list[NewEvent] = []
        back: list[Any] = []
        for fact, new, seen in zip(staged, events, read, strict=True):
            signed.append(new)
            back.append(seen)
            if isinstance(fact, facts.IntentStaged):
                made = keys.sign_intent(stream, new.schema, new.data)
                vouched = facts.IntentSigned(fact.intent_id, made.key_id, made.signature)
                signed.append(self.codec.stage(vouched, event_id=self.new_id(), correlation=new.correlation, causation=new.event_id))
                back.append(None)
            elif isinstance(fact, facts.IntentSettled):
                signed.append(signed_outcome(self.codec, keys, stream, fact.intent_id, new))
                back.append(None)
        return signed, back

    def _sends(self, end: TurnEnd, activation: Activation, own: str) -> list[StreamAppend]:
        wake = Wake(TURNS, end.closing.now, sooner=True)
        return [StreamAppend(stream, (self._input(received, activation),), ANY, (wake,)) for stream, received in end.sends if stream != own]

    def _input(self, received: facts.InputReceived, activation: Activation) -> NewEvent:
        event_id, correlation, causation = input_event_id(received.input_id), activation.input_event_id, trigger(activation)
        return self.codec.stage(received, event_id=event_id, correlation=correlation, causation=causation)

    def is_there(self, stream: str, received: facts.InputReceived, activation: Activation) -> AppendRequest:
        """Asks whether the input is on its stream already and writes nothing: ids are looked at first, and no stream is that long."""
        return AppendRequest((StreamAppend(stream, (self._input(received, activation),), _NEVER),))

    def _changes(self, end: TurnEnd, activation: Activation) -> list[StreamAppend]:
        """Events of other aggregates, each behind the very version that the turn saw."""
        correlation, causation, new_id = activation.input_event_id, trigger(activation), self.new_id
        return [
            StreamAppend(change.stream, [NewEvent(new_id(), *event, correlation, causation) for event in change.events], change.expected)
            for change in end.changes
        ]

    def _reply(self, claim: Claim, activation: Activation, end: TurnEnd) -> list[StreamAppend]:
        """The end of an activation, told to the stream that waits for it."""
        asked, closing = activation.input, end.closing
        if not asked.reply_to or not isinstance(closing, facts.Completed):
            return []
        reply_to, _, first_id = asked.reply_to.partition("\n")
        input_id = first_id or asked.input_id
        reply = facts.ReplyReceived(claim.name, input_id, closing.output, closing.cancelled)
        event_id = fact_id("reply", claim.name, input_id)
        event = self.codec.stage(reply, event_id=event_id, correlation=activation.input_event_id, causation=activation.input_event_id)
        return [StreamAppend(reply_to, (event,), ANY, (Wake(TURNS, closing.now, sooner=True),))]

    def interruption(self, claim: Claim, version: int, activation: Activation, newer: facts.InputReceived) -> tuple[AppendRequest, facts.CancelRequested]:
        """A suspended activation is to end because of a newer input (S-2.4), durable before its code is told."""
        cancel = facts.CancelRequested(activation.seq, "a newer input", newer.input_id)
        return AppendRequest((StreamAppend(claim.name, self._stage((cancel,), activation), version),), (_fence(claim),)), cancel

    def timers(self, claim: Claim, version: int, activation: Activation, fired: Sequence[facts.TimerFired]) -> AppendRequest:
        """Due timers, recorded before the turn they cause, so that a re-run of that turn sees what the first run saw."""
        return AppendRequest((StreamAppend(claim.name, self._stage(fired, activation), version),), (_fence(claim),))

    def failure(
        self,
        claim: Claim,
        state: StreamState,
        folder: Folder,
        activation: Activation,
        failed: facts.ActivationFailed,
        loads: Sequence[facts.AggregateLoaded] = (),
    ) -> AppendRequest:
        """The one event a failed turn leaves (S-3.3), behind what it had seen of other aggregates."""
        version = state.version
        read: list[Any] = []
        events = self._stage((*loads, failed), activation, read=read)
        folder.fold_staged(state, events, read)
        wakes = (Wake(TURNS, next_attention(state.run)), Wake(RETRIES, failed.retry_at))
        return AppendRequest((StreamAppend(claim.name, events, version, wakes),), (_fence(claim, release=True),))

    def blocked(self, claim: Claim, version: int, failure: facts.Failure) -> AppendRequest:
        """An unreadable stream stops, once, visibly (S-8.3); it goes behind whatever is there."""
        event = self.codec.stage(facts.StreamBlocked(version, failure), event_id=fact_id("blocked", version, failure.message))
        return AppendRequest((StreamAppend(claim.name, (event,), ANY, (Wake(TURNS, None),)),), (_fence(claim, release=True),))

    def silenced(self, claim: Claim) -> AppendRequest:
        """An unreadable stream that has said so already: no wake-up, and the lease's end."""
        return AppendRequest((StreamAppend(claim.name, (), ANY, (Wake(TURNS, None),)),), (_fence(claim, release=True),))

    def hand_back(self, claim: Claim, state: StreamState) -> AppendRequest:
        """Nothing to do now: the wake-up as it should be, and the lease's end, provided nothing arrived meanwhile."""
        wake = Wake(TURNS, next_attention(state.run))
        return AppendRequest((StreamAppend(claim.name, (), state.version, (wake,)),), (_fence(claim, release=True),))


def _next_retry(state: StreamState) -> int | None:
    return min((each.retry_at for each in state.run.open.values() if each.retry_at and each.state is not ActivationState.PARKED), default=None)


def _in_time(staged: Sequence[object], run: RunState) -> Sequence[object]:
    """``staged`` without the withdrawals of intents that were begun, or settled, while the turn was decided."""
    if facts.IntentSettled not in map(type, staged):
        return staged
    return [
        each
        for each in staged
        if type(each) is not facts.IntentSettled or each.intent_id not in run.intents or run.intents[each.intent_id].state is IntentState.STAGED
    ]


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
    return settlement_event_id(activation.results[-1], 1)


def only_arrivals(events: Sequence[StoredEvent]) -> bool:
    """Whether all of ``events`` are things that others may append without touching the turn's decision (S-3.4)."""
    return all(event.type in facts.ARRIVALS for event in events)
