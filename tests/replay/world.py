"""Histories for these tests: a log in memory, a clock that only moves when told to, the real worker and effector."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from intentlog.agents import (
    ActivationContext,
    Aggregate,
    App,
    Complete,
    Input,
    IntentInfo,
    ModelRequest,
    ModelResponse,
    RetryPolicy,
    Suspend,
    Usage,
    agent,
    applies,
    send,
    tool,
)
from intentlog.agents.committer import Committer
from intentlog.agents.errors import ModelFailed
from intentlog.agents.worker import Worker
from intentlog.effector import Effector
from intentlog.eventlog.clock import SECOND
from intentlog.eventlog.events import NewEvent, StoredEvent
from intentlog.eventlog.log import EventLog
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.registry import event
from intentlog.eventlog.versions import ANY
from intentlog.replay import StreamReplay, replay_stream
from tests.stores import usual

START = 1_764_407_640_000_000  # 2025-11-29 09:14:00 UTC
STREAM = "accounts-acct-42"


class Clock:
    """Stands still between ``tick``s."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now

    def tick(self, seconds: float) -> None:
        self.now += int(seconds * SECOND)


class Model:
    """Answers from a script; the last answer again and again. An exception in the script is raised."""

    provider, model = "scripted", "model-x"

    def __init__(self, *answers: str | Exception) -> None:
        self.answers = list(answers) or ["yes"]
        self.asked: list[ModelRequest] = []

    async def complete(self, request: ModelRequest, *, idempotency_key: str) -> ModelResponse:
        self.asked.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return ModelResponse(answer, "model-x", usage=Usage(212, 31))


@event("refund.asked")
class RefundAsked:
    order_id: str
    cents: int


@event("refund.paid")
class RefundPaid:
    receipt: str
    cents: int = 0


@tool
def lookup(order_id: str) -> dict[str, int]:
    """What the order holds."""
    return {"items": len(order_id)}


@tool(side_effect=True)
async def refund(order_id: str, cents: int, *, intent: IntentInfo) -> str:
    """Pay back."""
    return f"re_{order_id}"


@tool(side_effect=True)
async def notify(text: str) -> str:
    """Tell somebody."""
    if text == "fail":
        raise ValueError("no such address")
    return "sent"


class Account(Aggregate):
    refunded_cents: int = 0
    orders: frozenset[str] = frozenset()

    @applies(RefundAsked)
    def _(self, e: RefundAsked) -> Account:
        return self.evolve(orders=self.orders | {e.order_id})

    @applies(RefundPaid)
    def _(self, e: RefundPaid) -> Account:
        return self.evolve(refunded_cents=self.refunded_cents + e.cents)


Code = Callable[[ActivationContext[Any], RefundAsked], Any]


def app_of(code: Code, model: Any = None, state: type[Aggregate] | None = Account, **options: Any) -> App:
    """An app whose one agent, ``accounts``, runs ``code``."""
    options.setdefault("retry", RetryPolicy(max_attempts=3, first=timedelta(seconds=1)))
    return App(agents=[agent("accounts", state=state, **options)(code)], models=model or Model())


async def paying(ctx: ActivationContext[Account], asked: RefundAsked) -> Any:
    """Two turns: a read, a model call, an effect; then the receipt."""
    if not ctx.is_resume:
        ctx.emit(asked)
        found = await ctx.run_tool(lookup, order_id=asked.order_id)
        answer = await ctx.call_model(f"Refund {asked.cents} for {asked.order_id}, {found['items']} items, {ctx.state.refunded_cents} before?")
        ctx.trace("decided", answer=answer.text)
        ctx.act(refund, order_id=asked.order_id, cents=asked.cents)
        return Suspend(snapshot=b"1", timeout=timedelta(minutes=5))
    result = ctx.resume_result
    assert result is not None
    if not result.ok:
        return Complete("gave up")
    ctx.emit(RefundPaid(result.value, asked.cents))
    return Complete(result.value)


class World:
    """One log and everything that happens on it."""

    def __init__(self, url: str = "") -> None:
        self.clock = Clock()
        self.log: EventLog = open_log(url or usual.url(), clock=self.clock)
        self._sent = 0

    def send(self, app: App, *payloads: Any, key: str = "acct-42") -> None:
        for payload in payloads:
            self._sent += 1
            send(app, self.log, Input("accounts", key, payload, f"in-{self._sent}"))

    def run(self, app: App, *, worker: bool = True, effector: bool = True, boundary: Callable[[str, str], None] = lambda name, stream: None) -> None:
        """Worker and effector until nothing is due now."""
        asyncio.run(serve(app, self.log, worker, effector, boundary))

    def story(self, app: App, *payloads: Any, key: str = "acct-42") -> None:
        """Send and run, one after the other."""
        for payload in payloads:
            self.clock.tick(1)
            self.send(app, payload, key=key)
            self.run(app)

    def replay(self, app: App, stream: str = STREAM) -> StreamReplay:
        return replay_stream(self.log, app, stream)

    def types(self, stream: str = STREAM) -> list[str]:
        return [stored.type for stored in self.log.read(stream)]


@contextmanager
def copy_of(events: Iterable[StoredEvent]) -> Iterator[World]:
    """A world with just these events, at the moments they were recorded."""
    copy = World()
    try:
        for stored in events:
            copy.clock.now = stored.recorded_at
            event = NewEvent(stored.event_id, stored.type, stored.schema, stored.data, stored.correlation, stored.causation)
            copy.log.append(stored.stream, [event], ANY)
        yield copy
    finally:
        copy.log.close()


async def serve(app: App, log: EventLog, with_worker: bool, with_effector: bool, boundary: Callable[[str, str], None]) -> None:
    """Serve the log until worker and effector are idle; what breaks either of them is raised here."""
    problems: list[BaseException] = []

    def failed(doing: str, problem: BaseException) -> None:
        problems.append(problem)

    committer = Committer(log)
    worker = Worker(app, log, owner="w", committer=committer, boundary=boundary, on_error=failed)
    effector = Effector(app.codec, app.tools, log, owner="e", committer=committer, on_error=failed)
    parts: list[Any] = [part for part, wanted in ((worker, with_worker), (effector, with_effector)) if wanted]
    running = [asyncio.create_task(part.run()) for part in parts]
    calm, rounds = 0, 0
    while calm < 3 and not problems and not any(each.done() for each in running):
        await asyncio.sleep(0.01)
        rounds += 1
        if rounds % 300 == 0:
            log.clock.tick(31)  # type: ignore[attr-defined]  # a lease that was lost in a race ends with its time
        for part in parts:
            part.wake()
        calm = calm + 1 if all([await (part.idle(retries=False) if isinstance(part, Worker) else part.idle()) for part in parts]) else 0
    for part in parts:
        part.stop()
    await asyncio.gather(*running)
    committer.close()
    if problems:
        raise problems[0]


def unanswered() -> Model:
    """A provider that cannot be reached."""
    return Model(ModelFailed("connection refused"))
