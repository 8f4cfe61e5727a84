"""Two state machines, one table each: the life of an activation and the life of an intent.

Rules of this file: everything about what may follow what is in the tables; the fold reads them and refuses a history
they do not allow (``ImpossibleHistory``). A table gives, for a state and an event, the states it may lead to; where
there is more than one, the fold's own facts decide (are all waits settled? is it to be retried?).
"""

from __future__ import annotations

import enum
from typing import Final

from .errors import ImpossibleHistory


class ActivationState(enum.Enum):
    """Where an activation stands between two appends."""

    QUEUED = "queued"  # its input is recorded; no turn has been committed
    SUSPENDED = "suspended"  # a turn was committed; its waits are open
    RESUMABLE = "resumable"  # its waits are over; the next turn may run
    PARKED = "parked"  # given up for now: a dead letter
    COMPLETED = "completed"

    __hash__ = object.__hash__  # members are single; Enum's own hash is a call into Python for each look-up


class IntentState(enum.Enum):
    """Where an intent stands."""

    STAGED = "staged"
    ATTEMPTED = "attempted"
    SETTLED = "settled"

    __hash__ = object.__hash__


_Q, _S, _R, _P, _C = ActivationState

ACTIVATION: Final[dict[tuple[ActivationState, str], frozenset[ActivationState]]] = {
    (state, event): frozenset(targets)
    for state, event, targets in (
        # ── before its first turn is committed
        (_Q, "model_call.cached", {_Q}),
        (_Q, "model_call.failed", {_Q}),
        (_Q, "tool_call.cached", {_Q}),
        (_Q, "intent.staged", {_Q}),
        (_Q, "timer.armed", {_Q}),
        (_Q, "traced", {_Q}),
        (_Q, "approval.requested", {_Q}),
        (_Q, "signal.taken", {_Q}),
        (_Q, "input.sent", {_Q}),
        (_Q, "patched", {_Q}),
        (_Q, "aggregate.loaded", {_Q}),
        (_Q, "aggregate.saved", {_Q}),
        (_Q, "budget.reached", {_Q}),
        (_Q, "budget.raised", {_Q}),
        (_Q, "activation.suspended", {_S, _R}),
        (_Q, "activation.completed", {_C}),
        (_Q, "activation.continued", {_C}),
        (_Q, "activation.failed", {_Q, _P}),
        # ── waiting
        (_S, "intent.settled", {_S, _R}),
        (_S, "timer.fired", {_S, _R}),
        (_S, "approval.decided", {_S, _R}),
        (_S, "signal.received", {_S, _R}),
        (_S, "reply.received", {_S, _R}),
        (_S, "cancel.requested", {_R}),
        # ── ready for its next turn
        (_R, "intent.settled", {_R}),
        (_R, "model_call.cached", {_R}),
        (_R, "model_call.failed", {_R}),
        (_R, "tool_call.cached", {_R}),
        (_R, "intent.staged", {_R}),
        (_R, "timer.armed", {_R}),
        (_R, "traced", {_R}),
        (_R, "approval.requested", {_R}),
        (_R, "signal.taken", {_R}),
        (_R, "input.sent", {_R}),
        (_R, "patched", {_R}),
        (_R, "aggregate.loaded", {_R}),
        (_R, "aggregate.saved", {_R}),
        (_R, "budget.reached", {_R}),
        (_R, "budget.raised", {_R}),
        (_R, "activation.suspended", {_S, _R}),
        (_R, "activation.completed", {_C}),
        (_R, "activation.continued", {_C}),
        (_R, "activation.failed", {_R, _P}),
        # ── parked: only a person brings it back
        (_P, "input.redriven", {_Q, _R}),
    )
}
"""(state, event type) → states it may lead to."""

INTENT: Final[dict[tuple[IntentState, str], IntentState]] = {
    (IntentState.STAGED, "intent.attempted"): IntentState.ATTEMPTED,
    (IntentState.STAGED, "intent.settled"): IntentState.SETTLED,
    (IntentState.ATTEMPTED, "intent.attempted"): IntentState.ATTEMPTED,
    (IntentState.ATTEMPTED, "intent.settled"): IntentState.SETTLED,
}
"""(state, event type) → next state. Nothing leads out of SETTLED (S-6.2)."""


def next_activation_state(seq: int, state: ActivationState, event: str, target: ActivationState) -> ActivationState:
    """``target`` when the table allows it; raises ``ImpossibleHistory`` otherwise."""
    if target not in ACTIVATION.get((state, event), ()):
        raise ImpossibleHistory(f"activation {seq} is {state.value}: {event} cannot make it {target.value}")
    return target


def next_intent_state(intent_id: str, state: IntentState, event: str) -> IntentState:
    """The state after ``event``; raises ``ImpossibleHistory`` when the table has none."""
    try:
        return INTENT[state, event]
    except KeyError:
        raise ImpossibleHistory(f"intent {intent_id} is {state.value}: {event} cannot follow") from None
