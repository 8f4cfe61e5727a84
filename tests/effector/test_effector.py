"""The effector on a log: lanes, leases, tokens, statuses. The clock is the machine's, for leases are about real time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Self

import pytest

from intentlog.agents import IntentInfo, ToolSet, facts, tool
from intentlog.agents.app import runtime_codec
from intentlog.agents.appends import EFFECTS
from intentlog.agents.committer import Committer
from intentlog.agents.intents import fact_id
from intentlog.effector import Effector, EffectorSettings
from intentlog.eventlog.clock import SECOND, system_clock
from intentlog.eventlog.errors import LeaseLost
from intentlog.eventlog.ids import id_maker
from intentlog.eventlog.log import Claim, EventLog
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.versions import ANY
from tests.stores import usual

CODEC = runtime_codec()
HOUR = 3600 * SECOND


class Outside:
    """A log with intents on it, the tools, and what they saw."""

    def __init__(self, url: str = "") -> None:
        self.log: EventLog = open_log(url or usual.url())
        self.ids = id_maker(system_clock)
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.attempted: list[tuple[str, int]] = []
        self.seconds: dict[str, float] = {}
        self.do: dict[str, Callable[[], Any]] = {}

        async def work(name: str, *, intent: IntentInfo) -> Any:
            self.attempted.append((name, len(self.of(facts.IntentAttempted, intent.stream))))
            self.begun.append(name)
            await asyncio.sleep(self.seconds.get(name, 0))
            self.ended.append(name)
            return self.do.get(name, lambda: name)()

        self.tools = ToolSet(
            [
                tool(side_effect=True, timeout=timedelta(seconds=5))(work),
                tool(side_effect=True, idempotent=True, name="again")(work),
                tool(name="reading")(len_of),
            ]
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.log.close()

    def stage(self, *names: str, key: str = "k", tool: str = "work", ttl: int = HOUR, args: Any = None) -> None:
        for name in names:
            fact = facts.IntentStaged(name, 0, 0, tool, {"name": name} if args is None else args, b"", system_clock() + ttl if ttl else 0)
            self.log.append(f"a-{key}", [CODEC.stage(fact, event_id=self.ids())], ANY)

    def of(self, kind: Any, stream: str = "a-k") -> list[Any]:
        return [fact for each in self.log.read(stream) if isinstance(fact := CODEC.decode_stored(each), kind)]

    def statuses(self, key: str = "k") -> list[str]:
        return [fact.status for fact in self.of(facts.IntentSettled, f"a-{key}")]

    def effector(self, committer: Committer, owner: str = "e", lease: float = 30, boundary: Any = lambda name, stream: None, **options: Any) -> Effector:
        settings = EffectorSettings(poll=0.005, lease=int(lease * SECOND), **options)
        return Effector(CODEC, self.tools, self.log, owner=owner, committer=committer, settings=settings, boundary=boundary)

    def serve(self, *, owners: tuple[str, ...] = ("e",), until: Callable[[], bool] | None = None, **options: Any) -> list[Effector]:
        """Effectors until none has anything to do, or until ``until``; all of them stopped in order."""

        async def run() -> list[Effector]:
            committers = [Committer(self.log) for _ in owners]
            made = [self.effector(committer, owner, **options) for committer, owner in zip(committers, owners, strict=True)]
            running = [asyncio.create_task(each.run()) for each in made]
            try:
                async with asyncio.timeout(10):
                    while not (until() if until else all([await each.idle() for each in made])):  # noqa: ASYNC110 - it is on the log
                        await asyncio.sleep(0.005)
            finally:
                for each in made:
                    each.stop()
                await asyncio.gather(*running)
                for committer in committers:
                    committer.close()
            return made

        return asyncio.run(run())


def len_of(name: str) -> int:
    return len(name)


@pytest.fixture
def outside(log_url: str) -> Any:
    with Outside(log_url) as made:
        yield made


def test_many_keys_at_once_and_each_in_its_order(outside):
    for key in range(20):
        outside.stage(*(f"{key}.{n}" for n in range(5)), key=f"k{key}")
    (effector,) = outside.serve()
    for key in range(20):
        assert [f"{key}.{n}" for n in range(5)] == [name for name in outside.begun if name.startswith(f"{key}.")]
    assert (100, 100, {"OK": 100}, 0, 0) == (
        effector.counts.attempts,
        effector.counts.settled,
        effector.counts.by_status,
        effector.counts.refused,
        effector.counts.stale,
    )


def test_within_a_key_the_next_begins_when_the_last_is_settled():
    with Outside() as outside:
        outside.seconds = {"x": 0.05}
        outside.stage("x", "y")
        outside.serve()
        types = [each.type for each in outside.log.read("a-k")]
        assert ["intent.attempted", "intent.settled"] * 2 == types[2:]
        assert ["x", "y"] == outside.ended


def test_one_slow_key_holds_up_no_other():
    """S-6.6"""
    with Outside() as outside:
        outside.seconds = {"slow": 0.3}
        outside.stage("slow", key="slow")
        outside.stage("quick", key="quick")
        outside.serve()
        assert ["quick", "slow"] == outside.ended


def test_blocking_tools_hold_up_no_renewal_when_there_are_more_of_them_than_threads():
    """S-6.7, through the process that ``eventlog run`` is."""
    from intentlog.agents import App, Input, agent, send
    from intentlog.effector.process import Process
    from tests.agents.world import Ctx

    inside = threading.Barrier(24)

    @tool(side_effect=True)
    def together(n: int) -> int:
        return inside.wait(5)  # passes only when all of them are in here at once

    async def code(ctx: Ctx) -> str:
        return ctx.act("together", n=ctx.input)

    app = App(agents=[agent("a")(code)], tools=[together])
    log = open_log("memory://")
    for n in range(24):
        send(app, log, Input("a", f"k{n}", n, "x"))
    asyncio.run(Process(app, log, "p").run(until_idle=True))
    assert ["OK"] * 24 == [CODEC.decode_stored(each).status for each in log.read_all(types=["intent.settled"])]
    log.close()


CASES: dict[str, tuple[dict[str, Any], str, int]] = {
    "expired": ({"ttl": -SECOND}, "EXPIRED", 0),
    "no expiry": ({"ttl": 0}, "EXPIRED", 0),
    "unknown tool": ({"tool": "gone"}, "REJECTED", 0),
    "a read": ({"tool": "reading"}, "REJECTED", 0),
    "bad arguments": ({"args": {"name": 7}}, "REJECTED", 0),
    "no arguments": ({"args": {}}, "REJECTED", 0),
    "good": ({}, "OK", 1),
}


@pytest.mark.parametrize("case", CASES)
def test_every_intent_gets_the_one_outcome_that_fits(outside, case):
    options, status, calls = CASES[case]
    outside.stage("x", **options)
    outside.stage("after")
    outside.serve()
    assert [status, "OK"] == outside.statuses()
    assert calls + 1 == len(outside.begun)
    assert calls + 1 == len(outside.of(facts.IntentAttempted))


class Odd(BaseException):
    pass


PROBLEMS = [ValueError("x"), SystemExit(1), KeyboardInterrupt(), Odd(), asyncio.CancelledError(), GeneratorExit("x"), StopIteration("x")]


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: type(problem).__name__)
@pytest.mark.parametrize("way", ["async", "blocking", "awaited"])
def test_a_tool_that_raises_is_an_error_at_once_and_the_key_goes_on(problem, way):
    def fail() -> None:
        raise problem

    def blocking(name: str) -> None:
        fail()

    async def awaited(name: str) -> None:
        """What closes a coroutine comes out of what it waits for."""
        future = asyncio.get_running_loop().create_future()
        future.set_exception(RuntimeError("as a future makes of it") if isinstance(problem, StopIteration) else problem)
        await future

    with Outside() as outside:
        outside.tools = ToolSet([*outside.tools, tool(side_effect=True)(blocking), tool(side_effect=True)(awaited)])
        outside.do = {"x": fail, "z": object}
        outside.stage("x", tool="work" if way == "async" else way)
        outside.stage("y", "z")
        (effector,) = outside.serve()
        assert (["ERROR", "OK", "ERROR"], 3) == (outside.statuses(), effector.counts.settled)


def test_an_attempt_is_on_the_log_before_its_tool_is_called(outside):
    outside.stage("x", "y")
    outside.serve()
    assert [("x", 1), ("y", 2)] == outside.attempted


def test_nothing_is_done_again_by_an_effector_that_comes_later(outside):
    outside.stage("x", "y")
    outside.serve()
    outside.log.checkpoints.reset("effector")
    (later,) = outside.serve(owners=("later",))
    assert (["x", "y"], 0) == (outside.begun, later.counts.settled)


def test_a_settlement_that_comes_second_is_refused_and_counted_and_the_key_goes_on():
    """S-6.2"""
    with Outside() as outside:

        def somebody_else() -> str:
            fact = facts.IntentSettled("x", "CANCELLED", settled_by="a person")
            outside.log.append("a-k", [CODEC.stage(fact, event_id=fact_id("settled", "x"))], ANY)
            return "mine"

        outside.do = {"x": somebody_else}
        outside.stage("x", "y")
        (effector,) = outside.serve()
        assert ["CANCELLED", "OK"] == outside.statuses()
        assert (1, 1) == (effector.counts.refused, effector.counts.settled)


def test_what_an_owner_writes_after_it_lost_the_key_is_refused_and_counted(outside):
    """S-6.4"""

    def robbed() -> str:
        outside.log.schedule.evict("e")
        now = system_clock()
        assert outside.log.schedule.acquire(EFFECTS, ["a-k"], "other", now=now, until=now + SECOND // 5)
        return "too late"

    outside.do = {"x": robbed}
    outside.stage("x")
    (effector,) = outside.serve()
    assert ["UNKNOWN"] == outside.statuses()
    assert (1, 1) == (effector.counts.stale, len(outside.begun))


@pytest.mark.parametrize("name", ["work", "again"])
def test_a_lease_is_renewed_while_a_tool_runs_longer_than_it(outside, name):
    """S-6.7"""
    outside.seconds = {"x": 0.6}
    outside.stage("x", tool=name)
    outside.serve(owners=("one", "two"), lease=0.2)
    assert (["x"], ["OK"], 1) == (outside.begun, outside.statuses(), len(outside.of(facts.IntentAttempted)))


def test_two_effectors_share_the_work_and_never_do_the_same(shared_url):
    with Outside(shared_url) as outside:
        for key in range(40):
            for n in range(3):
                outside.seconds[f"{key}.{n}"] = 0.005
                outside.stage(f"{key}.{n}", key=f"k{key}")
        made = outside.serve(owners=("one", "two"), concurrency=8)
        assert 120 == len(outside.begun) == len(set(outside.begun))
        assert 120 == sum(each.counts.settled for each in made)
        assert all(each.counts.settled > 0 for each in made)


def test_a_busy_key_is_waited_for(outside):
    """S-6.6"""
    now = system_clock()
    (token,) = outside.log.schedule.acquire(EFFECTS, ["a-k"], "busy", now=now, until=now + 60 * SECOND).values()
    outside.stage("x")

    async def run() -> None:
        committer = Committer(outside.log)
        effector = outside.effector(committer)
        running = asyncio.create_task(effector.run())
        async with asyncio.timeout(30):
            while effector.counts.busy < 3:  # noqa: ASYNC110 - there is nothing to wait on
                await asyncio.sleep(0.005)
            assert [] == outside.begun
            outside.log.schedule.release([Claim(EFFECTS, "a-k", token, None)])
            while not await effector.idle():  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        effector.stop()
        await running
        committer.close()

    asyncio.run(run())
    assert (["x"], ["OK"]) == (outside.begun, outside.statuses())


def test_a_clean_stop_hands_back_the_keys_whose_tools_have_ended_and_leaves_the_others():
    """S-6.7"""
    with Outside() as outside:
        outside.seconds = {"stuck": 60, "short": 0.1}
        outside.stage("stuck", key="stuck")
        outside.stage("short", "never begun", key="short")
        outside.serve(until=lambda: len(outside.begun) == 2, grace=0.3)
        assert ["short"] == outside.ended
        assert ["OK"] == outside.statuses("short")
        now = system_clock()
        assert ["a-short"] == list(outside.log.schedule.acquire(EFFECTS, ["a-short", "a-stuck"], "next", now=now, until=now + SECOND))


def test_a_crash_before_the_call_or_after_it_is_seen_as_an_attempt_without_an_end(outside):
    def die(name: str, stream: str) -> None:
        if name in ("attempt.recorded", "tool.called") and stream == f"a-{name}":
            raise LeaseLost("died here")

    for name in ("attempt.recorded", "tool.called"):
        outside.stage(name, key=name)
        outside.stage(f"{name} again", key=name, tool="again")
    outside.serve(boundary=die, until=lambda: len([*outside.log.read_all(types=["intent.attempted"])]) == 2)
    assert 0 == len([*outside.log.read_all(types=["intent.settled"])])
    outside.log.schedule.evict("e")
    outside.serve(owners=("next",))
    for name in ("attempt.recorded", "tool.called"):
        assert ["UNKNOWN", "OK"] == outside.statuses(name)
    assert 1 == outside.begun.count("tool.called")
    assert 0 == outside.begun.count("attempt.recorded")


def test_the_checkpoint_never_passes_an_open_intent(outside):
    """S-6.8"""
    outside.stage("x", "y")
    outside.serve()
    done = outside.log.checkpoints.load("effector")
    assert done == outside.log.last_position()
    outside.seconds = {"stuck": 60}
    outside.stage("stuck", key="stuck")
    outside.stage("z")
    outside.serve(until=lambda: "z" in outside.ended and "stuck" in outside.begun, grace=0.0)
    (staged,) = [each.position for each in outside.log.read("a-stuck") if each.type == "intent.staged"]
    assert outside.log.checkpoints.load("effector") < staged


def test_while_the_store_is_down_the_effector_waits_and_nothing_is_lost_or_done_twice(monkeypatch):
    from intentlog.eventlog.errors import LogUnavailable

    with Outside() as outside:
        outside.stage("x", "y")
        down = [3]
        append = outside.log.append_batch

        def flaky(requests: Any) -> Any:
            outcomes = append(requests)
            if down[0]:
                down[0] -= 1
                raise LogUnavailable("the answer was lost")
            return outcomes

        monkeypatch.setattr(outside.log, "append_batch", flaky)
        outside.serve()
        assert (["x", "y"], ["OK", "OK"]) == (outside.begun, outside.statuses())
