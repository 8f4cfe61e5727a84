"""``perform`` and its outcomes, alone and beside each other (S-7.6)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from intentlog.agents import facts
from intentlog.agents.errors import EffectErrored, EffectFailed, EffectTimedOut
from intentlog.agents.intents import attempt_event_id
from intentlog.eventlog.versions import ANY
from tests.agents.world import Ctx
from tests.linear.common import linear, signal

LONG = timedelta(hours=1)


def test_a_performed_effect_gives_its_value_and_is_done_once():
    async def code(ctx: Ctx, given: Any) -> Any:
        first = await ctx.perform("pay", order="o1")
        return first, await ctx.perform("pay", order="o2")

    with linear(code) as world:
        world.send()
        world.run()
        assert [("re_o1", "re_o2")] == world.outputs()
        assert [("pay", "o1"), ("pay", "o2")] == world.hands.calls
        assert 3 == sum(kind.startswith("activation.") for kind in world.types())


def test_a_failed_effect_is_the_same_exception_whenever_it_is_raised():
    met: list[tuple[type, tuple[Any, ...], str]] = []

    async def code(ctx: Ctx, given: Any) -> Any:
        try:
            await ctx.perform("fragile", what="glass")
        except EffectFailed as problem:
            met.append((type(problem), problem.args, str(problem)))
        await ctx.perform("push", text="a")
        return await ctx.perform("push", text="b")

    with linear(code) as world:
        world.hands.script = [KeyError("broken")]
        world.send()
        world.run()
        assert ["B"] == world.outputs()
        assert 3 == len(met)
        assert 1 == len(set(met))
        assert met[0][0] is EffectErrored
        assert "KeyError: 'broken'" in met[0][2]


def test_gathered_effects_come_back_in_the_order_they_were_named():
    async def code(ctx: Ctx, given: Any) -> Any:
        inner = ctx.gather(ctx.perform("push", text="b"), ctx.perform("push", text="c"))
        return await ctx.gather(ctx.perform("push", text="a"), inner, ctx.sleep(timedelta(seconds=1)))

    with linear(code) as world:
        world.send()
        world.run()
        world.later(2)
        assert [["A", ["B", "C"], None]] == world.outputs()


def test_one_that_raises_in_a_gather_does_not_stop_the_others():
    async def code(ctx: Ctx, given: Any) -> Any:
        try:
            await ctx.gather(ctx.perform("fragile", what="x"), ctx.perform("push", text="a"))
        except EffectErrored:
            told = await ctx.gather(ctx.perform("fragile", what="y"), ctx.perform("push", text="b"), return_exceptions=True)
            return [type(each).__name__ for each in told]

    with linear(code) as world:
        world.hands.script = [ValueError("1"), ValueError("2")]
        world.send()
        world.run()
        assert [["EffectErrored", "str"]] == world.outputs()
        assert {("push", "a"), ("push", "b")} <= set(world.hands.calls)


def test_the_loser_of_a_race_that_nobody_began_is_withdrawn_and_never_attempted():
    async def code(ctx: Ctx, given: Any) -> Any:
        place, _ = await ctx.first(ctx.perform("push", text="slow"), ctx.signal("go"))
        return place, await ctx.perform("push", text="after")

    with linear(code) as world:
        world.send()
        world.run(effector=False)
        signal(world, "go")
        world.run(effector=False)
        world.run()
        assert [(1, "AFTER")] == world.outputs()
        assert [("push", "after")] == world.hands.calls
        (withdrawn,) = [fact for fact in world.facts(facts.IntentSettled) if fact.status == "CANCELLED"]
        assert (0, "agent") == (withdrawn.attempts, withdrawn.settled_by)
        assert () == world.fold().run.late


def test_what_loses_in_the_very_turn_that_stages_it_is_never_attempted_either():
    async def code(ctx: Ctx, given: Any) -> Any:
        return (await ctx.first(ctx.perform("push", text="slow"), ctx.signal("go")))[0]

    with linear(code) as world:
        signal(world, "go")
        world.send()
        world.run()
        assert [1] == world.outputs()
        assert [] == world.hands.calls


def test_a_loser_that_was_begun_ends_late():
    async def code(ctx: Ctx, given: Any) -> Any:
        await ctx.first(ctx.perform("pay", order="o"), ctx.signal("go"))
        return await ctx.signal("end")

    with linear(code) as world:
        world.send()
        world.run(crash="attempt.recorded")
        signal(world, "go")
        world.run(effector=False)
        world.run()
        (settled,) = world.facts(facts.IntentSettled)
        assert "UNKNOWN" == settled.status
        assert (settled.intent_id,) == world.fold().run.late
        signal(world, "end", "over", id="s-2")
        world.run()
        assert ["over"] == world.outputs()


def test_an_attempt_at_the_moment_of_the_withdrawal_wins_and_the_turn_is_committed_all_the_same():
    async def code(ctx: Ctx, given: Any) -> Any:
        await ctx.first(ctx.perform("push", text="slow"), ctx.signal("go"))
        await ctx.call_model("while this is asked, the attempt is made")
        return "went on"

    with linear(code) as world:

        def attempted(request: Any) -> str:
            staged = world.facts(facts.IntentStaged)[0]
            event = world.app.codec.stage(facts.IntentAttempted(staged.intent_id, 1, "e", 1), event_id=attempt_event_id(staged.intent_id, 1))
            world.log.append("a-k", [event], ANY)
            return "yes"

        world.model.answers = [attempted]
        world.send()
        world.run(effector=False)
        signal(world, "go")
        world.run(effector=False)
        assert ["went on"] == world.outputs()
        world.run()
        assert ["OK"] == [fact.status for fact in world.facts(facts.IntentSettled)]
        assert [("push", "slow")] == world.hands.calls


def test_what_act_staged_happens_though_nobody_waits_for_it_any_more():
    async def code(ctx: Ctx, given: Any) -> Any:
        intent_id = ctx.act("push", text="told")
        before = ctx.outcome(intent_id)
        place, _ = await ctx.first(ctx.outcome_of(intent_id), ctx.signal("go"))
        return before, place, (await ctx.outcome_of(intent_id)).value

    with linear(code) as world:
        world.send()
        world.run(effector=False)
        signal(world, "go")
        world.run(effector=False)
        world.run()
        assert [(None, 1, "TOLD")] == world.outputs()


def test_two_that_wait_for_one_keyed_effect_do_not_withdraw_it_from_each_other():
    async def code(ctx: Ctx, given: Any) -> Any:
        async def raced() -> Any:
            return await ctx.first(ctx.perform("push", text="one", key="k"), ctx.signal("go"))

        return await ctx.gather(raced(), ctx.perform("push", text="one", key="k"))

    with linear(code) as world:
        world.send()
        world.run(effector=False)
        signal(world, "go")
        world.run(effector=False)
        world.run()
        assert [[(1, None), "ONE"]] == world.outputs()
        assert [("push", "one")] == world.hands.calls


@pytest.mark.parametrize("ends", ["push", "sleep"])
def test_a_timeout_gives_the_value_in_time_and_cancels_what_is_late(ends: str):
    async def code(ctx: Ctx, given: Any) -> Any:
        try:
            return await ctx.timeout(ctx.perform("push", text="a") if ends == "push" else ctx.sleep(LONG), timedelta(seconds=5))
        except EffectTimedOut as problem:
            return str(problem)

    with linear(code) as world:
        world.send()
        world.run()
        world.later(6)
        assert ["A" if ends == "push" else "a-k, activation 0: nothing came within 0:00:05"] == world.outputs()


def test_a_cancelled_step_cleans_up_with_steps_of_its_own_before_the_winner_goes_on():
    order: list[str] = []

    async def held(ctx: Ctx) -> Any:
        try:
            return await ctx.perform("fragile", what="work")
        finally:
            order.append("cleaning")
            await ctx.perform("push", text="release")
            await ctx.gather(ctx.perform("push", text="close"), ctx.sleep(timedelta(seconds=1)))
            order.append("cleaned")

    async def code(ctx: Ctx, given: Any) -> Any:
        order.clear()
        won = await ctx.first(held(ctx), ctx.signal("go"))
        order.append("on")
        return won

    with linear(code) as world:
        world.send()
        world.run(effector=False)
        signal(world, "go", 7)
        world.run(effector=False)
        world.run()
        world.later(2)
        assert [(1, 7)] == world.outputs()
        assert [("push", "release"), ("push", "close")] == world.hands.calls
        assert ["cleaning", "cleaned", "on"] == order


def test_a_clean_up_that_fails_is_not_passed_over():
    async def held(ctx: Ctx) -> Any:
        try:
            await ctx.sleep(LONG)
        finally:
            raise ValueError("cannot let go")

    async def code(ctx: Ctx, given: Any) -> Any:
        try:
            return await ctx.first(held(ctx), ctx.signal("go"))
        except ValueError as problem:
            return str(problem)

    with linear(code) as world:
        signal(world, "go")
        world.send()
        world.run()
        assert ["cannot let go"] == world.outputs()


def test_a_race_ended_by_what_needs_no_waiting_cancels_what_never_began():
    async def code(ctx: Ctx, given: Any) -> Any:
        async def at_once() -> str:
            return "now"

        deep = ctx.gather(ctx.timeout(ctx.signal("go"), LONG), ctx.perform("push", text="x"))
        return await ctx.first(deep, at_once(), ctx.timeout(ctx.perform("push", text="y"), LONG))

    with linear(code) as world:
        world.send()
        world.run()
        assert [(1, "now")] == world.outputs()
        assert [] == world.hands.calls


def test_a_first_of_nothing_and_a_gather_of_no_step_say_so():
    async def nothing(ctx: Ctx, given: Any) -> Any:
        return await ctx.first()

    async def no_step(ctx: Ctx, given: Any) -> Any:
        return await ctx.gather(5)  # type: ignore[arg-type]

    for code, said in ((nothing, "needs at least one step"), (no_step, "only steps can run beside each other, not 5")):
        with linear(code) as world:
            world.send()
            world.run()
            assert said in world.failures()[0].message
