"""Time in a run: which waits it jumps over, which it leaves to the test, and schedules on the way."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from intentlog.agents import ActivationContext, App, agent
from intentlog.agents.facts import InputReceived
from intentlog.agents.schedules import cron, every
from intentlog.agents.testing import Harness, VirtualClock

START = datetime(2026, 1, 5, 9, tzinfo=UTC)


@agent("child")
async def child(ctx: ActivationContext[Any], what: str) -> Any:
    if what == "ask":
        return bool(await ctx.approval("May I?", timeout=timedelta(days=3)))
    await ctx.sleep(timedelta(hours=5))
    return what


@agent("parent")
async def parent(ctx: ActivationContext[Any], what: str) -> Any:
    return await ctx.call("child", "c", what)


family = App(agents=[parent, child])


def test_who_waits_for_a_child_that_waits_for_a_person_is_left_waiting(harness: Harness):
    run = harness.start(family).send("parent", "p", "ask").until_idle()
    assert START == run.clock.now
    assert True is run.approve("child", "c").until_idle().output("parent", "p")
    run.assert_replays()


def test_who_waits_for_a_child_that_sleeps_is_not(harness: Harness):
    run = harness.start(family).send("parent", "p", "sleep").until_idle()
    assert "sleep" == run.output("parent", "p")
    assert START + timedelta(hours=5) == run.clock.now


def test_a_key_that_sleeps_goes_on_beside_one_that_waits_for_a_person(harness: Harness):
    run = harness.start(family).send("child", "a", "ask").send("child", "b", "sleep").until_idle()
    assert "sleep" == run.output("child", "b")
    with pytest.raises(AssertionError, match="waits for approval"):
        run.output("child", "a")
    assert False is run.until_idle(past_deadlines=True).output("child", "a")
    assert START + timedelta(days=3) == run.clock.now


def test_several_waits_at_once_count_as_waiting_for_a_person(harness: Harness):
    @agent("both")
    async def both(ctx: ActivationContext[Any], what: str) -> Any:
        place, _ = await ctx.first(ctx.sleep(timedelta(hours=1)), ctx.approval("Now?", timeout=timedelta(hours=2)))
        return place

    run = harness.start(both).send("both", "k", "x").until_idle()
    assert START == run.clock.now
    assert 0 == run.advance(timedelta(hours=1)).output("both", "k")


def ids(run: Any, stream: str) -> list[str]:
    return [fact.input_id.split(":", 3)[-1] for fact in run.events(stream, InputReceived)]


def test_schedules_fire_while_time_passes(harness: Harness):
    @agent("reports", schedules=[cron("0 7 * * *", key="daily", input="day"), every(timedelta(hours=6), key="beat", input="beat")])
    async def reports(ctx: ActivationContext[Any], what: str) -> str:
        return f"{what} at {ctx.now.isoformat()}"

    run = harness.start(reports).until_idle()
    assert START == run.clock.now
    run.advance(timedelta(days=3))
    assert 3 == len(run.events("reports-daily", InputReceived))
    assert 12 == len(run.events("reports-beat", InputReceived))
    assert "day at 2026-01-08T07:00:00+00:00" == run.output("reports", "daily")
    run.assert_replays("reports-daily")


def test_schedules_fire_on_the_way_to_a_timer_but_keep_no_run_going(harness: Harness):
    @agent("sleepers", schedules=[cron("0 12 * * *", key="noon", input="noon")])
    async def sleepers(ctx: ActivationContext[Any], what: str) -> str:
        if what != "noon":
            await ctx.sleep(timedelta(days=2, hours=1))
        return ctx.now.isoformat()

    run = harness.start(sleepers).send("sleepers", "k", "x").until_idle()
    assert START + timedelta(days=2, hours=1) == run.clock.now
    assert 2 == len(run.events("sleepers-noon", InputReceived))
    assert "2026-01-06T12:00:00+00:00" == run.output("sleepers", "noon")


def test_a_clock_goes_on_and_never_back():
    clock = VirtualClock(START)
    clock.advance(timedelta(minutes=1))
    clock.set(START + timedelta(hours=1))
    assert (START + timedelta(hours=1), 1_767_607_200_000_000) == (clock.now, clock())
    assert "VirtualClock(2026-01-05T10:00:00+00:00)" == repr(clock)
    for back in (lambda: clock.set(START), lambda: clock.advance(timedelta(seconds=-1))):
        with pytest.raises(ValueError, match="a clock does not go back"):
            back()
