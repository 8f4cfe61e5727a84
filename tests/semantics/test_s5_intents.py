"""S-5: effects are staged, named and bound to what they say."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest

from intentlog.agents import Tool, facts, tool
from intentlog.agents.context import ActivationContext
from intentlog.agents.errors import IntentConflict, IntentDrift
from intentlog.agents.intents import EXPIRED, NAMESPACE, OK
from tests.agents.world import STREAM, Ctx, World, told, waiting


def acting(*args: Any, **options: Any):
    async def code(ctx: Ctx) -> object:
        if ctx.is_resume:
            return [told(ctx).status]
        ctx.act(*args, **options)
        return waiting()

    return code


def test_act_stages_and_nothing_has_happened_when_the_turn_ends():
    """S-5.1"""
    with World(acting("pay", order="o-1", cents=3)) as world:
        world.send()
        world.run(effector=False)
        (staged,) = world.facts(facts.IntentStaged)
        assert ("pay", {"order": "o-1", "cents": 3}, []) == (staged.tool, staged.args, world.hands.calls)


@pytest.mark.parametrize(
    "args, options, said",
    [
        (("pay",), {"order": 1}, "order"),
        (("pay",), {"order": "o", "cents": "3"}, "cents"),
        (("pay",), {}, "order"),
        (("pay",), {"order": "o", "amount": 1}, "no parameter 'amount'"),
        (("pay", "{bad json"), {}, "refuses its arguments"),
        (("pay", "[1]"), {}, "must be a JSON object"),
        (("pay", '{"order": "o", "cents": 1.5}'), {}, "cents"),
        (("pay",), {"order": "o", "intent": {"intent_id": "mine"}}, "'intent' is injected"),
        (("nothing",), {}, "Unknown tool 'nothing'"),
        (("read",), {"what": "x"}, "read-only"),
    ],
)
def test_what_would_be_refused_later_is_refused_when_it_is_staged(args, options, said):
    """S-5.1"""
    with World(acting(*args, **options)) as world:
        world.send()
        world.run()
        (failure,) = world.failures()
        assert said in failure.message
        assert "intent.staged" not in world.types()


def test_a_tool_the_app_does_not_know_cannot_be_staged_by_handing_it_over():
    """S-5.1"""

    def stranger() -> Tool:
        @tool(side_effect=True)
        async def elsewhere(x: int) -> None: ...

        return elsewhere

    with World(acting(stranger(), x=1)) as world:
        world.send()
        world.run()
        (failure,) = world.failures()
        assert "UnknownTool" == failure.type
        assert "App(tools=[…])" in failure.message


def test_an_intents_id_is_the_uuid5_of_stream_seq_and_step():
    """S-5.2"""

    async def code(ctx: Ctx) -> object:
        await ctx.call_model("hi")
        return ctx.act("pay", order="o-1")

    with World(code) as world:
        world.send()
        world.send()
        world.run()
        assert [str(uuid.uuid5(NAMESPACE, f"{STREAM}|{seq}|1")) for seq in (0, 1)] == world.outputs()


def test_an_intents_id_and_digest_are_the_same_in_a_rerun():
    """S-5.2"""
    seen: list[Any] = []

    async def code(ctx: Ctx) -> object:
        await ctx.call_model("hi")
        seen.append((ctx.act("pay", order="o-1"), ctx.staged[0].digest))  # type: ignore[attr-defined]
        return "done"

    with World(code) as world:
        world.send()
        world.run(crash="turn.decided")
        world.run()
        assert 2 == len(seen)
        assert seen[0] == seen[1]
        assert [("pay", "o-1")] == world.hands.calls


def context(world: World, step: int = 0) -> ActivationContext[Any]:
    """A turn of the stream's first activation as a re-run would begin it, over everything that is recorded now."""
    state = world.fold()
    activation = next(iter(state.run.open.values()))
    activation.step = step
    return ActivationContext(world.app.definitions["a"], state.run, activation, None, STREAM, world.clock(), state.version)


def test_a_rerun_that_mints_the_same_id_with_other_content_is_drift_and_stages_nothing():
    """S-5.2"""
    with World(acting("pay", order="o-1", cents=4200)) as world:
        world.send()
        world.run(effector=False)
        again = context(world)
        assert world.facts(facts.IntentStaged)[0].intent_id == again.act("pay", order="o-1", cents=4200)
        again = context(world)
        with pytest.raises(IntentDrift, match=r"(?s)recorded  4200.*decided   4300.*first difference: cents"):
            again.act("pay", order="o-1", cents=4300)
        assert [] == again.staged
        assert isinstance(again.fault, IntentDrift)


