"""What goes wrong around an effector on a bus, and exactly what is seen of it."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from types import SimpleNamespace

import pytest

from intentlog.agents import ToolSet, tool
from intentlog.effector.bus import BusUnavailable, MemoryBroker, wire
from intentlog.effector.bus import calling as module
from intentlog.effector.bus.engine import PARTS, PASSIVE
from intentlog.effector.bus.memory import MemorySource
from intentlog.effector.dedup import StoreUnfit
from intentlog.effector.phases import Outcome
from intentlog.effector.supervision import Supervisor
from intentlog.effector.watching import Everyone
from intentlog.eventlog.clock import SECOND, system_clock
from tests.effector.bus.scene import CODEC, MINUTE, Scene, staged, until
from tests.effector.service.test_troubles import Quiet

WEEK = 7 * 86_400 * SECOND


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_tool_deaf_to_its_timeout_is_left_to_its_lease_and_other_keys_go_on(scene: Scene, monkeypatch):
    monkeypatch.setattr(module, "_DEAF", 0.1)

    async def run() -> None:
        let_go = asyncio.Event()

        async def deaf(name: str) -> str:
            while not let_go.is_set():
                try:
                    await let_go.wait()
                except asyncio.CancelledError:
                    continue
            return "at last"

        tools = ToolSet([*scene.tools, tool(side_effect=True, timeout=timedelta(seconds=0.1), name="deaf")(deaf)])
        name = scene.stage("k", "deaf", name="x")
        for n in range(8):
            scene.stage(f"other{n}", name=f"{n}")
        async with scene.serving(scene.effector(tools=tools, lease=0.5)):
            await until(scene.done)
            let_go.set()
        assert ("UNKNOWN", [("abandoned", name)]) == (scene.statuses()[name], [each for each in scene.heard.told if each[0] == "abandoned"])

    asyncio.run(run())
    assert 9 == len(scene.results())


def test_a_tool_that_could_not_hear_of_its_timeout_because_all_of_the_process_stood_still_is_not_called_deaf(scene: Scene, monkeypatch):
    monkeypatch.setattr(module, "_DEAF", 0.1)
    monkeypatch.setattr(module, "_OVERSLEPT", 0.2)

    async def sleeper(name: str) -> None:
        asyncio.get_running_loop().call_soon(time.sleep, 1.0)  # the loop, as when the process is stopped
        try:
            await asyncio.sleep(60)
        finally:
            for _ in range(5):
                await asyncio.sleep(0)

    tools = ToolSet([*scene.tools, tool(side_effect=True, timeout=timedelta(seconds=0.1))(sleeper)])
    scene.stage("k", "sleeper", name="x")
    scene.serve(scene.effector(tools=tools))
    ((_, said),) = scene.results()
    assert ("ERROR", "TimedOut", []) == (said.status, said.failure.type, scene.heard.told)  # type: ignore[union-attr]


EXPIRED = {
    "never attempted": ("work", 0, "EXPIRED"),
    "attempted, and its end not seen": ("work", 1, "UNKNOWN"),
    "an idempotent tool attempted": ("push", 1, "ERROR"),
}


@pytest.mark.parametrize("case", EXPIRED)
@pytest.mark.parametrize("ttl", [-SECOND, 0])
def test_an_intent_past_its_deadline_is_never_run_and_reported_as_what_is_known_of_it(scene: Scene, case: str, ttl: int):
    kind, attempts, status = EXPIRED[case]
    name, message = staged(tool=kind, ttl=ttl)
    now = system_clock() - MINUTE
    if attempts:
        mine = scene.store.claim(name, "dead", now=now, until=now + SECOND)
        scene.store.attempt(name, mine.token, now=now)  # type: ignore[union-attr]
    scene.publish(message)
    scene.serve()
    assert (status, attempts) == ((said := scene.results()[0][1]).status, said.attempts)
    assert [] == scene.begun


def test_a_stored_outcome_beats_the_deadline(scene: Scene):
    name, message = staged(ttl=SECOND)
    scene.publish(message)
    scene.serve()
    scene.publish(message)
    scene.serve(scene.effector(clock=lambda: system_clock() + MINUTE))
    assert ({name: "OK"}, 2, ["x"]) == (scene.statuses(), len(scene.results()), scene.begun)


def test_an_intent_that_somebody_carries_out_beyond_its_deadline_is_reported_as_what_came_of_it(scene: Scene):
    """Busy is waited for, past the deadline too: nobody says EXPIRED of what is running."""
    name, message = staged(scene.key_in(1), "nap", SECOND, name="x", seconds=0.5)

    async def run() -> None:
        scene.publish(message)
        async with scene.serving(scene.effector()):
            await until(lambda: scene.begun)
            async with scene.serving(second := scene.effector(clock=lambda: system_clock() + MINUTE // 3)):
                await until(lambda: second.counts.busy)
                await until(scene.done)

    asyncio.run(run())
    assert ({name: "OK"}, ["x"]) == (scene.statuses(), scene.begun)


def test_while_the_store_is_down_an_expired_intent_waits_unacknowledged_and_is_not_run(scene: Scene):
    name = scene.stage(ttl=-SECOND)
    scene.store.away.set()

    async def run() -> None:
        async with scene.serving():
            await until(lambda: scene.heard.failures.count(("store", "StoreUnavailable")) >= 2)
            assert ([], {}) == (scene.results(), scene.broker.acknowledged("intents", "g"))
            scene.store.away.clear()
            await until(scene.done)

    asyncio.run(run())
    assert ({name: "EXPIRED"}, []) == (scene.statuses(), scene.begun)


def test_an_outcome_that_is_known_is_kept_until_the_store_takes_it(scene: Scene):
    """Show 3, store down: a tool that is not idempotent is called once, and its outcome is OK, not UNKNOWN."""

    def pay() -> str:
        scene.store.away.set()
        return "paid"

    scene.do["x"] = pay
    name = scene.stage(name="x")

    async def run() -> None:
        async with scene.serving():
            await until(lambda: scene.heard.failures.count(("store", "StoreUnavailable")) >= 2)
            assert ([], False) == (scene.results(), scene.done())
            scene.store.away.clear()
            await until(scene.done)

    asyncio.run(run())
    assert ({name: "OK"}, ["x"]) == (scene.statuses(), scene.begun)


def test_while_the_sink_is_down_outcomes_are_stored_and_published_later_without_another_call(scene: Scene):
    """Show 3, sink down"""
    scene.down.add("results")
    names = [scene.stage(f"k{n % 3}", name=f"{n}") for n in range(6)]

    async def run() -> None:
        async with scene.serving():
            await until(lambda: scene.heard.failures.count(("results", "BusUnavailable")) >= 4)
            await until(lambda: scene.heard.waits.get("results", 0) >= 1)
            assert ([], {}) == (scene.results(), scene.broker.acknowledged("intents", "g"))
            scene.heard.beats.clear()
            await until(lambda: scene.heard.beats.count("lanes") >= 2)
            assert "results" not in scene.heard.beats
            scene.down.clear()
            await until(scene.done)
            await until(lambda: "results" in scene.heard.beats)

    asyncio.run(run())
    assert (dict.fromkeys(names, "OK"), 6) == (scene.statuses(), len(scene.begun))
    for key in range(3):
        assert [f"{n}" for n in range(key, 6, 3)] == [said.value for stream, said in scene.results() if stream == f"a-k{key}"]


def test_a_lease_that_is_lost_in_mid_call_settles_nothing_and_is_counted(scene: Scene):
    """Show 2: only what the next owner says is published."""
    name, message = staged(tool="nap", name="x", seconds=0.5)
    scene.publish(message)

    async def run() -> None:
        async with scene.serving(scene.effector(lease=60.0)) as effector:
            await until(lambda: scene.begun)
            ahead = system_clock() + 5 * MINUTE
            theirs = scene.store.claim(name, "next", now=ahead, until=ahead + SECOND)
            await until(lambda: effector.counts.stale == 1)
            assert [] == scene.results()
            pending = wire.decode_intent(CODEC, scene.broker.messages("intents")[0])
            value = wire.encode_result(CODEC, pending, Outcome("UNKNOWN"), "next", ahead)  # type: ignore[arg-type]
            scene.store.complete(name, theirs.token, value, status="UNKNOWN", now=ahead, expires_at=ahead + WEEK)  # type: ignore[union-attr]
            await until(scene.done)

    asyncio.run(run())
    assert ({name: "UNKNOWN"}, ["x"], [("lost", name)]) == (scene.statuses(), scene.begun, [each for each in scene.heard.told if each[0] == "lost"])


def test_a_renewal_that_finds_the_claim_gone_ends_the_call(scene: Scene):
    name = scene.stage(tool="nap", name="x", seconds=30.0)

    async def run() -> None:
        async with scene.serving(scene.effector(lease=0.3)) as effector:
            await until(lambda: scene.begun)
            ahead = system_clock() + MINUTE
            scene.store.claim(name, "next", now=ahead, until=ahead + 1)
            await until(lambda: effector.counts.stale == 1)
            await until(lambda: effector.calling == 0)

    begun = time.monotonic()
    asyncio.run(run())
    assert time.monotonic() - begun < 20


def test_what_is_about_to_be_called_when_its_lease_is_over_is_not_called_any_more(scene: Scene):
    """The loop is held up between attempt and call, and somebody else has the claim meanwhile."""
    robbed: list[str] = []
    name = scene.stage(name="x")

    def rob(boundary: str) -> None:
        if boundary == "attempt.recorded" and not robbed:
            robbed.append(boundary)
            ahead = system_clock() + SECOND
            scene.store.claim(name, "next", now=ahead, until=ahead + 1)
            time.sleep(0.6)

    scene.boundaries = SimpleNamespace(append=rob)  # type: ignore[assignment]

    async def run() -> None:
        async with scene.serving(scene.effector(lease=0.5)) as effector:
            await until(scene.done)
            assert (1, 1) == (effector.counts.attempts, effector.counts.stale)

    asyncio.run(run())
    assert ([], {name: "UNKNOWN"}) == (scene.begun, scene.statuses())


SKEWS = {"5 min ahead": (5 * MINUTE, "OK"), "5 min behind": (-5 * MINUTE, "OK"), "further ahead than the lease": (11 * MINUTE, "UNKNOWN")}


@pytest.mark.parametrize("case", SKEWS)
def test_a_clock_that_is_off_by_less_than_the_lease_costs_nothing_and_by_more_only_certainty(scene: Scene, case: str):
    skew, status = SKEWS[case]
    name, message = staged(scene.key_in(1), "nap", name="x", seconds=0.5)

    async def run() -> None:
        scene.publish(message)
        async with scene.serving(scene.effector(lease=600.0)):
            await until(lambda: scene.begun)
            async with scene.serving(second := scene.effector(lease=600.0, clock=lambda: system_clock() + skew)):
                await until(scene.done)
                assert (1, 0) == (second.counts.settled + second.counts.repeated, second.counts.attempts)

    asyncio.run(run())
    assert (["x"], {name: status}) == (scene.begun, scene.statuses())


def test_a_source_that_fails_is_joined_again_and_nothing_is_carried_out_twice(scene: Scene, monkeypatch):

    works, broken = MemorySource.poll, [3]

    def breaks(self, most, timeout):
        if scene.results() and broken[0]:
            broken[0] -= 1
            raise BusUnavailable("gone")
        return works(self, most, timeout)

    monkeypatch.setattr(MemorySource, "poll", breaks)
    names = [scene.stage(f"k{n}", name=f"{n}") for n in range(30)]
    scene.serve()
    assert (0, dict.fromkeys(names, "OK"), 30) == (broken[0], scene.statuses(), len(scene.begun))


def test_a_lane_whose_taking_fails_goes_on_with_other_keys_and_tries_again(scene: Scene, monkeypatch):
    scene.partitions = 1
    broken, works = [2], scene.store.claim

    def fails(intent_id, owner, *, now, until):
        if intent_id == bad and broken[0]:
            broken[0] -= 1
            raise RuntimeError("a fault of ours")
        return works(intent_id, owner, now=now, until=until)

    monkeypatch.setattr(scene.store, "claim", fails)
    bad = scene.stage("k", name="bad")
    scene.stage("other", name="other")
    scene.serve()
    assert (["other", "bad"], [("lane 0", "RuntimeError")] * 2) == (scene.begun, scene.heard.failures)


def test_an_outcome_that_is_known_is_kept_while_the_role_may_not_write_it(scene: Scene, monkeypatch):
    """Of a tool that is not idempotent; the store's part fails all the while, and not only while it is asked."""
    works, taken = scene.store.complete, threading.Event()

    def complete(*args, **options):
        if taken.is_set():
            raise StoreUnfit("this role may not")
        return works(*args, **options)

    monkeypatch.setattr(scene.store, "complete", complete)
    taken.set()
    name = scene.stage(name="x")
    supervisor = Supervisor(Quiet(), dict.fromkeys((*PARTS, *PASSIVE), 60.0))
    scene.watching = Everyone([scene.watching, supervisor])

    async def run() -> None:
        async with scene.serving(scene.effector()):
            await until(lambda: supervisor.report()["parts"]["store"]["state"] == "failing")
            for _ in range(30):
                await asyncio.sleep(0.05)
                assert "failing" == supervisor.report()["parts"]["store"]["state"]
            taken.clear()
            await until(scene.done)

    asyncio.run(run())
    assert (["x"], {name: "OK"}) == (scene.begun, scene.statuses())


