"""What the runtime's events of one stream add up to: its inputs in line, its open activations, its intents.

``RunState`` is an accumulator: ``evolve.take`` is called once for each fact, in order, and looks at nothing else (S-8.1).
It holds what is open; a finished activation leaves only its business-keyed intents and its counters behind, so that
the state of a key does not grow with its age.
"""

from __future__ import annotations

from typing import Any

import attrs

from . import facts
from .budgets import UNSPENT, Spent
from .errors import ImpossibleHistory
from .intents import input_event_id
from .lifecycle import ACTIVATION, ActivationState, IntentState, next_activation_state

LINEAR = "linear"
"""The wait mode of linear code: any outcome resumes it."""
QUEUED, SUSPENDED, RESUMABLE, PARKED, COMPLETED = ActivationState
WHILE_SUSPENDED = ("queue", "interrupt", "concurrent")
"""What a new input does while an activation of its key is suspended (S-2.4)."""
QUEUE, INTERRUPT, CONCURRENT = WHILE_SUSPENDED


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
    #: Version of the settlement in the stream.
    settled_at: int = -1
    #: Its outcome came when nobody waited for it any more (S-7.4).
    late: bool = False


@attrs.define
class Epoch:
    """A committed turn of linear code: what it had seen and where it stopped. A re-run stops at the same places (S-7.6)."""

    seen: int
    now: int
    step: int
    index: int
    #: Domain events emitted until then.
    emitted: int
    #: What the key had spent outside of the activation.
    others: Spent = UNSPENT
    #: Saves of other aggregates until then.
    saved: int = 0
    #: What it waited for.
    waits: tuple[str, ...] = ()


@attrs.define
class Taken:
    """A signal that a step got, and the version at which it had been received."""

    signal: facts.SignalReceived
    at: int


@attrs.define
class Approval:
    """A question to a person and its answer, if there is one."""

    requested: facts.ApprovalRequested
    decided: facts.ApprovalDecided | None = None


@attrs.define
class Activation:
    """One activation that is not completed."""

    seq: int
    input: facts.InputReceived
    received_at: int
    state: ActivationState = QUEUED
    #: ``ctx.now`` of the turn under way, fixed by its first journal entry; 0 until then (S-3.5).
    turn_now: int = 0
    #: Version of the last event that turn had seen; between turns, that the last one had.
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
    failures: int = 0
    retry_at: int = 0
    models: dict[int, facts.ModelCallCached] = attrs.field(factory=dict)
    tools: dict[int, facts.ToolCallCached] = attrs.field(factory=dict)
    #: What linear code was told of providers that did not answer: by step.
    unanswered: dict[int, facts.Failure] = attrs.field(factory=dict)
    #: Intents staged by this activation.
    intents: tuple[str, ...] = ()
    last_failure: facts.Failure | None = None
    #: The agent's code version when it began; 0 until its first turn is committed.
    code: int = 0
    #: Kinds of the recorded steps: step → ``intent``, ``timer``, …
    kinds: dict[int, str] = attrs.field(factory=dict)
    #: Moments of the recorded timers, and the recorded sends: by step.
    armed: dict[int, int] = attrs.field(factory=dict)
    sent: dict[int, facts.InputSent] = attrs.field(factory=dict)
    epochs: list[Epoch] = attrs.field(factory=list)
    #: Domain events of its committed turns, in order: (type, bytes).
    emitted: list[tuple[str, bytes]] = attrs.field(factory=list)
    #: Domain events that other activations emitted after it began: (its turns until then, type, schema, bytes).
    foreign: list[tuple[int, str, int, bytes]] = attrs.field(factory=list)
    #: Versions at which timers, approvals and children had their outcome: wait → version.
    outcomes: dict[str, int] = attrs.field(factory=dict)
    approvals: dict[str, Approval] = attrs.field(factory=dict)
    #: step → the signal it got.
    taken: dict[int, Taken] = attrs.field(factory=dict)
    #: ``stream|input id`` of inputs sent to other keys → the wait for their replies.
    children: dict[str, str] = attrs.field(factory=dict)
    replies: dict[str, facts.ReplyReceived] = attrs.field(factory=dict)
    patches: set[str] = attrs.field(factory=set)
    #: step → the other aggregate as it was seen.
    loads: dict[int, facts.AggregateLoaded] = attrs.field(factory=dict)
    saves: list[facts.AggregateSaved] = attrs.field(factory=list)
    #: Answers that were asked for in view of an aggregate which has changed since (see ``loads``).
    stale: dict[int, facts.ModelCallCached] = attrs.field(factory=dict)
    stale_reads: dict[int, facts.ToolCallCached] = attrs.field(factory=dict)
    cancel: facts.CancelRequested | None = None
    cancel_at: int = -1
    #: Version at which it became the current one: what stands behind it is its history.
    began: int = -1
    #: Versions at which its suspensions' own deadlines passed.
    deadlines: list[int] = attrs.field(factory=list)
    #: What its recorded model calls used up.
    spent: Spent = UNSPENT
    #: Model calls that were not made because the budget left nothing: step → the refusal.
    refusals: dict[int, facts.BudgetReached] = attrs.field(factory=dict)
    #: step → by how much it raised the budget, and the sum.
    raises: dict[int, Spent] = attrs.field(factory=dict)
    raised: Spent = UNSPENT

    @property
    def input_event_id(self) -> bytes:
        """Event id of its input, which correlates everything the activation writes. Made when it is asked for: a fold over a long history does not."""
        return input_event_id(self.input.input_id)

    @property
    def is_linear(self) -> bool:
        """Whether it suspends at an ``await`` instead of by returning ``Suspend``."""
        return self.mode == LINEAR


