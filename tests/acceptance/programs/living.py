"""One program, lived: by processes that die where chance has it, with a world around that sends, repeats, answers and cancels."""

from __future__ import annotations

import asyncio
import functools
import random
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import attrs

from intentlog.agents import App, Input, IntentInfo, ModelRequest, ModelResponse, RetryPolicy, facts, send, tool
from intentlog.agents.appends import TURNS
from intentlog.agents.committer import Committer
from intentlog.agents.errors import ModelFailed
from intentlog.agents.intents import fact_id
from intentlog.agents.models import idempotency_key
from intentlog.agents.worker import Worker, WorkerSettings
from intentlog.effector import Effector, EffectorSettings
from intentlog.eventlog.clock import SECOND
from intentlog.eventlog.log import AppendRequest, EventLog, StreamAppend, Wake
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.versions import ANY
from tests.acceptance.programs.language import SIGNALS, Maker, Noted, leaf_agent, program_agent
from tests.acceptance.programs.virtual import START, Inline, Life, Moment, Mortal, VirtualLoop
from tests.stores import usual

STREAM = "program-p"
LONGEST = 120
"""Seconds of virtual time within which everything is over, or something is stuck."""


class Stuck(AssertionError):
    """Not everything was over in time."""


#: The worlds that the one app of all programs acts in; the last one is alive.
STAGE: list[World] = []


class Provider:
    """Answers with a count, late, or not at all."""

    provider, model = "chance", "m"

    async def complete(self, request: ModelRequest, *, idempotency_key: str) -> ModelResponse:
        world = STAGE[-1]
        world.note_asked(idempotency_key)
        await asyncio.sleep(world.rng.random() * 0.05)
        if world.rng.random() < 0.05:
            raise ModelFailed(f"the provider is away ({world.rng.randrange(100)})")
        world.answered.append(idempotency_key)
        return ModelResponse(f"answer {len(world.answered)}", "m")


async def _act(name: str, text: str, intent: IntentInfo) -> str:
    world = STAGE[-1]
    if world.rng.random() < 0.7:
        await asyncio.sleep(world.rng.choice([0.001, 0.02, 0.3]))
    world.ledger.setdefault(intent.intent_id, []).append((name, text))
    return f"{name} {text} done"


@tool(side_effect=True, idempotent=True)
async def push(text: str, *, intent: IntentInfo) -> str:
    """May be done again after a crash."""
    return await _act("push", text, intent)


async def _found(intent: IntentInfo, text: str) -> str | None:
    return f"once {text} found" if intent.intent_id in STAGE[-1].ledger else None


@tool(side_effect=True, reconcile=_found)
async def once(text: str, *, intent: IntentInfo) -> str:
    """Never done twice."""
    return await _act("once", text, intent)


@tool(side_effect=True, idempotent=True)
async def fail(text: str, *, intent: IntentInfo) -> str:
    """Cannot be done."""
    await _act("fail", text, intent)
    raise ValueError(f"{text} cannot be done")


@tool
async def look(text: str) -> str:
    """Another answer at every look; at every third there is nothing to see."""
    world = STAGE[-1]
    world.looks += 1
    if world.looks % 3 == 0:
        raise LookupError(f"nothing at {text}")
    return f"{text}: {world.looks}"


@functools.cache
def app() -> App:
    """The one app."""
    retry = RetryPolicy(max_attempts=40, first=timedelta(milliseconds=50), factor=1)
    return App([attrs.evolve(each, retry=retry) for each in (program_agent, leaf_agent)], models=Provider(), tools=[push, once, fail, look], events=[Noted])


