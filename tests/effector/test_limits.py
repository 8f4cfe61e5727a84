"""How often and how many at once: what a tool allows, and who does not wait for it."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from typing import Any

import attrs
import pytest

from intentlog.agents import RetryPolicy, ToolSet, facts, tool
from intentlog.agents.errors import DefinitionError
from intentlog.agents.tool_policies import Rate
from intentlog.effector import limits as module
from intentlog.effector.limits import Limits
from intentlog.effector.threads import overdue
from intentlog.eventlog.clock import SECOND
from tests.effector.service.test_troubles import Heard, serving, stopped, until
from tests.effector.test_effector import Outside


@attrs.define
class Hand:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def made(**policies: Any) -> Any:
    @tool(side_effect=True, **policies)
    def limited(name: str) -> str:
        return name

    return limited


def test_a_tool_without_limits_is_always_free():
    limits = Limits()
    assert all(limits.take(made()) for _ in range(1000))


def test_no_more_calls_begin_within_any_span_than_its_rate_says():
    clock = Hand()
    limits, slow = Limits(clock), made(rate=Rate(3, per=timedelta(seconds=10)))
    begun = []
    for tenth in range(400):
        clock.now = tenth / 10
        while (place := limits.take(slow)) is not None:
            limits.calling(place)
            limits.leave(place)
            begun.append(clock.now)
    assert [0.0] * 3 + [10.0] * 3 + [20.0] * 3 + [30.0] * 3 == begun


def test_a_rate_counts_from_the_moment_of_the_call_and_not_of_the_claim():
    clock = Hand()
    limits, slow = Limits(clock), made(rate=Rate(1, per=timedelta(seconds=10)))
    place = limits.take(slow)
    assert place is not None
    clock.now = 9.0
    limits.calling(place)
    limits.leave(place)
    clock.now = 18.9
    assert ("rate", None) == (limits.obstacle(slow), limits.take(slow))
    clock.now = 19.0
    assert limits.take(slow) is not None


def test_a_place_given_back_unused_costs_nothing():
    limits, slow = Limits(Hand()), made(rate=Rate(1), concurrency=1)
    for _ in range(5):
        place = limits.take(slow)
        assert place is not None
        limits.leave(place)


def test_tools_do_not_share_their_limits():
    limits = Limits()
    one, other = made(concurrency=1), attrs.evolve(made(concurrency=1), name="other")
    assert limits.take(one) is not None
    assert (None, "concurrency") == (limits.take(one), limits.obstacle(one))
    assert limits.take(other) is not None


@pytest.mark.parametrize(
    "declare",
    [
        lambda: Rate(0),
        lambda: Rate("5"),  # type: ignore[arg-type]
        lambda: Rate(True),
        lambda: Rate(1.5),  # type: ignore[arg-type]
        lambda: Rate(1, per=5),  # type: ignore[arg-type]
        lambda: made(rate=10),
        lambda: made(concurrency=True),
        lambda: made(retry=3),
        lambda: made(retry=RetryPolicy(max_attempts=2.5)),  # type: ignore[arg-type]
        lambda: made(retry=RetryPolicy(first=5)),  # type: ignore[arg-type]
        lambda: made(retry=RetryPolicy(longest=60)),  # type: ignore[arg-type]
        lambda: made(retry=RetryPolicy(factor="2")),  # type: ignore[arg-type]
        lambda: made(retry_on=[ConnectionError]),
        lambda: Rate(1, per=timedelta(0)),
        lambda: made(concurrency=0),
        lambda: made(concurrency=1.5),
        lambda: made(retry_on=BaseException),
        lambda: made(retry_on=(ValueError, "x")),
        lambda: tool(concurrency=1)(len),
        lambda: tool(rate=Rate(1))(len),
        lambda: tool(retry_on=ValueError)(len),
    ],
)
def test_policies_that_could_only_fail_later_fail_where_they_are_declared(declare):
    with pytest.raises(DefinitionError):
        declare()


class Busy(Outside):
    """Its tool ``limited`` counts how many of its calls are under way."""

    def __init__(self, url: str = "", **policies: Any) -> None:
        super().__init__(url)
        self.inside = self.most = 0

        async def limited(name: str) -> str:
            self.begun.append(name)
            self.inside += 1
            self.most = max(self.most, self.inside)
            await asyncio.sleep(self.seconds.get(name, 0.02))
            self.inside -= 1
            return name

        self.tools = ToolSet([*self.tools, tool(side_effect=True, **policies)(limited)])


def test_no_more_calls_of_a_tool_are_under_way_than_it_allows_and_all_of_them_happen(log_url):
    with Busy(log_url, concurrency=2) as busy:
        for n in range(12):
            busy.stage(f"x{n}", key=f"k{n}", tool="limited")
        (effector,) = busy.serve()
        assert (2, 12, 12) == (busy.most, len(busy.begun), effector.counts.by_status["OK"])


def test_keys_that_wait_for_a_limited_tool_take_no_place_from_other_tools():
    with Busy(concurrency=1) as busy:
        busy.seconds = {f"x{n}": 0.2 for n in range(6)}
        for n in range(6):
            busy.stage(f"x{n}", key=f"x{n}", tool="limited")
        for n in range(6):
            busy.stage(f"free{n}", key=f"free{n}")
        busy.serve(concurrency=2)
        assert {f"free{n}" for n in range(6)} <= set(busy.begun[:8])
        assert 1 == busy.most


def test_calls_keep_to_the_rate_and_other_tools_go_on():
    with Busy(rate=Rate(2, per=timedelta(milliseconds=400))) as busy:
        for n in range(5):
            busy.stage(f"x{n}", f"y{n}", key=f"x{n}", tool="limited")
        busy.stage("free", key="free")
        busy.serve()
        attempts = sorted(each.recorded_at for n in range(5) for each in busy.log.read(f"a-x{n}") if each.type == "intent.attempted")
        assert 10 == len(attempts)
        assert all(later - earlier > 0.3 * SECOND for earlier, later in zip(attempts, attempts[2:], strict=False))
        assert busy.begun.index("free") <= 2


def test_an_intent_that_waits_for_its_tool_expires_like_any_other():
    """S-6.3: never attempted, so EXPIRED; and what stands behind it in its key is not held up by that."""
    with Busy(rate=Rate(1, per=timedelta(hours=1))) as busy:
        busy.stage("first", key="a", tool="limited")
        busy.serve()
        busy.stage("late", key="b", tool="limited", ttl=SECOND // 2)
        busy.stage("after", key="b")

        async def run() -> None:
            effector, committer = serving(busy)
            effector._limits.calling(effector._limits.take(busy.tools.named("limited")))  # type: ignore[arg-type]
            running = asyncio.create_task(effector.run())
            await until(lambda: busy.statuses("b") == ["EXPIRED", "OK"])
            await stopped(effector, committer, running)

        asyncio.run(run())
        assert ["first", "after"] == busy.begun


def test_what_keeps_keys_is_told_by_reason():
    with Busy(concurrency=1) as busy:
        busy.seconds = {"x": 60}
        busy.stage("x", key="x", tool="limited")
        busy.stage("y", key="y", tool="limited")
        busy.stage("z", key="z", tool="tomorrow")

        async def run() -> None:
            effector, committer = serving(busy, hold_unknown=True, grace=0.0)
            running = asyncio.create_task(effector.run())
            await until(lambda: effector.report()["keys_waiting"] == {"concurrency": 1, "unknown tool": 1})
            assert (3, 1) == (effector.report()["open_intents"], effector.report()["keys_in_flight"])
            await stopped(effector, committer, running)

        asyncio.run(run())


def test_a_blocking_tool_that_leaves_its_threads_behind_is_not_called_again_until_one_ends(monkeypatch):
    """It is told, its keys wait, and other tools go on: the threads that a process loses are bounded."""
    monkeypatch.setattr(module, "MOST_OVERDUE", 3)
    gate, troubles = threading.Event(), list[str]()

    def leaking(name: str) -> str:
        gate.wait(30)
        return name

    with Outside() as outside:
        tools = ToolSet([*outside.tools, tool(side_effect=True, timeout=timedelta(milliseconds=30))(leaking)])
        for n in range(6):
            outside.stage(f"x{n}", key=f"x{n}", tool="leaking")
        outside.stage("free", key="free")

        async def run() -> None:
            effector, committer = serving(outside, Heard(), tools=tools, concurrency=1)
            effector._on_error = lambda doing, problem: troubles.append(str(problem))
            running = asyncio.create_task(effector.run())
            await until(lambda: effector.report()["keys_waiting"] == {"threads": 3} and outside.statuses("free") == ["OK"])
            assert ({"ERROR": 3, "OK": 1}, 3) == (effector.counts.by_status, overdue("leaking"))
            gate.set()
            await until(lambda: effector.counts.settled == 7)
            await until(lambda: overdue("leaking") == 0)
            await stopped(effector, committer, running)

        asyncio.run(run())
        assert any("threads were left behind" in each for each in troubles)
        failures = [fact.failure.type for n in range(6) for fact in outside.of(facts.IntentSettled, f"a-x{n}") if fact.failure]
        assert ["TimedOut"] * 3 == failures


def test_the_thread_of_a_call_that_is_over_its_time_still_counts_as_a_call():
    gate = threading.Event()
    inside, counts = set[str](), list[int]()

    def single(name: str) -> None:
        inside.add(name)
        counts.append(len(inside))
        gate.wait(30)
        inside.remove(name)

    with Outside() as outside:
        tools = ToolSet([tool(side_effect=True, concurrency=1, timeout=timedelta(milliseconds=30))(single)])
        outside.stage("x", key="x", tool="single")
        outside.stage("y", key="y", tool="single")

        async def run() -> None:
            effector, committer = serving(outside, tools=tools)
            running = asyncio.create_task(effector.run())
            await until(lambda: outside.statuses("x") == ["ERROR"] and effector.report()["keys_waiting"] == {"concurrency": 1})
            gate.set()
            await until(lambda: outside.statuses("y"))
            await stopped(effector, committer, running)

        asyncio.run(run())
        assert [1, 1] == counts
