"""What goes wrong around an effector, and exactly what is seen of it. In this process, where every moment can be held."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from intentlog.agents import ToolSet, facts, tool
from intentlog.agents.committer import Committer
from intentlog.effector import Effector, EffectorSettings
from intentlog.effector import lanes as module
from intentlog.effector.supervision import Supervisor, Watchdog
from intentlog.effector.watching import Watching
from intentlog.eventlog.clock import SECOND, system_clock
from intentlog.eventlog.errors import LogUnavailable
from intentlog.eventlog.opening import open_log
from tests.effector.test_effector import CODEC, Outside

MINUTE = 60 * SECOND


class Heard(Watching):
    def __init__(self) -> None:
        self.failures: list[tuple[str, str]] = []
        self.abandoned_of: list[str] = []

    def failed(self, part: str, problem: BaseException) -> None:
        self.failures.append((part, type(problem).__name__))

    def abandoned(self, pending: Any, seconds: float) -> None:
        self.abandoned_of.append(pending.intent.intent_id)


async def until(holds: Callable[[], Any]) -> None:
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110 - threads and other effectors bring it about
            await asyncio.sleep(0.005)


def serving(outside: Outside, watching: Watching | None = None, log: Any = None, tools: ToolSet | None = None, **options: Any) -> tuple[Effector, Committer]:
    on = log or outside.log
    committer = Committer(on)
    lease = int(options.pop("lease", 30) * SECOND)
    settings = EffectorSettings(poll=0.005, lease=lease, **options)
    owner = f"e{id(committer)}"
    return Effector(CODEC, tools or outside.tools, on, owner=owner, committer=committer, settings=settings, watching=watching), committer


async def stopped(effector: Effector, committer: Committer, running: asyncio.Task[None]) -> None:
    effector.stop()
    await running
    committer.close()


def test_an_outcome_that_is_known_is_kept_until_the_store_takes_it(monkeypatch):
    """Show 3, store down: the tool of a non-idempotent intent is called once and its outcome is OK, not UNKNOWN."""
    with Outside() as outside:
        heard, down, append = Heard(), threading.Event(), outside.log.append_batch

        def unreachable(requests: Any) -> Any:
            if down.is_set():
                raise LogUnavailable("no route")
            return append(requests)

        monkeypatch.setattr(outside.log, "append_batch", unreachable)
        monkeypatch.setattr("intentlog.agents.committer._TRIES", 2)

        def pay() -> str:
            down.set()
            return "paid"

        outside.do = {"x": pay}
        outside.stage("x", "y")

        async def run() -> None:
            effector, committer = serving(outside, heard)
            running = asyncio.create_task(effector.run())
            await until(lambda: heard.failures.count(("appends", "LogUnavailable")) == 2)
            outside.do.clear()
            down.clear()
            await until(lambda: outside.statuses() == ["OK", "OK"])
            await stopped(effector, committer, running)

        asyncio.run(run())
        assert (["x", "y"], ["paid", "y"]) == (outside.begun, [each.value for each in outside.of(facts.IntentSettled)])


def test_a_tool_deaf_to_its_timeout_is_left_to_its_lease_and_the_others_go_on(monkeypatch):
    monkeypatch.setattr(module, "_DEAF", 0.1)
    with Outside() as outside:
        heard, calls = Heard(), []

        async def run() -> None:
            let_go = asyncio.Event()

            async def deaf(name: str) -> str:
                calls.append(name)
                while not let_go.is_set():
                    try:
                        await let_go.wait()
                    except asyncio.CancelledError:
                        continue
                return "at last"

            tools = ToolSet([*outside.tools, tool(side_effect=True, timeout=timedelta(seconds=0.1), name="deaf")(deaf)])
            outside.stage("x", tool="deaf")
            outside.stage("y", key="other")
            effector, committer = serving(outside, heard, tools=tools, lease=0.4)
            running = asyncio.create_task(effector.run())
            await until(lambda: outside.statuses() == ["UNKNOWN"] and outside.statuses("other") == ["OK"])
            let_go.set()
            await until(lambda: effector.counts.stale > 0)
            await stopped(effector, committer, running)
            assert 0 == effector.active

        asyncio.run(run())
        assert (["x"], ["x"], ["UNKNOWN"]) == (calls, heard.abandoned_of, outside.statuses())


def test_tools_that_ignore_their_timeout_do_not_use_up_the_threads():
    gate = threading.Event()

    def stuck(name: str) -> str:
        gate.wait(30)
        return name

    with Outside() as outside:
        tools = ToolSet([*outside.tools, tool(side_effect=True, timeout=timedelta(seconds=0.02), name="stuck")(stuck)])
        for n in range(60):
            outside.stage(f"s{n}", key=f"s{n}", tool="stuck")
        outside.stage("y", key="y")

        async def run() -> None:
            effector, committer = serving(outside, tools=tools, concurrency=4)
            running = asyncio.create_task(effector.run())
            await until(lambda: effector.counts.by_status == {"ERROR": 60, "OK": 1})
            await stopped(effector, committer, running)

        asyncio.run(run())
        gate.set()


def test_an_unknown_tool_is_held_for_an_effector_that_knows_it_and_expires_like_any_other():
    with Outside() as outside:
        outside.stage("new", tool="tomorrow")
        outside.stage("behind")
        outside.stage("other", key="other")
        outside.stage("brief", key="brief", tool="tomorrow", ttl=SECOND // 2)

        async def run() -> None:
            older, committer = serving(outside, hold_unknown=True)
            running = asyncio.create_task(older.run())
            await until(lambda: outside.statuses("other") == ["OK"] and outside.statuses("brief") == ["EXPIRED"])
            assert ([], ["other"]) == (outside.statuses(), outside.begun)
            tools = ToolSet([*outside.tools, tool(side_effect=True, name="tomorrow")(lambda_of)])
            newer, second = serving(outside, tools=tools, hold_unknown=True)
            also = asyncio.create_task(newer.run())
            await until(lambda: outside.statuses() == ["OK", "OK"])
            await stopped(newer, second, also)
            await stopped(older, committer, running)

        asyncio.run(run())
        assert ["other", "behind"] == outside.begun


def lambda_of(name: str) -> str:
    return name


def with_a_bank(name: str, bank: str) -> str:
    return name


def with_a_number(name: int) -> str:
    return str(name)


def with_a_currency(name: str, currency: str = "EUR") -> str:
    return f"{name} {currency}"


#: What this replica knows of a tool whose next version is staged for, and the arguments of that version.
OLDER: dict[str, tuple[Any, dict[str, Any]]] = {
    "lacks a parameter": (tool(side_effect=True, name="pay")(lambda_of), {"name": "x", "currency": "USD"}),
    "needs one more": (tool(side_effect=True, name="pay")(with_a_bank), {"name": "x"}),
    "takes another type": (tool(side_effect=True, name="pay")(with_a_number), {"name": "x"}),
    "had no side effect": (tool(name="pay")(lambda_of), {"name": "x"}),
}


@pytest.mark.parametrize("case", OLDER)
def test_arguments_that_an_older_tool_does_not_know_are_held_like_an_unknown_tool(case):
    """While replicas are replaced one by one, an older one must not refuse for good what a newer one can carry out."""
    known, args = OLDER[case]
    with Outside() as outside:
        outside.stage("new", tool="pay", args=args)
        outside.stage("behind")
        outside.stage("other", key="other")
        outside.stage("brief", key="brief", tool="pay", args=args, ttl=SECOND // 2)
        newer_tools = ToolSet([*outside.tools, tool(side_effect=True, name="pay")(with_a_currency)])
        older_tools = ToolSet([*outside.tools, known])

        async def run() -> None:
            older, committer = serving(outside, tools=older_tools, hold_unknown=True)
            running = asyncio.create_task(older.run())
            await until(lambda: outside.statuses("other") == ["OK"] and outside.statuses("brief") == ["EXPIRED"])
            await until(lambda: dict(older.waiting) == {"unknown tool": 1})
            assert ([], ["other"]) == (outside.statuses(), outside.begun)
            newer, second = serving(outside, tools=newer_tools, hold_unknown=True)
            also = asyncio.create_task(newer.run())
            await until(lambda: outside.statuses() == ["OK", "OK"])
            await stopped(newer, second, also)
            await stopped(older, committer, running)

        asyncio.run(run())
        assert f"x {args.get('currency', 'EUR')}" == outside.of(facts.IntentSettled)[0].value


@pytest.mark.parametrize("case", OLDER)
def test_where_unknown_tools_are_rejected_so_are_arguments_that_do_not_fit(case):
    known, args = OLDER[case]
    with Outside() as outside:
        outside.tools = ToolSet([*outside.tools, known])
        outside.stage("new", tool="pay", args=args)
        outside.stage("behind")
        outside.serve()
        assert (["REJECTED", "OK"], ["behind"]) == (outside.statuses(), outside.begun)


def test_after_five_hundred_keys_no_task_no_thread_and_no_lease_is_left():
    with Outside() as outside:
        for n in range(500):
            outside.stage(f"x{n}", key=f"k{n}")

        async def run() -> None:
            effector, committer = serving(outside, concurrency=64)
            running = asyncio.create_task(effector.run())
            await until(lambda: effector.counts.settled == 500)
            await until(lambda: effector.active == 0)
            assert len(asyncio.all_tasks()) <= 12
            await stopped(effector, committer, running)
            assert 1 == len(asyncio.all_tasks())

        asyncio.run(run())
        assert sorted(f"x{n}" for n in range(500)) == sorted(outside.begun)
        assert set() == outside.log.schedule.owners()


SKEWS = {"5 min ahead": (5 * MINUTE, "OK"), "5 min behind": (-5 * MINUTE, "OK"), "further ahead than the lease": (11 * MINUTE, "UNKNOWN")}


@pytest.mark.parametrize("case", SKEWS)
def test_a_clock_that_is_off_by_less_than_the_lease_costs_nothing_and_by_more_only_certainty(case, tmp_path):
    skew, status = SKEWS[case]
    url = f"sqlite:///{tmp_path}/t.db"
    with Outside(url) as outside:
        other = open_log(url, clock=lambda: system_clock() + skew)
        outside.seconds = {"x": 0.4}
        outside.stage("x")

        async def run() -> None:
            one, first = serving(outside, lease=600)
            running = asyncio.create_task(one.run())
            await until(lambda: outside.begun)
            two, second = serving(outside, log=other, lease=600)
            also = asyncio.create_task(two.run())
            await until(lambda: outside.statuses() and outside.ended)
            await stopped(two, second, also)
            await stopped(one, first, running)

        asyncio.run(run())
        assert (["x"], [status]) == (outside.begun, outside.statuses())
        other.close()


def test_a_result_of_30_mb_is_recorded_whole_and_the_key_goes_on():
    with Outside() as outside:
        outside.do = {"x": lambda: "x" * 30_000_000}
        outside.stage("x", "y")
        outside.serve()
        first, second = outside.of(facts.IntentSettled)
        assert ("OK", 30_000_000, "OK") == (first.status, len(first.value), second.status)


class Quiet:
    """A logger that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []

    def warning(self, event: str, **more: Any) -> None:
        self.told.append((event, more))

    error = info = debug = warning


