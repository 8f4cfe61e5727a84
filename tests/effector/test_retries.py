"""Effects that are tried again: what is recorded of it, who waits meanwhile, and where it ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

from intentlog.agents import IntentInfo, RetryPolicy, ToolSet, facts, tool
from intentlog.agents.tool_policies import Retryable
from intentlog.effector import phases
from intentlog.eventlog.clock import SECOND, system_clock
from intentlog.eventlog.errors import LeaseLost
from tests.effector.test_effector import CODEC, Outside, len_of
from tests.effector.test_phases import pending

BRIEF = timedelta(milliseconds=20)
QUICK = RetryPolicy(max_attempts=3, first=BRIEF, factor=1)


class Busy(Exception):
    pass


class Wobbly(Outside):
    """Its tool ``wobbly`` fails as often as it is told, with what it is told."""

    def __init__(self, url: str = "", *, retry: RetryPolicy | None = QUICK, idempotent: bool = False) -> None:
        super().__init__(url)
        self.fails: dict[str, list[Exception]] = {}
        self.attempts: list[int] = []

        async def wobbly(name: str, *, intent: IntentInfo) -> str:
            self.begun.append(name)
            self.attempts.append(intent.attempt)
            if self.fails.get(name):
                raise self.fails[name].pop(0)
            return name

        made = tool(side_effect=True, retry=retry, retry_on=(ConnectionError, Busy), idempotent=idempotent)(wobbly)
        self.tools = ToolSet([*self.tools, made])

    def types(self, key: str = "k") -> list[str]:
        return [each.type.removeprefix("intent.") for each in self.log.read(f"a-{key}")]


@pytest.fixture
def wobbly(log_url: str) -> Any:
    with Wobbly(log_url) as made:
        yield made


ERRORS: dict[str, Callable[[], Exception]] = {
    "raised as retryable": lambda: Retryable("later"),
    "of a declared class": lambda: Busy("no"),
    "of a class below a declared one": lambda: ConnectionResetError("gone"),
}


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_that_may_heal_is_tried_again_and_every_attempt_is_on_record(wobbly, error):
    wobbly.fails = {"x": [ERRORS[error](), ERRORS[error]()]}
    wobbly.stage("x", tool="wobbly")
    (effector,) = wobbly.serve()
    assert ["staged", *["attempted", "postponed"] * 2, "attempted", "settled"] == wobbly.types()
    (settled,) = wobbly.of(facts.IntentSettled)
    assert ("OK", "x", 3, [1, 2, 3]) == (settled.status, settled.value, settled.attempts, wobbly.attempts)
    assert (3, 2, 1) == (effector.counts.attempts, effector.counts.postponed, effector.counts.settled)
    first = wobbly.of(facts.IntentPostponed)[0]
    assert ("x", 1, type(ERRORS[error]()).__name__) == (first.intent_id, first.attempt, first.failure.type)


def test_the_last_error_is_the_outcome_when_the_attempts_are_used_up(wobbly):
    wobbly.fails = {"x": [Busy("1"), Busy("2"), Busy("3"), Busy("4")]}
    wobbly.stage("x", "after", tool="wobbly")
    wobbly.serve()
    first, second = wobbly.of(facts.IntentSettled)
    assert ("ERROR", facts.Failure("Busy", "3", "given up after 3 of 3 attempts"), 3) == (first.status, first.failure, first.attempts)
    assert "OK" == second.status


def test_any_other_error_is_final_at_once(wobbly):
    wobbly.fails = {"x": [ValueError("no")]}
    wobbly.stage("x", tool="wobbly")
    wobbly.serve()
    assert (["ERROR"], ["x"], []) == (wobbly.statuses(), wobbly.begun, wobbly.of(facts.IntentPostponed))


def test_its_key_waits_in_order_and_other_keys_go_on_without_a_place_taken(wobbly):
    wobbly.fails = {"x": [Retryable("wait", after=timedelta(milliseconds=300))]}
    wobbly.stage("x", "y", tool="wobbly")
    for n in range(5):
        wobbly.stage(f"o{n}", key=f"other{n}")
    wobbly.serve(concurrency=1)
    assert ["x", *(f"o{n}" for n in range(5)), "x", "y"] == wobbly.begun


def test_the_wait_survives_the_effector_and_is_kept_by_the_next_one(wobbly):
    wobbly.fails = {"x": [Retryable("wait", after=timedelta(seconds=1))]}
    wobbly.stage("x", tool="wobbly")
    wobbly.serve(until=lambda: wobbly.of(facts.IntentPostponed))
    (postponed,) = wobbly.of(facts.IntentPostponed)
    wobbly.serve(owners=("next",))
    (_, second) = [each for each in wobbly.log.read("a-k") if each.type == "intent.attempted"]
    assert second.recorded_at >= postponed.retry_at
    assert (["OK"], [1, 2], "next") == (wobbly.statuses(), wobbly.attempts, wobbly.of(facts.IntentAttempted)[1].effector)


@pytest.mark.parametrize("idempotent, status", [(False, "UNKNOWN"), (True, "OK")])
def test_a_death_in_a_second_attempt_is_a_death_in_mid_call_like_any_other(log_url, idempotent, status):
    with Wobbly(log_url, idempotent=idempotent) as wobbly:
        wobbly.fails = {"x": [Busy("1")]}
        wobbly.stage("x", tool="wobbly")

        def die(name: str, stream: str) -> None:
            if name == "tool.called" and len(wobbly.begun) == 2:
                raise LeaseLost("died here")

        wobbly.serve(boundary=die, until=lambda: len(wobbly.begun) == 2)
        wobbly.log.schedule.evict("e")
        wobbly.serve(owners=("next",))
        assert [status] == wobbly.statuses()
        assert (3 if idempotent else 2) == len(wobbly.begun)


def test_a_death_after_the_failure_is_on_record_is_no_death_in_mid_call(wobbly):
    """A tool that is not idempotent is tried again all the same: nothing of it is under way."""
    wobbly.fails = {"x": [Busy("1")]}
    wobbly.stage("x", tool="wobbly")

    def die(name: str, stream: str) -> None:
        if name == "postponed":
            raise LeaseLost("died here")

    wobbly.serve(boundary=die, until=lambda: wobbly.of(facts.IntentPostponed))
    wobbly.log.schedule.evict("e")
    wobbly.serve(owners=("next",))
    assert (["OK"], [1, 2]) == (wobbly.statuses(), wobbly.attempts)


def test_there_is_no_attempt_past_the_deadline(wobbly):
    wobbly.fails = {"x": [Retryable("wait", after=timedelta(hours=2))]}
    wobbly.stage("x", tool="wobbly")
    wobbly.serve()
    (settled,) = wobbly.of(facts.IntentSettled)
    assert ("ERROR", "given up after attempt 1: the next one would be past the intent's deadline") == (settled.status, settled.failure.detail)
    assert [] == wobbly.of(facts.IntentPostponed)


def test_an_intent_whose_deadline_passed_while_it_waited_ends_as_the_error_it_was(wobbly):
    """S-6.3: it ran, so it is not EXPIRED; its end was seen, so it is not UNKNOWN."""
    wobbly.fails = {"x": [Retryable("wait", after=timedelta(milliseconds=500))]}
    wobbly.stage("warm", tool="wobbly", key="warm")
    deadlines: list[int] = []

    def until() -> bool:
        if not deadlines and wobbly.statuses("warm"):  # the effector is at work, so the short time is the intent's own
            deadlines.append(system_clock() + 5 * SECOND // 2)
            wobbly.stage("x", tool="wobbly", ttl=5 * SECOND // 2)
        return bool(wobbly.of(facts.IntentPostponed))

    wobbly.serve(until=until)
    time.sleep(max(0.0, (deadlines[0] - system_clock()) / SECOND + 0.2))  # nobody serves until the deadline is over
    wobbly.serve(owners=("late",))
    (settled,) = wobbly.of(facts.IntentSettled)
    assert ("ERROR", "Retryable", "wait", ["warm", "x"]) == (settled.status, settled.failure.type, settled.failure.message, wobbly.begun)


def test_an_effect_settled_by_a_person_while_it_waits_is_never_tried_again(wobbly):
    from intentlog.agents.intents import settlement_event_id
    from intentlog.eventlog.versions import ANY

    wobbly.fails = {"x": [Retryable("wait", after=timedelta(milliseconds=300))]}
    wobbly.stage("x", "y", tool="wobbly")
    wobbly.serve(until=lambda: wobbly.of(facts.IntentPostponed))
    fact = facts.IntentSettled("x", "OK", "by hand", attempts=1, settled_by="ann")
    wobbly.log.append("a-k", [CODEC.stage(fact, event_id=settlement_event_id("x", 1))], ANY)
    wobbly.serve(owners=("next",))
    assert ["x", "y"] == wobbly.begun


def test_the_agent_sees_one_outcome_with_all_its_attempts():
    from intentlog.agents import App, Input, agent, send
    from intentlog.effector.process import Process
    from intentlog.eventlog.opening import open_log
    from tests.agents.world import Ctx

    failures = [Busy("1"), Busy("2")]

    @tool(side_effect=True, retry=QUICK, retry_on=Busy)
    def flaky() -> str:
        if failures:
            raise failures.pop()
        return "done"

    async def code(ctx: Ctx) -> Any:
        result = await ctx.outcome_of(ctx.act(flaky))
        return [result.status, result.value, result.attempts]

    with closing(open_log("memory://")) as log:
        app = App(agents=[agent("a")(code)], tools=[flaky])
        send(app, log, Input("a", "k", 1, "x"))
        asyncio.run(Process(app, log, "p").run(until_idle=True))
        (done,) = [CODEC.decode_stored(each) for each in log.read_all(types=["activation.completed"])]
    assert ["OK", "done", 3] == done.output


def test_attempts_seen_to_fail_do_not_count_against_an_idempotent_tool_that_kills_its_effector():
    @tool(side_effect=True, idempotent=True, retry=RetryPolicy(max_attempts=50))
    def often(text: str) -> None: ...

    waiting = pending("often", attempts=20)
    waiting.postponed = {n: facts.IntentPostponed("i-1", n, facts.Failure("Busy", ""), 0, "e") for n in range(1, 20)}
    assert asyncio.run(phases.recover(waiting, often, {"text": "x"}, CODEC)) is None
    waiting.postponed = {n: waiting.postponed[n] for n in range(1, 11)}
    assert "GaveUp" == asyncio.run(phases.recover(waiting, often, {"text": "x"}, CODEC)).failure.type  # type: ignore[union-attr]


def test_a_tool_over_its_time_is_not_tried_again_for_it_may_still_be_running():
    @tool(side_effect=True, retry_on=(TimeoutError,), timeout=timedelta(milliseconds=20))
    async def slow(text: str) -> None:
        await asyncio.sleep(9)

    outcome = asyncio.run(phases.execute(pending("slow"), slow, {"text": "x"}, CODEC))
    assert ("TimedOut", None) == (outcome.failure.type, outcome.retry_after)  # type: ignore[union-attr]


@pytest.mark.parametrize("after", [5, "5", 2.5, None, True])
def test_a_wait_that_is_no_length_of_time_is_refused_and_not_ignored(after):
    with pytest.raises(TypeError, match=f"timedelta.*not {after!r}"):
        Retryable("wait", after=after)


def test_a_wait_is_kept_by_an_error_of_a_tools_own_that_says_how_long():
    class Overloaded(Retryable):
        def __init__(self) -> None:  # and forgets the one it is made from
            self.why = "overloaded"

    @tool(side_effect=True)
    async def busy(text: str) -> None:
        raise Overloaded

    outcome = asyncio.run(phases.execute(pending("busy"), busy, {"text": "x"}, CODEC))
    assert ("Overloaded", timedelta(0)) == (outcome.failure.type, outcome.retry_after)  # type: ignore[union-attr]
    assert timedelta(seconds=3) == tool(side_effect=True)(len_of).policies.waits(Retryable("wait", after=timedelta(seconds=3)))
