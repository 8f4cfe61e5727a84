"""S-3.1, S-3.2, S-3.4, S-3.5: an activation's turns, their one append, and what may come between."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from intentlog.agents import ModelResponse, facts
from intentlog.agents.committer import Committer
from intentlog.agents.worker import Worker, WorkerSettings
from intentlog.eventlog.log import EventLog
from tests.agents.world import STREAM, Account, Asked, Clock, Ctx, World, waiting


def test_key_and_seq_stay_and_steps_go_on_through_all_turns_of_an_activation():
    """S-3.1"""
    seen: list[tuple[str, int, int]] = []

    async def code(ctx: Ctx) -> object:
        seen.append((ctx.key, ctx.seq, ctx.step_index))
        await ctx.call_model(f"turn {ctx.step_index}")
        if ctx.step_index < 6:
            ctx.act("push", text="x")
            return waiting()
        return ctx.step_index

    with World(code) as world:
        world.send()
        world.run()
        assert [("k", 0, 0), ("k", 0, 2), ("k", 0, 4), ("k", 0, 6)] == sorted(set(seen))
        assert [7] == world.outputs()


def test_a_turn_is_one_append_and_nothing_it_staged_is_visible_before():
    """S-3.2"""
    seen: list[list[str]] = []

    async def code(ctx: Ctx, asked: Asked) -> object:
        ctx.emit(asked)
        ctx.act("push", text="x")
        ctx.trace("remark", n=1)
        ctx.arm(timedelta(hours=1))
        await ctx.run(lambda: seen.append(world.types()))
        return waiting()

    with World(code, state=Account) as world:
        world.send(Asked("o-1"))
        world.run(effector=False)
        assert [["input.received"]] == seen
        stored = list(world.log.read(STREAM))[2:]
        assert ["order.asked", "intent.staged", "traced", "timer.armed", "activation.suspended"] == [each.type for each in stored]
        assert list(range(stored[0].position, stored[0].position + 5)) == [each.position for each in stored]
        assert [] == world.hands.calls


def test_the_next_turn_loads_what_the_last_one_appended():
    """S-3.2"""

    async def code(ctx: Ctx, asked: Asked) -> object:
        before = ctx.state.orders
        ctx.emit(asked)
        return [*before, *ctx.state.orders]

    with World(code, state=Account) as world:
        world.send(Asked("o-1"))
        world.run()
        world.send(Asked("o-2"))
        world.run()
        assert [["o-1"], ["o-1", "o-1", "o-2"]] == world.outputs()


def test_a_turn_is_appended_behind_arrivals_without_being_run_again():
    """S-3.4"""
    runs = 0

    async def code(ctx: Ctx) -> object:
        nonlocal runs
        runs += 1
        await ctx.run(lambda: world.send("arrival").input_id if ctx.input == "first" else "")
        return ctx.input

    with World(code) as world:
        world.send("first")
        world.run()
        assert ["first", "arrival"] == world.outputs()
        assert 2 == runs
        assert ["input.received", "input.received", "tool_call.cached", "activation.completed"] == world.types()[:4]


class Gate:
    """A model that answers when it is let."""

    provider, model = "p", "m"

    def __init__(self, answer: str) -> None:
        self.answer, self.asked = answer, 0
        self.reached, self.open = asyncio.Event(), asyncio.Event()

    async def complete(self, request: Any, *, idempotency_key: str) -> ModelResponse:
        self.asked += 1
        self.reached.set()
        await self.open.wait()
        return ModelResponse(self.answer)


async def _two_workers(world: World, first: Gate, second: Gate, code: Any) -> None:
    """The first loses its lease while it asks; the second takes over; then the first gets its answer."""
    log: EventLog = world.log
    committer = Committer(log)
    settings = WorkerSettings(poll=0.005)
    world.model = first
    slow = Worker(world.app_of(code), log, owner="slow", committer=committer, settings=settings)
    world.model = second
    quick = Worker(world.app_of(code), log, owner="quick", committer=committer, settings=settings)
    running = [asyncio.create_task(slow.run())]
    await first.reached.wait()
    log.schedule.evict("slow")
    slow.stop()
    running.append(asyncio.create_task(quick.run()))
    await second.reached.wait()
    second.open.set()
    while not world.outputs():  # noqa: ASYNC110 - what is waited for is on the log
        await asyncio.sleep(0.005)
    first.open.set()
    quick.stop()
    await asyncio.gather(*running)
    committer.close()


def test_the_worker_that_lost_its_key_appends_nothing_and_the_other_ones_answer_stands():
    """S-3.4, S-4.9"""

    async def code(ctx: Ctx) -> str:
        return str((await ctx.call_model("hi")).text)

    async def story() -> None:
        first, second = Gate("from the loser"), Gate("from the winner")
        await _two_workers(world, first, second, code)
        assert (1, 1) == (first.asked, second.asked)

    with World(code) as world:
        world.send()
        asyncio.run(story())
        assert ["input.received", "model_call.cached", "activation.completed"] == world.types()
        assert ["from the winner"] == world.outputs()


def test_a_turn_that_lost_its_key_after_it_paid_is_run_again_without_paying():
    """S-3.4"""

    async def code(ctx: Ctx) -> str:
        answers = [(await ctx.call_model(f"question {n}")).text for n in range(3)]
        return ", ".join(answers)

    with World(code) as world:
        world.model.answers = ["a", "b", "c"]
        world.send()
        world.run(crash="turn.decided")
        assert [] == world.outputs()
        assert 3 == len(world.model.asked)
        world.run()
        assert ["a, b, c"] == world.outputs()
        assert 3 == len(world.model.asked)


def test_now_is_fixed_for_a_turn_and_recorded_and_a_rerun_sees_the_same():
    """S-3.5"""
    seen: list[int] = []

    async def code(ctx: Ctx) -> object:
        seen.append(ctx.now_us)
        await ctx.call_model("hi")
        world.clock.tick(3)
        seen.append(ctx.now_us)
        return ctx.now

    with World(code) as world:
        world.send()
        begun = world.clock.now
        world.run(crash="turn.decided")
        world.later(60)
        assert [begun] * 4 == seen
        (cached,) = world.facts(facts.ModelCallCached)
        (completed,) = world.facts(facts.Completed)
        assert (begun, begun) == (cached.now, completed.now)


def test_each_turn_has_its_own_now():
    """S-3.5"""

    async def code(ctx: Ctx) -> object:
        return ctx.now_us if ctx.is_resume else waiting(snapshot=str(ctx.now_us).encode())

    with World(code) as world:
        world.send()
        world.run()
        world.later(301)
        assert [Clock()() + 301_000_000] == world.outputs()


def test_named_chance_is_the_same_in_a_rerun_and_one_name_never_shifts_another():
    """S-3.5"""

    def drawing(also: bool):
        async def code(ctx: Ctx) -> object:
            if also:
                ctx.random("other").random()
                ctx.uuid("other")
            drawn = [ctx.random("dice").random(), str(ctx.uuid("ids")), str(ctx.uuid("ids"))]
            if ctx.input == "act":
                return ctx.act("pay", order="o-1")
            return drawn

        return code

    outputs = []
    for also in (False, True):
        with World(drawing(also)) as world:
            world.send("draw")
            world.run(crash="turn.decided")
            world.run()
            world.send("act")
            world.run()
            outputs.append(world.outputs())
    assert outputs[0] == outputs[1]
    assert outputs[0][0][1] != outputs[0][0][2]
