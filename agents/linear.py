"""The steps of linear code: ``await ctx.perform(…)`` and its siblings, matched on a re-run by position and content (S-7.6).

Rules of this file: the same as in ``steps``. Nothing here waits for real; an ``await`` that has
no outcome yet parks its fiber, and the turn ends when all are parked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import attrs

from ..eventlog.clock import from_datetime, from_timedelta, to_datetime
from ..eventlog.names import stream_name
from . import facts
from .awaiting import step
from .compare import first_difference
from .errors import ActivationCancelled, DefinitionError, EffectTimedOut, InputRefused, StepDrift, TurnOver
from .fibers import End, StepCancelled, discard, fork, wait_for
from .intents import content_digest
from .outcome import EffectResult
from .steps import Steps
from .tools import Tool


@attrs.frozen
class Verdict:
    """A person's answer. True when approved; an approval nobody gave in time is a denial (S-7.3)."""

    approved: bool
    by: str = ""
    reason: str = ""
    timed_out: bool = False

    def __bool__(self) -> bool:
        return self.approved


@attrs.frozen
class ContinueWith:
    """End this activation and begin the next with ``payload``, in one append."""

    payload: Any


class LinearSteps(Steps):
    """What linear agents can do besides."""

    @step
    async def perform(
        self,
        /,
        used: str | Tool,
        args: str | bytes | Mapping[str, Any] | None = None,
        *,
        ttl: timedelta | None = None,
        key: str | None = None,
        **named: Any,
    ) -> Any:
        """Have an effect carried out and wait for its value. Raises ``EffectFailed`` (its subclass says how it ended)."""
        found = used if isinstance(used, Tool) else self._definitions.tools.named(used)
        step = self.step_index
        intent_id = self.act(found, args, ttl=ttl, key=key, **named)
        known = self._new_intents.get(intent_id) or self._run.intents[intent_id]
        if (known.seq, known.step) == (self.seq, step):
            self._performed.add(intent_id)
        await wait_for(intent_id)
        return self._definitions.value(self._result(intent_id, True).value, found.returns)

    @step
    async def outcome_of(self, intent_id: str) -> EffectResult:
        """Wait for the outcome of an intent staged with ``act``, whatever it is."""
        await wait_for(intent_id)
        return self._result(intent_id, True)

    @step
    async def sleep(self, length: timedelta) -> None:
        """Wait for a length of time; the worker is free meanwhile."""
        await wait_for(self._timer(self.now_us + from_timedelta(length), f"sleep {length}"))

    @step
    async def sleep_until(self, moment: datetime) -> None:
        """Wait for a moment (an aware datetime)."""
        await wait_for(self._timer(from_datetime(moment), f"sleep until {moment}"))

    def _timer(self, fires_at: int, shown: str) -> str:
        step = self._step("timer", shown)
        timer_id = f"timer-{self.seq}-{step}"
        if self._is_recorded(step, "timer", shown):
            recorded = self._activation.armed[step]
            if recorded != fires_at:
                self._fail(StepDrift(f"{self._place(step)} (timer)", str(to_datetime(recorded)), f"{to_datetime(fires_at)} ({shown})", "fires_at"))
            return timer_id
        self.staged.append(facts.TimerArmed(timer_id, self.seq, step, fires_at))
        self._new_timers.append(timer_id)
        self._bounds[timer_id] = fires_at
        return timer_id

    @step
    async def approval(self, /, question: str, *, channel: str = "approvals", timeout: timedelta | None = None, **details: Any) -> Verdict:
        """Ask a person and wait for the answer; no answer within ``timeout`` is a denial (S-7.3, S-7.5)."""
        step = self._step("approval", question)
        digest = content_digest(
            "approval", self._definitions.codec.encode_value({"question": question, "channel": channel, "details": details}, dict[str, Any])
        )
        approval_id = f"approval-{self.seq}-{step}"
        asked = self._activation.approvals.get(approval_id)
        if asked is None:
            self._refuse_new(step, "approval", question)
            length = from_timedelta(timeout) if timeout is not None else self._definitions.agent.wait_timeout_us
            expires_at = self.now_us + length
            self.staged.append(facts.ApprovalRequested(approval_id, self.seq, step, question, channel, details, digest, expires_at))
            self._bounds[approval_id] = expires_at
        elif asked.requested.digest != digest:
            was = asked.requested
            difference = first_difference(
                {"question": was.question, "channel": was.channel, "details": was.details}, {"question": question, "channel": channel, "details": details}
            )
            self._fail(StepDrift(f"{self._place(step)} (approval)", difference.left, difference.right, difference.path))
        await wait_for(approval_id)
        asked = self._activation.approvals[approval_id]
        if asked.decided is None:
            return Verdict(False, timed_out=True)
        return Verdict(asked.decided.approved, asked.decided.by, asked.decided.reason)

    @step
    async def signal(self, name: str, *, timeout: timedelta | None = None) -> Any:
        """Wait for the next signal of this name, sent before or after; its payload. Raises ``EffectTimedOut``."""
        if timeout is not None:
            return await self.timeout(self.signal(name), timeout)
        step = self._step("signal", name)
        await wait_for(f"signal-{self.seq}-{step}-{name}")
        taken = self._activation.taken.get(step)
        if taken is not None:
            if taken.signal.name != name:
                self._fail(StepDrift(f"{self._place(step)} (signal)", taken.signal.name, name, "name"))
            return taken.signal.payload
        signal = self._take_signal(name)
        self.staged.append(facts.SignalTaken(signal.signal_id, name, self.seq, step))
        return signal.payload

    def _take_signal(self, name: str) -> facts.SignalReceived:
        place = next(n for n, (_, signal) in enumerate(self._run.signals) if signal.name == name and signal.signal_id not in self._signals_taken)
        signal = self._run.signals[place][1]
        self._signals_taken.add(signal.signal_id)
        return signal

    def send(self, agent: str, key: str, payload: Any, *, id: str | None = None) -> str:
        """Send an input to another key as part of this turn's append; its input id."""
        return self._send(agent, key, payload, id, "")[1]

    @step
    async def call(self, agent: str, key: str, payload: Any) -> Any:
        """Send an input to another key and wait for what its activation ends with. Raises ``ActivationCancelled`` when it was cancelled."""
        step, input_id = self._send(agent, key, payload, None, self.stream)
        wait = f"child-{self.seq}-{step}"
        await wait_for(wait)
        reply = self._activation.replies[wait]
        if reply.cancelled:
            raise ActivationCancelled(f"{reply.stream}, input {input_id}, was cancelled")
        return reply.output

    def _send(self, agent: str, key: str, payload: Any, id: str | None, reply_to: str) -> tuple[int, str]:
        stream = stream_name(agent, key)
        if stream == self.stream and reply_to:
            raise DefinitionError(f"{self.stream} calls itself: its own turn would have to end first. Use ctx.send, or ctx.continue_with.")
        names = self._definitions.agents
        if names and agent not in names:
            raise DefinitionError(f"this app has no agent {agent!r} to send to; it has: {', '.join(sorted(names))}")
        step = self._step("send", stream)
        input_id = id or f"{self.stream}|{self.seq}|{step}"
        received = self._definitions.received(input_id, payload, reply_to)
        digest = content_digest(stream, self._definitions.codec.encode_value(received, facts.InputReceived))
        sent = facts.InputSent(self.seq, step, stream, input_id, digest)
        if self._is_recorded(step, "send", stream):
            recorded = self._activation.sent[step]
            if recorded != sent:
                difference = first_difference(recorded, sent)
                self._fail(StepDrift(f"{self._place(step)} (send)", difference.left, difference.right, difference.path))
        else:
            self.staged.append(sent)
            known = next((each for to, each in self.sends if (to, each.input_id) == (stream, input_id)), None)
            if known is not None and known != received:
                raise InputRefused(f"ctx.send: input id {input_id!r} goes to {stream} with another payload in the same turn; send another input under a new id")
            if known is None:  # the same id twice is one input (S-2.2), in one turn as in two
                self.sends.append((stream, received))
        return step, input_id

    def continue_with(self, payload: Any) -> ContinueWith:
        """``return ctx.continue_with(input)``: end here and begin the next activation with fresh history, in one append."""
        return ContinueWith(payload)

    def patched(self, name: str) -> bool:
        """Whether this activation takes the new way at this guard: it does unless it had passed here before the guard existed."""
        if name not in self._patches:
            unknown = not self._in_past and (self.guards is None or name in self.guards)
            new = name in self._activation.patches or unknown
            if new and name not in self._activation.patches:
                self.staged.append(facts.Patched(self.seq, name))
            self._patches[name] = new
        return self._patches[name]

    # ── beside each other ───────────────────────────────────────────────────────────────────────────────────────────

    @step
    async def gather(self, *steps: Awaitable[Any], return_exceptions: bool = False) -> list[Any]:
        """Run steps beside each other; their values in the order given. One that raises does not stop the others."""
        ends = sorted(await fork(self._children(steps), first=False), key=lambda end: end.place)
        if not return_exceptions:
            failed = next((end.error for end in ends if end.error is not None), None)
            if failed is not None:
                raise failed
        return [end.error if end.error is not None else end.value for end in ends]

    @step
    async def first(self, *steps: Awaitable[Any]) -> tuple[int, Any]:
        """Run steps beside each other until one ends; (its place, its value). The others are cancelled."""
        (end,) = await self._first(*steps)
        if end.error is not None:
            raise end.error
        return end.place, end.value

    async def _first(self, *steps: Awaitable[Any]) -> Sequence[End]:
        if not steps:
            raise DefinitionError("ctx.first() needs at least one step to wait for")
        return await fork(self._children(steps), first=True)

    def _children(self, steps: Sequence[Awaitable[Any]]) -> list[Coroutine[Any, Any, Any]]:
        children = [_coroutine(step) for step in steps]
        if self.sealed:
            for child in children:
                discard(child)
            raise TurnOver
        return children

    @step
    async def timeout(self, step: Awaitable[Any], length: timedelta) -> Any:
        """The value of ``step``, or ``EffectTimedOut`` when it has none after ``length``; then it is cancelled."""
        place, value = await self.first(step, self.sleep(length))
        if place == 1:
            raise EffectTimedOut(f"{self.stream}, activation {self.seq}: nothing came within {length}")
        return value


async def _awaited(step: Awaitable[Any]) -> Any:
    return await step


def _coroutine(step: Awaitable[Any]) -> Coroutine[Any, Any, Any]:
    if isinstance(step, Coroutine):
        return step
    if not isinstance(step, Awaitable):
        raise DefinitionError(f"only steps can run beside each other, not {step!r:.60}; call them without await: ctx.gather(ctx.perform(…), …)")
    return _awaited(step)


__all__ = ["ContinueWith", "LinearSteps", "StepCancelled", "Verdict"]
