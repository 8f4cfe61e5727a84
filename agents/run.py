"""What the runtime's events of one stream add up to: its inputs in line, its open activations, its intents.

``RunState`` is an accumulator: ``apply`` is called once for each fact, in order, and depends on nothing else (S-8.1).
It holds what is open; a finished activation leaves only its business-keyed intents and its counters behind, so that
the state of a key does not grow with its age.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import attrs

from . import facts
from .errors import ImpossibleHistory
from .intents import input_event_id
from .lifecycle import ActivationState, IntentState, next_activation_state, next_intent_state

QUEUED, SUSPENDED, RESUMABLE, PARKED, COMPLETED = ActivationState


@attrs.define
class Intent:
    """An intent as far as the log tells."""

    intent_id: str
    seq: int
    step: int
    tool: str
    args: dict[str, Any]
    digest: bytes
    expires_at: int
    key: str
    state: IntentState = IntentState.STAGED
    attempts: int = 0
    settled: facts.IntentSettled | None = None
    #: Its outcome came when nobody waited for it any more (S-7.4).
    late: bool = False


@attrs.define
class Activation:
    """One activation that is not completed."""

    seq: int
    input: facts.InputReceived
    received_at: int
    #: Event id of the input, which correlates everything the activation writes.
    input_event_id: bytes
    state: ActivationState = QUEUED
    #: ``ctx.now`` of the turn under way, fixed by its first journal entry; 0 until then (S-3.5).
    turn_now: int = 0
    #: Version of the last event that turn had seen.
    turn_seen: int = -1
    #: Turns committed.
    turns: int = 0
    step: int = 0
    index: int = 0
    snapshot: bytes = b""
    adapter: str = ""
    waits: tuple[str, ...] = ()
    mode: str = "all"
    deadline: int = 0
    timed_out: bool = False
    #: Waits that were settled when the wait was over, in the order of the waits.
    results: tuple[str, ...] = ()
    #: Armed timers that have not fired: id → moment.
    timers: dict[str, int] = attrs.field(factory=dict)
    fired: tuple[str, ...] = ()
    failures: int = 0
    retry_at: int = 0
    models: dict[int, facts.ModelCallCached] = attrs.field(factory=dict)
    tools: dict[int, facts.ToolCallCached] = attrs.field(factory=dict)
    #: Intents staged by this activation.
    intents: tuple[str, ...] = ()
    last_failure: facts.Failure | None = None


@attrs.define
class RunState:
    """The fold of one stream's runtime events."""

    #: Inputs ever recorded; the next one's activation gets this seq.
    inputs: int = 0
    completed: int = 0
    #: Seqs in the order in which they will be handled; the first is current.
    line: list[int] = attrs.field(factory=list)
    open: dict[int, Activation] = attrs.field(factory=dict)
    intents: dict[str, Intent] = attrs.field(factory=dict)
    #: Outcomes that came after their wait was over, newest last (the last 100).
    late: tuple[str, ...] = ()
    blocked: str = ""

    @property
    def current(self) -> Activation | None:
        """The activation whose turn it is, if any."""
        return self.open[self.line[0]] if self.line else None

    @property
    def parked(self) -> list[Activation]:
        """Dead letters, oldest first."""
        return [activation for activation in self.open.values() if activation.state is PARKED]

    def apply(self, fact: object, recorded_at: int) -> None:
        """Take in the next fact; raises ``ImpossibleHistory`` when it cannot follow."""
        _APPLY[type(fact)](self, fact, recorded_at)

    def _of(self, seq: int) -> Activation:
        activation = self.open.get(seq)
        if activation is None:
            raise ImpossibleHistory(f"activation {seq} is not open (open: {sorted(self.open)})")
        return activation

    def _turning(self, seq: int, event: str) -> Activation:
        activation = self._of(seq)
        if not self.line or self.line[0] != seq:
            raise ImpossibleHistory(f"{event} of activation {seq}, but it is the turn of {self.line[:1]}")
        next_activation_state(seq, activation.state, event, activation.state)
        return activation


def _received(run: RunState, fact: facts.InputReceived, recorded_at: int) -> None:
    seq = run.inputs
    run.inputs += 1
    run.open[seq] = Activation(seq, fact, recorded_at, input_event_id(fact.input_id))
    run.line.append(seq)


