"""S-2.4: what an input does that arrives while an activation of its key is suspended. None is ever lost, whatever the policy."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from intentlog.agents import Complete, facts
from intentlog.agents.errors import ActivationCancelled, DefinitionError, EffectFailed
from intentlog.agents.run import WHILE_SUSPENDED, RunState, next_attention
from intentlog.replay import Verdict, replay_all
from intentlog.replay.story import story
from tests.agents.world import STREAM, Asked, Ctx, Paid, World, told, waiting

MINUTE = timedelta(minutes=1)


def not_the_same(world: World) -> list[str]:
    return [str(each) for each in replay_all(world.log, world.app) if each.verdict is not Verdict.SAME]


async def sleeper(ctx: Ctx, asked: Any) -> object:
    """Sleeps for as many seconds as it is told, or answers at once."""
    try:
        if isinstance(asked, list):
            await ctx.sleep(timedelta(seconds=asked[0]))
        return asked
    except ActivationCancelled:
        await ctx.perform("push", text="cleaned up")
        raise


def ends(world: World, stream: str = STREAM) -> list[tuple[int, Any, bool]]:
    return [(fact.seq, fact.output, fact.cancelled) for fact in world.facts(facts.Completed, stream)]


def test_by_default_inputs_wait_in_line():
    with World(sleeper) as world:
        world.send([60])
        world.run()
        world.send("second")
        world.run()
        assert [] == ends(world)
        world.later(60)
        assert [(0, [60], False), (1, "second", False)] == ends(world)


def test_a_newer_input_interrupts():
    with World(sleeper, while_suspended="interrupt") as world:
        world.send([60])
        world.run()
        world.send("second", id="newer")
        world.run()
        assert [(0, None, True), (1, "second", False)] == ends(world)
        assert [(0, "a newer input", "newer")] == [(fact.seq, fact.by, fact.reason) for fact in world.facts(facts.CancelRequested)]
        assert [("push", "cleaned up")] == world.hands.calls
        assert [] == not_the_same(world)


def test_each_of_many_inputs_interrupts_the_one_before():
    with World(sleeper, while_suspended="interrupt") as world:
        for _ in range(4):
            world.send([60])
        world.run()
        assert [(0, None, True), (1, None, True), (2, None, True)] == ends(world)
        world.later(60)
        assert (3, [60], False) == ends(world)[-1]


@pytest.mark.parametrize("boundary", ["turn.decided", "turn.appended", "attempt.recorded", "settled"])
def test_an_interruption_survives_a_crash(boundary):
    with World(sleeper, while_suspended="interrupt") as world:
        world.send([60])
        world.run()
        world.send("second")
        world.run(crash=boundary)
        world.run()
        world.later(1)
        assert [True, False] == [cancelled for _, _, cancelled in ends(world)]
        assert 1 == len(world.facts(facts.CancelRequested))
        assert [] == not_the_same(world)


def test_an_explicit_agent_is_told_of_the_interruption():
    async def code(ctx: Ctx) -> object:
        if ctx.is_resume:
            return Complete(f"cancelled: {ctx.was_cancelled}")
        return "at once" if ctx.input == "now" else waiting()

    with World(code, while_suspended="interrupt") as world:
        world.send("later")
        world.run()
        world.send("now")
        world.run()
        assert ["cancelled: True", "at once"] == world.outputs()


def test_an_input_runs_beside_a_suspended_one():
    with World(sleeper, while_suspended="concurrent") as world:
        world.send([60])
        world.send([30])
        world.send("third")
        world.run()
        assert [(2, "third", False)] == ends(world)
        world.later(30)
        world.later(30)
        assert [(2, "third", False), (1, [30], False), (0, [60], False)] == ends(world)
        assert [] == not_the_same(world)


def test_concurrent_activations_keep_their_journals_and_waits_apart():
    async def code(ctx: Ctx, order: str) -> object:
        answer = (await ctx.call_model(f"what of {order}?")).text
        receipt = await ctx.perform("pay", order=order)
        return [order, answer, receipt, (await ctx.call_model(f"and now of {order}?")).text]

    with World(code, while_suspended="concurrent") as world:
        world.model.answers = [lambda request: request.messages[0]["content"].upper()]
        for order in ("a", "b", "c"):
            world.send(order)
        world.run()
        assert [[o, f"WHAT OF {o.upper()}?", f"re_{o}", f"AND NOW OF {o.upper()}?"] for o in "abc"] == sorted(world.outputs())
        assert 6 == len(world.model.asked)
        assert [] == not_the_same(world)


def test_what_others_emit_meanwhile_is_in_the_state_when_it_goes_on():
    from tests.agents.world import Account

    async def code(ctx: Ctx, order: Asked) -> object:
        before = ctx.state.orders
        ctx.emit(order)
        if order.cents:
            await ctx.sleep(timedelta(seconds=order.cents))
            ctx.emit(Paid(order.order))
            await ctx.sleep(timedelta(seconds=1))
        return [before, ctx.state.orders, ctx.state.receipts]

    with World(code, state=Account, while_suspended="concurrent") as world:
        world.send(Asked("slow", 60))
        world.send(Asked("mid", 30))
        world.send(Asked("quick"))
        world.run()
        world.later(30)
        world.later(1)
        world.later(40)
        world.later(1)
        quick, mid, slow = world.outputs()
        assert [("slow", "mid"), ("slow", "mid", "quick"), ()] == quick
        assert [("slow",), ("slow", "mid", "quick"), ("mid",)] == mid
        assert [(), ("slow", "mid", "quick"), ("mid", "slow")] == slow
        assert ("mid", "slow") == world.fold().state.receipts
        assert [] == not_the_same(world)


def test_two_activations_that_wait_for_one_business_key_both_get_its_outcome():
    async def code(ctx: Ctx) -> object:
        return await ctx.perform("push", text="x", key="once")

    with World(code, while_suspended="concurrent") as world:
        world.send()
        world.send()
        world.run()
        assert (["X", "X"], [("push", "x")]) == (world.outputs(), world.hands.calls)
        assert [] == not_the_same(world)


def test_a_signal_that_one_activation_left_wakes_the_next_that_waits_for_it():
    async def code(ctx: Ctx, patience: int) -> object:
        try:
            return await ctx.signal("go", timeout=timedelta(seconds=patience))
        except EffectFailed:
            return "gave up"

    with World(code, while_suspended="concurrent") as world:
        world.send(10)
        world.send(60)
        world.run()
        world.clock.tick(10)
        # The deadline of the first is recorded before the signal, which only the second can take.
        world.run()
        world.append(facts.SignalReceived("s-1", "go", "now"))
        world.run()
        assert ["gave up", "now"] == world.outputs()
        assert [] == not_the_same(world)


def test_a_failed_turn_holds_back_the_inputs_behind_it_and_no_timer():
    async def code(ctx: Ctx, asked: Any) -> object:
        if asked == "fails":
            await ctx.run(world.hands.next, "well")
            raise RuntimeError("not yet") if len(world.failures()) < 2 else ValueError("never")
        return await sleeper(ctx, asked)

    with World(code, while_suspended="concurrent") as world:
        world.send([1])
        world.send("fails")
        world.send("third")
        world.run()
        assert [] == ends(world)
        world.later(1)
        world.later(10)
        assert [(2, "third", False), (0, [1], False)] == sorted(ends(world), reverse=True)[:2]
        assert [1] == [activation.seq for activation in world.fold().run.parked]


def test_a_policy_may_change_under_suspended_activations():
    with World(sleeper, while_suspended="concurrent") as world:
        world.send([60])
        world.send([30])
        world.run()
        world.deploy(sleeper)
        world.later(30)
        assert [] == ends(world)
        world.later(30)
        assert [(0, [60], False), (1, [30], False)] == ends(world)
        assert [] == not_the_same(world)


def test_an_unknown_policy_is_refused():
    with pytest.raises(DefinitionError, match="while_suspended must be one of queue, interrupt, concurrent, not 'drop'"):
        World(sleeper, while_suspended="drop")


def test_nothing_in_line_needs_no_attention():
    assert [None] * 3 == [next_attention(RunState(while_suspended=policy)) for policy in WHILE_SUSPENDED]


def test_a_late_outcome_is_kept_and_told_to_be_late():
    async def code(ctx: Ctx) -> object:
        place, _ = await ctx.first(ctx.perform("fragile", what="slow"), ctx.sleep(MINUTE))
        await ctx.sleep(MINUTE)
        return place

    with World(code) as world:
        world.send()
        world.run(effector=False)
        intent = world.facts(facts.IntentStaged)[0].intent_id
        world.append(facts.IntentAttempted(intent, 1, "e", 1))
        world.later(60, effector=False)
        world.append(facts.IntentSettled(intent, "OK", "too late"))
        world.later(60, effector=False)
        assert ([1], (intent,)) == (world.outputs(), world.fold().run.late)
        assert ["late"] == [line.summary.split()[-1] for line in story(world.log, STREAM) if line.name == "IntentSettled"]
        assert [] == not_the_same(world)


def test_an_outcome_that_a_gather_took_is_not_late():
    async def code(ctx: Ctx) -> object:
        return await ctx.gather(ctx.perform("push", text="x"), ctx.perform("push", text="y"))

    with World(code) as world:
        world.send()
        world.run(effector=False)
        for staged in world.facts(facts.IntentStaged):
            world.append(facts.IntentSettled(staged.intent_id, "OK", staged.args["text"]))
        world.run(effector=False)
        assert ([["x", "y"]], ()) == (world.outputs(), world.fold().run.late)


def test_a_told_outcome_reads_as_before():
    async def code(ctx: Ctx) -> object:
        if ctx.is_resume:
            return told(ctx).value
        ctx.act("push", text="x")
        return waiting()

    with World(code, while_suspended="concurrent") as world:
        world.send()
        world.send()
        world.run()
        assert ["X", "X"] == world.outputs()
        assert [] == not_the_same(world)