def supervised(**quiet: float) -> Supervisor:
    return Supervisor(Quiet(), {**dict.fromkeys(("tail", "renewals", "checkpoint", "lanes", "appends"), 30.0), **quiet})


@pytest.mark.parametrize("part, facet, method", [("renewals", "schedule", "renew"), ("checkpoint", "checkpoints", "save"), ("tail", "", "read_all")])
def test_a_part_that_fails_is_begun_again_and_shows_in_health_until_it_works(part, facet, method, monkeypatch):
    with Outside() as outside:
        outside.stage("x", tool="patient")
        supervisor = supervised()
        owner = getattr(outside.log, facet) if facet else outside.log
        works, broken = getattr(owner, method), [3]

        async def patient(name: str) -> None:
            outside.begun.append(name)
            while part == "renewals" and broken[0]:  # noqa: ASYNC110 - leases are renewed while a tool runs, by threads
                await asyncio.sleep(0.005)

        tools = ToolSet([tool(side_effect=True)(patient)])

        def fails(*given: Any, **named: Any) -> Any:
            if broken[0]:
                broken[0] -= 1
                raise RuntimeError("a bug")
            return works(*given, **named)

        seen: set[str] = set()

        async def run() -> None:
            effector, committer = serving(outside, supervisor, tools=tools, lease=0.2)
            monkeypatch.setattr(owner, method, fails)
            running = asyncio.create_task(effector.run(supervisor.keep))
            async with asyncio.timeout(20):
                while outside.statuses() != ["OK"] or broken[0] or supervisor.report()["parts"][part]["state"] != "running":
                    report = supervisor.report()
                    seen.add(f"{report['ready']} {report['parts'][part]['state']} {report['parts'][part].get('error', '')}")
                    await asyncio.sleep(0.005)
            supervisor.stop()
            await stopped(effector, committer, running)

        asyncio.run(run())
        assert (["x"], 3) == (outside.begun, supervisor.parts[part].restarts)
        assert "False failing RuntimeError" in seen


