"""What led to an event: outcomes to their intents, turns to what they were told and woken by, all the way to the input."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from intentlog.agents import Complete, Suspend, facts
from intentlog.replay.causes import Cause, causes_of
from intentlog.replay.walking import Walk
from tests.acceptance.programs.living import STREAM as PROGRAM
from tests.acceptance.programs.living import lived
from tests.replay.world import STREAM, RefundAsked, RefundPaid, World, app_of, lookup, notify, paying, refund


def chain(world: World, app: Any, kind: str, stream: str = STREAM) -> list[Cause]:
    """What led to the last event of this type."""
    walk = Walk(world.log, app, stream)
    version = walk.next_of_type(kind, backwards=True) if walk.event().stored.type != kind else walk.version
    assert version is not None
    return list(causes_of(walk, version))


def told(causes: list[Cause]) -> list[tuple[str, str]]:
    return [(cause.type, cause.role) for cause in causes]


def test_a_payment_goes_back_to_what_the_model_was_asked_and_to_the_input(world):
    app = app_of(paying)
    world.story(app, RefundAsked("o-1", 42), RefundAsked("o-2", 7))
    causes = chain(world, app, "refund.paid")
    assert [
        ("intent.settled", "the outcome it waited for"),
        ("intent.attempted", "the attempt"),
        ("intent.staged", "the effect was staged"),
        ("model_call.cached", "the model answered"),
        ("tool_call.cached", "it read"),
        ("input.received", "the input"),
    ] == told(causes)
    assert "Refund 7 for o-2, 3 items, 42 before?" == causes[3].event.request.messages[-1]["content"]
    assert ("in-2", [19, 18, 16, 13, 12, 11]) == (causes[-1].event.input_id, [cause.version for cause in causes])


def test_a_turn_after_a_deadline_was_woken_by_it(world):
    app = app_of(paying)
    world.send(app, RefundAsked("o-1", 42))
    world.run(app, effector=False)
    world.clock.tick(301)
    world.run(app, effector=False)
    assert [("timer.fired", "the time had come"), ("activation.suspended", "the deadline was set")] == told(chain(world, app, "activation.completed"))[:2]


def test_a_turn_that_waited_for_several_outcomes_goes_back_to_all_of_them(world):
    async def both(ctx: Any, asked: RefundAsked) -> Any:
        if not ctx.is_resume:
            ctx.act(refund, order_id="o-1", cents=1)
            ctx.act(notify, text="hello")
            return Suspend(timeout=timedelta(minutes=5))
        ctx.emit(RefundPaid("r", 1))
        return Complete()

    app = app_of(both)
    world.story(app, RefundAsked("o-1", 42))
    causes = chain(world, app, "refund.paid")
    settled = [stored.version for stored in world.log.read(STREAM) if stored.type == "intent.settled"]
    assert sorted(settled, reverse=True) == [cause.version for cause in causes if isinstance(cause.event, facts.IntentSettled)]
    staged = {cause.event.tool for cause in causes if isinstance(cause.event, facts.IntentStaged)}
    assert ({"refund", "notify"}, "input.received") == (staged, causes[-1].type)


def test_linear_code_goes_back_through_each_of_its_waits(world):
    async def two(ctx: Any, asked: RefundAsked) -> Any:
        found = await ctx.run_tool(lookup, order_id=asked.order_id)
        receipt = await ctx.perform(refund, order_id=asked.order_id, cents=asked.cents)
        answer = await ctx.call_model(f"Tell them of {receipt}, {found['items']}")
        await ctx.perform(notify, text=answer.text)
        ctx.emit(RefundPaid(receipt, asked.cents))
        return Complete(receipt)

    app = app_of(two)
    world.story(app, RefundAsked("o-1", 42))
    types = [cause.type for cause in chain(world, app, "refund.paid")]
    assert ["intent.settled", "intent.attempted", "intent.staged", "model_call.cached"] == types[:4]
    assert ["intent.settled", "intent.attempted", "intent.staged", "tool_call.cached", "input.received"] == types[4:]


def test_a_continued_activation_goes_back_to_the_one_before(world):
    async def again(ctx: Any, asked: RefundAsked) -> Any:
        if asked.cents > 1:
            await ctx.call_model(f"{asked.cents}?")
            return ctx.continue_with(RefundAsked(asked.order_id, asked.cents - 1))
        ctx.emit(RefundPaid("r", 1))
        return Complete()

    app = app_of(again)
    world.story(app, RefundAsked("o-1", 3))
    types = [cause.type for cause in chain(world, app, "refund.paid")]
    assert ["activation.continued", "model_call.cached", "activation.continued", "model_call.cached", "input.received"] == types


def test_an_input_and_what_comes_from_outside_have_nothing_behind_them(world):
    app = app_of(paying)
    world.story(app, RefundAsked("o-1", 42))
    assert () == causes_of(Walk(world.log, app, STREAM), 0)


@pytest.mark.parametrize("seed", [2, 9, 23, 31])
def test_every_event_of_a_linear_program_goes_back_to_an_input_or_to_somebody_outside(seed):
    world = lived(seed)
    walk = Walk(world.log, world.app, PROGRAM)
    outside = {"input.received", "signal.received", "approval.decided", "cancel.requested", "input.redriven", "stream.blocked"}
    for version in range(walk.head + 1):
        causes = causes_of(walk, version)
        versions = [version, *(cause.version for cause in causes)]
        assert versions == sorted(set(versions), reverse=True), f"{version}: {versions}"
        last = causes[-1].type if causes else walk.row(version)[1]
        assert last in outside or walk.row(version)[1] in outside, f"{version}: {told(list(causes))}"
    world.log.close()
