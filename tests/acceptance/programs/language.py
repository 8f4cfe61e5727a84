"""Random linear agents: a small language, a generator of its programs, and the one agent that runs them.

Whatever a program does depends on all it did before, for every argument carries a counter that all of its fibers share: a
re-run that takes another path, or the same in another order, decides something else and is found out.
"""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any, TypeAlias

import attrs

from intentlog.agents import Aggregate, agent, applies
from intentlog.agents.context import ActivationContext
from intentlog.agents.errors import ActivationCancelled, EffectFailed, ModelFailed
from intentlog.eventlog.registry import event

Node: TypeAlias = "list[Any]"
"""``[kind, *arguments]``: plain data, so that a program is an input like any other."""
Ctx: TypeAlias = ActivationContext[Any]
SIGNALS = ("red", "blue")


@event("program.noted", version=1)
class Noted:
    """Something a program emits."""

    text: str


class Notes(Aggregate):
    """What was noted."""

    count: int = 0
    last: str = ""

    @applies(Noted)
    def _(self, e: Noted) -> Notes:
        return self.evolve(count=self.count + 1, last=e.text)


@attrs.define
class Run:
    """One activation's run of a program."""

    ctx: Ctx
    count: int = 0
    said: list[str] = attrs.field(factory=list)

    def text(self, name: str) -> str:
        """An argument that no other place and no other order gives."""
        self.count += 1
        state = self.ctx.state
        return (
            f"{name} {self.count} {len(self.said)} {state.count if state is not None else ''} {self.ctx.random(name).randrange(1000)} {self.ctx.now_us % 1000}"
        )

    async def block(self, nodes: list[Node]) -> str:
        """One after the other; the last one's value."""
        value = ""
        for node in nodes:
            value = await self.node(node)
            self.said.append(value)
        return value

    async def node(self, node: Node) -> str:
        """Run one node; its value as a text."""
        kind, *args = node
        return str(await getattr(self, f"do_{kind}")(*args))

    async def do_perform(self, tool: str, name: str) -> Any:
        return await self.ctx.perform(tool, text=self.text(name))

    async def do_keyed(self, name: str) -> Any:
        return await self.ctx.perform("push", text=f"keyed {name}", key=name)

    async def do_act(self, name: str, body: list[Node]) -> Any:
        intent_id = self.ctx.act("push", text=self.text(name))
        value = await self.block(body)
        known = self.ctx.outcome(intent_id)
        outcome = await self.ctx.outcome_of(intent_id)
        return f"{value} {known.status if known else None} {outcome.status}"

    async def do_gather(self, *bodies: list[Node]) -> Any:
        values = await self.ctx.gather(*(self.block(body) for body in bodies), return_exceptions=True)
        for value in values:
            if isinstance(value, BaseException) and not isinstance(value, EffectFailed):
                raise value
        return [f"{type(v).__name__} {v}" if isinstance(v, Exception) else v for v in values]

    async def do_first(self, *bodies: list[Node]) -> Any:
        return await self.ctx.first(*(self.block(body) for body in bodies))

    async def do_timeout(self, milliseconds: int, body: list[Node]) -> Any:
        return await self.ctx.timeout(self.block(body), timedelta(milliseconds=milliseconds))

    async def do_loop(self, times: int, body: list[Node]) -> Any:
        return [await self.block(body) for _ in range(times)]

    async def do_attempt(self, body: list[Node], rescue: list[Node]) -> Any:
        try:
            return await self.block(body)
        except EffectFailed as problem:
            self.said.append(f"{type(problem).__name__}: {problem}")
            return await self.block(rescue)

    async def do_finally(self, body: list[Node], cleanup: list[Node]) -> Any:
        try:
            return await self.block(body)
        finally:
            await self.block(cleanup)

    async def do_sleep(self, milliseconds: int) -> Any:
        await self.ctx.sleep(timedelta(milliseconds=milliseconds))
        return self.ctx.now_us

    async def do_signal(self, name: str, milliseconds: int) -> Any:
        return await self.ctx.signal(name, timeout=timedelta(milliseconds=milliseconds))

    async def do_approval(self, name: str, milliseconds: int) -> Any:
        return await self.ctx.approval(self.text(name), timeout=timedelta(milliseconds=milliseconds))

    async def do_model(self, name: str) -> Any:
        """A provider that does not answer is a failed turn at the outermost level, and handled everywhere else."""
        try:
            return (await self.ctx.call_model(self.text(name))).text
        except ModelFailed as problem:
            if name.endswith("!"):
                raise
            return f"{type(problem).__name__}: {problem}"

    async def do_same(self, name: str) -> Any:
        """The same prompt twice is two calls."""
        said = []
        for _ in range(2):
            try:
                said.append((await self.ctx.call_model(name)).text)
            except ModelFailed as problem:
                said.append(f"{type(problem).__name__}: {problem}")
        return said

    async def do_read(self, name: str) -> Any:
        try:
            return await self.ctx.run_tool("look", text=self.text(name))
        except LookupError as problem:
            return f"{type(problem).__name__}: {problem}"

    async def do_emit(self, name: str) -> Any:
        self.ctx.emit(Noted(self.text(name)))
        return self.ctx.state.count

    async def do_chance(self) -> Any:
        return f"{self.ctx.uuid()} {self.ctx.random().random()}"

    async def do_send(self, key: str, id: str) -> Any:
        return self.ctx.send("leaf", key, [["perform", "push", "sent"]], id=id or None)

    async def do_call(self, key: str, body: list[Node]) -> Any:
        return await self.ctx.call("leaf", key, body)


