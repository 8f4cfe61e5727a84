"""A small world for tests: one log, one agent whose code is given, a scripted model, tools that note their calls, a clock that is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Self

import attrs

from intentlog.agents import Aggregate, App, Input, IntentInfo, ModelRequest, ModelResponse, RetryPolicy, Suspend, Tool, Usage, agent, applies, send, tool
from intentlog.agents.appends import TURNS
from intentlog.agents.committer import Committer
from intentlog.agents.context import ActivationContext
from intentlog.agents.errors import Superseded
from intentlog.agents.facts import Failure
from intentlog.agents.outcome import EffectResult
from intentlog.agents.sending import Receipt
from intentlog.agents.streams import Folder, StreamState
from intentlog.agents.worker import Worker, WorkerSettings
from intentlog.effector import Effector, EffectorSettings
from intentlog.eventlog.clock import SECOND
from intentlog.eventlog.codec import Codec
from intentlog.eventlog.errors import LeaseLost
from intentlog.eventlog.ids import id_maker
from intentlog.eventlog.log import EventLog
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.registry import event
from intentlog.eventlog.versions import ANY
from tests.stores import usual

START = 1_764_407_640_000_000  # 2025-11-29 09:14:00 UTC
STREAM = "a-k"


class Clock:
    """Stands still between ``tick``s."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now

    def tick(self, seconds: float) -> None:
        self.now += int(seconds * SECOND)


class Model:
    """Answers from a script, in order, the last answer for ever; an exception in the script is raised, a callable is asked."""

    provider, model = "scripted", "model-x"

    def __init__(self, *answers: Any) -> None:
        self.answers: list[Any] = list(answers) or ["yes"]
        self.asked: list[ModelRequest] = []
        self.keys: list[str] = []

    def complete(self, request: ModelRequest, *, idempotency_key: str) -> Any:
        self.asked.append(request)
        self.keys.append(idempotency_key)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if callable(answer):
            answer = answer(request)
        if isinstance(answer, Exception):
            raise answer
        return ModelResponse(answer, "model-x", usage=Usage(7, 3)) if isinstance(answer, str) else answer


@event("order.asked", version=1)
class Asked:
    order: str
    cents: int = 0


@event("order.paid", version=1)
class Paid:
    receipt: str


class Account(Aggregate):
    orders: tuple[str, ...] = ()
    receipts: tuple[str, ...] = ()

    @applies(Asked)
    def _(self, e: Asked) -> Account:
        return self.evolve(orders=(*self.orders, e.order))

    @applies(Paid)
    def _(self, e: Paid) -> Account:
        return self.evolve(receipts=(*self.receipts, e.receipt))


@attrs.define
class Hands:
    """The outside world: what the tools were called with."""

    calls: list[tuple[str, Any]] = attrs.field(factory=list)
    intents: list[IntentInfo] = attrs.field(factory=list)
    reads: int = 0
    #: What ``fragile`` and ``read`` do next; an exception is raised.
    script: list[Any] = attrs.field(factory=list)

    def next(self, default: Any) -> Any:
        value = self.script.pop(0) if self.script else default
        if isinstance(value, BaseException):
            raise value
        return value

    def tools(self) -> list[Tool]:
        @tool(side_effect=True)
        async def pay(order: str, cents: int = 0, *, intent: IntentInfo) -> str:
            """Not idempotent."""
            self.intents.append(intent)
            self.calls.append(("pay", order))
            return f"re_{order}"

        @tool(side_effect=True, idempotent=True)
        async def push(text: str, *, intent: IntentInfo) -> str:
            """Idempotent."""
            self.intents.append(intent)
            self.calls.append(("push", text))
            return text.upper()

        @tool(side_effect=True)
        async def fragile(what: str) -> Any:
            """Does what the script says."""
            self.calls.append(("fragile", what))
            return self.next("done")

        @tool
        def read(what: str) -> Any:
            """A read."""
            self.reads += 1
            return self.next(f"{what} {self.reads}")

        return [pay, push, fragile, read]


