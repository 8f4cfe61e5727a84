"""Timers, signals and approvals: before, during and after the wait (S-7.2, S-7.3, S-7.5)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from intentlog.agents import facts
from intentlog.agents.errors import EffectTimedOut
from intentlog.eventlog.clock import SECOND, to_datetime
from tests.agents.world import START, Ctx
from tests.linear.common import decide, linear, signal

HOUR = timedelta(hours=1)


def test_a_sleep_ends_when_it_should_and_its_end_is_the_turns_now():
    async def code(ctx: Ctx, given: Any) -> Any:
        begun = ctx.now
        await ctx.sleep(HOUR)
        await ctx.sleep_until(to_datetime(START + 7200 * SECOND))
        return (ctx.now - begun).total_seconds()

    with linear(code) as world:
        world.send()
        world.run()
        world.later(3599)
        assert [] == world.facts(facts.TimerFired)
        world.later(1)
        world.later(3600)
        assert [7200.0] == world.outputs()


async def waits_for_one(ctx: Ctx, given: Any) -> Any:
    await ctx.perform("push", text="first")
    told = await ctx.signal("go")
    return told, await ctx.perform("push", text="last")


@pytest.mark.parametrize("when", ["before it began", "before the wait", "just before the wait", "during the wait"])
def test_a_signal_is_taken_whenever_it_came(when: str):
    with linear(waits_for_one) as world:
        if when == "before it began":
            signal(world, "go", 5)
        world.send()
        if when == "before the wait":
            world.run(effector=False)
            signal(world, "go", 5)
        if when == "just before the wait":
            world.run(crash="settled")
            signal(world, "go", 5)
        world.run()
        if when == "during the wait":
            signal(world, "go", 5)
            world.run()
        assert [(5, "LAST")] == world.outputs()
        assert [] == world.fold().run.signals


def test_a_signal_after_the_wait_is_kept_for_the_next_activation():
    async def code(ctx: Ctx, given: Any) -> Any:
        return await ctx.signal("go")

    with linear(code) as world:
        world.send()
        for number in (1, 2):
            signal(world, "go", number, id=f"s-{number}")
        world.run()
        assert [1] == world.outputs()
        world.send()
        world.run()
        assert [1, 2] == world.outputs()


def test_signals_are_taken_in_the_order_in_which_they_came_and_by_name():
    async def code(ctx: Ctx, given: Any) -> Any:
        return await ctx.gather(ctx.signal("red"), ctx.signal("blue"), ctx.signal("red"))

    with linear(code) as world:
        world.send()
        world.run()
        for number, name in enumerate(["red", "red", "blue"]):
            signal(world, name, number, id=f"s-{number}")
            world.run()
        assert [[0, 2, 1]] == world.outputs()


def test_a_signal_that_lost_its_race_is_there_for_the_next_wait():
    async def code(ctx: Ctx, given: Any) -> Any:
        try:
            await ctx.signal("go", timeout=timedelta(seconds=5))
        except EffectTimedOut:
            return await ctx.signal("go")

    with linear(code) as world:
        world.send()
        world.run()
        world.later(6)
        signal(world, "go", "late")
        world.run()
        assert ["late"] == world.outputs()


def test_the_same_signal_sent_twice_is_one():
    async def code(ctx: Ctx, given: Any) -> Any:
        return await ctx.signal("go"), await ctx.signal("go", timeout=HOUR)

    with linear(code) as world:
        signal(world, "go", 1)
        signal(world, "go", 2, id="s-2")
        world.send()
        world.run()
        assert [(1, 2)] == world.outputs()


def test_nothing_at_the_agents_own_deadline_is_a_timed_out_wait_that_it_may_handle():
    async def code(ctx: Ctx, given: Any) -> Any:
        try:
            await ctx.signal("never")
        except EffectTimedOut as problem:
            return await ctx.perform("push", text=str(problem)[:3])

    with linear(code, wait_timeout=timedelta(minutes=1)) as world:
        world.send()
        world.run()
        world.later(61)
        assert ["A-K"] == world.outputs()


def test_an_agent_that_does_not_handle_its_deadline_fails_closed():
    with linear(waits_for_one, wait_timeout=timedelta(minutes=1)) as world:
        world.send()
        world.run()
        world.later(61)
        assert ["EffectTimedOut"] == [failure.type for failure in world.failures()]
        assert [("push", "first")] == world.hands.calls


async def asks(ctx: Ctx, given: Any) -> Any:
    verdict = await ctx.approval("Pay?", timeout=HOUR, order="o1")
    await ctx.perform("push", text="after")
    return verdict.approved, verdict.by, verdict.timed_out


@pytest.mark.parametrize("approved", [True, False])
def test_an_approval_is_answered(approved: bool):
    with linear(asks) as world:
        world.send()
        world.run()
        decide(world, approved)
        world.run()
        assert [(approved, "ada", False)] == world.outputs()


def test_an_approval_nobody_gave_is_a_denial_and_an_answer_after_that_changes_nothing():
    with linear(asks) as world:
        world.send()
        world.run()
        world.later(3601, effector=False)
        decide(world, True)
        world.run()
        assert [(False, "", True)] == world.outputs()


def test_an_answer_to_another_question_is_no_answer():
    with linear(asks) as world:
        world.send()
        world.run()
        decide(world, True, digest=b"something else")
        world.run()
        assert [] == world.outputs()
        world.later(3601)
        assert [(False, "", True)] == world.outputs()


def test_two_approvals_in_a_loop_are_two_questions():
    async def code(ctx: Ctx, given: Any) -> Any:
        said = []
        for _ in range(2):
            said.append((await ctx.approval("Pay?", timeout=HOUR)).approved)
            await ctx.perform("push", text=str(len(said)))
        return said

    with linear(code) as world:
        world.send()
        for approved in (True, False):
            world.run()
            decide(world, approved)
        world.run()
        assert [[True, False]] == world.outputs()
        assert 2 == len({fact.approval_id for fact in world.facts(facts.ApprovalRequested)})
        assert [("push", "1"), ("push", "2")] == world.hands.calls
