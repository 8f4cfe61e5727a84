"""Faults that systems doing the same job had or have, as tests: what they lost, repeated or hung on must not happen here."""

from __future__ import annotations

import asyncio
import gc
from datetime import timedelta
from typing import Any

import pytest

from intentlog.agents import Suspend, WorkerSettings, facts
from intentlog.agents.appends import TURNS
from intentlog.agents.committer import Committer
from intentlog.agents.intents import fact_id
from intentlog.agents.worker import Worker
from intentlog.eventlog.log import AppendRequest, StreamAppend, Wake
from intentlog.eventlog.versions import ANY
from tests.agents.world import STREAM, Ctx, World, told
from tests.linear.common import decide, linear, signal, sound

HOUR = timedelta(hours=1)


class Unsayable(Exception):
    """Neither its text nor its name can be had."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    def __repr__(self) -> str:
        raise RuntimeError("no name")


@pytest.mark.parametrize("crash", ["turn.decided", "turn.appended", "settled", "attempt.recorded", "tool.called"])
def test_a_signal_sent_just_before_the_wait_is_not_lost(crash: str):
    """Temporal features#467 and others: a signal that comes while the run goes from one wait to the next is dropped."""

    async def code(ctx: Ctx, given: Any) -> Any:
        await ctx.perform("push", text="a")
        return await ctx.signal("go", timeout=HOUR)

    with linear(code) as world:
        world.send()
        world.run(crash=crash)
        signal(world, "go", "here")
        world.run()
        assert ["here"] == world.outputs()


def test_a_wait_that_lost_its_race_does_not_keep_the_run_alive():
    """inngest-js#1617: the losing wait keeps the run "Running" until its own timeout."""

    async def code(ctx: Ctx, given: Any) -> Any:
        return (await ctx.first(ctx.signal("go"), ctx.signal("never", timeout=timedelta(days=300)), ctx.sleep(timedelta(days=200))))[1]

    with linear(code) as world:
        world.send()
        world.run()
        signal(world, "go", "went")
        world.run()
        assert ["went"] == world.outputs()
        assert {} == world.fold().run.open
        assert world.log.schedule.next_wake(TURNS) is None


def test_approvals_in_a_loop_repeat_nothing_that_came_before():
    """langgraph#7780: interrupt() in a loop runs the body before it again at every answer."""

    async def code(ctx: Ctx, given: Any) -> Any:
        for number in range(4):
            await ctx.call_model(f"draft {number}")
            if await ctx.approval("send it?", timeout=HOUR):
                await ctx.perform("pay", order=f"o{number}")

    with linear(code) as world:
        world.send()
        for approved in (True, False, True, True):
            world.run()
            decide(world, approved)
        world.run()
        assert [("pay", "o0"), ("pay", "o2"), ("pay", "o3")] == world.hands.calls
        assert 4 == len(world.model.asked)


def test_identical_inputs_back_to_back_are_two():
    """flink-agents#1084: distinct events with identical attributes share one durable key."""

    async def code(ctx: Ctx, given: Any) -> Any:
        await ctx.call_model("same")
        return await ctx.perform("pay", order="same")

    with linear(code) as world:
        world.send("same")
        world.send("same")
        world.run()
        assert [("pay", "same")] * 2 == world.hands.calls
        assert 2 == len({info.intent_id for info in world.hands.intents}) == len(set(world.model.keys))


def test_the_same_prompt_twice_is_two_answers():
    """A cache by content gives the first answer again."""

    async def code(ctx: Ctx, given: Any) -> Any:
        first = (await ctx.call_model("roll the dice")).text
        await ctx.sleep(timedelta(seconds=1))
        return first, (await ctx.call_model("roll the dice")).text

    with linear(code) as world:
        world.model.answers = ["3", "5"]
        world.send()
        world.run()
        world.later(1)
        assert [("3", "5")] == world.outputs()


def test_a_thousand_signals_to_one_key_while_it_is_snapshotted_are_all_taken_in_order():
    """Temporal#2694, #1289: signals are lost around continue-as-new, and a hot key never gets to go on."""

    async def code(ctx: Ctx, given: Any) -> Any:
        seen = given
        for _ in range(25):
            seen = [seen[0] + 1, seen[1] and await ctx.signal("go") == seen[0]]
        return ctx.continue_with(seen) if seen[0] < 1000 else seen

    async def serve(world: World) -> None:
        committer = Committer(world.log)
        worker = Worker(world.app, world.log, owner="w", committer=committer, settings=WorkerSettings(poll=0.002, snapshot_every=7))
        serving = asyncio.create_task(worker.run())
        try:
            for first in range(0, 1000, 10):
                requests = []
                for number in range(first, first + 10):
                    event = world.app.codec.stage(facts.SignalReceived(f"s-{number}", "go", number), event_id=fact_id("signal", f"s-{number}"))
                    requests.append(AppendRequest((StreamAppend(STREAM, (event,), ANY, (Wake(TURNS, world.clock(), sooner=True),)),)))
                await asyncio.to_thread(world.log.append_batch, requests)
                worker.wake()
                await asyncio.sleep(0)
            async with asyncio.timeout(30):
                while not await worker.idle():  # noqa: ASYNC110 - idle is a question to the store
                    await asyncio.sleep(0.005)
        finally:
            worker.stop()
            await serving
            committer.close()

    with linear(code) as world:
        world.send([0, True])
        asyncio.run(serve(world))
        assert [[1000, True]] == world.outputs()
        assert 1000 == len(world.facts(facts.SignalTaken))
        assert world.log.snapshots.load([STREAM]) != {}


