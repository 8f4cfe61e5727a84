"""``ctx.run`` with a policy: attempts inside one step, one journal entry, nothing for effects."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from intentlog.agents import Complete, RetryPolicy, facts
from intentlog.agents.errors import TerminalAgentError
from tests.agents.world import Ctx, World

QUICK = RetryPolicy(max_attempts=3, first=timedelta(milliseconds=1))


class Flaky:
    """Raises what it is told to, then answers."""

    def __init__(self, *raises: BaseException) -> None:
        self.raises, self.calls = list(raises), 0

    def read(self, name: str) -> str:
        self.calls += 1
        if self.raises:
            raise self.raises.pop(0)
        return f"{name} {self.calls}"

    async def aread(self, name: str) -> str:
        return self.read(name)


def reads(fn: Any) -> Any:
    async def code(ctx: Ctx) -> Complete:
        return Complete(await ctx.run(fn, "it", retry=QUICK))

    return code


def journalled(world: World) -> list[tuple[Any, str | None]]:
    return [(each.value, each.failure.type if each.failure else None) for each in world.facts(facts.ToolCallCached)]


def test_a_read_that_heals_is_journalled_once_with_its_value():
    for name in ("read", "aread"):
        flaky = Flaky(ValueError("no"), OSError("no"))
        code = reads(getattr(flaky, name))

        with World(code) as world:
            world.send()
            world.run()
            assert (["it 3"], [("it 3", None)], 3) == (world.outputs(), journalled(world), flaky.calls)


def test_a_read_that_does_not_heal_raises_what_it_raised_last():
    flaky = Flaky(ValueError("one"), ValueError("two"), ValueError("three"), ValueError("four"))

    async def code(ctx: Ctx) -> Complete:
        try:
            await ctx.run(flaky.read, "it", retry=QUICK)
        except ValueError as problem:
            return Complete(str(problem))
        return Complete("read")

    with World(code) as world:
        world.send()
        world.run()
        assert (["three"], [(None, "ValueError")], 3) == (world.outputs(), journalled(world), flaky.calls)


def test_an_error_that_cannot_heal_is_not_tried_again():
    flaky = Flaky(TerminalAgentError("never"))

    async def code(ctx: Ctx) -> Complete:
        try:
            return Complete(await ctx.run(flaky.read, "it", retry=QUICK))
        except Exception as problem:
            return Complete(str(problem))

    with World(code) as world:
        world.send()
        world.run()
        assert 1 == flaky.calls


def test_each_attempt_has_its_own_time():
    calls: list[int] = []

    async def slow_at_first() -> str:
        calls.append(1)
        await asyncio.sleep(5 if len(calls) < 3 else 0)
        return "in time"

    async def code(ctx: Ctx) -> Complete:
        return Complete(await ctx.run(slow_at_first, retry=QUICK, timeout=timedelta(milliseconds=30)))

    with World(code) as world:
        world.send()
        world.run()
        assert (["in time"], 3) == (world.outputs(), len(calls))


def test_without_a_policy_a_slow_read_ends_at_its_time():
    async def slow() -> None:
        await asyncio.sleep(5)

    async def code(ctx: Ctx) -> Complete:
        try:
            await ctx.run(slow, timeout=timedelta(milliseconds=20))
        except TimeoutError as problem:
            return Complete(str(problem).rpartition(".")[2])
        return Complete("read")

    with World(code) as world:
        world.send()
        world.run()
        assert ["02 s"] == world.outputs()


def told_by(fn: Any, **how: Any) -> tuple[list[Any], list[Any]]:
    """What the agent hears of ``fn``, and what the journal keeps."""

    async def code(ctx: Ctx) -> Complete:
        try:
            return Complete(await ctx.run(fn, **how))
        except Exception as problem:
            return Complete(type(problem).__name__)

    with World(code) as world:
        world.send()
        world.run()
        assert [] == world.failures()
        return world.outputs(), [each.failure for each in world.facts(facts.ToolCallCached)]


def test_a_read_out_of_its_time_is_timed_out_whatever_it_raises():
    async def slow() -> None:
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            raise ValueError("in its clean-up") from None

    outputs, (failure,) = told_by(slow, timeout=timedelta(milliseconds=20))
    assert (["TimeoutError"], "TimeoutError") == (outputs, failure.type)
    assert "ValueError: in its clean-up" in failure.detail


def test_a_value_read_after_the_read_was_told_to_stop_is_what_was_read():
    async def slow() -> str:
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            return "at last"
        return "in time"

    assert (["at last"], [None]) == told_by(slow, timeout=timedelta(milliseconds=20))


def test_a_read_that_cancels_itself_has_failed_and_the_turn_goes_on():
    async def cancels() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(5)

    outputs, (failure,) = told_by(cancels)
    assert ("CancelledError", 1) == (failure.type, len(outputs))


def test_a_read_that_is_deaf_to_the_end_of_its_turn_does_not_prolong_it():
    async def deaf() -> str:
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            return "at last"
        return "in time"

    async def code(ctx: Ctx) -> Complete:
        return Complete(await ctx.run(deaf))

    with World(code, turn_timeout=timedelta(milliseconds=100), retry=RetryPolicy(max_attempts=1)) as world:
        world.send()
        world.run()
        assert (["TurnTimedOut"], []) == ([failure.type for failure in world.failures()], world.outputs())


def test_attempts_end_with_the_turn():
    flaky = Flaky(*[ValueError("no")] * 100)

    async def code(ctx: Ctx) -> Complete:
        return Complete(await ctx.run(flaky.read, "it", retry=RetryPolicy(max_attempts=100, first=timedelta(milliseconds=40), factor=1.0)))

    with World(code, turn_timeout=timedelta(milliseconds=200), retry=RetryPolicy(max_attempts=1)) as world:
        world.send()
        world.run()
        assert ["TurnTimedOut"] == [failure.type for failure in world.failures()]
        assert flaky.calls < 20


def test_a_step_that_crashed_before_its_journal_entry_runs_again():
    flaky = Flaky()

    async def code(ctx: Ctx) -> Complete:
        return Complete(await ctx.run(flaky.read, "it", retry=QUICK))

    with World(code) as world:
        world.send()
        world.run(crash="turn.decided")
        world.run()
        assert (1, ["it 1"]) == (flaky.calls, world.outputs())