@attrs.define(eq=False)
class World:
    """A log, an app, and everything outside of both."""

    seed: int
    program: Any
    kills: bool = True
    url: str = ""
    moment: Moment = attrs.field(factory=Moment)
    rng: random.Random = attrs.field(init=False)
    log: EventLog = attrs.field(init=False)
    app: App = attrs.field(init=False)
    #: Calls of the tools: intent id → (tool, text) of every call.
    ledger: dict[str, list[tuple[str, str]]] = attrs.field(factory=dict)
    #: Idempotency keys of the provider's answers, in order.
    answered: list[str] = attrs.field(factory=list)
    #: Those that were asked for though their answer was in the journal.
    asked_again: list[str] = attrs.field(factory=list)
    looks: int = 0
    deaths: list[str] = attrs.field(factory=list)
    errors: list[str] = attrs.field(factory=list)
    #: What the world still does: (moment, what).
    plans: list[tuple[int, tuple[Any, ...]]] = attrs.field(factory=list)
    seen: int = 0

    def __attrs_post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.log = open_log(self.url or usual.url(), clock=self.moment)
        self.app = app()
        STAGE.append(self)
        self._plan()

    def note_asked(self, key: str) -> None:
        """A provider is asked: is the answer in the journal?"""
        for stored in self.log.read_all(types=["model_call.cached"]):
            fact = self.app.codec.decode_stored(stored)
            if idempotency_key(stored.stream, fact.seq, fact.step, fact.digest) == key:
                self.asked_again.append(key)

    # ── what the world does ─────────────────────────────────────────────────────────────────────────────────────────

    def _plan(self) -> None:
        rng = self.rng
        for number in range(rng.choice([1, 1, 2, 3])):
            self._soon(0.2, ("input", number))
        for number in range(rng.randrange(8)):
            self._soon(3.0, ("signal", rng.choice(SIGNALS), number))
        if rng.random() < 0.15:
            self._soon(2.0, ("cancel", rng.randrange(2)))

    def _soon(self, seconds: float, what: tuple[Any, ...]) -> None:
        """Plan it for some time within ``seconds``; sometimes twice, for whoever sent it never heard of it."""
        for _ in range(2 if self.rng.random() < 0.3 else 1):
            self.plans.append((self.moment() + int(self.rng.random() * seconds * SECOND), what))

    def _do(self, what: tuple[Any, ...]) -> None:
        kind = what[0]
        if kind == "input":
            send(self.app, self.log, Input("program", "p", self.program, f"in-{what[1]}"))
        elif kind == "signal":
            self._arrive(facts.SignalReceived(f"s-{what[2]}", what[1], what[2]), fact_id("signal", f"s-{what[2]}"))
        elif kind == "cancel":
            self._arrive(facts.CancelRequested(what[1], "the world"), fact_id("cancel", what[1]))
        elif kind == "decide":
            self._arrive(facts.ApprovalDecided(what[1], what[2], what[3], "the world"), fact_id("decided", what[1]))

    def _arrive(self, fact: object, event_id: bytes) -> None:
        event = self.app.codec.stage(fact, event_id=event_id)
        self.log.append_batch([AppendRequest((StreamAppend(STREAM, (event,), ANY, (Wake(TURNS, self.moment(), sooner=True),)),))])

    def _answer(self) -> None:
        """Look at the log for questions, and plan answers: some late, some never, some to another question."""
        for stored in self.log.read_all(after=self.seen, types=["approval.requested"]):
            asked = self.app.codec.decode_stored(stored)
            if stored.stream == STREAM and self.rng.random() < 0.7:
                digest = asked.digest if self.rng.random() < 0.95 else b"another question"
                self._soon(0.5, ("decide", asked.approval_id, digest, self.rng.random() < 0.5))
        self.seen = self.log.last_position()

    def _turn_world(self) -> bool:
        """Do what is due; whether something was done."""
        self._answer()
        due = [plan for plan in self.plans if plan[0] <= self.moment()]
        self.plans = [plan for plan in self.plans if plan[0] > self.moment()]
        for _, what in sorted(due, key=lambda plan: plan[0]):
            self._do(what)
        return bool(due)

    # ── living ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def live(self) -> None:
        """Process after process until everything is over; raises ``Stuck``."""
        while True:
            life = Life(self.rng.randrange(1, 40) if self.kills and len(self.deaths) < 6 else None)
            with asyncio.Runner(loop_factory=lambda: VirtualLoop(self.moment)) as runner:
                runner.run(self._process(life, f"w{len(self.deaths)}"))
            if not life.died_at:
                return
            owner = f"w{len(self.deaths)}"
            self.deaths.append(life.died_at)
            if self.rng.random() < 0.7:  # somebody saw it die; else its leases run out
                self.log.schedule.evict(owner)

    async def _process(self, life: Life, owner: str) -> None:
        log: Any = Mortal(self.log, life)
        committer = Committer(log, after_commit=lambda requests: self._committed(requests, worker, effector), thread=Inline())
        settings = WorkerSettings(poll=60.0, snapshot_every=self.rng.choice([0, 1, 3, 20]), lease=5 * SECOND, concurrency=4)
        worker = Worker(self.app, log, owner=owner, committer=committer, settings=settings, boundary=life.at, on_error=self._problem(life))
        effector = Effector(
            self.app.codec,
            self.app.tools,
            log,
            owner=owner,
            committer=committer,
            settings=EffectorSettings(poll=0.5, lease=5 * SECOND, concurrency=self.rng.choice([1, 8])),
            boundary=life.at,
            on_error=self._problem(life),
        )
        parts = [asyncio.create_task(worker.run()), asyncio.create_task(effector.run())]
        ending = asyncio.create_task(life.over.wait())
        try:
            while not life.over.is_set():
                if self._turn_world():
                    worker.wake()
                moments = [plan[0] for plan in self.plans]
                if not moments and not worker.active and not effector.active and self.log.schedule.next_wake(TURNS) is None and await effector.idle():
                    return
                if self.moment() > START + LONGEST * SECOND:
                    raise Stuck(f"PROGRAM_SEED={self.seed}: not everything is over after {LONGEST} s, died at {self.deaths}")
                wait = max(0.001, (min(moments) - self.moment()) / SECOND) if moments else 0.1
                await asyncio.wait([*parts, ending], timeout=min(wait, 0.1), return_when=asyncio.FIRST_COMPLETED)
                for part in parts:
                    if part.done() and not life.over.is_set():
                        part.result()
        finally:
            for each in [*parts, ending]:
                each.cancel()
            await asyncio.gather(*parts, ending, return_exceptions=True)

    def _committed(self, requests: Iterable[AppendRequest], worker: Worker, effector: Effector) -> None:
        worker.wake()
        if any(event.type == "intent.staged" for request in requests for part in request.parts for event in part.events):
            effector.wake()

    def _problem(self, life: Life) -> Any:
        def note(doing: str, problem: BaseException) -> None:
            if not life.over.is_set():
                self.errors.append(f"{doing}: {type(problem).__name__}: {problem}")

        return note


def lived(seed: int, *, kills: bool = True, url: str = "") -> World:
    """The program of a seed, lived to its end."""
    program = Maker(random.Random(seed), 14).program()
    world = World(seed, program, kills, url)
    world.live()
    return world