async def _program(ctx: Ctx, program: Any) -> Any:
    run = Run(ctx)
    times, body = program if isinstance(program[0], int) else (0, program)
    try:
        await run.block(body)
    except EffectFailed as problem:
        run.said.append(f"{type(problem).__name__}: {problem}")
    except ActivationCancelled as problem:
        run.said.append(str(problem))
        await run.block([["perform", "push", "undo"]])
        raise
    if times:
        return ctx.continue_with([times - 1, body])
    return run.said


OPTIONS: dict[str, Any] = {"wait_timeout": timedelta(seconds=60), "intent_ttl": timedelta(seconds=30)}
program_agent = agent("program", state=Notes, **OPTIONS)(_program)
leaf_agent = agent("leaf", **OPTIONS)(_program)

# ── making programs ─────────────────────────────────────────────────────────────────────────────────────────────────────


DEPTH = 3


@attrs.define
class Maker:
    """Makes programs from chance."""

    rng: random.Random
    #: Nodes it may still make.
    budget: int
    names: int = 0

    def name(self) -> str:
        self.names += 1
        return f"n{self.names}"

    def program(self) -> Any:
        """A program's input: its body, or how often it continues with itself and its body."""
        body = self.block(DEPTH)
        return [self.rng.randrange(1, 3), body] if self.rng.random() < 0.1 else body

    def block(self, depth: int) -> list[Node]:
        nodes = [self.node(depth) for _ in range(self.rng.randrange(1, 4)) if self.budget > 0]
        return nodes or [["chance"]]

    def node(self, depth: int) -> Node:
        self.budget -= 1
        rng = self.rng
        kinds = ["perform"] * 4 + ["sleep", "signal", "signal", "approval", "model", "model", "same", "read", "emit", "chance", "keyed", "send", "call"]
        if depth > 0:
            kinds += ["gather"] * 3 + ["first"] * 4 + ["timeout", "loop", "attempt", "attempt", "finally", "act"]
        kind = rng.choice(kinds)
        if kind == "perform":
            return [kind, rng.choice(["push", "push", "once", "fail"]), self.name()]
        if kind in ("gather", "first"):
            return [kind, *(self.block(depth - 1) for _ in range(rng.randrange(1, 4)))]
        if kind == "timeout":
            return [kind, self.length(), self.block(depth - 1)]
        if kind == "loop":
            return [kind, rng.randrange(1, 4), self.block(depth - 2)]
        if kind in ("attempt", "finally"):
            return [kind, self.block(depth - 1), self.block(0)]
        if kind == "act":
            return [kind, self.name(), self.block(depth - 1)]
        if kind == "sleep":
            return [kind, self.length()]
        if kind == "signal":
            return [kind, rng.choice(SIGNALS), self.length()]
        if kind == "approval":
            return [kind, self.name(), self.length()]
        if kind == "keyed":
            return [kind, rng.choice(["k1", "k2"])]
        if kind == "send":
            return [kind, rng.choice(["a", "b"]), rng.choice(["", "", "letter"])]
        if kind == "call":
            return [kind, rng.choice(["a", "b"]), [["perform", "push", self.name()], ["sleep", self.length()]]]
        if kind == "model":
            return [kind, self.name() + ("!" if depth == DEPTH else "")]
        return [kind] if kind == "chance" else [kind, self.name()]

    def length(self) -> int:
        return self.rng.choice([1, 10, 50, 200, 1000])
