"""The steps that need no waiting: model calls, reads, intents, timers, events, remarks; and named chance.

Rules of this file: no clock, no chance, no I/O. Everything here is a function of the log and of what the turn did so
far; the only way out is ``ask``, which hands a request to the driver. Every method that takes a step counts it, so that
the same code over the same log takes the same steps.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import attrs

from ..eventlog.clock import from_timedelta
from ..eventlog.errors import TerminalError, Unencodable
from . import facts
from .compare import first_difference
from .errors import InputRefused, IntentConflict, IntentDrift, ModelDrift, ModelFailed, StepDrift, TerminalAgentError, ToolDrift, TurnOver, WrongToolKind
from .failures import failure_of
from .intents import NAMESPACE, content_digest, intent_id_for, keyed_intent_id
from .models import ModelRequest, ModelResponse
from .requests import NeedModel, NeedRead, ask
from .retry import RetryPolicy
from .spending import Spending
from .tools import Tool, canonical_arguments

R = TypeVar("R")


class Steps(Spending):
    """What explicit and linear agents alike can do."""

    async def call_model(self, prompt: str | Sequence[Mapping[str, Any]] | ModelRequest, *, reply: type[R] | None = None, **changes: Any) -> Any:
        """Ask the model, once (S-4.1): a ``ModelResponse``, or an instance of ``reply`` read from its JSON text.

        ``changes`` replace fields of the request (``model=``, ``params=``, ``tools=``, …). Raises ``ModelDrift`` when
        the step is recorded with another request, ``ModelFailed`` when the provider does not answer, ``BudgetExceeded``
        when the agent's budget leaves nothing for it.
        """
        request = self._definitions.model_request(prompt, reply, changes)
        step = self._step("model call", request.model)
        digest, encoded = self._definitions.model_digest(request)
        recorded = self._activation.models.get(step)
        if recorded is None and self._activation.stale:
            aside = self._activation.stale.get(step)
            recorded = aside if aside is not None and aside.digest == digest else None
        if recorded is None and (self._definitions.agent.budget is not None or self._activation.refusals):
            self._check_budget(step, request.model, digest)
        if recorded is None and step < self._frontier[0]:
            failed = self._activation.unanswered.get(step)
            if failed is not None:
                raise self._definitions.exception(failed)
            self._refuse_new(step, "model call", request.model)
        if recorded is None:
            try:
                response: ModelResponse = await ask(NeedModel(step, digest, request, encoded))
            except Exception as problem:
                raise self._unanswered(step, problem) from None
        elif recorded.digest == digest:
            response = recorded.response
        else:
            difference = first_difference(recorded.request, request)
            self._fail(ModelDrift(f"{self._place(step)} (model call)", difference.left, difference.right, difference.path))
        self._count(step, request, response)
        return response if reply is None else self._definitions.read_reply(response, reply)

    def _unanswered(self, step: int, problem: Exception) -> Exception:
        """What a provider's failure is raised as: itself, or what a re-run can raise again."""
        failure = attrs.evolve(failure_of(problem), detail="")
        if type(self._definitions.exception(failure)) is not type(problem):
            text = f"{failure.type}: {failure.message}"
            if isinstance(problem, TerminalAgentError | TerminalError):
                failure = facts.Failure("TerminalAgentError", text)
            else:
                problem, failure = ModelFailed(text), facts.Failure("ModelFailed", text)
        self.unanswered[step] = failure
        return problem

    async def run_tool(self, used: str | Tool, args: str | Mapping[str, Any] | None = None, **named: Any) -> Any:
        """Run a read-only tool inline, journalled on its own counter (S-4.7). Raises what the tool raised."""
        found = used if isinstance(used, Tool) else self._definitions.tools.named(used)
        if found.side_effect:
            raise WrongToolKind(f"{found.name} has a side effect: stage it with ctx.act({found.name!r}, …)")
        plain, encoded = canonical_arguments(self._definitions.codec, found, args, named)
        bound = self._definitions.bind(found, plain)
        call = functools.partial(found.fn, **bound)
        return await self._read(found.name, plain, encoded, call, found.timeout.total_seconds(), found.returns)

    async def run(self, fn: Callable[..., Any], /, *args: Any, retry: RetryPolicy | None = None, timeout: timedelta | None = None) -> Any:
        """Run any other read or computation as a journalled step (S-4.8): its value, or what it raised.

        ``timeout`` bounds one attempt (a blocking function is left to end by itself), ``retry`` says how often and how far
        apart to try again, all within the turn's own time; only the last attempt is journalled. Never for effects: a crash
        before that runs it again, and so does a retry.
        """
        name = f"{fn.__module__}.{fn.__qualname__}"
        plain = {str(place): value for place, value in enumerate(args)}
        encoded = self._definitions.codec.encode_value(plain, dict[str, Any])
        return await self._read(name, plain, encoded, functools.partial(fn, *args), None if timeout is None else timeout.total_seconds(), Any, retry)

    async def _read(
        self,
        name: str,
        plain: dict[str, Any],
        encoded: bytes,
        call: functools.partial[Any],
        timeout: float | None,
        returns: Any,
        retry: RetryPolicy | None = None,
    ) -> Any:
        if self.sealed:
            raise TurnOver
        if self.fault is not None:
            raise self.fault
        index = self._index
        self._index += 1
        digest = content_digest(name, encoded)
        cached = self._activation.tools.get(index)
        if cached is None and self._activation.stale_reads:
            aside = self._activation.stale_reads.get(index)
            cached = aside if aside is not None and aside.digest == digest else None
        if cached is None and index < self._frontier[1]:
            raise Unencodable(f"no value of read {index} ({name}) is recorded: it could not be")
        if cached is None:
            cached = await ask(NeedRead(index, name, digest, plain, call, inspect.iscoroutinefunction(call.func), returns, timeout, retry))
        elif cached.digest != digest:
            difference = first_difference({"tool": cached.tool, "args": cached.args}, {"tool": name, "args": plain})
            self._fail(ToolDrift(f"{self.stream}, activation {self.seq}, read {index} ({name})", difference.left, difference.right, difference.path))
        if cached.failure is not None:
            raise self._definitions.exception(cached.failure)
        return self._definitions.value(cached.value, returns)

    def act(
        self,
        used: str | Tool,
        args: str | bytes | Mapping[str, Any] | None = None,
        *,
        ttl: timedelta | None = None,
        ttl_ms: int | None = None,
        key: str | None = None,
        **named: Any,
    ) -> str:
        """Stage an effect and return its intent id; nothing has happened in the world when the turn ends (S-5.1).

        ``key`` names it by business key instead of by position (S-5.3). Raises ``ArgumentRefused``, ``UnknownTool``,
        ``IntentConflict`` or ``IntentDrift``.
        """
        found = self._definitions.tools.known(used) if isinstance(used, Tool) else self._definitions.tools.named(used)
        if not found.side_effect:
            raise WrongToolKind(f"{found.name} is read-only: run it with await ctx.run_tool({found.name!r}, …)")
        plain, encoded = canonical_arguments(self._definitions.codec, found, args, named)
        step = self._step("intent", found.name)
        digest = content_digest(found.name, encoded)
        intent_id = intent_id_for(self.stream, self.seq, step) if key is None else keyed_intent_id(self.stream, found.name, _business_key(key))
        known = self._new_intents.get(intent_id) or self._run.intents.get(intent_id)
        if known is not None:
            if known.tool != found.name:
                self._fail(IntentDrift(f"{self._place(step)} ({found.name})", known.tool, found.name, "tool"))
            if known.digest != digest:
                self._differs(step, key, found.name, known.args, plain)
            if intent_id not in self._new_intents and known.seq != self.seq:
                self._joined.append(intent_id)
            return intent_id
        if key is None:
            self._refuse_new(step, "intent", found.name)
        length = self._definitions.agent.intent_ttl_us if ttl is None and ttl_ms is None else from_timedelta(ttl or timedelta(milliseconds=ttl_ms or 0))
        expires_at = self.now_us + length if length > 0 else 0
        self._bounds[intent_id] = expires_at
        staged = facts.IntentStaged(intent_id, self.seq, step, found.name, plain, digest, expires_at, key or "")
        self._new_intents[intent_id] = staged
        self.arguments[intent_id] = encoded
        self.staged.append(staged)
        return intent_id

    def _differs(self, step: int, key: str | None, tool: str, recorded: Mapping[str, Any], decided: Mapping[str, Any]) -> None:
        difference = first_difference(recorded, decided)
        if key is None:
            self._fail(IntentDrift(f"{self._place(step)} ({tool})", difference.left, difference.right, difference.path))
        self._fail(
            IntentConflict(
                f"{self._place(step)}: {tool} with the business key {key!r} is staged already with other arguments.\n  recorded  {difference.left}\n"
                f"  decided   {difference.right}\n  first difference: {difference.path}\n  Another effect needs another key."
            )
        )

    def arm(self, after: timedelta) -> str:
        """Arm a timer that the next ``Suspend`` waits for, and return its id."""
        step = self._step("timer", str(after))
        timer_id = f"timer-{self.seq}-{step}"
        if self._activation.is_linear and self._is_recorded(step, "timer", str(after)):
            return timer_id
        self.staged.append(facts.TimerArmed(timer_id, self.seq, step, self.now_us + from_timedelta(after)))
        self._new_timers.append(timer_id)
        return timer_id

    def emit(self, event: object) -> None:
        """Stage a domain event of this key and apply it to ``ctx.state``."""
        self._definitions.check_domain_event(event)
        if self.sealed:
            raise TurnOver
        if self.state is not None:  # first, for an event that its applier cannot take must not be staged
            self.state = self.state.apply(event) if self._in_past else self.state.admit(event)
        place = self._emitted
        self._emitted += 1
        if place < len(self._activation.emitted) and self._activation.is_linear:
            self._match_emitted(place, event)
        else:
            self.staged.append(event)

    def _match_emitted(self, place: int, event: object) -> None:
        """An event that an earlier turn recorded: the same again, or the code has left its path."""
        kind, _, encoded = self._definitions.codec.encode(event)
        was_kind, was = self._activation.emitted[place]
        if kind != was_kind:
            self._fail(StepDrift(f"{self.stream}, activation {self.seq}, event {place}", was_kind, kind, "type"))
        if encoded != was:
            tree = self._definitions.codec.tree
            difference = first_difference(tree(was), tree(encoded))
            self._fail(StepDrift(f"{self.stream}, activation {self.seq}, event {place}", difference.left, difference.right, difference.path))

    def trace(self, text: str, **fields: Any) -> None:
        """Leave a remark in the stream; it is discarded with a failed turn."""
        if self.sealed:
            raise TurnOver
        if self._in_past:
            return
        self.staged.append(facts.Traced(self.seq, self.step_index, text, fields))

    # ── chance ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def random(self, name: str = "") -> random.Random:
        """A generator derived from (stream, seq, name): using one never shifts another (S-3.5)."""
        if name not in self._randoms:
            self._randoms[name] = random.Random(hashlib.sha256(f"{self.stream}|{self.seq}|random|{name}".encode()).digest())
        return self._randoms[name]

    def uuid(self, name: str = "") -> uuid.UUID:
        """The next UUID of the stream of UUIDs derived from (stream, seq, name)."""
        count = self._uuids[name] = self._uuids.get(name, -1) + 1
        return uuid.uuid5(NAMESPACE, f"{self.stream}|{self.seq}|uuid|{name}|{count}")


def _business_key(key: str) -> str:
    if not isinstance(key, str) or not key.strip():
        raise InputRefused(f"Invalid business key {key!r}: it must be a string that is not blank, for example 'notify:42'")
    return key
