"""Inputs for other keys, replies, and lives that go on: nothing is lost on the way (S-2.2, S-3.2)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from intentlog.agents import facts
from intentlog.agents.errors import ActivationCancelled
from tests.agents.world import Ctx, World
from tests.linear.common import linear, signal


async def parent(ctx: Ctx, given: Any) -> Any:
    if ctx.key != "k":
        return await child(ctx, given)
    try:
        return await ctx.call("a", "child", given)
    except ActivationCancelled as problem:
        return str(problem)


async def child(ctx: Ctx, given: Any) -> Any:
    if isinstance(given, list) and len(given) < 3:
        await ctx.sleep(timedelta(seconds=1))
        return ctx.continue_with([*given, ctx.seq])
    return await ctx.perform("push", text=str(given))


def test_a_call_waits_for_what_the_other_key_ends_with():
    with linear(parent) as world:
        world.send("abc")
        world.run()
        assert ["ABC"] == world.outputs()
        assert ["ABC"] == world.outputs("a-child")


def test_the_reply_comes_from_the_last_of_those_that_continue_the_one_that_was_called():
    with linear(parent) as world:
        world.send([])
        world.run()
        for _ in range(3):
            world.later(2)
        assert ["[0, 1, 2]"] == world.outputs()


def test_a_cancelled_child_is_told_to_its_caller():
    async def code(ctx: Ctx, given: Any) -> Any:
        return await parent(ctx, given) if ctx.key == "k" else await ctx.signal("never")

    with linear(code) as world:
        world.send("x")
        world.run()
        world.append(facts.CancelRequested(0, "ada"), stream="a-child")
        world.run()
        assert ["a-child, input a-k|0|0, was cancelled"] == world.outputs()


def test_an_input_sent_twice_under_one_id_is_one():
    async def code(ctx: Ctx, given: Any) -> Any:
        if ctx.key == "k":
            ctx.send("a", "other", "hello", id="letter")
            ctx.send("a", "other", "hello", id="letter")
            return await ctx.perform("push", text="sent")
        return given

    with linear(code) as world:
        world.send(1)
        world.send(2)
        world.run()
        assert ["SENT", "SENT"] == world.outputs()
        assert ["hello"] == world.outputs("a-other")


@pytest.mark.parametrize("turns", [1, 2])
def test_another_payload_under_an_id_that_was_used_fails_the_turn_at_once(turns: int):
    async def code(ctx: Ctx, given: Any) -> Any:
        if ctx.key == "k":
            for word in ("hello", "bye") if turns == 1 else (given,):
                ctx.send("a", "other", word, id="letter")
        return given

    with linear(code) as world:
        world.send("hello")
        world.send("bye")
        world.run()
        assert (["InputRefused"] * 2 if turns == 1 else ["InputConflict"]) == [failure.type for failure in world.failures()]
        assert ([] if turns == 1 else ["hello"]) == world.outputs("a-other")


def test_an_input_for_the_own_key_is_the_next_in_line():
    async def code(ctx: Ctx, given: Any) -> Any:
        if given:
            ctx.send("a", "k", given - 1)
            await ctx.perform("push", text=str(given))
        return given

    with linear(code) as world:
        world.send(2)
        world.run()
        assert [2, 1, 0] == world.outputs()


def test_going_on_with_fresh_history_loses_no_input_and_no_signal():
    async def code(ctx: Ctx, given: Any) -> Any:
        if given == "queued":
            return "queued"
        told = await ctx.signal("go")
        return ctx.continue_with([*given, told]) if len(given) < 4 else given

    with linear(code) as world:
        world.send([])
        world.run()
        world.send("queued")
        for number in range(3):
            signal(world, "go", number, id=f"s-{number}")
        world.run()
        for number in range(3, 5):
            signal(world, "go", number, id=f"s-{number}")
            world.run()
        assert [[0, 1, 2, 3], "queued"] == world.outputs()
        assert 4 == len(world.facts(facts.Continued))
        assert {} == world.fold().run.open


def begin(world: World, *, reason: str = "") -> None:
    world.append(facts.CancelRequested(0, "ada", reason))


def test_a_cancelled_activation_cleans_up_with_effects_and_is_over():
    async def code(ctx: Ctx, given: Any) -> Any:
        try:
            await ctx.gather(ctx.signal("never"), ctx.sleep(timedelta(hours=1)))
        finally:
            await ctx.perform("push", text="undo")
            await ctx.perform("push", text="say so")

    with linear(code) as world:
        world.send()
        world.send()
        world.run()
        begin(world, reason="changed my mind")
        world.run()
        assert [("push", "undo"), ("push", "say so")] == world.hands.calls
        (completed,) = world.facts(facts.Completed)
        assert (True, 0) == (completed.cancelled, completed.seq)
        assert [1] == list(world.fold().run.open)


def test_cancelled_before_it_began_its_code_never_runs():
    async def code(ctx: Ctx, given: Any) -> Any:
        return await ctx.perform("push", text="ran")

    with linear(code) as world:
        world.send()
        begin(world)
        world.run()
        assert [] == world.hands.calls
        assert [True] == [fact.cancelled for fact in world.facts(facts.Completed)]


def test_code_that_takes_a_cancellation_and_goes_on_is_not_cancelled():
    async def code(ctx: Ctx, given: Any) -> Any:
        try:
            await ctx.signal("never")
        except ActivationCancelled as problem:
            return str(problem)

    with linear(code) as world:
        world.send()
        world.run()
        begin(world, reason="no more")
        begin(world, reason="and again")
        world.run()
        assert ["a-k, activation 0, was cancelled by ada: no more"] == world.outputs()
