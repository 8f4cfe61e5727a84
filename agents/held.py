"""What one turn of one activation holds: what it was given, what it staged so far, where it stands.

Rules of this file: state and read-only views of it; no step. ``recorded`` matches it against the log, ``steps`` and
``linear`` are what agent code does, ``context`` is the whole under its public name.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Coroutine, Sequence
from datetime import datetime
from typing import Any

from ..eventlog.clock import to_datetime
from . import facts
from .budgets import UNSPENT, spent_on
from .definitions import Definitions
from .outcome import EffectResult, result_of
from .run import Activation, RunState


class TurnState:
    """The state of a turn; made by a driver for every turn anew.

    What most turns never touch is held by the class, or made when it is first looked at: a turn pays for what it uses.
    """

    #: The turn is over: what agent code still does while it is closed must not count.
    sealed = False
    #: A fault that agent code must not survive by catching it.
    fault: BaseException | None = None
    #: Replay knows which guards the recorded turn passed on the new way; ``None``: the turn is being decided now.
    guards: frozenset[str] | None = None
    _epoch = 0
    _emitted = 0
    _cancel_told = False
    _deadlines_told = 0
    _input: Any = None
    #: Steps and reads that committed turns of linear code took.
    _frontier = (0, 0)
    #: Of the model calls, and the raises of the budget, that the code has passed.
    _spent = _raised = UNSPENT

    def __init__(self, definitions: Definitions, run: RunState, activation: Activation, state: Any, stream: str, now: int, seen: int = -1) -> None:
        self.stream = stream
        #: The entity the agent acts for.
        self.key = stream.partition("-")[2]
        self.seq = activation.seq
        #: Microseconds since 1970-01-01 UTC, fixed for the turn (S-3.5).
        self.now_us = self._live_now = now
        #: Version of the last event this turn sees; fixed for the turn like ``now``, and for every re-run of it.
        self.seen = seen
        #: The aggregate's state, with what this turn emitted applied.
        self.state: Any = state
        #: The agent's code version when this activation began: old runs may keep to the old path.
        self.version = activation.code or definitions.agent.version
        self.snapshot = activation.snapshot
        self.adapter = activation.adapter
        self.staged: list[object] = []
        #: Canonical bytes of the arguments of each intent staged in this turn.
        self.arguments: dict[str, bytes] = {}
        self._definitions = definitions
        self._run = run
        self._activation = activation
        #: Inputs for other keys, delivered by the turn's append.
        self.sends: list[tuple[str, facts.InputReceived]] = []
        #: When the waits staged in this turn end by themselves: wait → µs.
        self._bounds: dict[str, int] = {}
        #: Steps of linear code, to see at the turn's end that each was awaited.
        self.steps_made: list[Coroutine[Any, Any, Any]] = []
        self._new_intents: dict[str, facts.IntentStaged] = {}
        self._new_timers: list[str] = []
        #: Business-keyed intents that were staged before and met again: waiting for them is waiting for their outcome.
        self._joined: list[str] = []
        #: Providers' failures that the code was told of in this turn: step → failure.
        self.unanswered: dict[int, facts.Failure] = {}
        if activation.is_linear:
            self.is_resume = False
            #: The next durable step's ordinal.
            self.step_index = self._index = 0
            self._frontier = (activation.step, activation.index)
            if activation.epochs:
                self.now_us = activation.epochs[0].now
        else:
            self.is_resume = activation.turns > 0
            self.step_index, self._index = activation.step, activation.index
            if self.step_index:
                self._spent = sum((spent_on(each.response.usage, each.cost) for step, each in activation.models.items() if step < self.step_index), UNSPENT)
                self._raised = sum((more for step, more in activation.raises.items() if step < self.step_index), UNSPENT)

    @functools.cached_property
    def _signals_taken(self) -> set[str]:
        return set()

    @functools.cached_property
    def _withdrawn(self) -> set[str]:
        return set()

    @functools.cached_property
    def _performed(self) -> set[str]:
        """Intents that ``perform`` staged: withdrawn when nobody waits for them any more."""
        return set()

    @functools.cached_property
    def _patches(self) -> dict[str, bool]:
        return {}

    @functools.cached_property
    def _randoms(self) -> dict[str, random.Random]:
        return {}

    @functools.cached_property
    def _uuids(self) -> dict[str, int]:
        return {}

    # ── what happened ───────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def input(self) -> Any:
        """The input this activation answers: an event, or a plain value. Raises ``InputRefused`` when it cannot be read."""
        if self._input is None:
            self._input = self._definitions.payload(self._activation.input)
        return self._input

    @property
    def input_id(self) -> str:
        """The id the input was sent under."""
        return self._activation.input.input_id

    @property
    def now(self) -> datetime:
        """The turn's moment: the same for the whole turn and for every re-run of it (S-3.5)."""
        return to_datetime(self.now_us)

    @property
    def resume_results(self) -> tuple[EffectResult, ...]:
        """What the last suspension waited for, in the order it was staged; an outcome that is not there reads TIMED_OUT."""
        activation = self._activation
        return tuple(
            self._result(wait, wait in activation.results)
            for wait in activation.waits
            if activation.timed_out or activation.mode == "all" or wait in activation.results
        )

    @property
    def resume_result(self) -> EffectResult | None:
        """The first of ``resume_results``; ``None`` on the first turn. A suspension that waited for nothing reads TIMED_OUT."""
        if not self.is_resume:
            return None
        results = self.resume_results
        return results[0] if results else EffectResult("", "TIMED_OUT")

    @property
    def timed_out(self) -> bool:
        """Whether the suspension ended by its deadline (S-7.3)."""
        return self._activation.timed_out

    def outcome(self, intent_id: str) -> EffectResult | None:
        """The recorded outcome of an intent of this stream, or ``None`` while there is none that this turn sees."""
        intent, sees = self._run.intents.get(intent_id), self._sees()
        if intent is None or intent.settled is None or intent.settled_at > sees >= 0:
            return None
        return result_of(intent)

    def _sees(self) -> int:
        """Version of the last event that the code now running sees: in a re-run, what the turn now re-run had seen."""
        epochs = self._activation.epochs
        return epochs[self._epoch].seen if self._epoch < len(epochs) else self.seen

    def _result(self, wait: str, ready: bool) -> EffectResult:
        intent = self._run.intents.get(wait)
        if intent is None:
            return EffectResult(wait, "OK" if ready else "TIMED_OUT")
        return result_of(intent) if ready else EffectResult(wait, "TIMED_OUT", intent.tool, attempts=intent.attempts)

    # ── the end of the turn ─────────────────────────────────────────────────────────────────────────────────────────

    @property
    def is_linear(self) -> bool:
        """Whether the activation has waited at an ``await``."""
        return self._activation.is_linear

    @property
    def was_cancelled(self) -> bool:
        """Whether this turn was told to end by a cancellation; explicit agents look at it when they are resumed."""
        return self._cancel_told or (not self.is_linear and self._activation.turns > 0 and self._sees_cancel)

    @property
    def _sees_cancel(self) -> bool:
        return self._activation.cancel is not None and self._activation.cancel_at <= self.seen

    @property
    def is_cancelled_before_it_began(self) -> bool:
        """Nothing to clean up: no turn was committed and nothing is in the journal."""
        activation = self._activation
        return self._sees_cancel and not activation.turns and not activation.turn_now

    def deadline_of(self, waits: Sequence[str]) -> int:
        """When a suspension of linear code ends by itself: the agent's ``wait_timeout`` after the last of its waits should have."""
        bounds = [self.now_us]
        for wait in waits:
            intent = self._run.intents.get(wait)
            bounds.append(intent.expires_at if intent is not None else self._bounds.get(wait) or self._activation.timers.get(wait, 0))
        return max(bounds) + self._definitions.agent.wait_timeout_us

    def next_input(self, payload: Any) -> facts.InputReceived:
        """The input of the activation that continues this one."""
        asked = self._activation.input
        reply_to = f"{asked.reply_to}\n{asked.input_id}" if asked.reply_to and "\n" not in asked.reply_to else asked.reply_to
        return self._definitions.received(f"continued|{self.stream}|{self.seq}", payload, reply_to)

    def position(self) -> tuple[int, int]:
        """The next step's and the next read's ordinals."""
        return self.step_index, self._index

    def waits(self) -> tuple[str, ...]:
        """What a suspension waits for: what the last one was not told of, open intents and timers, business-keyed intents met again, this turn's own.

        An outcome that came after the last wait was over, and before this one, is there already when this one is recorded (S-7.2).
        """
        intents, activation = self._run.intents, self._activation
        found = [wait for wait in activation.waits if wait not in activation.results] if activation.waits else []
        if activation.intents:
            found += [i for i in activation.intents if i in intents and intents[i].settled is None]
        if activation.timers or self._joined or self._new_timers:
            found += (*activation.timers, *self._joined, *self._new_intents, *self._new_timers)
        elif not found:
            return tuple(self._new_intents)
        else:
            found += self._new_intents
        return tuple(dict.fromkeys(found))