@attrs.define
class RunState:
    """The fold of one stream's runtime events."""

    #: Inputs ever recorded; the next one's activation gets this seq.
    inputs: int = 0
    completed: int = 0
    #: Seqs in the order in which they will be handled.
    line: list[int] = attrs.field(factory=list)
    open: dict[int, Activation] = attrs.field(factory=dict)
    intents: dict[str, Intent] = attrs.field(factory=dict)
    #: Outcomes that came after their wait was over, newest last (the last 100).
    late: tuple[str, ...] = ()
    blocked: str = ""
    #: Signals nobody has taken: (version, signal).
    signals: list[tuple[int, facts.SignalReceived]] = attrs.field(factory=list)
    #: Version of the event being taken in.
    at: int = -1
    #: Domain events of the append being taken in, until its closing fact tells whose they are: (type, schema, bytes).
    emitting: list[tuple[str, int, bytes]] = attrs.field(factory=list)
    #: What the key's model calls used up, over its whole life, and what its budget was raised by.
    spent: Spent = UNSPENT
    raised: Spent = UNSPENT
    #: The agent's policy as it is now; no fact depends on it.
    while_suspended: str = QUEUE

    @property
    def current(self) -> Activation | None:
        """The activation whose turn it is, or that the others wait for; ``None`` when nothing is in line."""
        if self.while_suspended == CONCURRENT:
            return self._beside()
        return self.open[self.line[0]] if self.line else None

    def _beside(self) -> Activation | None:
        """The first that can run. One with a turn under way comes first, for its journal belongs to the state as it is."""
        runnable: Activation | None = None
        held = False
        for seq in self.line:
            activation = self.open[seq]
            if activation.state is PARKED:
                held = True
            elif activation.state is not SUSPENDED and not (held and activation.state is QUEUED):
                if activation.turn_now:
                    return activation
                runnable = runnable or activation
        return runnable or (self.open[self.line[0]] if self.line else None)

    def waiting(self) -> list[Activation]:
        """Suspended activations whose timers count now: all of them, or the one that the others wait for."""
        if self.while_suspended == CONCURRENT:
            return [self.open[seq] for seq in self.line if self.open[seq].state is SUSPENDED]
        return [self.open[self.line[0]]] if self.line and self.open[self.line[0]].state is SUSPENDED else []

    @property
    def interrupted(self) -> Activation | None:
        """The suspended activation that an input behind it in line is to cancel."""
        if self.while_suspended != INTERRUPT or len(self.line) < 2:
            return None
        first = self.open[self.line[0]]
        return first if first.state is SUSPENDED and first.cancel is None else None

    @property
    def parked(self) -> list[Activation]:
        """Dead letters, oldest first."""
        return [activation for activation in self.open.values() if activation.state is PARKED]

    def apply(self, fact: object, recorded_at: int) -> None:
        """``evolve.take`` for one fact at a time; folds look the function up themselves."""
        from .evolve import take

        take(self, fact, recorded_at)

    def of(self, seq: int) -> Activation:
        """The open activation ``seq``; raises ``ImpossibleHistory``."""
        activation = self.open.get(seq)
        if activation is None:
            raise ImpossibleHistory(f"activation {seq} is not open (open: {sorted(self.open)})")
        return activation

    def turning(self, seq: int, event: str) -> Activation:
        """The activation whose turn writes ``event``; raises ``ImpossibleHistory`` when it cannot."""
        activation = self.open.get(seq) or self.of(seq)
        if seq not in self.line:
            raise ImpossibleHistory(f"{event} of activation {seq}, which is not in line: {self.line}")
        state = activation.state
        if state not in ACTIVATION.get((state, event), ()):
            next_activation_state(seq, state, event, state)
        return activation

    def resolved_at(self, activation: Activation, wait: str) -> int | None:
        """The version at which ``wait`` had its outcome, or ``None`` while it has none."""
        intent = self.intents.get(wait)
        if intent is not None:
            return intent.settled_at if intent.settled is not None else None
        if wait in activation.outcomes:
            return activation.outcomes[wait]
        if wait.startswith("signal-"):
            _, _, step, name = wait.split("-", 3)
            taken = activation.taken.get(int(step))
            return taken.at if taken is not None else next((at for at, signal in self.signals if signal.name == name), None)
        return None


def next_attention(run: RunState) -> int | None:
    """When the stream needs a turn: 0 for now, a moment, or ``None`` for not until something arrives.

    The first in line decides (S-2.3), unless suspended activations let others run beside them (S-2.4).
    """
    activation = run.current
    if activation is None:
        return None
    if run.while_suspended == QUEUE:
        if activation.state is SUSPENDED:
            return min(_moments(activation)) if activation.timers else activation.deadline
        return None if activation.state is PARKED else activation.retry_at
    if run.interrupted is not None:
        return 0
    moments = [moment for waiting in run.waiting() for moment in _moments(waiting)]
    if activation.state in (QUEUED, RESUMABLE):
        moments.append(activation.retry_at)
    return min(moments, default=None)


def _moments(activation: Activation) -> list[int]:
    return [activation.deadline, *(at for timer, at in activation.timers.items() if timer in activation.waits)]
