"""How each runtime fact changes a ``RunState``: one small function a fact, and the table that finds it.

Rules of this file: no function looks at anything but the state and the fact. What may follow what is in ``lifecycle``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from . import facts
from .budgets import UNSPENT, Spent, spent_on
from .errors import ImpossibleHistory
from .intents import is_withdrawal
from .lifecycle import ActivationState, IntentState, next_activation_state, next_intent_state
from .loads import forget_loads, loaded, saved, turn_committed
from .run import LINEAR, Activation, Approval, Epoch, Intent, RunState, Taken

QUEUED, SUSPENDED, RESUMABLE, PARKED, COMPLETED = ActivationState


def _received(run: RunState, fact: facts.InputReceived, recorded_at: int) -> None:
    seq = run.inputs
    run.inputs += 1
    run.open[seq] = Activation(seq, fact, recorded_at, began=run.at)
    run.line.append(seq)


def _model_cached(run: RunState, fact: facts.ModelCallCached, _: int) -> None:
    activation = run.turning(fact.seq, "model_call.cached")
    if fact.step in activation.models:
        raise ImpossibleHistory(f"step {fact.step} of activation {fact.seq} has two answers; the first one wins (S-4.9)")
    activation.models[fact.step] = fact
    activation.kinds[fact.step] = "model call"
    used = spent_on(fact.response.usage, fact.cost)
    activation.spent = used if activation.spent is UNSPENT else activation.spent + used
    run.spent = used if run.spent is UNSPENT else run.spent + used
    if not activation.turn_now:
        activation.turn_now, activation.turn_seen = fact.now, fact.seen


def _model_failed(run: RunState, fact: facts.ModelCallFailed, _: int) -> None:
    activation = run.turning(fact.seq, "model_call.failed")
    activation.unanswered[fact.step] = fact.failure
    activation.kinds[fact.step] = "model call"


def _tool_cached(run: RunState, fact: facts.ToolCallCached, _: int) -> None:
    activation = run.turning(fact.seq, "tool_call.cached")
    if fact.index in activation.tools:
        raise ImpossibleHistory(f"read {fact.index} of activation {fact.seq} has two answers; the first one wins (S-4.9)")
    activation.tools[fact.index] = fact
    if not activation.turn_now:
        activation.turn_now, activation.turn_seen = fact.now, fact.seen


def _staged(run: RunState, fact: facts.IntentStaged, _: int) -> None:
    activation = run.turning(fact.seq, "intent.staged")
    if fact.intent_id in run.intents:
        raise ImpossibleHistory(f"intent {fact.intent_id} was staged twice")
    run.intents[fact.intent_id] = Intent(fact.intent_id, fact.seq, fact.step, fact.tool, fact.args, fact.digest, fact.expires_at, fact.key)
    activation.intents += (fact.intent_id,)
    activation.kinds[fact.step] = "intent"


def _intent(run: RunState, intent_id: str) -> Intent:
    intent = run.intents.get(intent_id)
    if intent is None:
        raise ImpossibleHistory(f"intent {intent_id} was never staged here")
    return intent


def _attempted(run: RunState, fact: facts.IntentAttempted, _: int) -> None:
    intent = _intent(run, fact.intent_id)
    intent.state = next_intent_state(fact.intent_id, intent.state, "intent.attempted")
    intent.attempts = fact.attempt


def _nothing(run: RunState, fact: object, _: int) -> None:
    """Between workers, effectors and people: no run depends on it."""


def _settled(run: RunState, fact: facts.IntentSettled, _: int) -> None:
    intent = _intent(run, fact.intent_id)
    intent.state = next_intent_state(fact.intent_id, intent.state, "intent.settled")
    intent.settled, intent.settled_at = fact, run.at
    if fact.settled_by == "agent" and is_withdrawal(fact):  # by the very turn that gave up waiting
        return
    waiting = [a for a in run.open.values() if a.state is SUSPENDED and fact.intent_id in a.waits]
    for activation in waiting:
        _look(run, activation, "intent.settled")
    if waiting:
        return
    owner = run.open.get(intent.seq)
    if owner is not None and fact.intent_id in owner.waits and fact.intent_id not in owner.results:
        if not owner.is_linear:  # linear code may still take it; its next turn's end tells
            _late(run, intent)
    elif owner is not None and owner.is_linear and intent.late:  # it had given up waiting for it in an earlier turn
        _late(run, intent)
    elif owner is None:
        if intent.late:  # its activation gave up waiting before it completed
            _late(run, intent)
        if not intent.key:
            del run.intents[fact.intent_id]


def _late(run: RunState, intent: Intent) -> None:
    """Its outcome is there and nobody waits for it any more: it is kept, and said to be late (S-7.4)."""
    intent.late = True
    run.late = (*(each for each in run.late[-99:] if each != intent.intent_id), intent.intent_id)


def _armed(run: RunState, fact: facts.TimerArmed, _: int) -> None:
    activation = run.turning(fact.seq, "timer.armed")
    activation.timers[fact.timer_id] = activation.armed[fact.step] = fact.fires_at
    activation.kinds[fact.step] = "timer"


def _fired(run: RunState, fact: facts.TimerFired, _: int) -> None:
    activation = run.of(fact.seq)
    if fact.timer_id:
        if activation.timers.pop(fact.timer_id, None) is None:
            raise ImpossibleHistory(f"timer {fact.timer_id} fired but was not armed")
        activation.outcomes[fact.timer_id] = run.at
        _look(run, activation, "timer.fired")
    else:
        activation.state = next_activation_state(fact.seq, activation.state, "timer.fired", RESUMABLE)
        activation.timed_out = True
        activation.deadlines.append(run.at)
        activation.results = _ready(run, activation)


def _ready(run: RunState, activation: Activation) -> tuple[str, ...]:
    return tuple(wait for wait in activation.waits if run.resolved_at(activation, wait) is not None)


def _look(run: RunState, activation: Activation, event: str) -> None:
    """Whether the waits are over now; what is settled at that moment is what the next turn is told (S-7.2)."""
    if activation.state is not SUSPENDED:
        return
    ready = _ready(run, activation)
    over = bool(activation.waits) and (len(ready) == len(activation.waits) if activation.mode == "all" else bool(ready))
    over = over or (activation.cancel is not None and activation.cancel_at > activation.turn_seen)  # not told yet
    activation.state = next_activation_state(activation.seq, activation.state, event, RESUMABLE if over else SUSPENDED)
    if over:
        activation.results = ready


def _suspended(run: RunState, fact: facts.Suspended, _: int) -> None:
    activation = run.of(fact.seq)
    activation.state = next_activation_state(fact.seq, activation.state, "activation.suspended", SUSPENDED)
    if activation.waits:
        _mark_abandoned(run, activation, fact.waits, fact.seen)
    if run.emitting:
        _emitted_by(run, activation)
    activation.turns += 1
    activation.step, activation.index = fact.step, fact.index
    activation.waits, activation.mode, activation.deadline = fact.waits, fact.mode, fact.deadline
    activation.snapshot, activation.adapter = fact.snapshot, fact.adapter
    activation.timed_out, activation.results, activation.turn_now, activation.turn_seen = False, (), 0, fact.seen
    activation.failures, activation.retry_at, activation.last_failure = 0, 0, None
    activation.code = fact.code
    if fact.mode == LINEAR:
        activation.epochs.append(
            Epoch(fact.seen, fact.now, fact.step, fact.index, len(activation.emitted), run.spent - activation.spent, len(activation.saves), waits=fact.waits)
        )
        for wait in fact.waits:
            if wait.startswith("signal-"):
                activation.kinds[int(wait.split("-", 3)[2])] = "signal"
    turn_committed(activation)
    ready = _ready(run, activation)
    if run.late and ready:  # waited for after all
        run.late = tuple(intent_id for intent_id in run.late if intent_id not in ready)
        for intent_id in ready:
            if intent_id in run.intents:
                run.intents[intent_id].late = False
    cancelled = activation.cancel is not None and activation.cancel_at > fact.seen
    if cancelled or (ready and (len(ready) == len(fact.waits) or fact.mode != "all")):
        activation.state, activation.results = RESUMABLE, ready
    if run.signals:
        _look_for_signals(run)


def _mark_abandoned(run: RunState, activation: Activation, kept: tuple[str, ...], seen: int) -> None:
    """What the activation waited for and does not any more; an outcome beyond what its turn had ``seen`` came too late."""
    for wait in activation.waits:
        intent = run.intents.get(wait)
        if intent is None or wait in kept:
            continue
        if intent.state is not IntentState.SETTLED:
            intent.late = True
        elif activation.is_linear and intent.settled_at > seen >= 0 and intent.settled is not None and not is_withdrawal(intent.settled):
            _late(run, intent)


def _emitted_by(run: RunState, activation: Activation) -> None:
    """The append's domain events were the activation's; whoever else has begun hears of them when it goes on."""
    for other in run.open.values():
        if other is activation:
            other.emitted += [(kind, encoded) for kind, _, encoded in run.emitting]
        elif other.epochs:
            other.foreign += [(len(other.epochs), *each) for each in run.emitting]
    run.emitting.clear()


def _look_for_signals(run: RunState) -> None:
    """A signal that one activation was woken for and left is for the next that waits for its name."""
    for activation in run.open.values():
        if activation.state is SUSPENDED and any(wait.startswith("signal-") for wait in activation.waits):
            _look(run, activation, "signal.received")


def _completed(run: RunState, fact: facts.Completed, _: int) -> None:
    _finish(run, fact.seq, "activation.completed", fact.seen)


def _continued(run: RunState, fact: facts.Continued, _: int) -> None:
    _finish(run, fact.seq, "activation.continued", fact.seen)
    _received(run, fact.input, fact.now)
    run.line.insert(0, run.line.pop())


def _finish(run: RunState, seq: int, event: str, seen: int) -> None:
    activation = run.turning(seq, "activation.failed")  # same states, but it leads out of them
    next_activation_state(seq, activation.state, event, COMPLETED)
    if activation.waits:
        _mark_abandoned(run, activation, (), seen)
    if run.emitting:
        _emitted_by(run, activation)
    del run.open[seq]
    run.line.remove(seq)
    if run.line and not (first := run.open[run.line[0]]).turns:
        first.began = run.at
    run.completed += 1
    for intent_id in activation.intents:
        intent = run.intents[intent_id]
        if intent.state is IntentState.SETTLED and not intent.key:
            del run.intents[intent_id]
    if run.signals:
        _look_for_signals(run)


def _failed(run: RunState, fact: facts.ActivationFailed, _: int) -> None:
    activation = run.turning(fact.seq, "activation.failed")
    activation.failures = fact.attempt
    activation.last_failure = fact.failure
    kept = activation.index if activation.is_linear else 0  # what committed turns of linear code were told stays
    activation.tools = {index: cached for index, cached in activation.tools.items() if cached.failure is None or index < kept}
    forget_loads(activation)
    if fact.retry_at is None:
        activation.state = next_activation_state(fact.seq, activation.state, "activation.failed", PARKED)
        if not fact.holds:
            run.line.remove(fact.seq)
    else:
        activation.retry_at = fact.retry_at


def _redriven(run: RunState, fact: facts.InputRedriven, _: int) -> None:
    activation = run.of(fact.seq)
    target = RESUMABLE if activation.turns else QUEUED
    activation.state = next_activation_state(fact.seq, activation.state, "input.redriven", target)
    activation.failures, activation.retry_at = 0, 0
    if fact.seq not in run.line:
        run.line.append(fact.seq)
    run.blocked = ""


def _blocked(run: RunState, fact: facts.StreamBlocked, _: int) -> None:
    run.blocked = fact.failure.message


def _requested(run: RunState, fact: facts.ApprovalRequested, _: int) -> None:
    activation = run.turning(fact.seq, "approval.requested")
    activation.approvals[fact.approval_id] = Approval(fact)
    activation.timers[fact.approval_id] = fact.expires_at
    activation.kinds[fact.step] = "approval"


def _decided(run: RunState, fact: facts.ApprovalDecided, _: int) -> None:
    for activation in run.open.values():
        asked = activation.approvals.get(fact.approval_id)
        if asked is None:
            continue
        if asked.decided is not None:
            raise ImpossibleHistory(f"approval {fact.approval_id} was decided twice")
        if fact.digest != asked.requested.digest:  # about something else: no answer to what was asked, which nobody can give now (S-7.5)
            return
        if activation.timers.pop(fact.approval_id, None) is not None:  # else it had expired: a late answer changes nothing
            asked.decided = fact
            activation.outcomes[fact.approval_id] = run.at
            _look(run, activation, "approval.decided")


def _signalled(run: RunState, fact: facts.SignalReceived, _: int) -> None:
    run.signals.append((run.at, fact))
    for activation in run.open.values():
        if activation.state is SUSPENDED and any(w.startswith("signal-") and w.split("-", 3)[3] == fact.name for w in activation.waits):
            _look(run, activation, "signal.received")
            return


def _signal_taken(run: RunState, fact: facts.SignalTaken, _: int) -> None:
    activation = run.turning(fact.seq, "signal.taken")
    place = next((n for n, (_, signal) in enumerate(run.signals) if signal.signal_id == fact.signal_id), None)
    if place is None:
        raise ImpossibleHistory(f"signal {fact.signal_id} was taken, but it is not there")
    at, signal = run.signals.pop(place)
    activation.taken[fact.step] = Taken(signal, at)
    activation.kinds[fact.step] = "signal"


def _input_sent(run: RunState, fact: facts.InputSent, _: int) -> None:
    activation = run.turning(fact.seq, "input.sent")
    activation.kinds[fact.step] = "send"
    activation.sent[fact.step] = fact
    activation.children[f"{fact.stream}|{fact.input_id}"] = f"child-{fact.seq}-{fact.step}"


def _replied(run: RunState, fact: facts.ReplyReceived, _: int) -> None:
    for activation in run.open.values():
        wait = activation.children.get(f"{fact.stream}|{fact.input_id}")
        if wait is not None and wait not in activation.outcomes:
            activation.outcomes[wait], activation.replies[wait] = run.at, fact
            _look(run, activation, "reply.received")


def _cancel_requested(run: RunState, fact: facts.CancelRequested, _: int) -> None:
    activation = run.open.get(fact.seq)
    if activation is None or activation.cancel is not None:  # over already, or asked for already
        return
    activation.cancel, activation.cancel_at = fact, run.at
    _look(run, activation, "cancel.requested")


def _patched(run: RunState, fact: facts.Patched, _: int) -> None:
    run.turning(fact.seq, "patched").patches.add(fact.name)


def _budget_reached(run: RunState, fact: facts.BudgetReached, _: int) -> None:
    activation = run.turning(fact.seq, "budget.reached")
    activation.refusals[fact.step] = fact
    activation.kinds[fact.step] = "model call"


def _budget_raised(run: RunState, fact: facts.BudgetRaised, _: int) -> None:
    activation = run.turning(fact.seq, "budget.raised")
    more = Spent(fact.tokens, fact.picos)
    activation.raises[fact.step] = more
    activation.kinds[fact.step] = "budget"
    activation.raised += more
    run.raised += more


def _traced(run: RunState, fact: facts.Traced, _: int) -> None:
    run.turning(fact.seq, "traced")


APPLY: Final[dict[type, Callable[[RunState, Any, int], None]]] = {
    facts.InputReceived: _received,
    facts.ModelCallCached: _model_cached,
    facts.ModelCallFailed: _model_failed,
    facts.ToolCallCached: _tool_cached,
    facts.IntentStaged: _staged,
    facts.IntentAttempted: _attempted,
    facts.IntentSigned: _nothing,
    facts.IntentDistrusted: _nothing,
    facts.IntentReadmitted: _nothing,
    facts.OutcomeSigned: _nothing,
    facts.IntentPostponed: _nothing,
    facts.IntentSettled: _settled,
    facts.TimerArmed: _armed,
    facts.TimerFired: _fired,
    facts.Traced: _traced,
    facts.Suspended: _suspended,
    facts.Completed: _completed,
    facts.Continued: _continued,
    facts.ApprovalRequested: _requested,
    facts.ApprovalDecided: _decided,
    facts.SignalReceived: _signalled,
    facts.SignalTaken: _signal_taken,
    facts.InputSent: _input_sent,
    facts.ReplyReceived: _replied,
    facts.AggregateLoaded: loaded,
    facts.AggregateSaved: saved,
    facts.CancelRequested: _cancel_requested,
    facts.Patched: _patched,
    facts.BudgetReached: _budget_reached,
    facts.BudgetRaised: _budget_raised,
    facts.ActivationFailed: _failed,
    facts.InputRedriven: _redriven,
    facts.StreamBlocked: _blocked,
    **dict.fromkeys((facts.SchedulePlanned, facts.AnswerDistrusted, facts.AnswerRedriven), _nothing),
    **dict.fromkeys((facts.ApprovalSigned, facts.ApprovalUndelivered, facts.ApprovalRedriven), _nothing),
}


def take(run: RunState, fact: object, recorded_at: int = 0) -> None:
    """Take in the next fact; raises ``ImpossibleHistory`` when it cannot follow. ``run.at`` is its version, where known."""
    APPLY[type(fact)](run, fact, recorded_at)