def _model_cached(run: RunState, fact: facts.ModelCallCached, _: int) -> None:
    activation = run._turning(fact.seq, "model_call.cached")
    if fact.step in activation.models:
        raise ImpossibleHistory(f"step {fact.step} of activation {fact.seq} has two answers; the first one wins (S-4.9)")
    activation.models[fact.step] = fact
    if not activation.turn_now:
        activation.turn_now, activation.turn_seen = fact.now, fact.seen


def _tool_cached(run: RunState, fact: facts.ToolCallCached, _: int) -> None:
    activation = run._turning(fact.seq, "tool_call.cached")
    if fact.index in activation.tools:
        raise ImpossibleHistory(f"read {fact.index} of activation {fact.seq} has two answers; the first one wins (S-4.9)")
    activation.tools[fact.index] = fact
    if not activation.turn_now:
        activation.turn_now, activation.turn_seen = fact.now, fact.seen


def _staged(run: RunState, fact: facts.IntentStaged, _: int) -> None:
    activation = run._turning(fact.seq, "intent.staged")
    if fact.intent_id in run.intents:
        raise ImpossibleHistory(f"intent {fact.intent_id} was staged twice")
    run.intents[fact.intent_id] = Intent(fact.intent_id, fact.seq, fact.step, fact.tool, fact.args, fact.digest, fact.expires_at, fact.key)
    activation.intents += (fact.intent_id,)


def _intent(run: RunState, intent_id: str) -> Intent:
    intent = run.intents.get(intent_id)
    if intent is None:
        raise ImpossibleHistory(f"intent {intent_id} was never staged here")
    return intent


def _attempted(run: RunState, fact: facts.IntentAttempted, _: int) -> None:
    intent = _intent(run, fact.intent_id)
    intent.state = next_intent_state(fact.intent_id, intent.state, "intent.attempted")
    intent.attempts = fact.attempt


def _settled(run: RunState, fact: facts.IntentSettled, _: int) -> None:
    intent = _intent(run, fact.intent_id)
    intent.state = next_intent_state(fact.intent_id, intent.state, "intent.settled")
    intent.settled = fact
    activation = next((a for a in run.open.values() if a.state is SUSPENDED and fact.intent_id in a.waits), None)
    if activation is not None:
        _look(run, activation, "intent.settled")
        return
    owner = run.open.get(intent.seq)
    if owner is not None and fact.intent_id in owner.waits and fact.intent_id not in owner.results:
        intent.late = True
        run.late = (*run.late[-99:], fact.intent_id)
    elif owner is None:
        if intent.late:  # its activation gave up waiting before it completed
            run.late = (*run.late[-99:], fact.intent_id)
        if not intent.key:
            del run.intents[fact.intent_id]


def _armed(run: RunState, fact: facts.TimerArmed, _: int) -> None:
    run._turning(fact.seq, "timer.armed").timers[fact.timer_id] = fact.fires_at


def _fired(run: RunState, fact: facts.TimerFired, _: int) -> None:
    activation = run._of(fact.seq)
    if fact.timer_id:
        if activation.timers.pop(fact.timer_id, None) is None:
            raise ImpossibleHistory(f"timer {fact.timer_id} fired but was not armed")
        activation.fired += (fact.timer_id,)
        _look(run, activation, "timer.fired")
    else:
        activation.state = next_activation_state(fact.seq, activation.state, "timer.fired", RESUMABLE)
        activation.timed_out = True
        activation.results = _ready(run, activation)


def _ready(run: RunState, activation: Activation) -> tuple[str, ...]:
    return tuple(w for w in activation.waits if w in activation.fired or ((i := run.intents.get(w)) is not None and i.state is IntentState.SETTLED))


def _look(run: RunState, activation: Activation, event: str) -> None:
    """Whether the waits are over now; what is settled at that moment is what the next turn is told (S-7.2)."""
    if activation.state is not SUSPENDED:
        return
    ready = _ready(run, activation)
    over = bool(activation.waits) and (len(ready) == len(activation.waits) if activation.mode == "all" else bool(ready))
    activation.state = next_activation_state(activation.seq, activation.state, event, RESUMABLE if over else SUSPENDED)
    if over:
        activation.results = ready