def test_another_tool_at_the_same_step_is_drift_too():
    """S-5.2"""
    with World(acting("push", text="x")) as world:
        world.send()
        world.run(effector=False)
        with pytest.raises(IntentDrift):
            context(world).act("fragile", what="x")


def test_a_business_key_names_the_effect_within_its_stream_and_tool():
    """S-5.3"""

    async def code(ctx: Ctx) -> object:
        one = ctx.act("push", text="x", key="notify:42")
        return [one, ctx.act("push", text="x", key="notify:42"), ctx.act("fragile", what="x", key="notify:42")]

    with World(code) as world:
        world.send()
        world.send(key="l")
        world.run()
        ((one, again, other),) = world.outputs()
        ((elsewhere, *_),) = world.outputs("a-l")
        assert str(uuid.uuid5(NAMESPACE, f"{STREAM}|push|notify:42")) == one == again
        assert 3 == len({one, other, elsewhere})
        assert 2 == len(world.facts(facts.IntentStaged))
        assert 4 == len(world.hands.calls)


def test_the_same_act_in_a_later_activation_stages_nothing_and_gets_the_recorded_outcome():
    """S-5.3"""

    async def code(ctx: Ctx) -> object:
        if ctx.is_resume:
            return [told(ctx).value, told(ctx).intent_id]
        ctx.act("push", text="hello", key="greet")
        return waiting()

    with World(code) as world:
        world.send()
        world.run()
        world.send()
        world.run()
        first, second = world.outputs()
        assert first == second
        assert [("push", "hello")] == world.hands.calls
        assert 1 == len(world.facts(facts.IntentStaged))


def test_a_business_key_with_other_content_is_a_conflict_in_the_same_turn_and_in_any_later_one():
    """S-5.3"""

    async def code(ctx: Ctx) -> object:
        ctx.act("push", text=ctx.input, key="greet")
        if ctx.input == "both":
            ctx.act("push", text="other", key="greet")
        return "done"

    with World(code) as world:
        for text in ("both", "hello", "hullo"):
            world.send(text)
        world.run()
        assert [IntentConflict.__name__] * 2 == [failure.type for failure in world.failures()]
        assert "first difference: text" in world.failures()[1].message
        assert [("push", "hello")] == world.hands.calls


@pytest.mark.parametrize("key", ["", " ", 7], ids=repr)
def test_a_blank_business_key_is_refused_and_never_read_as_none(key):
    """S-5.3"""
    with World(acting("push", text="x", key=key)) as world:
        world.send()
        world.run()
        assert ["Invalid business key"] == [failure.message[:20] for failure in world.failures()]
        assert [] == world.hands.calls


def test_an_intent_of_a_turn_that_was_not_committed_is_never_carried_out():
    """S-5.4"""

    async def code(ctx: Ctx) -> object:
        ctx.act("pay", order="o-1")
        await ctx.call_model("hi")
        raise RuntimeError("no")

    with World(code) as world:
        world.send()
        world.run()
        assert [] == world.hands.calls


@pytest.mark.parametrize("options", [{"ttl_ms": 0}, {"ttl": timedelta(0)}, {"ttl": timedelta(seconds=-1)}, {"ttl_ms": -5}], ids=repr)
def test_an_expiry_of_zero_or_less_reads_as_expired(options):
    """S-5.5"""
    with World(acting("pay", order="o-1", **options)) as world:
        world.send()
        world.run()
        assert ([[EXPIRED]], []) == (world.outputs(), world.hands.calls)
        assert [0] == [staged.expires_at for staged in world.facts(facts.IntentStaged)]


def test_an_intent_that_names_no_expiry_gets_its_agents():
    """S-5.5"""
    with World(acting("pay", order="o-1"), intent_ttl=timedelta(minutes=7)) as world:
        world.send()
        begun = world.clock()
        world.run()
        assert [begun + 7 * 60_000_000] == [staged.expires_at for staged in world.facts(facts.IntentStaged)]
        assert [[OK]] == world.outputs()
