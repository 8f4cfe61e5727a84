"""A re-run is the run: what agent code can ask for is the same every time (S-3.5, S-7.6)."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from intentlog.agents import Suspend, facts
from tests.agents.world import Account, Asked, Ctx, Paid, World
from tests.linear.common import linear, signal, sound


def test_now_chance_and_reads_are_the_same_on_every_rerun():
    seen: list[tuple[Any, ...]] = []

    async def code(ctx: Ctx, given: Any) -> Any:
        met = [ctx.now_us, ctx.random("a").random(), str(ctx.uuid()), await ctx.run_tool("read", what="x"), (await ctx.call_model("m")).text]
        for number in range(3):
            await ctx.sleep(timedelta(seconds=1))
            met += [ctx.now_us, ctx.random("a").random(), ctx.random(f"{number}").random(), str(ctx.uuid())]
        seen.append(tuple(met))
        return met[:5]

    with linear(code) as world:
        world.send()
        for _ in range(4):
            world.run()
            world.clock.tick(1.5)
        (output,) = world.outputs()
        assert 1 == len(world.model.asked)
        assert 1 == world.hands.reads
        assert [] == sound(world)
        assert list(seen[0][:5]) == output
        assert 1 == len(set(seen))


def test_events_are_staged_once_and_the_state_of_a_rerun_is_the_one_it_began_with():
    begun: list[tuple[str, ...]] = []

    async def code(ctx: Ctx, given: Any) -> Any:
        begun.append(ctx.state.orders)
        ctx.emit(Asked(f"o{ctx.seq}"))
        await ctx.perform("push", text="a")
        ctx.emit(Paid("r"))
        await ctx.perform("push", text="b")
        return ctx.state.orders, ctx.state.receipts

    with linear(code, state=Account) as world:
        world.send()
        world.run()
        world.send()
        world.run()
        assert [(("o0",), ("r",)), (("o0", "o1"), ("r", "r"))] == [tuple(map(tuple, output)) for output in world.outputs()]
        assert [(), (), (), ("o0",), ("o0",), ("o0",)] == begun[:6]
        assert ["o0", "o1"] == [fact.order for fact in world.facts(Asked)]
        assert (("o0", "o1"), ("r", "r")) == (world.fold().state.orders, world.fold().state.receipts)


def test_a_trace_is_left_once():
    async def code(ctx: Ctx, given: Any) -> Any:
        ctx.trace("begun")
        await ctx.perform("push", text="a")
        ctx.trace("done")

    with linear(code) as world:
        world.send()
        world.run()
        assert ["begun", "done"] == [fact.text for fact in world.facts(facts.Traced)]


def test_a_timer_armed_on_the_side_is_armed_once():
    async def code(ctx: Ctx, given: Any) -> Any:
        ctx.arm(timedelta(hours=1))
        await ctx.perform("push", text="a")
        return await ctx.perform("push", text="b")

    with linear(code) as world:
        world.send()
        world.run()
        assert 1 == len(world.facts(facts.TimerArmed))
        assert ["B"] == world.outputs()


def test_clean_up_of_code_that_is_put_away_stages_nothing():
    tried: list[str] = []

    def attempt(ctx: Ctx, name: str, step: Callable[[], Any]) -> None:
        try:
            step()
        except BaseException as problem:
            tried.append(f"{name}: {type(problem).__name__}")

    async def code(ctx: Ctx, given: Any) -> Any:
        async def held() -> Any:
            try:
                await ctx.signal("go")
            except GeneratorExit:
                attempt(ctx, "act", lambda: ctx.act("push", text="no"))
                attempt(ctx, "emit", lambda: ctx.emit(Paid("no")))
                attempt(ctx, "trace", lambda: ctx.trace("no"))
                attempt(ctx, "send", lambda: ctx.send("a", "other", "no"))
                raise

        async def waits() -> Any:
            try:
                await ctx.signal("go")
            finally:
                if ctx.sealed:
                    await ctx.gather(ctx.perform("push", text="no"), ctx.timeout(ctx.signal("no"), timedelta(seconds=1)))

        return await ctx.gather(held(), ctx.gather(waits()))

    with linear(code) as world:
        world.send()
        world.run()
        assert {"act: TurnOver", "emit: TurnOver", "trace: TurnOver", "send: TurnOver"} == set(tried)
        assert ["input.received", "activation.suspended"] == world.types()
        signal(world, "go")
        signal(world, "go", id="s-2")
        world.run()
        assert [[None, [None]]] == world.outputs()


def test_collecting_garbage_at_every_turn_changes_nothing():
    async def code(ctx: Ctx, given: Any) -> Any:
        async def held(text: str) -> Any:
            try:
                gc.collect()
                return await ctx.perform("push", text=text)
            finally:
                gc.collect()

        won = await ctx.first(ctx.gather(held("a"), held("b")), ctx.timeout(ctx.signal("never"), timedelta(hours=1)))
        gc.collect()
        return won[1]

    gc.collect()
    with linear(code) as world:
        world.send()
        world.run()
        assert [["A", "B"]] == world.outputs()
    gc.collect()


def test_what_the_runtime_does_not_know_is_refused_wherever_it_is_awaited():
    async def code(ctx: Ctx, given: Any) -> Any:
        async def inner() -> None:
            await asyncio.sleep(1)

        try:
            await ctx.gather(ctx.perform("push", text="a"), inner())
        except Exception:
            return "went on"

    with linear(code) as world:
        world.send()
        world.run()
        (failure,) = world.failures()
        assert ("ForeignAwait", True) == (failure.type, "await asyncio.sleep(1)" in failure.message)
        assert [] == world.facts(facts.IntentStaged)


def test_after_a_fault_that_was_caught_no_model_is_paid():
    async def code(ctx: Ctx, given: Any) -> Any:
        try:
            await asyncio.sleep(1)
        except Exception:
            await ctx.call_model("apologise")

    with linear(code) as world:
        world.send()
        world.run()
        assert [] == world.model.asked


@pytest.mark.parametrize("first", ["explicit", "linear"])
def test_an_agent_that_mixes_the_styles_is_told_so(first: str):
    async def code(ctx: Ctx, given: Any) -> Any:
        if first == "explicit":
            if not ctx.is_resume:
                ctx.act("push", text="a")
                return Suspend(timeout=timedelta(hours=1))
            return await ctx.perform("push", text="b")
        await ctx.perform("push", text="a")
        return Suspend(timeout=timedelta(hours=1))

    with linear(code) as world:
        world.send()
        world.run()
        (failure,) = world.failures()
        assert ("DefinitionError", True) == (failure.type, "choose one style" in failure.message)


def test_a_provider_that_fails_and_is_handled_is_told_the_same_on_every_rerun():
    told: list[str] = []

    class Gone(Exception):
        """A client's own."""

    async def code(ctx: Ctx, given: Any) -> Any:
        for prompt in ("a", "b"):
            try:
                await ctx.call_model(prompt)
            except Exception as problem:
                told.append(f"{type(problem).__name__}: {problem}")
        await ctx.perform("push", text="a")
        return await ctx.perform("push", text="b")

    with linear(code) as world:
        world.model.answers = [Gone("away"), ConnectionError("down")]
        world.send()
        world.run()
        assert 2 == len(world.model.asked)
        assert ["ModelFailed: Gone: away", "ConnectionError: down"] * 3 == told[:6]
        assert ["B"] == world.outputs()


def test_a_read_that_failed_in_a_committed_turn_stays_failed_when_a_later_turn_fails():
    faults = [RuntimeError("for now")]

    async def code(ctx: Ctx, given: Any) -> Any:
        said = ""
        try:
            await ctx.run_tool("read", what="x")
        except LookupError as problem:
            said = str(problem)
        await ctx.perform("push", text=said)
        if faults:
            raise faults.pop()
        return said

    with World(code) as world:
        world.hands.script = [LookupError("nothing")]
        world.send()
        world.run()
        world.later(2)
        assert ["nothing"] == world.outputs()
        assert 1 == world.hands.reads
        assert ["RuntimeError"] == [failure.type for failure in world.failures()]
