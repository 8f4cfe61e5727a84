"""Budgets of tokens and money: what a call costs is recorded with it, and a limit loses no paid answer and no input."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from intentlog.agents import Budget, ModelResponse, Price, Spent, Usage, facts
from intentlog.agents.budgets import amount
from intentlog.agents.dead_letters import redrive
from intentlog.agents.errors import BudgetExceeded, DefinitionError
from intentlog.replay import Verdict, replay_all
from tests.agents.world import STREAM, Ctx, World, waiting

PRICES = {"model-x": Price(input="2.50", output=10)}
#: What one answer of the scripted model costs: 7 tokens in, 3 out.
EACH = Decimal("0.0000475")


def not_the_same(world: World) -> list[str]:
    return [str(each) for each in replay_all(world.log, world.app) if each.verdict is not Verdict.SAME]


def asking(times: int, *, linear: bool = True):
    """Asks so many times, and says what it had spent before each."""

    async def code(ctx: Ctx) -> object:
        spent = []
        for number in range(times):
            spent.append(ctx.spent.tokens)
            await ctx.call_model(f"{ctx.seq} {number}")
        return [*spent, ctx.spent.tokens]

    return code


def priced(world: World, **options: Any) -> None:
    world.app.prices.update(PRICES)


def test_what_calls_use_up_is_told_and_recorded():
    async def code(ctx: Ctx) -> object:
        before = ctx.spent
        await ctx.call_model("one")
        await ctx.sleep(timedelta(seconds=1))
        await ctx.call_model("two")
        return [before.tokens, ctx.spent.tokens, str(ctx.spent.cost)]

    with World(code) as world:
        priced(world)
        world.send()
        world.run()
        world.later(1)
        assert [[0, 20, "0.000095"]] == world.outputs()
        assert Spent(20, int(2 * EACH * 10**12)) == world.fold().run.spent
        world.app.prices.clear()
        assert [] == not_the_same(world)


def test_the_call_that_reaches_the_limit_is_kept_and_the_next_one_is_refused():
    with World(asking(5), budget=Budget(tokens=15)) as world:
        world.send()
        world.run()
        assert (2, 2) == (len(world.model.asked), len(world.facts(facts.ModelCallCached)))
        ((failure,), (parked,)) = world.failures(), world.fold().run.parked
        assert ("BudgetExceeded", 0) == (failure.type, parked.seq)
        assert "activation 0, step 2 (model call): the activation has spent 20 tokens of 15 tokens" in failure.message
        assert [] == not_the_same(world)


def test_an_input_parked_for_its_budget_goes_on_with_what_was_paid():
    with World(asking(3), budget=Budget(tokens=15)) as world:
        world.send()
        world.run()
        world.deploy(asking(3), budget=Budget(tokens=100))
        redrive(world.log, STREAM, by="me", reason="a larger budget")
        world.run()
        assert ([[0, 10, 20, 30]], 3) == (world.outputs(), len(world.model.asked))


def test_later_inputs_have_a_budget_of_their_own():
    with World(asking(2), budget=Budget(tokens=15)) as world:
        world.send()
        world.send()
        world.run()
        assert [[0, 10, 20], [0, 10, 20]] == world.outputs()


def test_a_key_has_one_budget_for_its_whole_life():
    with World(asking(2), budget=Budget(tokens=35, per="key")) as world:
        for _ in range(3):
            world.send()
        world.send(key="other")
        world.run()
        assert [[0, 10, 20], [20, 30, 40]] == world.outputs()
        assert [[0, 10, 20]] == world.outputs("a-other")
        assert ["BudgetExceeded"] == [failure.type for failure in world.failures()]
        assert "the key has spent 40 tokens of 35 tokens" in world.failures()[0].message
        assert [] == not_the_same(world)


def test_money_is_a_limit_too():
    with World(asking(3)) as unlimited:
        assert () == tuple(unlimited.app.prices)
    with World(asking(3), budget=Budget(cost=EACH * 2)) as world:
        priced(world)
        world.send()
        world.run()
        assert 2 == len(world.model.asked)
        assert "has spent 20 tokens for 0.000095 of 0.000095" in world.failures()[0].message


def test_a_budget_in_money_needs_a_price_before_the_first_call_is_paid():
    with World(asking(1), budget=Budget(cost=1)) as world:
        world.send()
        world.run()
        assert [] == world.model.asked
        assert [("DefinitionError", True)] == [(each.type, "no price of 'model-x'" in each.message) for each in world.failures()]


async def careful(ctx: Ctx) -> object:
    """Asks a person for more, once, and ends without when it gets none."""
    answers: list[str] = []
    while len(answers) < 4:
        try:
            answers.append((await ctx.call_model(f"{len(answers)}")).text)
        except BudgetExceeded as exceeded:
            if not await ctx.approval(f"{exceeded.spent.tokens} tokens are spent. More?"):
                return [*answers, str(exceeded)]
            ctx.raise_budget(tokens=100)
    return answers


def decide(world: World, approved: bool) -> None:
    (asked,) = world.facts(facts.ApprovalRequested)
    world.append(facts.ApprovalDecided(asked.approval_id, asked.digest, approved, "me"))
    world.run()


def test_an_agent_may_ask_for_more_and_go_on():
    with World(careful, budget=Budget(tokens=20)) as world:
        world.send()
        world.run()
        assert (2, 1) == (len(world.model.asked), len(world.facts(facts.BudgetReached)))
        decide(world, True)
        assert ([["yes"] * 4], 4) == (world.outputs(), len(world.model.asked))
        assert [(100, "activation")] == [(fact.tokens, fact.per) for fact in world.facts(facts.BudgetRaised)]
        assert [] == not_the_same(world)


def test_an_agent_may_end_without():
    with World(careful, budget=Budget(tokens=20)) as world:
        world.send()
        world.run()
        decide(world, False)
        ((first, second, text),) = world.outputs()
        assert ("yes", "yes", True) == (first, second, "the activation has spent 20 tokens of 20 tokens" in text)
        assert [] == not_the_same(world)


def test_a_refusal_stays_one_whatever_the_budget_is_by_then():
    with World(careful, budget=Budget(tokens=20)) as world:
        world.send()
        world.run()
        world.deploy(careful, budget=Budget(tokens=1000))
        decide(world, False)
        assert 2 == len(world.model.asked)
        assert "has spent 20 tokens of 20 tokens" in world.outputs()[0][2]


@pytest.mark.parametrize("boundary", ["model.answered", "model.journalled", "turn.decided", "turn.appended"])
def test_a_crash_moves_no_limit(boundary):
    with World(careful, budget=Budget(tokens=20)) as world:
        world.send()
        world.run(crash=boundary)
        world.run()
        decide(world, True)
        assert [["yes"] * 4] == world.outputs()
        assert [(20, 20)] == [(fact.tokens, fact.limit_tokens) for fact in world.facts(facts.BudgetReached)]
        assert [] == not_the_same(world)


def test_a_raise_for_a_key_is_for_all_its_later_activations():
    async def code(ctx: Ctx) -> object:
        if ctx.input == "raise":
            ctx.raise_budget(tokens=15)
        return (await ctx.call_model(f"{ctx.seq}")).text

    with World(code, budget=Budget(tokens=10, per="key")) as world:
        for what in ("ask", "raise", "ask", "ask"):
            world.send(what)
        world.run()
        assert (["yes"] * 3, 1) == (world.outputs(), len(world.failures()))
        assert [] == not_the_same(world)


def test_explicit_agents_have_budgets_over_all_their_turns():
    async def code(ctx: Ctx) -> object:
        await ctx.call_model(f"{ctx.step_index}")
        return waiting(timeout=timedelta(seconds=1)) if ctx.step_index < 9 else "never"

    with World(code, budget=Budget(tokens=25)) as world:
        world.send()
        world.run()
        for _ in range(4):
            world.later(1)
        assert (3, ["BudgetExceeded"]) == (len(world.model.asked), [each.type for each in world.failures()])
        assert [] == not_the_same(world)


def test_calls_beside_each_other_stop_at_the_limit():
    async def code(ctx: Ctx) -> object:
        ends = await ctx.gather(*[ctx.call_model(f"{number}") for number in range(4)], return_exceptions=True)
        return [type(end).__name__ for end in ends]

    with World(code, budget=Budget(tokens=20)) as world:
        world.send()
        world.run()
        assert [["ModelResponse", "ModelResponse", "BudgetExceeded", "BudgetExceeded"]] == world.outputs()
        assert [] == not_the_same(world)


def test_activations_beside_each_other_share_a_key_s_budget():
    async def code(ctx: Ctx) -> object:
        await ctx.call_model(f"{ctx.seq} first")
        early = ctx.spent.tokens
        await ctx.sleep(timedelta(seconds=1))
        return [early, ctx.spent.tokens]

    with World(code, budget=Budget(tokens=1000, per="key"), while_suspended="concurrent") as world:
        world.send()
        world.send()
        world.run()
        world.later(1)
        assert [[10, 20], [20, 20]] == world.outputs()
        assert [] == not_the_same(world)


def test_a_changed_raise_is_a_divergence():
    def code(more: int):
        async def inner(ctx: Ctx) -> object:
            ctx.raise_budget(tokens=more)
            await ctx.sleep(timedelta(seconds=1))
            return "done"

        return inner

    with World(code(5), budget=Budget(tokens=10)) as world:
        world.send()
        world.run()
        world.deploy(code(6), budget=Budget(tokens=10))
        world.later(1)
        assert [("StepDrift", True)] == [(each.type, "raised by 5 tokens" in each.message) for each in world.failures()]


@pytest.mark.parametrize(
    "make, text",
    [
        (Budget, "limits nothing"),
        (lambda: Budget(tokens=-1), "whole number of zero or more, not -1"),
        (lambda: Budget(tokens=1, per="day"), "activation, key, not 'day'"),
        (lambda: Budget(cost="a lot"), "not 'a lot'"),
        (lambda: Price(input=-1, output=0), r"Price\(input=…\)"),
        (lambda: Price(input="0.0000001", output=0), "at most six decimals"),
    ],
)
def test_what_is_no_budget_and_no_price_is_refused(make, text):
    with pytest.raises(DefinitionError, match=text):
        make()


def test_an_answer_is_priced_by_the_model_asked_for_or_by_the_one_that_answered():
    with World(asking(1)) as world:
        world.app.prices["model-x-2025"] = Price(input=1, output=1)
        world.model.answers = [ModelResponse("yes", "model-x-2025", usage=Usage(2, 2))]
        world.send()
        world.run()
        assert [4 * 10**6] == [fact.cost for fact in world.facts(facts.ModelCallCached)]


@pytest.mark.parametrize("picos, shown", [(0, "0"), (10**12, "1"), (100 * 10**12, "100"), (1, "1E-12"), (1_500_000_000_000, "1.5")])
def test_money_is_shown_in_whole_units(picos, shown):
    assert shown == str(amount(picos))