def test_a_part_that_hangs_is_found_by_the_watchdog_told_once_and_begun_again(monkeypatch):
    with Outside() as outside:
        outside.stage("x")
        supervisor, hanging, reads = supervised(tail=0.3), threading.Event(), outside.log.read_all
        told = supervisor._log.told
        first = [True]

        def hangs(*given: Any, **named: Any) -> Any:
            if first:
                first.pop()
                hanging.wait(20)
            return reads(*given, **named)

        monkeypatch.setattr(outside.log, "read_all", hangs)

        async def run() -> None:
            effector, committer = serving(outside, supervisor)
            watchdog = Watchdog(supervisor, asyncio.get_running_loop(), supervisor._log, every=0.05)
            watchdog.start()
            running = asyncio.create_task(effector.run(supervisor.keep))
            await until(lambda: "part stuck" in [event for event, _ in told])
            await until(lambda: outside.statuses() == ["OK"])
            await until(lambda: supervisor.report()["live"])
            watchdog.stop()
            supervisor.stop()
            await stopped(effector, committer, running)
            hanging.set()

        asyncio.run(run())
        assert 1 == supervisor.parts["tail"].restarts
        assert ["tail"] == [more["part"] for event, more in told if event == "part stuck"]


def test_a_process_that_stood_still_forgives_its_parts():
    supervisor = supervised(tail=0.01)
    time.sleep(0.05)
    assert ["tail"] == [each.name for each in supervisor.stuck()]
    supervisor.forgive()
    assert supervisor.report()["live"]
