"""S-2: inputs are durable, accepted once, and handled in order."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from intentlog.agents import Input, facts
from intentlog.agents.errors import InputRefused
from intentlog.agents.sending import deliver, typed_input
from intentlog.eventlog.errors import LogUnavailable
from intentlog.eventlog.opening import open_log
from tests.agents.world import STREAM, Asked, Ctx, World, waiting


async def echo(ctx: Ctx) -> object:
    return ctx.input


def test_a_receipt_is_given_when_the_input_stands_on_its_stream(shared_url):
    """S-2.1"""
    with World(echo, url=shared_url) as world:
        receipt = world.send("hello")
        other = open_log(shared_url)
        with contextlib.closing(other):
            (stored,) = other.read(STREAM)
        assert (receipt.version, receipt.position) == (stored.version, stored.position)


def test_without_the_store_there_is_no_receipt():
    """S-2.1"""
    world = World(echo)
    world.log.close()
    with pytest.raises(LogUnavailable):
        world.send("hello")


def test_the_same_input_twice_is_one_activation_and_one_receipt():
    """S-2.2"""
    with World(echo) as world:
        first = world.send("hello", id="x")
        again = world.send("hello", id="x")
        world.run()
        late = world.send("hello", id="x")
        world.run()
        assert (False, True, True) == (first.duplicate, again.duplicate, late.duplicate)
        assert {(first.version, first.position)} == {(each.version, each.position) for each in (first, again, late)}
        assert ["hello"] == world.outputs()


def test_the_same_id_with_another_payload_is_an_error_and_changes_nothing():
    """S-2.2"""
    with World(echo) as world:
        world.send("hello", id="x")
        with pytest.raises(InputRefused, match="'x' was used on a-k before with another payload"):
            world.send("hullo", id="x")
        world.run()
        assert ["hello"] == world.outputs()


def test_a_refused_input_does_not_take_the_ones_beside_it_down():
    """S-2.2"""
    with World(echo) as world:
        world.send(1, id="x")
        given = [Input("a", "k", 2, "x"), Input("a", "k", 3, "y"), Input("a", "l", 4, "x")]
        receipts = deliver(world.log, [typed_input(world.app, each) for each in given], [each.id for each in given])
        world.run()
        assert [True, False, False] == [isinstance(each, InputRefused) for each in receipts]
        assert [1, 3] == world.outputs()
        assert [4] == world.outputs("a-l")


def test_two_identical_payloads_under_two_ids_are_two_inputs():
    """S-2.2"""
    with World(echo) as world:
        world.send("hello", id="x")
        world.send("hello", id="y")
        world.run()
        assert ["hello", "hello"] == world.outputs()


@pytest.mark.parametrize("input_id", ["", " ", "x" * 513, 7], ids=ascii)
def test_an_input_without_a_usable_id_is_refused(input_id):
    """S-2.2"""
    with World(echo) as world, pytest.raises(InputRefused, match="Invalid input id"):
        typed_input(world.app, Input("a", "k", 1, input_id))


def test_inputs_of_one_key_are_handled_in_the_order_they_were_recorded():
    """S-2.3"""

    async def code(ctx: Ctx) -> object:
        await ctx.call_model(f"{ctx.input}")
        return ctx.input

    with World(code) as world:
        for number in range(30):
            world.send(number, key="k" if number % 3 else "l")
        world.run()
        assert [n for n in range(30) if n % 3] == world.outputs()
        assert [n for n in range(30) if not n % 3] == world.outputs("a-l")


def test_one_key_is_never_in_two_turns_at_once():
    """S-2.3"""
    inside = {"now": 0, "most": 0}

    async def slow(request: object) -> object:
        inside["now"] += 1
        inside["most"] = max(inside["most"], inside["now"])
        await asyncio.sleep(0.005)
        inside["now"] -= 1
        raise ValueError("no")

    class Slow:
        provider, model = "p", "m"

        async def complete(self, request: object, *, idempotency_key: str) -> object:
            return await slow(request)

    async def code(ctx: Ctx) -> str:
        with contextlib.suppress(ValueError):
            await ctx.call_model("hi")
        return "done"

    with World(code, model=Slow()) as world:
        for number in range(5):
            world.send(number)
        world.run()
        assert 1 == inside["most"]
        assert 5 == len(world.outputs())


def test_while_an_activation_is_suspended_new_inputs_wait_and_none_is_lost():
    """S-2.4"""

    async def code(ctx: Ctx, asked: Asked) -> object:
        if not ctx.is_resume:
            ctx.act("pay", order=asked.order)
            return waiting()
        assert ctx.resume_result is not None
        return ctx.resume_result.value

    with World(code) as world:
        world.send(Asked("o-1"))
        world.run(effector=False)
        world.send(Asked("o-2"))
        world.send(Asked("o-3"))
        world.run(effector=False)
        assert [0] == [fact.seq for fact in world.facts(facts.Suspended)]
        assert [0, 1, 2] == world.fold().run.line
        world.run()
        assert ["re_o-1", "re_o-2", "re_o-3"] == world.outputs()


def test_an_input_that_arrives_during_a_turn_is_handled_after_it():
    """S-2.4"""
    world: World

    def meanwhile(request: object) -> str:
        if len(world.model.asked) == 1:
            world.send("second")
        return "yes"

    async def code(ctx: Ctx) -> object:
        await ctx.call_model("hi")
        return ctx.input

    with World(code) as world:
        world.model.answers = [meanwhile]
        world.send("first")
        world.run()
        assert ["first", "second"] == world.outputs()
        assert 2 == len(world.model.asked)