def test_renewals_that_fail_show_in_health_and_a_call_goes_on(scene: Scene):
    name = scene.stage(tool="nap", name="x", seconds=1.0)

    async def run() -> None:
        async with scene.serving(scene.effector(lease=0.6)):
            await until(lambda: scene.begun)
            scene.store.away.set()
            await until(lambda: ("renewals", "StoreUnavailable") in scene.heard.failures)
            scene.store.away.clear()
            await until(scene.done)

    asyncio.run(run())
    assert (["x"], {name: "OK"}) == (scene.begun, scene.statuses())


def test_a_sink_that_hangs_keeps_no_renewal_waiting(scene: Scene, monkeypatch):
    """Every thread of the pool hangs in a sink, and a tool under way keeps its lease."""
    gate = threading.Event()
    scene.partitions = 8
    publish = MemoryBroker.publish

    def hang(self, topic, messages):
        if topic == "results":
            gate.wait(30)
        publish(self, topic, messages)

    monkeypatch.setattr(MemoryBroker, "publish", hang)
    scene.stage(scene.key_in(0), "nap", name="long", seconds=1.5)
    for n in range(1, 8):
        scene.stage(scene.key_in(n), name=f"{n}")

    async def run() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(8))
        async with scene.serving(scene.effector(lease=0.6)) as effector:
            await until(lambda: "tool.called" in scene.boundaries and effector.calling == 0 and len(scene.begun) == 8)
            gate.set()
            await until(scene.done)
            assert 0 == effector.counts.stale

    asyncio.run(run())
    assert {"OK"} == set(scene.statuses().values())


@pytest.mark.parametrize("part", ["results", "store"])
def test_a_sink_or_a_store_that_hangs_is_stuck_for_everybody_to_see(scene: Scene, part: str, monkeypatch):
    gate = threading.Event()
    owner, name = (MemoryBroker, "publish") if part == "results" else (type(scene.store), "_complete")
    works = getattr(owner, name)

    def hang(self, *given):
        if name != "publish" or given[0] == "results":
            gate.wait(30)
        return works(self, *given)

    monkeypatch.setattr(owner, name, hang)
    scene.stage()

    async def run() -> None:
        supervisor = Supervisor(Quiet(), {**dict.fromkeys((*PARTS, *PASSIVE), 30.0), part: 1.2})
        scene.watching = Everyone([scene.heard, supervisor])
        effector = scene.effector()
        running = asyncio.create_task(effector.run(supervisor.keep))
        await until(lambda: [part] == [each.name for each in supervisor.stuck()])
        assert (False, "stuck") == (supervisor.report()["live"], supervisor.report()["parts"][part]["state"])
        gate.set()
        await until(scene.done)
        await until(lambda: supervisor.report()["ready"])
        supervisor.stop()
        effector.stop()
        await running
        effector.close()

    asyncio.run(run())
