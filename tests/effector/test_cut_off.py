"""Calls that are cut off: by their time, by a cancellation from without, by themselves. And what their own tasks make of them."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import Any

import pytest

from intentlog.agents import IntentInfo, Retryable, ToolSet, facts, tool
from intentlog.agents.appends import EFFECTS
from intentlog.agents.committer import Committer
from intentlog.effector import phases
from intentlog.eventlog.clock import system_clock
from tests.effector.test_effector import HOUR, Outside
from tests.effector.test_phases import CODEC, Odd, executed, pending, push, recovered


@pytest.fixture
def outside(log_url: str) -> Any:
    with Outside(log_url) as made:
        yield made


def stopping(then: Any) -> Any:
    """A tool that is told to stop by its cancellation and does ``then``."""

    async def slow() -> str:
        try:
            await asyncio.sleep(9)
        except asyncio.CancelledError:
            if isinstance(then, BaseException):
                raise then from None
            return str(then)
        return "in time"

    return slow


@pytest.mark.parametrize(
    "problem",
    [ConnectionError("cut off"), Retryable("busy"), ValueError("in its clean-up"), TimeoutError("its own"), Odd("odd"), SystemExit(1), GeneratorExit()],
    ids=lambda problem: type(problem).__name__,
)
def test_what_ran_out_of_its_time_is_timed_out_whatever_it_raises_and_never_tried_again(problem):
    made = tool(side_effect=True, timeout=timedelta(milliseconds=20), retry_on=(ConnectionError, ValueError, TimeoutError))(stopping(problem))
    outcome = executed(made)
    assert outcome.failure is not None
    assert ("ERROR", "TimedOut", None) == (outcome.status, outcome.failure.type, outcome.retry_after)
    assert "not known" in outcome.failure.message
    assert f"{type(problem).__name__}: {problem}" in outcome.failure.detail


def test_a_tool_that_holds_up_the_loop_past_its_time_and_then_raises_is_timed_out_too():
    async def busy() -> None:
        time.sleep(0.05)  # noqa: ASYNC251 - the fault that is shown
        raise ConnectionError("late")

    outcome = executed(tool(side_effect=True, timeout=timedelta(milliseconds=20), retry_on=ConnectionError)(busy))
    assert ("TimedOut", None) == (outcome.failure.type, outcome.retry_after)  # type: ignore[union-attr]


def test_a_value_returned_after_the_call_was_told_to_stop_is_its_outcome():
    outcome = executed(stopping("ch_1"), seconds=0.02)
    assert ("OK", "ch_1", None) == (outcome.status, outcome.value, outcome.failure)


@pytest.mark.parametrize("found, status, kind", [(ValueError("x"), "UNKNOWN", "TimedOut"), ("re_1", "OK", None)])
def test_a_reconciler_out_of_its_time_is_timed_out_unless_it_found_something(found, status, kind):
    late = stopping(found)

    async def look(info: IntentInfo, text: str) -> Any:
        return await late()

    @tool(side_effect=True, reconcile=look, timeout=timedelta(milliseconds=20))
    async def transfer(text: str) -> Any: ...

    outcome = recovered(transfer, 1)
    assert outcome is not None
    assert (status, kind) == (outcome.status, outcome.failure.type if outcome.failure else None)
    assert outcome.failure is None or "ValueError: x" in outcome.failure.detail


def itself(then: Any = None) -> Any:
    async def cancels() -> Any:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        if then is None:
            await asyncio.sleep(9)
        return then

    return cancels


def test_a_tool_that_cancels_itself_is_an_error_at_once_and_nothing_behind_it_is_cancelled():
    async def story() -> tuple[phases.Outcome, int]:
        made = tool(side_effect=True)(itself())
        outcome = await asyncio.wait_for(phases.execute(pending(made.name), made, {}, CODEC), 5)
        await asyncio.sleep(0)
        task = asyncio.current_task()
        assert task is not None
        return outcome, task.cancelling()

    outcome, cancelling = asyncio.run(story())
    assert ("ERROR", "CancelledError", 0) == (outcome.status, outcome.failure.type, cancelling)  # type: ignore[union-attr]


def test_a_tool_that_cancels_itself_and_returns_has_returned():
    assert ("OK", "done") == ((found := executed(itself("done"))).status, found.value)


def test_a_reconciler_that_cancels_itself_could_not_tell():
    cancels = itself()

    async def look(info: IntentInfo, text: str) -> Any:
        return await cancels()

    @tool(side_effect=True, reconcile=look)
    async def transfer(text: str) -> Any: ...

    outcome = recovered(transfer, 1)
    assert outcome is not None
    assert ("UNKNOWN", "CancelledError") == (outcome.status, outcome.failure.type)  # type: ignore[union-attr]


@pytest.mark.parametrize("problem", [Odd("odd"), GeneratorExit(), asyncio.CancelledError("mine"), ValueError("no")], ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("grouped", [True, False], ids=["in a group", "a task"])
def test_whatever_a_tools_own_tasks_raise_there_is_an_outcome(problem, grouped):
    async def fails() -> None:
        await asyncio.sleep(0)
        raise problem

    async def divides() -> None:
        if not grouped:
            await asyncio.create_task(fails())
        async with asyncio.TaskGroup() as group:
            task = group.create_task(fails())
        await task

    outcome = executed(divides)
    assert ("ERROR", None) == (outcome.status, outcome.retry_after)


@pytest.mark.parametrize("ending", [SystemExit(3), KeyboardInterrupt()], ids=lambda ending: type(ending).__name__)
@pytest.mark.parametrize("way", ["awaited", "gathered", "in a group", "left alone", "cancelled before it began"])
def test_a_task_of_a_tool_that_exits_ends_no_more_than_the_call(way, ending):
    """As asyncio has it, these two in a task end the loop, and with it every other call of the effector."""

    async def exits() -> None:
        await asyncio.sleep(0)
        raise ending

    async def divides() -> str:
        task = asyncio.create_task(exits())
        if way == "awaited":
            await task
        if way == "gathered":
            await asyncio.gather(task, asyncio.sleep(9))
        if way == "in a group":
            task.cancel()
            async with asyncio.TaskGroup() as group:
                group.create_task(exits())
        if way == "cancelled before it began":
            task.cancel()
            await task
        await asyncio.sleep(0.01)
        assert isinstance(task.exception(), Exception)
        return "done"

    async def story() -> tuple[phases.Outcome, str]:
        made = tool(side_effect=True)(divides)
        other = asyncio.create_task(asyncio.sleep(0.02, "goes on"))
        return await phases.execute(pending(made.name), made, {}, CODEC), await other

    outcome, other = asyncio.run(story())
    kind = type(ending).__name__
    kinds = {"awaited": kind, "gathered": kind, "in a group": "ExceptionGroup", "cancelled before it began": "CancelledError"}
    assert ("goes on", kinds.get(way)) == (other, outcome.failure.type if outcome.failure else None)


def test_outside_of_tools_a_task_that_exits_ends_its_program_as_ever():
    async def exits() -> None:
        raise SystemExit(3)

    async def story() -> None:
        assert "X" == (await phases.execute(pending("push"), push, {"text": "x"}, CODEC)).value
        asyncio.create_task(exits())  # noqa: RUF006 - it ends the loop
        await asyncio.sleep(9)

    with pytest.raises(SystemExit):
        asyncio.run(story())


@pytest.mark.parametrize("then", [None, ConnectionError("cut off"), ValueError("in its clean-up")], ids=["stops", "retryable", "clean-up"])
def test_a_cancelled_effector_takes_nothing_that_its_tool_raises_for_an_outcome(then):
    """Else a tool cut off by a lost lease would be called again as if it had failed by itself."""

    async def story() -> None:
        made = tool(side_effect=True, retry_on=ConnectionError)(stopping(then or asyncio.CancelledError()))
        task = asyncio.create_task(phases.execute(pending(), made, {}, CODEC))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert 1 == len(asyncio.all_tasks())

    asyncio.run(story())


def test_what_a_tool_returns_although_its_effector_is_cancelled_is_still_known():
    async def story() -> phases.Outcome:
        task = asyncio.create_task(phases.execute(pending(), tool(side_effect=True)(stopping("ch_1")), {}, CODEC))
        await asyncio.sleep(0.01)
        task.cancel()
        return await task

    assert "ch_1" == asyncio.run(story()).value


async def cancels_itself(name: str) -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(60)


async def groups(name: str) -> None:
    async def fails() -> None:
        raise Odd

    async with asyncio.TaskGroup() as group:
        group.create_task(fails())
        await asyncio.sleep(60)


@pytest.mark.parametrize("fn, kind", [(cancels_itself, "CancelledError"), (groups, "BaseExceptionGroup")], ids=["itself", "its group"])
def test_a_tool_that_is_cancelled_by_its_own_doing_is_an_error_at_once_and_the_key_goes_on(fn, kind):
    """Elsewhere its key stood still, without a word, until its lease was over."""
    with Outside() as outside:
        outside.tools = ToolSet([*outside.tools, tool(side_effect=True, name="own")(fn)])
        outside.stage("x", tool="own")
        outside.stage("y")
        outside.serve()
        assert ["ERROR", "OK"] == outside.statuses()
        assert kind == outside.of(facts.IntentSettled)[0].failure.type


def test_a_tool_cut_off_by_its_timeout_is_called_once_whatever_it_makes_of_that():
    with Outside() as outside:

        async def cut(name: str) -> None:
            outside.begun.append(name)
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                raise ConnectionError("cut off") from None

        outside.tools = ToolSet([*outside.tools, tool(side_effect=True, timeout=timedelta(seconds=0.05), retry_on=ConnectionError)(cut)])
        outside.stage("x", tool="cut")
        outside.stage("y")
        outside.serve()
        assert (["ERROR", "OK"], ["x", "y"], []) == (outside.statuses(), outside.begun, outside.of(facts.IntentPostponed))
        failure = outside.of(facts.IntentSettled)[0].failure
        assert ("TimedOut", "it raised ConnectionError: cut off") == (failure.type, failure.detail)


def test_a_tool_whose_key_is_lost_is_cut_off_and_nothing_is_said_for_it(outside):
    """It says of its being cut off that it may be tried again; the key is another's, and so is what becomes of the intent."""
    met: list[str] = []

    async def cut(name: str) -> None:
        met.append("begun")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            met.append("cut off")
            raise ConnectionError("cut off") from None

    outside.tools = ToolSet([*outside.tools, tool(side_effect=True, retry_on=ConnectionError)(cut)])
    outside.stage("x", tool="cut")

    async def run() -> None:
        committer = Committer(outside.log)
        effector = outside.effector(committer, lease=0.6)
        running = asyncio.create_task(effector.run())
        async with asyncio.timeout(10):
            while not met:  # noqa: ASYNC110 - a lane brings it about
                await asyncio.sleep(0.005)
            outside.log.schedule.acquire(EFFECTS, ["a-k"], "other", now=system_clock() + HOUR, until=system_clock() + 2 * HOUR)
            while len(met) < 2:  # noqa: ASYNC110 - a lane brings it about
                await asyncio.sleep(0.005)
        effector.stop()
        await running
        committer.close()
        assert 1 == effector.counts.stale

    asyncio.run(run())
    assert ([], []) == (outside.of(facts.IntentPostponed), outside.statuses())
