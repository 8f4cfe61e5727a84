"""S-3.3: a failed turn leaves one event, is tried again with back-off, then parked and redriven."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import Any

import pytest

from intentlog.agents import RetryPolicy, facts
from intentlog.agents.dead_letters import dead_letters, redrive
from tests.agents.world import Account, Asked, Ctx, Paid, World, told, waiting


def failing(times: int):
    """Fails so many times after it staged a bit of everything."""
    left = times

    async def code(ctx: Ctx, asked: Asked) -> object:
        nonlocal left
        if ctx.is_resume:
            return [ctx.seq, told(ctx).value]
        ctx.emit(asked)
        await ctx.call_model("hi")
        ctx.act("pay", order=asked.order)
        ctx.arm(timedelta(hours=1))
        if left:
            left -= 1
            raise RuntimeError("the third step went wrong")
        return waiting(wait="any")

    return code


def test_a_failed_turn_appends_one_fact_and_nothing_it_staged():
    """S-3.3"""
    with World(failing(9), state=Account) as world:
        world.send(Asked("o-1"))
        world.run()
        assert ["input.received", "model_call.cached", "activation.failed"] == world.types()
        (failed,) = world.facts(facts.ActivationFailed)
        assert (0, "in-1", 1, 3, 0) == (failed.seq, failed.input_id, failed.attempt, failed.step, failed.index)
        assert ("RuntimeError", "the third step went wrong") == (failed.failure.type, failed.failure.message)
        assert "code:" in failed.failure.detail
        assert ((), []) == (world.fold().state.orders, world.hands.calls)


def test_the_input_is_tried_again_with_back_off_and_its_seq_does_not_move():
    """S-3.3"""
    with World(failing(2), state=Account) as world:
        world.send(Asked("o-1"))
        world.run()
        for seconds, failures in ((0.9, 1), (0.1, 2), (1.9, 2)):
            world.later(seconds)
            assert failures == len(world.failures())
        world.later(0.1)
        assert [[0, "re_o-1"]] == world.outputs()
        assert 1 == len(world.model.asked)
        assert [1, 2] == [fact.attempt for fact in world.facts(facts.ActivationFailed)]


def parked(world: World, seconds: float = 30) -> None:
    for _ in range(4):
        world.later(seconds)


def test_after_the_limit_the_input_is_parked_and_later_inputs_go_on():
    """S-3.3"""

    async def code(ctx: Ctx) -> object:
        if ctx.input == "poison":
            raise RuntimeError("no")
        return ctx.input

    with World(code) as world:
        world.send("poison")
        world.send("food")
        world.run()
        assert [] == world.outputs()
        parked(world)
        assert ["food"] == world.outputs()
        assert [1, 2, 3] == [fact.attempt for fact in world.facts(facts.ActivationFailed)]
        (letter,) = dead_letters(world.log)
        assert (0, "in-1", 3) == (letter.seq, letter.input_id, letter.attempts)  # type: ignore[union-attr]


def test_by_policy_later_inputs_wait_for_the_parked_one():
    """S-3.3"""
    broken = True

    async def code(ctx: Ctx) -> object:
        if ctx.input == "poison" and broken:
            raise RuntimeError("no")
        return ctx.input

    with World(code, on_parked="wait") as world:
        world.send("poison")
        world.send("food")
        parked(world)
        assert [] == world.outputs()
        broken = False
        redrive(world.log, "a-k", by="test")
        world.run()
        assert ["poison", "food"] == world.outputs()


def test_a_redriven_input_keeps_its_seq_its_paid_answers_and_its_intent_ids():
    """S-3.3"""
    with World(failing(3), state=Account) as world:
        world.send(Asked("o-1"))
        parked(world)
        assert 3 == len(world.failures())
        world.send(Asked("o-2"))
        world.run()
        redrive(world.log, "a-k", by="somebody", reason="it works again")
        world.run()
        assert [[1, "re_o-2"], [0, "re_o-1"]] == world.outputs()
        assert 2 == len(world.model.asked)
        assert ["o-2", "o-1"] == [order for _, order in world.hands.calls]


@pytest.mark.parametrize("again", range(2))
def test_a_redrive_of_a_suspended_activations_later_turn_keeps_what_it_waited_for(again):
    """S-3.3"""
    broken = True

    async def code(ctx: Ctx) -> object:
        if not ctx.is_resume:
            ctx.act("pay", order="o-1")
            return waiting(snapshot=b"kept")
        if broken:
            raise RuntimeError("no")
        return [ctx.snapshot, told(ctx).value]

    with World(code, retry=RetryPolicy(max_attempts=1 + again, first=timedelta(seconds=1))) as world:
        world.send()
        parked(world)
        assert 1 == len(dead_letters(world.log))
        broken = False
        redrive(world.log, "a-k", by="test")
        world.run()
        assert [[b"kept", "re_o-1"]] == world.outputs()
        assert [("pay", "o-1")] == world.hands.calls


def test_an_error_that_cannot_heal_is_parked_at_once():
    """S-3.3"""

    async def code(ctx: Ctx) -> object:
        return ctx.act("pay", order=1)

    with World(code) as world:
        world.send()
        world.run()
        (failed,) = world.facts(facts.ActivationFailed)
        assert (1, None, "ArgumentRefused") == (failed.attempt, failed.retry_at, failed.failure.type)


class Never:
    provider, model = "p", "m"

    async def complete(self, request: Any, *, idempotency_key: str) -> Any:
        await asyncio.sleep(3600)


@pytest.mark.parametrize("swallow", [False, True], ids=["plain", "the agent catches everything"])
def test_a_turn_that_runs_too_long_ends_and_fails(swallow):
    """S-3.3"""

    async def code(ctx: Ctx) -> object:
        ctx.act("pay", order="o-1")
        try:
            await ctx.call_model("hi")
        except Exception:
            if not swallow:
                raise
            await ctx.call_model("again")
        return "done"

    with World(code, model=Never(), turn_timeout=timedelta(milliseconds=100)) as world:
        world.send()
        begun = time.monotonic()
        world.run()
        assert time.monotonic() - begun < 5
        assert ["input.received", "activation.failed"] == world.types()
        assert ["TurnTimedOut"] == [failure.type for failure in world.failures()]


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class Exiting(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)

    __repr__ = __str__


class Unpicklable(Exception):
    def __init__(self) -> None:
        super().__init__(lambda: None)

    def __reduce__(self) -> Any:
        raise TypeError("cannot be pickled")


class Ending(BaseException):
    pass


@pytest.mark.parametrize(
    "problem",
    [
        Unprintable(),
        Exiting(),
        Unpicklable(),
        ValueError("\ud800 and \x00"),
        ExceptionGroup("several", [ValueError("a")]),
        SystemExit(3),
        GeneratorExit(),
        KeyboardInterrupt(),
        asyncio.CancelledError(),
        Ending("all"),
    ],
    ids=lambda problem: type(problem).__name__,
)
def test_whatever_agent_code_raises_is_recorded_and_other_keys_go_on(problem):
    """S-3.3"""

    async def code(ctx: Ctx) -> object:
        await ctx.call_model("hi")
        if ctx.key == "bad":
            raise problem
        return "fine"

    with World(code) as world:
        world.send(key="bad")
        world.send(key="good")
        world.run(seconds=5)
        assert ["fine"] == world.outputs("a-good")
        (failure,) = world.failures("a-bad")
        assert type(problem).__name__ in failure.type + failure.message
        assert [] == world.errors


def test_an_agent_that_swallows_a_tools_error_commits_what_it_staged_on_purpose():
    """S-3.3"""

    async def code(ctx: Ctx) -> object:
        ctx.emit(Paid("r"))
        try:
            await ctx.run_tool("read", what="x")
        except ValueError as problem:
            return str(problem)
        return "?"

    with World(code, state=Account) as world:
        world.hands.script = [ValueError("closed today")]
        world.send()
        world.run()
        assert ["closed today"] == world.outputs()
        assert ("r",) == world.fold().state.receipts
