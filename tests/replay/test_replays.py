"""Histories of real runs come out the same, whatever happened in them."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from typing import Any

from intentlog.agents import ActivationContext, Complete, Suspend
from intentlog.agents.errors import ModelFailed
from intentlog.replay import Summary, Verdict, replay_all
from tests.replay.world import STREAM, Account, Model, RefundAsked, RefundPaid, World, app_of, copy_of, lookup, notify, paying, refund, unanswered


def same(world: World, app: Any, stream: str = STREAM) -> Any:
    found = world.replay(app, stream)
    assert (Verdict.SAME, None, "") == (found.verdict, found.divergence, found.reason)
    return found


def test_a_run_of_two_turns_is_the_same_and_asks_nobody(world):
    app = app_of(paying)
    world.story(app, RefundAsked("o-1", 4200), RefundAsked("o-2", 100))
    found = same(world, app_of(paying, unanswered()))
    assert (22, 4, 4, 0, 0, ()) == (found.events, found.turns, found.hits, found.misses, found.drifts, found.notes)


def test_replaying_leaves_the_log_as_it_was(world):
    app = app_of(paying)
    world.story(app, RefundAsked("o-1", 4200))
    before = list(world.log.read_all())
    same(world, app)
    assert before == list(world.log.read_all())


def test_a_history_that_ends_anywhere_but_inside_an_append_is_the_same(world):
    app = app_of(paying)
    world.story(app, RefundAsked("o-1", 4200), RefundAsked("o-2", 100))
    events = list(world.log.read(STREAM))
    inside = {"refund.asked", "traced", "intent.staged", "refund.paid"}
    for length in range(1, len(events) + 1):
        with copy_of(events[:length]) as cut:
            found = cut.replay(app)
            assert (Verdict.CANNOT if events[length - 1].type in inside else Verdict.SAME) == found.verdict, (length, found)


def test_a_wait_that_timed_out_is_the_same(world):
    app = app_of(paying)
    world.send(app, RefundAsked("o-1", 4200))
    world.run(app, effector=False)
    world.clock.tick(301)
    world.run(app, effector=False)
    world.run(app)
    assert "intent.settled" in world.types()
    same(world, app)


async def many(ctx: ActivationContext[Account], asked: RefundAsked) -> Any:
    """Several waits, any of them first, timers among them, business keys, failures of tools."""
    if not ctx.is_resume:
        for n in range(3):
            ctx.act(refund, order_id=f"{asked.order_id}-{n}", cents=n)
        ctx.act(notify, text="fail", key="told")
        ctx.arm(timedelta(seconds=30))
        return Suspend(wait="any")
    done = [result for result in ctx.resume_results if result.status != "TIMED_OUT"]
    ctx.trace("woke", statuses=[result.status for result in ctx.resume_results])
    if ctx.snapshot == b"2":
        ctx.emit(RefundPaid("all", len(done)))
        return Complete([result.status for result in ctx.resume_results])
    ctx.act(notify, text="fail", key="told")
    return Suspend(snapshot=b"2", wait="all", timeout=timedelta(seconds=60))


def test_many_waits_are_the_same(world):
    app = app_of(many)
    world.story(app, RefundAsked("o-1", 1), RefundAsked("o-2", 1))
    world.clock.tick(61)
    world.run(app)
    world.clock.tick(61)
    world.run(app)
    assert 2 == world.types().count("activation.completed")
    same(world, app)


def test_failures_with_retry_and_parking_are_the_same(world):
    async def failing(ctx: ActivationContext[Account], asked: RefundAsked) -> Any:
        await ctx.call_model("first")
        ctx.emit(asked)
        if asked.cents:
            raise KeyError(asked.order_id)
        return "fine"

    app = app_of(failing)
    world.story(app, RefundAsked("o-1", 1), RefundAsked("o-2", 0))
    for _ in range(4):
        world.clock.tick(60)
        world.run(app)
    assert (3, 1, 2) == tuple(world.types().count(kind) for kind in ("activation.failed", "activation.completed", "model_call.cached"))
    assert (4, 4) == ((found := same(world, app)).turns, found.hits)


def test_a_failure_of_the_provider_is_noted_and_no_divergence(world):
    app = app_of(paying, Model(ModelFailed("503"), "yes"))
    world.story(app, RefundAsked("o-1", 4200))
    world.clock.tick(60)
    world.run(app)
    assert "activation.completed" in world.types()
    (noted,) = same(world, app).notes
    assert noted.startswith("version 2: ModelFailed at step 1 came from outside the code")


def test_a_failure_of_the_provider_that_the_agent_handled_is_the_same(world):
    async def falling_back(ctx: ActivationContext[Account], asked: RefundAsked) -> Any:
        try:
            return (await ctx.call_model("first")).text
        except ModelFailed:
            return (await ctx.call_model("second")).text

    app = app_of(falling_back, Model(ModelFailed("503"), "yes"))
    world.story(app, RefundAsked("o-1", 4200))
    assert (1, 1) == (world.types().count("model_call.cached"), len(same(world, app).notes))


def test_a_read_that_raised_is_the_same_and_a_voided_one_is_asked_again(world):
    raising = [True, True]

    def flaky() -> str:
        if raising and raising.pop():
            raise OSError("not now")
        return "now"

    async def reading(ctx: ActivationContext[Account], asked: RefundAsked) -> Any:
        try:
            await ctx.run(flaky)
        except OSError:
            ctx.trace("went on")
        await ctx.run_tool(lookup, order_id="o")
        return await ctx.run(flaky)

    app = app_of(reading)
    world.story(app, RefundAsked("o-1", 1))
    world.clock.tick(60)
    world.run(app)
    assert (1, 1) == (world.types().count("activation.failed"), world.types().count("activation.completed"))
    same(world, app)


def test_code_that_waits_for_the_event_loop_fails_in_the_same_way(world):
    async def sleeping(ctx: ActivationContext[Account], asked: RefundAsked) -> Any:
        await ctx.call_model("first")
        await asyncio.sleep(1)

    app = app_of(sleeping)
    world.story(app, RefundAsked("o-1", 1))
    assert 1 == world.types().count("activation.failed")
    same(world, app)


def test_an_outcome_that_came_while_the_turn_ran_was_not_seen_by_it(world):
    async def racing(ctx: ActivationContext[Account], asked: RefundAsked) -> Any:
        if not ctx.is_resume:
            ctx.act(refund, order_id="a", cents=1)
            ctx.act(refund, order_id="b", cents=2)
            return Suspend(wait="any", timeout=timedelta(seconds=9))
        await ctx.call_model(f"seen {[r.status for r in ctx.resume_results]}")
        open_waits = [wait for wait in ctx._activation.waits if ctx.outcome(wait) is None]
        return Suspend(timeout=timedelta(seconds=9)) if open_waits else "all in"

    app = app_of(racing)
    world.send(app, RefundAsked("o-1", 1))
    world.run(app, effector=False)
    world.clock.tick(10)

    def arrive(name: str, stream: str) -> None:
        if name == "model.answered" and "intent.settled" not in world.types():
            world_effects(world, app)

    world.run(app, effector=False, boundary=arrive)
    world.run(app)
    world.clock.tick(60)
    world.run(app)
    kinds = world.types()
    assert kinds.index("timer.fired") < kinds.index("intent.settled") < kinds.index("model_call.cached")
    same(world, app)


def world_effects(world: World, app: Any) -> None:
    """An effector's whole run, in a thread of its own, while the turn is waiting for its answer."""
    thread = threading.Thread(target=world.run, args=(app,), kwargs={"worker": False})
    thread.start()
    thread.join()


def test_all_streams_are_replayed_and_summed_up(world):
    app = app_of(paying)
    for key in ("a", "b", "c"):
        world.story(app, RefundAsked(key, 1), key=key)
    summary, seen = Summary(), []
    for found in replay_all(world.log, app, progress=lambda each: seen.append(each.stream)):
        summary.add(found)
    assert (["accounts-a", "accounts-b", "accounts-c"], 3, 6, 0) == (seen, summary.same, summary.turns, summary.exit_code)
    assert [] == list(replay_all(world.log, app, category="others"))
