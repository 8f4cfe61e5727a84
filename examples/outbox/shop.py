"""A shop that writes to its customers, on a log in memory: the agent, the mail, and processes that may die."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import attrs

from intentlog.agents import ActivationContext, App, Input, IntentInfo, Tool, agent, facts, send, tool
from intentlog.agents.errors import EffectErrored
from intentlog.effector.process import Process
from intentlog.eventlog import EventLog, event, open_log
from intentlog.eventlog.errors import LeaseLost

KEY = "42"
STREAM = f"shop-{KEY}"


@event("order.confirmed", version=1)
class Confirmed:
    """An order is to be confirmed by mail, by so many producers of this one turn."""

    order: str
    total: int
    producers: int = 1
    #: Each producer says another total: a mistake.
    divergent: bool = False
    #: How often to try when the mail cannot be sent.
    tries: int = 1


@agent("shop")
async def shop(ctx: ActivationContext[Any], asked: Confirmed) -> list[str]:
    """Nothing is sent in here: ``act`` and ``perform`` write down what is wanted, and whoever carries it out comes after the append."""
    for producer in range(asked.producers - 1):
        ctx.act("notify", key=f"notify:{asked.order}", order=asked.order, total=asked.total + producer * asked.divergent)
    told = []
    for attempt in range(1, asked.tries + 1):
        # An outcome is final, a failure too: trying again is another effect, under another key, and the log shows both.
        key = f"notify:{asked.order}" + (f"/{attempt}" if attempt > 1 else "")
        try:
            told.append(await ctx.perform("notify", key=key, order=asked.order, total=asked.total + (asked.producers - 1) * asked.divergent))
            break
        except EffectErrored as failed:
            told.append(str(failed).partition(". Look")[0])
    return told


@attrs.define
class Mail:
    """The world outside: what was sent, under which intent, and how many more times sending fails."""

    sent: list[str] = attrs.field(factory=list)
    intents: list[IntentInfo] = attrs.field(factory=list)
    #: What the log held of the intent when it was called for.
    committed: list[list[str]] = attrs.field(factory=list)
    failures: int = 0
    #: Times the tool itself tries again before it gives up.
    patience: int = 0

    def deliver(self, order: str) -> str:
        if self.failures:
            self.failures -= 1
            raise ConnectionError("smtp temporarily unavailable")
        self.sent.append(f"notify:{order}")
        return f"sent {order}"


@attrs.define(eq=False)
class Shop:
    """One log, one mail, and the app on both."""

    log: EventLog
    mail: Mail
    app: App = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.app = App([shop], tools=[self._notify()])

    def _notify(self) -> Tool:
        @tool(side_effect=True, idempotent=True)
        async def notify(order: str, total: int, *, intent: IntentInfo) -> str:
            """A real provider gets ``intent.intent_id`` as its idempotency key; here the list of intents stands for it."""
            self.mail.committed.append([stored.type for stored in self.log.read(intent.stream)])
            done = any(each.intent_id == intent.intent_id for each in self.mail.intents)
            self.mail.intents.append(intent)
            for _ in range(self.mail.patience):
                try:
                    return self.mail.deliver(order)
                except ConnectionError:
                    await asyncio.sleep(0)
            return f"sent {order}" if done else self.mail.deliver(order)

        return notify

    def confirm(self, input_id: str, total: int = 125, **more: Any) -> None:
        send(self.app, self.log, Input("shop", KEY, Confirmed(KEY, total, **more), input_id))

    def run(self, owner: str = "one", dies_at: str = "") -> None:
        """A process that serves until nothing is left to do, or until it dies where it is told to."""
        asyncio.run(self._run(owner, dies_at))

    def run_two(self) -> None:
        """Two processes beside each other on the one log."""

        async def both() -> None:
            await asyncio.gather(self._run("one", ""), self._run("two", ""))

        asyncio.run(both())

    async def _run(self, owner: str, dies_at: str) -> None:
        process = Process(self.app, self.log, owner)

        def boundary(name: str, stream: str) -> None:
            if name == dies_at:
                process.stop()
                raise LeaseLost(f"{owner} died at {name}")

        process.boundary = boundary
        await process.run(until_idle=True)
        if dies_at:
            self.log.schedule.evict(owner)

    def facts(self, kind: type) -> list[Any]:
        return [fact for stored in self.log.read(STREAM) if isinstance(fact := self.app.codec.decode_stored(stored), kind)]

    def outputs(self) -> list[Any]:
        return [fact.output for fact in self.facts(facts.Completed)]

    def errors(self) -> list[str]:
        return [fact.failure.type for fact in self.facts(facts.ActivationFailed)]


@contextmanager
def opened(**mail: Any) -> Iterator[Shop]:
    """A shop that nothing has happened in."""
    log = open_log("memory://")
    try:
        yield Shop(log, Mail(**mail))
    finally:
        log.close()