def _suspended(run: RunState, fact: facts.Suspended, _: int) -> None:
    activation = run._of(fact.seq)
    activation.state = next_activation_state(fact.seq, activation.state, "activation.suspended", SUSPENDED)
    for wait in activation.waits:
        _mark_abandoned(run, wait, fact.waits)
    activation.turns += 1
    activation.step, activation.index = fact.step, fact.index
    activation.waits, activation.mode, activation.deadline = fact.waits, fact.mode, fact.deadline
    activation.snapshot, activation.adapter = fact.snapshot, fact.adapter
    activation.timed_out, activation.results, activation.turn_now = False, (), 0
    activation.failures, activation.retry_at, activation.last_failure = 0, 0, None
    ready = _ready(run, activation)
    if run.late and ready:  # waited for after all
        run.late = tuple(intent_id for intent_id in run.late if intent_id not in ready)
        for intent_id in ready:
            if intent_id in run.intents:
                run.intents[intent_id].late = False
    if ready and (len(ready) == len(fact.waits) or fact.mode == "any"):
        activation.state, activation.results = RESUMABLE, ready


def _mark_abandoned(run: RunState, wait: str, kept: tuple[str, ...]) -> None:
    intent = run.intents.get(wait)
    if intent is not None and intent.state is not IntentState.SETTLED and wait not in kept:
        intent.late = True


def _completed(run: RunState, fact: facts.Completed, _: int) -> None:
    activation = run._turning(fact.seq, "activation.failed")  # same states, but it leads out of them
    next_activation_state(fact.seq, activation.state, "activation.completed", COMPLETED)
    for wait in activation.waits:
        _mark_abandoned(run, wait, ())
    del run.open[fact.seq]
    run.line.pop(0)
    run.completed += 1
    for intent_id in activation.intents:
        intent = run.intents[intent_id]
        if intent.state is IntentState.SETTLED and not intent.key:
            del run.intents[intent_id]


def _failed(run: RunState, fact: facts.ActivationFailed, _: int) -> None:
    activation = run._turning(fact.seq, "activation.failed")
    activation.failures = fact.attempt
    activation.last_failure = fact.failure
    activation.tools = {index: cached for index, cached in activation.tools.items() if cached.failure is None}
    if fact.retry_at is None:
        activation.state = next_activation_state(fact.seq, activation.state, "activation.failed", PARKED)
        if not fact.holds:
            run.line.pop(0)
    else:
        activation.retry_at = fact.retry_at


def _redriven(run: RunState, fact: facts.InputRedriven, _: int) -> None:
    activation = run._of(fact.seq)
    target = RESUMABLE if activation.turns else QUEUED
    activation.state = next_activation_state(fact.seq, activation.state, "input.redriven", target)
    activation.failures, activation.retry_at = 0, 0
    if fact.seq not in run.line:
        run.line.append(fact.seq)
    run.blocked = ""


def _blocked(run: RunState, fact: facts.StreamBlocked, _: int) -> None:
    run.blocked = fact.failure.message


def _traced(run: RunState, fact: facts.Traced, _: int) -> None:
    run._turning(fact.seq, "traced")


_APPLY: Final[dict[type, Callable[[RunState, Any, int], None]]] = {
    facts.InputReceived: _received,
    facts.ModelCallCached: _model_cached,
    facts.ToolCallCached: _tool_cached,
    facts.IntentStaged: _staged,
    facts.IntentAttempted: _attempted,
    facts.IntentSettled: _settled,
    facts.TimerArmed: _armed,
    facts.TimerFired: _fired,
    facts.Traced: _traced,
    facts.Suspended: _suspended,
    facts.Completed: _completed,
    facts.ActivationFailed: _failed,
    facts.InputRedriven: _redriven,
    facts.StreamBlocked: _blocked,
}


def next_attention(run: RunState) -> int | None:
    """When the stream needs a turn: 0 for now, a moment, or ``None`` for not until something arrives.

    The first in line decides (S-2.3): later inputs wait while an activation is suspended (S-2.4, the default).
    """
    activation = run.current
    if activation is None or activation.state is PARKED:
        return None
    if activation.state is SUSPENDED:
        return min([activation.deadline, *activation.timers.values()])
    return activation.retry_at