class World:
    """One log, one app with the agent ``a``, and what happened."""

    def __init__(self, code: Callable[..., Any], *, model: Any = None, url: str = "", tools: Sequence[Tool] = (), **options: Any) -> None:
        self.clock = Clock()
        self.hands = Hands()
        self.extra = list(tools)
        self.log: EventLog = open_log(url or usual.url(), clock=self.clock)
        self.model = model or Model()
        self.errors: list[str] = []
        self._ids = id_maker(self.clock)
        self._sent = 0
        self.tools = [*self.hands.tools(), *self.extra]
        self.app = self.app_of(code, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.log.close()

    def app_of(self, code: Callable[..., Any], *, events: Sequence[type] = (Asked, Paid), upcasters: Sequence[Any] = (), **options: Any) -> App:
        """An app with this code on the same model and tools."""
        options.setdefault("retry", RetryPolicy(max_attempts=3, first=timedelta(seconds=1)))
        return App(agents=[agent("a", **options)(code)], models=self.model, tools=self.tools, events=events, upcasters=upcasters)

    def deploy(self, code: Callable[..., Any], **options: Any) -> None:
        """Other code from now on."""
        self.app = self.app_of(code, **options)

    # ── doing ──

    def send(self, payload: Any = None, *, key: str = "k", id: str | None = None) -> Receipt:
        self._sent += 1
        return send(self.app, self.log, Input("a", key, payload if payload is not None else self._sent, id or f"in-{self._sent}"))[0]

    def run(self, **options: Any) -> None:
        """``until_idle`` from a test that is no coroutine."""
        asyncio.run(self.until_idle(**options))

    async def until_idle(
        self, *, worker: bool = True, effector: bool = True, crash: str = "", seconds: float = 30.0, settings: WorkerSettings | None = None
    ) -> None:
        """Serve until nothing is due at the clock's present moment.

        ``crash`` names a boundary at which, the first time, the key's lane ends as if its process had died there; then
        everything stops and the dead process's leases are given up.
        """
        crashed = asyncio.Event()
        committer = Committer(self.log)
        made_worker = Worker(
            self.app,
            self.log,
            owner="w",
            committer=committer,
            settings=settings or WorkerSettings(poll=0.005),
            boundary=_dying(crash, crashed, Superseded),
            on_error=self._failed,
        )
        made_effector = Effector(
            self.app.codec,
            self.app.tools,
            self.log,
            owner="e",
            committer=committer,
            settings=EffectorSettings(poll=0.005, grace=2.0),
            boundary=_dying(crash, crashed, LeaseLost),
            on_error=self._failed,
        )
        parts: list[Any] = [part for part, wanted in ((made_worker, worker), (made_effector, effector)) if wanted]
        running = [asyncio.create_task(part.run()) for part in parts]
        try:
            async with asyncio.timeout(seconds):
                calm = 0
                while calm < 2 and not crashed.is_set() and not any(each.done() for each in running):
                    await asyncio.sleep(0.005)
                    calm = calm + 1 if (not worker or self._calm(made_worker)) and (not effector or await made_effector.idle()) else 0
        finally:
            for part in parts:
                part.stop()
            await asyncio.wait(running, timeout=3)
            for each in running:
                each.cancel()
            for ended in await asyncio.gather(*running, return_exceptions=True):
                if isinstance(ended, Exception):
                    self._failed("serving", ended)
            committer.close()
            if crashed.is_set():
                self.log.schedule.evict("w")
                self.log.schedule.evict("e")

    def _calm(self, worker: Worker) -> bool:
        # Not ``worker.idle()``: that waits for turns to be tried again, and here they are when the clock is told.
        return worker.active == 0 and self.log.schedule.due(TURNS, now=self.clock()) == 0

    def _failed(self, doing: str, problem: BaseException) -> None:
        self.errors.append(f"{doing}: {type(problem).__name__}: {problem}")

    def later(self, seconds: float, **options: Any) -> None:
        """Let time pass, then serve."""
        self.clock.tick(seconds)
        self.run(**options)

    def append(self, *events: object, stream: str = STREAM, codec: Codec | None = None) -> None:
        """Write events by hand and wake the stream."""
        staged = [(codec or self.app.codec).stage(each, event_id=self._ids()) for each in events]
        self.log.append(stream, staged, ANY)
        self.log.schedule.wake(TURNS, stream, self.clock())

    # ── looking ──

    def types(self, stream: str = STREAM) -> list[str]:
        return [stored.type for stored in self.log.read(stream)]

    def facts(self, kind: Any = object, stream: str = STREAM) -> list[Any]:
        decoded = (self.app.codec.decode_stored(stored) for stored in self.log.read(stream))
        return [fact for fact in decoded if isinstance(fact, kind)]

    def fold(self, stream: str = STREAM) -> StreamState:
        folder = Folder(self.app.definitions["a"])
        return folder.fold(folder.empty(stream), self.log.rows_of({stream: -1}).get(stream, []))

    def outputs(self, stream: str = STREAM) -> list[Any]:
        from intentlog.agents.facts import Completed

        return [fact.output for fact in self.facts(Completed, stream)]

    def failures(self, stream: str = STREAM) -> list[Failure]:
        from intentlog.agents.facts import ActivationFailed

        return [fact.failure for fact in self.facts(ActivationFailed, stream)]


def _dying(name: str, crashed: asyncio.Event, end: type[BaseException]) -> Callable[[str, str], None]:
    """A boundary at which a lane ends without handing anything back, once."""

    def boundary(reached: str, stream: str) -> None:
        if reached == name and not crashed.is_set():
            crashed.set()
            raise end(f"died at {name}")

    return boundary


def waiting(**options: Any) -> Suspend:
    """A suspension of five minutes unless told otherwise."""
    options.setdefault("timeout", timedelta(minutes=5))
    return Suspend(**options)


Ctx = ActivationContext[Any]


def told(ctx: Ctx) -> EffectResult:
    """What a resumed turn is told first."""
    assert ctx.resume_result is not None
    return ctx.resume_result
