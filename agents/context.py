"""What an agent's code holds in its hands during one turn.

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
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

import msgspec

from ..eventlog.clock import from_timedelta, to_datetime
from ..eventlog.errors import Unencodable
from . import facts
from .compare import first_difference
from .definitions import Definitions
from .errors import InputRefused, IntentConflict, IntentDrift, ModelDrift, ModelFailed, StepDrift, ToolDrift, TurnOver, WrongToolKind
from .intents import NAMESPACE, content_digest, intent_id_for, keyed_intent_id
from .linear import LinearSteps
from .models import ModelRequest, ModelResponse
from .outcome import EffectResult, result_of
from .recorded import Recorded
from .requests import NeedModel, NeedRead, ask
from .run import Activation, RunState
from .tools import Tool, canonical_arguments

S = TypeVar("S")
R = TypeVar("R")


class ActivationContext(LinearSteps, Recorded, Generic[S]):
    """One turn of one activation. Nothing staged here is visible to anyone before the turn's append (S-3.2)."""

    def __init__(self, definitions: Definitions, run: RunState, activation: Activation, state: Any, stream: str, now: int, seen: int = -1) -> None:
        self.stream = stream
        #: The entity the agent acts for.
        self.key = stream.partition("-")[2]
        self.seq = activation.seq
        #: The next durable step's ordinal.
        self.step_index = 0 if activation.is_linear else activation.step
        #: Microseconds since 1970-01-01 UTC, fixed for the turn (S-3.5).
        self.now_us = now
        #: Version of the last event this turn sees; fixed for the turn like ``now``, and for every re-run of it.
        self.seen = seen
        #: The aggregate's state, with what this turn emitted applied.
        self.state: S = state
        self.is_resume = activation.turns > 0 and not activation.is_linear
        #: The agent's code version when this activation began: old runs may keep to the old path.
        self.version = activation.code or definitions.agent.version
        #: The turn is over: what agent code still does while it is closed must not count.
        self.sealed = False
        self.snapshot = activation.snapshot
        self.adapter = activation.adapter
        self.staged: list[object] = []
        #: Canonical bytes of the arguments of each intent staged in this turn.
        self.arguments: dict[str, bytes] = {}
        #: A fault that agent code must not survive by catching it.
        self.fault: BaseException | None = None
        self._definitions = definitions
        self._run = run
        self._activation = activation
        self._index = 0 if activation.is_linear else activation.index
        #: Inputs for other keys, delivered by the turn's append.
        self.sends: list[tuple[str, facts.InputReceived]] = []
        #: Steps and reads that committed turns of linear code took.
        self._frontier = (activation.step, activation.index) if activation.is_linear else (0, 0)
        self._epoch = 0
        self._live_now = now
        if activation.epochs:
            self.now_us = activation.epochs[0].now
        self._emitted = 0
        self._cancel_told = False
        self._deadlines_told = 0
        self._signals_taken: set[str] = set()
        self._withdrawn: set[str] = set()
        self._patches: dict[str, bool] = {}
        #: When the waits staged in this turn end by themselves: wait → µs.
        self._bounds: dict[str, int] = {}
        self._input: Any = None
        self._new_intents: dict[str, facts.IntentStaged] = {}
        self._new_timers: list[str] = []
        #: Business-keyed intents that were staged before and met again: waiting for them is waiting for their outcome.
        self._joined: list[str] = []
        self._randoms: dict[str, random.Random] = {}
        self._uuids: dict[str, int] = {}

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
        """The recorded outcome of an intent of this stream, or ``None`` while there is none."""
        intent = self._run.intents.get(intent_id)
        return result_of(intent) if intent is not None and intent.settled is not None else None

    def _result(self, wait: str, ready: bool) -> EffectResult:
        intent = self._run.intents.get(wait)
        if intent is None:
            return EffectResult(wait, "OK" if ready else "TIMED_OUT")
        return result_of(intent) if ready else EffectResult(wait, "TIMED_OUT", intent.tool, attempts=intent.attempts)

    # ── steps ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def call_model(self, prompt: str | Sequence[Mapping[str, Any]] | ModelRequest, *, reply: type[R] | None = None, **changes: Any) -> Any:
        """Ask the model, once (S-4.1): a ``ModelResponse``, or an instance of ``reply`` read from its JSON text.

        ``changes`` replace fields of the request (``model=``, ``params=``, ``tools=``, …). Raises ``ModelDrift`` when
        the step is recorded with another request, ``ModelFailed`` when the provider does not answer.
        """
        request = self._definitions.model_request(prompt, reply, changes)
        step = self._step("model call", request.model)
        digest, encoded = self._definitions.model_digest(request)
        recorded = self._activation.models.get(step)
        if recorded is None and step < self._frontier[0]:
            raise ModelFailed(f"no answer to step {step} is recorded: the provider had failed, and the agent's code went on")
        if recorded is None:
            response: ModelResponse = await ask(NeedModel(step, digest, request, encoded))
        elif recorded.digest == digest:
            response = recorded.response
        else:
            difference = first_difference(recorded.request, request)
            self._fail(ModelDrift(f"{self._place(step)} (model call)", difference.left, difference.right, difference.path))
        return response if reply is None else self._definitions.read_reply(response, reply)

    async def run_tool(self, used: str | Tool, args: str | Mapping[str, Any] | None = None, **named: Any) -> Any:
        """Run a read-only tool inline, journalled on its own counter (S-4.7). Raises what the tool raised."""
        found = used if isinstance(used, Tool) else self._definitions.tools.named(used)
        if found.side_effect:
            raise WrongToolKind(f"{found.name} has a side effect: stage it with ctx.act({found.name!r}, …)")
        plain, encoded = canonical_arguments(self._definitions.codec, found, args, named)
        bound = self._definitions.bind(found, plain)
        call = functools.partial(found.fn, **bound)
        return await self._read(found.name, plain, encoded, call, found.timeout.total_seconds(), found.returns)

    async def run(self, fn: Callable[..., Any], /, *args: Any) -> Any:
        """Run any other read or computation as a journalled step (S-4.8). Never for effects: a crash may run it again."""
        name = f"{fn.__module__}.{fn.__qualname__}"
        plain = {str(place): value for place, value in enumerate(args)}
        encoded = self._definitions.codec.encode_value(plain, dict[str, Any])
        return await self._read(name, plain, encoded, functools.partial(fn, *args), None, Any)

    async def _read(self, name: str, plain: dict[str, Any], encoded: bytes, call: functools.partial[Any], timeout: float | None, returns: Any) -> Any:
        index = self._index
        self._index += 1
        digest = content_digest(name, encoded)
        cached = self._activation.tools.get(index)
        if self.sealed:
            raise TurnOver
        if cached is None and index < self._frontier[1]:
            raise Unencodable(f"no value of read {index} ({name}) is recorded: it could not be")
        if cached is None:
            cached = await ask(NeedRead(index, name, digest, plain, call, inspect.iscoroutinefunction(call.func), returns, timeout))
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
        self.staged.append(facts.TimerArmed(timer_id, self.seq, step, self.now_us + from_timedelta(after)))
        self._new_timers.append(timer_id)
        return timer_id

    def emit(self, event: object) -> None:
        """Stage a domain event of this key and apply it to ``ctx.state``."""
        self._definitions.check_domain_event(event)
        if self.sealed:
            raise TurnOver
        if self.state is not None:  # first, for an event that its applier cannot take must not be staged
            self.state = self.state.apply(event)  # type: ignore[assignment]
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
        if (kind, encoded) != (was_kind, was):
            tree = self._definitions.codec.tree
            difference = first_difference({"type": was_kind, "event": tree(was)}, {"type": kind, "event": tree(encoded)})
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

    # ── the end of the turn ─────────────────────────────────────────────────────────────────────────────────────────

    @property
    def is_linear(self) -> bool:
        """Whether the activation has waited at an ``await``."""
        return self._activation.is_linear

    @property
    def was_cancelled(self) -> bool:
        """Whether this turn was told to end by a cancellation; explicit agents look at it when they are resumed."""
        return self._cancel_told or (not self.is_linear and self._activation.cancel is not None and self._activation.turns > 0)

    @property
    def is_cancelled_before_it_began(self) -> bool:
        """Nothing to clean up: no turn was committed and nothing is in the journal."""
        activation = self._activation
        return activation.cancel is not None and not activation.turns and not activation.turn_now

    def deadline_of(self, waits: Sequence[str]) -> int:
        """When a suspension of linear code ends by itself: the agent's ``wait_timeout`` after the last of its waits should have."""
        bounds = [self.now_us]
        for wait in waits:
            intent = self._run.intents.get(wait)
            bounds.append(intent.expires_at if intent is not None else self._bounds.get(wait) or self._activation.timers.get(wait, 0))
        return max(bounds) + self._definitions.agent.wait_timeout_us

    def next_input(self, payload: Any) -> facts.InputReceived:
        """The input of the activation that continues this one."""
        return self._definitions.received(f"continued|{self.stream}|{self.seq}", payload, self._activation.input.reply_to)

    def position(self) -> tuple[int, int]:
        """The next step's and the next read's ordinals."""
        return self.step_index, self._index

    def waits(self) -> tuple[str, ...]:
        """What a suspension waits for: what the last one was not told of, open intents and timers, business-keyed intents met again, this turn's own.

        An outcome that came after the last wait was over, and before this one, is there already when this one is recorded (S-7.2).
        """
        intents, activation = self._run.intents, self._activation
        earlier = [wait for wait in activation.waits if wait not in activation.results]
        earlier += [i for i in activation.intents if i in intents and intents[i].settled is None]
        earlier += activation.timers
        return tuple(dict.fromkeys([*earlier, *self._joined, *self._new_intents, *self._new_timers]))

    def unreached(self) -> StepDrift | None:
        """A recorded answer beyond where the turn ended: the code took another path than the one that was paid for."""
        step = next((s for s in sorted(self._activation.models) if s >= self.step_index), None)
        if step is not None:
            return StepDrift(self._place(step), f"a model call ({self._activation.models[step].request.model})", "the turn ended before this step")
        index = next((i for i in sorted(self._activation.tools) if i >= self._index), None)
        if index is not None:
            return StepDrift(f"{self.stream}, activation {self.seq}, read {index}", self._activation.tools[index].tool, "the turn ended before this read")
        return None


def _business_key(key: str) -> str:
    if not isinstance(key, str) or not key.strip():
        raise InputRefused(f"Invalid business key {key!r}: it must be a string that is not blank, for example 'notify:42'")
    return key


def read_json(text: str | bytes, into: Any) -> Any:
    """A value of type ``into`` from JSON text; raises ``InputRefused`` naming the field."""
    try:
        return msgspec.json.decode(text, type=into)
    except msgspec.MsgspecError as problem:
        raise InputRefused(f"the JSON does not fit {getattr(into, '__name__', into)}: {problem}: {text!r:.200}") from problem