@pytest.mark.parametrize("style", ["linear", "explicit"])
def test_a_tools_result_that_cannot_be_recorded_is_an_outcome_and_nothing_hangs(style: str):
    """pydantic-ai#6893: an unserialisable value is retried for ever."""

    async def code(ctx: Ctx, given: Any) -> Any:
        if style == "linear":
            result = await ctx.outcome_of(ctx.act("fragile", what="x"))
        elif not ctx.is_resume:
            ctx.act("fragile", what="x")
            return Suspend(timeout=HOUR)
        else:
            result = told(ctx)
        return result.failure.type if result.failure else "OK"

    with linear(code) as world:
        world.hands.script = [object()]
        world.send()
        world.run()
        assert ["Unencodable"] == world.outputs()
        assert [("fragile", "x")] == world.hands.calls


def test_an_agents_result_that_cannot_be_recorded_is_a_dead_letter_at_once_and_later_inputs_go_on():
    async def code(ctx: Ctx, given: Any) -> Any:
        await ctx.perform("push", text="a")
        return object() if given == 1 else "fine"

    with linear(code) as world:
        world.send()
        world.send()
        world.run()
        assert ["Unencodable"] == [failure.type for failure in world.failures()]
        assert ["fine"] == world.outputs()


@pytest.mark.parametrize("where", ["effect", "read", "model", "agent"])
def test_an_exception_that_cannot_be_said_is_recorded_all_the_same(where: str):
    """dbos-java#228: an unserialisable exception leaves the outcome unrecorded, and whoever waits hangs."""

    async def code(ctx: Ctx, given: Any) -> Any:
        try:
            if where == "effect":
                await ctx.perform("fragile", what="x")
            elif where == "read":
                await ctx.run_tool("read", what="x")
            elif where == "model":
                await ctx.call_model("x")
            else:
                await ctx.sleep(timedelta(seconds=1))
                raise Unsayable
        except Unsayable:
            raise
        except Exception as problem:
            await ctx.sleep(timedelta(seconds=1))
            return "Unsayable" in str(problem)

    with linear(code) as world:
        world.hands.script = [Unsayable()]
        world.model.answers = [Unsayable()]
        world.send()
        world.run()
        for _ in range(5):
            world.later(5)
        if where == "agent":
            assert [("Unsayable", "(its text cannot be had: RuntimeError)")] * 3 == [(each.type, each.message) for each in world.failures()]
        else:
            assert [True] == world.outputs()


def test_collecting_garbage_during_every_await_loses_no_run():
    """A coroutine that only the loop's weak set holds is collected while it waits."""

    async def code(ctx: Ctx, given: Any) -> Any:
        async def each(number: int) -> Any:
            gc.collect()
            value = await ctx.first(ctx.perform("push", text=f"{given}-{number}"), ctx.sleep(HOUR))
            gc.collect()
            return value[1]

        said = []
        for _ in range(2):
            said += await ctx.gather(*(each(number) for number in range(2)))
            gc.collect()
        return said

    with linear(code) as world:
        for key in ("k", "l"):
            world.send(key, key=key)
        world.run(crash="settled")
        gc.collect()
        world.run()
        assert [["K-0", "K-1"] * 2] == world.outputs()
        assert [["L-0", "L-1"] * 2] == world.outputs("a-l")
        gc.collect()


def test_an_empty_or_blank_key_or_id_is_refused_at_every_door():
    """dbos-py#759: an empty id passed a check for None, and the flow ran again 96 times a day."""

    async def code(ctx: Ctx, given: Any) -> Any:
        refused = []
        for bad in ("", " ", "\x00", "k" * 10_000):
            for name, step in (("send", lambda bad=bad: ctx.send("a", bad, 1)), ("key", lambda bad=bad: ctx.act("push", text="x", key=bad))):
                try:
                    step()
                except Exception as problem:
                    refused.append((name, type(problem).__name__))
        return refused

    with World(code) as world:
        world.send()
        world.run()
        (refused,) = world.outputs()
        assert 4 == sum(name == "send" for name, _ in refused)
        assert [] == sound(world)
