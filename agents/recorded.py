"""What the log says to a turn that is run again: which steps it took, which outcomes it had seen, and in which order.

Linear code is re-run from its start. Each committed turn is an *epoch*: the re-run sees what that turn had seen, stops
where it had stopped, and only then goes on to what the next turn had seen (S-7.6).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from ..eventlog.clock import to_datetime
from .errors import ActivationCancelled, EffectTimedOut, StepDrift, TurnOver
from .held import TurnState
from .intents import withdrawn
from .lifecycle import IntentState


class Recorded(TurnState):
    """Matching against the record, and the ``Script`` of the activation's fibers."""

    @property
    def _in_past(self) -> bool:
        """Whether the code now running is what an earlier, committed turn ran."""
        return self._epoch < len(self._activation.epochs)

    def _step(self, kind: str, shown: str) -> int:
        """The next step's ordinal; raises ``StepDrift`` when another kind of step is recorded there."""
        if self.sealed:
            raise TurnOver
        if self.fault is not None:  # caught, and gone on from: nothing more may be asked or paid for
            raise self.fault
        step = self.step_index
        self.step_index += 1
        recorded = self._activation.kinds.get(step)
        if recorded is not None and recorded != kind:
            self._fail(StepDrift(self._place(step), self._shown_at(step, recorded), f"{kind} {shown}"))
        return step

    def _shown_at(self, step: int, kind: str) -> str:
        if kind == "model call":
            asked = self._activation.models.get(step)
            return f"a model call ({asked.request.model})" if asked is not None else "a model call refused for its budget"
        if kind == "timer" and step in self._activation.armed:
            return f"timer for {to_datetime(self._activation.armed[step])}"
        if kind == "approval":
            return f"approval {next((each.requested.question for each in self._activation.approvals.values() if each.requested.step == step), '')!r:.80}"
        if kind == "send" and step in self._activation.sent:
            return f"send {self._activation.sent[step].stream}"
        if kind == "signal":
            return f"signal {self._waited_for(step)}"
        intents = self._run.intents
        tool = next((intents[i].tool for i in self._activation.intents if i in intents and intents[i].step == step), "")
        return f"{kind} {tool}".rstrip()

    def _waited_for(self, step: int) -> str:
        """The name of the signal that the step at ``step`` got or waited for."""
        taken = self._activation.taken.get(step)
        if taken is not None:
            return taken.signal.name
        begin = f"signal-{self.seq}-{step}-"
        waits = (wait for epoch in self._activation.epochs for wait in epoch.waits)
        return next((wait.removeprefix(begin) for wait in waits if wait.startswith(begin)), "")

    def _is_recorded(self, step: int, kind: str, shown: str) -> bool:
        """Whether an earlier turn staged this step; raises ``StepDrift`` when it should have and did not."""
        if self._activation.kinds.get(step) == kind:
            return True
        self._refuse_new(step, kind, shown)
        return False

    def _refuse_new(self, step: int, kind: str, shown: str) -> None:
        """A step that a committed turn would have taken must be in the record."""
        if step < self._frontier[0]:
            self._fail(StepDrift(self._place(step), "no such step: the recorded turn went on without it", f"{kind} {shown}", "the steps taken"))

    def _place(self, step: int) -> str:
        return f"{self.stream}, activation {self.seq}, step {step}"

    def _fail(self, fault: Exception) -> NoReturn:
        self.fault = self.fault or fault
        raise fault

    # ── the script of the fibers ────────────────────────────────────────────────────────────────────────────────────

    def next_outcome(self, waits: Sequence[str]) -> str | BaseException | None:
        """See ``Script``."""
        sees, activation = self._sees(), self._activation
        best: tuple[int, int, str | BaseException] | None = None
        for place, wait in enumerate(waits):
            at = self._resolved_at(wait)
            if at is not None and at <= sees and (best is None or (at, place) < best[:2]):
                best = (at, place, wait)
        if activation.cancel is not None and not self._cancel_told and activation.cancel_at <= sees and (best is None or activation.cancel_at < best[0]):
            self._cancel_told = True
            return ActivationCancelled(
                f"{self.stream}, activation {self.seq}, was cancelled by {activation.cancel.by}: {activation.cancel.reason or 'no reason given'}"
            )
        passed = activation.deadlines[self._deadlines_told] if self._deadlines_told < len(activation.deadlines) else None
        if passed is not None and passed <= sees and (best is None or passed < best[0]):
            self._deadlines_told += 1
            return EffectTimedOut(f"{self.stream}, activation {self.seq}: nothing it waited for had an outcome at its deadline")
        return best[2] if best is not None else None

    def _resolved_at(self, wait: str) -> int | None:
        if wait.startswith("signal-"):
            _, _, step, name = wait.split("-", 3)
            if int(step) not in self._activation.taken:
                return next((at for at, signal in self._run.signals if signal.name == name and signal.signal_id not in self._signals_taken), None)
        return self._run.resolved_at(self._activation, wait)

    def next_epoch(self, waits: Sequence[str]) -> bool:
        """See ``Script``; raises ``StepDrift`` when the code is not where the recorded turn had stopped."""
        if not self._in_past:
            return False
        epoch = self._activation.epochs[self._epoch]
        here, there = (self.step_index, self._index, self._emitted), (epoch.step, epoch.index, epoch.emitted)
        if here != there:
            self._fail(
                StepDrift(
                    f"{self.stream}, activation {self.seq}, turn {self._epoch}",
                    "it stopped after {} steps, {} reads and {} events".format(*there),
                    "it stops after {} steps, {} reads and {} events".format(*here),
                    next(name for name, a, b in zip(("steps", "reads", "events"), there, here, strict=True) if a != b),
                )
            )
        if tuple(waits) != epoch.waits:
            self._fail(
                StepDrift(
                    f"{self.stream}, activation {self.seq}, turn {self._epoch}",
                    f"it waited for {', '.join(map(self._wait_shown, epoch.waits))}",
                    f"it waits for {', '.join(map(self._wait_shown, waits))}",
                    "waits",
                )
            )
        self._epoch += 1
        epochs = self._activation.epochs
        self.now_us = epochs[self._epoch].now if self._epoch < len(epochs) else self._live_now
        for place, kind, schema, encoded in self._activation.foreign:
            if place == self._epoch and self.state is not None:  # others went on while this activation was suspended
                self.state = self.state.apply(self._definitions.codec.decode(kind, schema, encoded))
        return True

    def abandoned(self, waits: Sequence[str]) -> None:
        """See ``Script``: an intent nobody attempted yet is withdrawn; one under way ends by itself and is late (S-7.4)."""
        for wait in waits:
            if wait not in self._performed or self._in_past:  # what ``act`` staged is to happen whether or not somebody waits
                continue
            intent = self._run.intents.get(wait)
            untouched = wait in self._new_intents if intent is None else intent.state is IntentState.STAGED
            if untouched and wait not in self._withdrawn:
                self._withdrawn.add(wait)
                self.staged.append(withdrawn(wait))

    def _wait_shown(self, wait: str) -> str:
        known = self._run.intents.get(wait) or self._new_intents.get(wait)
        return f"{known.tool} (step {known.step})" if known is not None else wait

    def unreached(self) -> StepDrift | None:
        """Something recorded beyond where the turn ended: the code took another path than the one that was committed or paid for."""
        if self._in_past:
            epoch = self._activation.epochs[self._epoch]
            recorded = f"it waited for {', '.join(map(self._wait_shown, epoch.waits))}"
            return StepDrift(f"{self.stream}, activation {self.seq}, turn {self._epoch}", recorded, "the activation ends", "the steps taken")
        models, tools = self._activation.models, self._activation.tools
        if models and max(models) >= self.step_index:
            step = min(s for s in models if s >= self.step_index)
            return StepDrift(self._place(step), f"a model call ({models[step].request.model})", "the turn ended before this step")
        if tools and max(tools) >= self._index:
            index = min(i for i in tools if i >= self._index)
            return StepDrift(f"{self.stream}, activation {self.seq}, read {index}", tools[index].tool, "the turn ended before this read")
        return None
