"""S-7.1 to S-7.4: suspensions, their deadlines, and outcomes that come late."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from intentlog.agents import Suspend, facts
from intentlog.agents.errors import EffectTimedOut
from intentlog.agents.intents import ERROR, OK, TIMED_OUT
from intentlog.agents.outcome import EffectResult
from tests.agents.world import START, STREAM, Ctx, World, told, waiting


def statuses(ctx: Ctx) -> list[str]:
    return [f"{result.tool or 'timer'} {result.status}" for result in ctx.resume_results]


def three(mode: str):
    """Waits for three effects."""

    async def code(ctx: Ctx) -> object:
        if ctx.is_resume:
            return statuses(ctx)
        ctx.act("pay", order="o-1")
        ctx.act("fragile", what="x")
        ctx.act("push", text="x")
        return waiting(wait=mode)

    return code


def settle(world: World, place: int, status: str = OK) -> None:
    world.append(facts.IntentSettled(world.facts(facts.IntentStaged)[place].intent_id, status, "v"))


def test_all_waits_for_everything():
    """S-7.1"""
    with World(three("all")) as world:
        world.send()
        world.run(effector=False)
        settle(world, 2)
        settle(world, 0)
        world.run(effector=False)
        assert [] == world.outputs()
        settle(world, 1, ERROR)
        world.run(effector=False)
        assert [["pay OK", "fragile ERROR", "push OK"]] == world.outputs()


def test_any_waits_for_the_first_and_tells_which():
    """S-7.1"""
    with World(three("any")) as world:
        world.send()
        world.run(effector=False)
        settle(world, 1)
        world.run(effector=False)
        assert [["fragile OK"]] == world.outputs()


def test_a_suspended_key_is_in_no_workers_hands():
    """S-7.1"""
    with World(three("all")) as world:
        for number in range(100):
            world.send(key=f"k{number}")
        world.run(effector=False)
        assert set() == world.log.schedule.owners()
        assert 0 == world.log.schedule.due("turn", now=world.clock())


def test_what_the_agent_left_for_itself_comes_back():
    """S-7.1"""

    async def code(ctx: Ctx) -> object:
        return [ctx.snapshot, ctx.adapter] if ctx.is_resume else Suspend(b"where I was", "my-adapter", timeout_ms=1000)

    with World(code) as world:
        world.send()
        world.run()
        world.later(1)
        assert [[b"where I was", "my-adapter"]] == world.outputs()


def test_the_waits_are_the_open_intents_and_timers():
    """S-7.2"""

    async def code(ctx: Ctx) -> object:
        if ctx.is_resume:
            return statuses(ctx)
        ctx.act("pay", order="o-1")
        ctx.arm(timedelta(seconds=30))
        return waiting()

    with World(code) as world:
        world.send()
        world.run()
        assert 2 == len(world.facts(facts.Suspended)[0].waits)
        world.later(29)
        assert [] == world.outputs()
        world.later(1)
        assert [["pay OK", "timer OK"]] == world.outputs()
        assert [START + 30_000_000] == [fact.due_at for fact in world.facts(facts.TimerFired)]


def test_an_outcome_that_was_there_before_the_wait_was_recorded_counts():
    """S-7.2"""

    async def code(ctx: Ctx) -> object:
        if ctx.is_resume:
            return statuses(ctx)
        ctx.act("push", text="x", key="once")
        if ctx.input == "fire":
            return "not waited for"
        await ctx.run(lambda: settle(world, 0))
        return waiting()

    with World(code) as world:
        world.send("fire")
        world.run(effector=False)
        world.send("wait")
        world.run(effector=False)
        assert ["intent.settled", "tool_call.cached", "activation.suspended", "activation.completed"] == world.types()[-4:]
        assert ["not waited for", ["push OK"]] == world.outputs()


def one_by_one(mode: str = "any"):
    """Waits again and again until it has been told of all three."""

    async def code(ctx: Ctx) -> object:
        if not ctx.is_resume:
            ctx.act("pay", order="o-1")
            ctx.act("fragile", what="x")
            ctx.act("push", text="x")
            return waiting(wait=mode, snapshot=b"")
        told = [*ctx.snapshot.decode().split(), *(f"{each.tool}:{each.status}" for each in ctx.resume_results)]
        return sorted(told) if len(told) >= 3 else waiting(wait=mode, snapshot=" ".join(told).encode())

    return code


ALL_TOLD = ["fragile:OK", "pay:OK", "push:OK"]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)], ids=str)
def test_an_agent_that_suspends_again_is_told_of_every_outcome_once(order):
    """S-7.2"""
    with World(one_by_one()) as world:
        world.send()
        world.run(effector=False)
        for place in order:
            settle(world, place)
            world.run(effector=False)
        assert [ALL_TOLD] == world.outputs()


@pytest.mark.parametrize("together", [(0, 1), (1, 2), (0, 1, 2)], ids=str)
def test_outcomes_that_come_before_the_next_turn_are_told_when_it_waits_again(together):
    """S-7.2"""
    with World(one_by_one()) as world:
        world.send()
        world.run(effector=False)
        for place in together:
            settle(world, place)
        world.run(effector=False)
        for place in {0, 1, 2} - set(together):
            settle(world, place)
        world.run(effector=False)
        assert [ALL_TOLD] == world.outputs()
        assert () == world.fold().run.late


def test_a_wait_that_timed_out_can_be_waited_for_again():
    """S-7.2, S-7.3"""

    async def code(ctx: Ctx) -> object:
        if ctx.is_resume and told(ctx).ok:
            return [told(ctx).value]
        if not ctx.is_resume:
            ctx.act("pay", order="o-1")
        return waiting(timeout=timedelta(seconds=10))

    with World(code) as world:
        world.send()
        world.run(effector=False)
        world.later(10, effector=False)
        assert 2 == len(world.facts(facts.Suspended))
        world.clock.tick(10)
        settle(world, 0)  # at the very moment of the second deadline
        world.run(effector=False)
        assert [["v"]] == world.outputs()


def test_at_the_deadline_the_activation_goes_on_with_a_timed_out_result():
    """S-7.3"""

    async def code(ctx: Ctx) -> object:
        if not ctx.is_resume:
            ctx.act("pay", order="o-1")
            ctx.act("push", text="x")
            return waiting(timeout=timedelta(seconds=10))
        return [ctx.timed_out, told(ctx).status, *statuses(ctx)]

    with World(code) as world:
        world.send()
        world.run(effector=False)
        settle(world, 1)
        world.later(9.999, effector=False)
        assert [] == world.outputs()
        world.later(0.001, effector=False)
        assert [[True, TIMED_OUT, "pay TIMED_OUT", "push OK"]] == world.outputs()


def test_a_suspension_without_a_timeout_gets_its_agents():
    """S-7.3"""

    async def code(ctx: Ctx) -> object:
        return "on" if ctx.is_resume else Suspend()

    with World(code, wait_timeout=timedelta(hours=2)) as world:
        world.send()
        world.run()
        assert [START + 7_200_000_000] == [fact.deadline for fact in world.facts(facts.Suspended)]
        world.later(7200)
        assert ["on"] == world.outputs()


@pytest.mark.parametrize("timeout", [{"timeout_ms": 0}, {"timeout_ms": -1}, {"timeout": timedelta(0)}], ids=repr)
def test_there_is_no_suspension_without_end_and_none_that_ends_at_once(timeout):
    """S-7.3"""

    async def code(ctx: Ctx) -> object:
        return Suspend(**timeout)

    with World(code) as world:
        world.send()
        world.run()
        assert ["DefinitionError"] == [failure.type for failure in world.failures()]


@pytest.mark.parametrize("use", [lambda result: result.value, lambda result: result.payload], ids=["value", "payload"])
def test_an_agent_that_does_not_look_at_the_status_fails_closed(use):
    """S-7.3"""

    async def code(ctx: Ctx) -> object:
        if ctx.is_resume:
            return use(told(ctx))
        ctx.act("pay", order="o-1")
        return waiting(timeout=timedelta(seconds=10))

    with World(code) as world:
        world.send()
        world.run(effector=False)
        world.later(10, effector=False)
        assert [] == world.outputs()
        assert [EffectTimedOut.__name__] == [failure.type for failure in world.failures()]
        assert EffectResult("i", TIMED_OUT).ok is False


def test_an_outcome_that_nobody_waits_for_any_more_is_kept_and_marked_late():
    """S-7.4"""

    async def code(ctx: Ctx) -> object:
        if ctx.is_resume:
            return "gave up"
        ctx.act("pay", order="o-1")
        return waiting(timeout=timedelta(seconds=10))

    with World(code) as world:
        world.send()
        world.run(effector=False)
        world.later(10, effector=False)
        assert ["gave up"] == world.outputs()
        world.run()
        assert [("pay", "o-1")] == world.hands.calls
        (fact,) = world.facts(facts.IntentSettled)
        assert (OK, (fact.intent_id,)) == (fact.status, world.fold().run.late)


def test_an_outcome_between_the_deadline_and_the_turn_is_late_and_the_turn_still_reads_timed_out():
    """S-7.4"""

    async def code(ctx: Ctx) -> object:
        if ctx.is_resume:
            await ctx.call_model("hi")
            return statuses(ctx)
        ctx.act("pay", order="o-1")
        return waiting(timeout=timedelta(seconds=10))

    with World(code) as world:
        world.send()
        world.run(effector=False)
        world.clock.tick(10)
        world.run(effector=False, crash="model.journalled")
        settle(world, 0)
        world.run(effector=False)
        assert [["pay TIMED_OUT"]] == world.outputs()
        assert (world.facts(facts.IntentStaged)[0].intent_id,) == world.fold().run.late


def test_an_effect_nobody_ever_waited_for_is_not_late():
    """S-7.4"""

    async def code(ctx: Ctx) -> object:
        ctx.act("pay", order="o-1")
        return "fire and forget"

    with World(code) as world:
        world.send()
        world.run()
        assert ([OK], ()) == ([fact.status for fact in world.facts(facts.IntentSettled)], world.fold().run.late)


def test_a_deadline_and_an_outcome_at_the_same_moment_lose_no_time(monkeypatch: Any):
    """S-7.2, S-7.3"""

    async def code(ctx: Ctx) -> object:
        if ctx.is_resume:
            return statuses(ctx)
        ctx.act("pay", order="o-1")
        return waiting(timeout=timedelta(seconds=10))

    with World(code) as world:
        world.send()
        world.run(effector=False)
        world.clock.tick(10)
        world.log.schedule.wake("turn", STREAM, world.clock())
        raced: list[bool] = []
        append = world.log.append_batch

        def slower(requests: Any) -> Any:
            if not raced and any(event.type == "timer.fired" for request in requests for part in request.parts for event in part.events):
                raced.append(True)
                settle(world, 0)
            return append(requests)

        monkeypatch.setattr(world.log, "append_batch", slower)
        world.run(effector=False)
        assert [["pay OK"]] == world.outputs()
