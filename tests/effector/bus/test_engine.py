"""Intents from a bus, from their message to what is published and acknowledged."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from intentlog.agents import ToolSet, facts, tool
from intentlog.agents.retry import RetryPolicy
from intentlog.effector.bus import MemoryBroker, wire
from intentlog.effector.bus import executing as module
from intentlog.effector.bus.postponing import record_of
from intentlog.effector.dedup import Busy, Done, Free
from intentlog.effector.phases import Outcome
from intentlog.eventlog.clock import SECOND, system_clock
from tests.effector.bus.scene import CODEC, Odd, Scene, encoded, retryable, staged, until

MINUTE = 60 * SECOND
WEEK = 7 * 86_400 * SECOND


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_an_intent_is_carried_out_completed_published_and_acknowledged_in_this_order(scene: Scene):
    name = scene.stage("k", name="hello")
    scene.serve()
    ((stream, said),) = scene.results()
    assert ("a-k", name, "OK", "hello", 1) == (stream, said.intent_id, said.status, said.value, said.attempts)
    assert ["claimed", "attempt.recorded", "tool.called", "completed", "published", "acknowledged"] == scene.boundaries
    found = scene.store.look(name, now=system_clock())
    assert Done("OK", scene.broker.messages("results")[0].value) == found


def test_a_result_can_be_appended_to_the_stream_as_it_is(scene: Scene):
    scene.stage("k")
    scene.serve()
    envelope = wire.read_envelope(CODEC, scene.broker.messages("results")[0].value)
    fact = CODEC.decode(envelope.type, envelope.schema, envelope.payload)
    assert ("intent.settled", "a-k", b"c" * 16) == (envelope.type, envelope.stream, envelope.correlation)
    assert CODEC.encode(fact) == (envelope.type, envelope.schema, envelope.payload)


def test_intents_of_a_key_are_carried_out_in_order_and_published_in_order(scene: Scene):
    names = [scene.stage(f"k{n % 7}", name=f"{n % 7}.{n // 7}") for n in range(70)]
    scene.serve()
    for key in range(7):
        mine = [each for each in scene.begun if each.startswith(f"{key}.")]
        assert [f"{key}.{n}" for n in range(10)] == mine
        assert mine == [said.value for stream, said in scene.results() if stream == f"a-k{key}"]
    assert dict.fromkeys(names, "OK") == scene.statuses()


def test_one_intent_delivered_twenty_times_is_carried_out_once_and_the_same_bytes_are_published_each_time(scene: Scene):
    name, message = staged()
    scene.publish(*[message] * 20)
    scene.serve(*(scene.effector() for _ in range(4)))
    assert (["x"], {name: "OK"}) == (scene.begun, scene.statuses())
    assert 20 == len(scene.broker.messages("results"))


def test_five_hundred_keys_each_touched_once_leave_nothing_behind(scene: Scene):
    for n in range(500):
        scene.stage(f"k{n}", name=f"{n}")

    async def run() -> None:
        async with scene.serving() as effector:
            await until(scene.done)
            await until(lambda: effector.active == 0)
            assert len(asyncio.all_tasks()) <= 4 + scene.partitions + 4
            assert (0, 0, {}) == (effector.open, effector.calling, dict(effector.waiting))
            assert not effector._holding.held
        assert 1 == len(asyncio.all_tasks())

    asyncio.run(run())
    assert sorted(f"{n}" for n in range(500)) == sorted(scene.begun)
    assert 500 == len(scene.results())


@pytest.mark.parametrize("name, kind", [("gone", "UnknownTool"), ("reading", "WrongToolKind")])
def test_what_does_not_fit_is_rejected_and_never_called(scene: Scene, name: str, kind: str):
    @tool
    def reading(name: str) -> str:
        return name

    intent = scene.stage("k", name)
    scene.serve(scene.effector(tools=ToolSet([*scene.tools, reading])))
    ((_, said),) = scene.results()
    assert (intent, "REJECTED", kind, 0, []) == (said.intent_id, said.status, said.failure.type, said.attempts, scene.begun)  # type: ignore[union-attr]


def test_arguments_that_do_not_fit_are_rejected(scene: Scene):
    scene.stage("k", other=1)
    scene.serve()
    assert [("REJECTED", "ArgumentRefused")] == [(said.status, said.failure.type) for _, said in scene.results()]  # type: ignore[union-attr]


def odd() -> None:
    raise Odd


def exits() -> None:
    raise SystemExit(3)


ENDS = {
    "raises": (lambda: 1 / 0, "ERROR", "ZeroDivisionError"),
    "raises what is no Exception": (odd, "ERROR", "Odd"),
    "exits": (exits, "ERROR", "SystemExit"),
    "returns what cannot be encoded": (object, "ERROR", "Unencodable"),
    "returns more than a store takes": (lambda: "x" * (65 << 20), "ERROR", "ResultTooLarge"),
}


@pytest.mark.parametrize("case", ENDS)
def test_whatever_a_tool_does_there_is_an_outcome_and_the_key_goes_on(scene: Scene, case: str):
    do, status, kind = ENDS[case]
    scene.do["x"] = do
    scene.stage("k", name="x")
    scene.stage("k", name="y")
    scene.serve()
    (_, first), (_, second) = scene.results()
    assert (status, kind, "OK") == (first.status, first.failure.type, second.status)  # type: ignore[union-attr]


def test_a_result_of_30_mb_is_published_whole_and_the_key_goes_on(scene: Scene):
    scene.do["x"] = lambda: "x" * 30_000_000
    scene.stage("k", name="x")
    scene.stage("k", name="y")
    scene.serve()
    (_, first), (_, second) = scene.results()
    assert ("OK", 30_000_000, "OK") == (first.status, len(first.value), second.status)


def test_a_result_larger_than_the_sink_takes_is_an_error_that_says_so(scene: Scene):
    scene.broker.most_bytes = 10_000
    scene.do["x"] = lambda: "x" * 20_000
    name = scene.stage("k", name="x")
    scene.serve()
    ((_, said),) = scene.results()
    assert ("ERROR", "ResultTooLarge") == (said.status, said.failure.type)  # type: ignore[union-attr]
    found = scene.store.look(name, now=system_clock())
    assert isinstance(found, Done)
    assert "ERROR" == found.status


def test_a_stored_result_that_a_smaller_sink_does_not_take_is_published_as_the_same_error_each_time(scene: Scene):
    scene.do["x"] = lambda: "x" * 20_000
    name, message = staged(name="x")
    scene.publish(message)
    scene.serve()
    first = scene.broker
    scene.broker = MemoryBroker(most_bytes=10_000)
    scene.bus = type(scene.bus)({"m": scene.broker})
    scene.publish(message, message)
    scene.serve()
    assert ({name: "ERROR"}, 2, ["x"]) == (scene.statuses(), len(scene.results()), scene.begun)
    assert 1 == len(first.messages("results"))


def test_a_tool_that_hangs_is_an_error_and_the_next_intent_of_the_key_goes_on(scene: Scene):
    gate = threading.Event()
    scene.do["x"] = lambda: gate.wait(30)
    scene.stage("k", "brief", name="x")
    scene.stage("k", name="y")
    scene.serve()
    gate.set()
    (_, first), (_, second) = scene.results()
    assert ("ERROR", "TimedOut", "OK") == (first.status, first.failure.type, second.status)  # type: ignore[union-attr]


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


def test_a_tool_sleeping_three_times_the_lease_is_dispatched_once(scene: Scene):
    """Show 4"""
    name = scene.stage("k", "nap", name="x", seconds=1.2)
    scene.serve(*(scene.effector(lease=0.4) for _ in range(3)))
    assert (["x"], {name: "OK"}) == (scene.begun, scene.statuses())
    assert [] == [each for each in scene.heard.told if each[0] == "lost"]


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


def test_a_busy_intent_is_waited_for_and_no_other_key_waits_with_it(scene: Scene):
    scene.partitions = 1
    name = scene.stage("held", name="held")
    behind = scene.stage("held", name="behind")
    others = [scene.stage(f"k{n}", name=f"{n}") for n in range(3)]
    now = system_clock()
    theirs = scene.store.claim(name, "somebody", now=now, until=now + MINUTE)

    async def run() -> None:
        async with scene.serving(scene.effector(concurrency=1)) as effector:
            await until(lambda: set(others) <= set(scene.statuses()))
            await until(lambda: effector.counts.busy >= 2)
            assert (["0", "1", "2"], {"busy": 1}) == (scene.begun, dict(effector.waiting))
            assert {} == scene.broker.acknowledged("intents", "g")
            scene.store.release(name, theirs.token)  # type: ignore[union-attr]
            await until(scene.done)

    asyncio.run(run())
    assert ["0", "1", "2", "held", "behind"] == scene.begun
    assert {"OK"} == {scene.statuses()[each] for each in (name, behind)}


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


@pytest.mark.parametrize("kind, status, calls", [("work", "UNKNOWN", 0), ("push", "OK", 1)])
def test_an_attempt_whose_end_nobody_saw_is_unknown_or_made_again_by_an_idempotent_tool(scene: Scene, kind: str, status: str, calls: int):
    name, message = staged(tool=kind)
    now = system_clock() - MINUTE
    dead = scene.store.claim(name, "dead", now=now, until=now + SECOND)
    scene.store.attempt(name, dead.token, now=now)  # type: ignore[union-attr]
    scene.publish(message)
    scene.serve()
    assert ({name: status}, calls, [2] * calls) == (scene.statuses(), len(scene.begun), scene.attempts)


def test_reconcile_is_asked_after_a_crash_in_mid_call(scene: Scene):
    @tool(side_effect=True, reconcile=lambda info, name: f"found {name} {info.attempt}")
    def pay(name: str) -> str:
        raise AssertionError("it is not called again")

    name, message = staged(tool="pay")
    now = system_clock() - MINUTE
    dead = scene.store.claim(name, "dead", now=now, until=now + SECOND)
    scene.store.attempt(name, dead.token, now=now)  # type: ignore[union-attr]
    scene.publish(message)
    scene.serve(scene.effector(tools=ToolSet([pay])))
    assert [("OK", "found x 1")] == [(said.status, said.value) for _, said in scene.results()]


def test_an_attempted_intent_of_a_tool_that_is_unknown_here_is_not_said_to_be_rejected(scene: Scene):
    name, message = staged(tool="gone")
    now = system_clock() - MINUTE
    dead = scene.store.claim(name, "dead", now=now, until=now + SECOND)
    scene.store.attempt(name, dead.token, now=now)  # type: ignore[union-attr]
    scene.publish(message)
    scene.serve()
    assert {name: "UNKNOWN"} == scene.statuses()


def patient(scene: Scene, max_attempts: int = 4) -> ToolSet:
    @tool(side_effect=True, retry=RetryPolicy(max_attempts=max_attempts, first=timedelta(milliseconds=30), longest=timedelta(milliseconds=60)))
    def again(name: str) -> object:
        scene.begun.append(name)
        return scene.do[name]() if name in scene.do else name

    return ToolSet([*scene.tools, again])


def test_an_error_that_may_heal_is_tried_again_on_record_and_other_keys_go_on_meanwhile(scene: Scene):
    scene.partitions = 1
    scene.do["x"] = retryable(2)
    name = scene.stage("k", "again", name="x")
    scene.stage("k", name="behind")
    scene.stage("other", name="other")
    scene.serve(scene.effector(tools=patient(scene)))
    said = {fact.intent_id: fact for _, fact in scene.results()}[name]
    assert ("OK", "at last", 3) == (said.status, said.value, said.attempts)
    assert ["x", "other", "x", "x", "behind"] == scene.begun
    assert "POSTPONED" == scene.store.look(record_of(name, 2), now=system_clock()).status  # type: ignore[union-attr]


def test_what_was_postponed_is_no_attempt_whose_end_is_unknown_for_whoever_comes_next(scene: Scene):
    """A tool that is not idempotent is tried again by another effector after the first one died between two attempts."""
    scene.do["x"] = retryable(1)
    name = scene.stage("k", "again", name="x")

    async def run() -> None:
        async with scene.serving(scene.effector(tools=patient(scene))):
            await until(lambda: "postponed" in scene.boundaries)
        assert isinstance(scene.store.look(name, now=system_clock()), Free)
        async with scene.serving(scene.effector(tools=patient(scene))):
            await until(scene.done)

    asyncio.run(run())
    assert ({name: "OK"}, ["x", "x"]) == (scene.statuses(), scene.begun)


def test_after_the_last_attempt_the_error_is_the_outcome(scene: Scene):
    scene.do["x"] = retryable(9)
    scene.stage("k", "again", name="x")
    scene.serve(scene.effector(tools=patient(scene, 2)))
    ((_, said),) = scene.results()
    assert ("ERROR", "Retryable", 2) == (said.status, said.failure.type, said.attempts)  # type: ignore[union-attr]


def test_an_unknown_tool_is_held_for_an_effector_that_knows_it(scene: Scene):
    name = scene.stage("k", "tomorrow", name="x")
    brief = scene.stage("brief", "tomorrow", ttl=SECOND // 2, name="x")

    async def run() -> None:
        async with scene.serving(scene.effector(hold_unknown=True)) as effector:
            await until(lambda: brief in scene.statuses())
            assert ({brief: "EXPIRED"}, {"unknown tool": 1}) == (scene.statuses(), dict(effector.waiting))
        newer = ToolSet([*scene.tools, tool(side_effect=True, name="tomorrow")(today)])
        async with scene.serving(scene.effector(hold_unknown=True, tools=newer)):
            await until(scene.done)

    asyncio.run(run())
    assert {name: "OK", brief: "EXPIRED"} == scene.statuses()


def today(name: str) -> str:
    return name


def test_limits_of_a_tool_hold(scene: Scene):
    now, most = [0], [0]
    lock = threading.Lock()

    @tool(side_effect=True, concurrency=2)
    def narrow(name: str) -> str:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.02)
        with lock:
            now[0] -= 1
        return name

    scene.partitions = 8
    for n in range(24):
        scene.stage(f"k{n}", "narrow", name=f"{n}")
    scene.serve(scene.effector(tools=ToolSet([narrow])))
    assert (24, 2) == (len(scene.results()), most[0])


def test_no_more_partitions_are_at_work_than_allowed(scene: Scene):
    scene.partitions = 8
    for n in range(24):
        scene.stage(f"k{n}", "nap", name=f"{n}", seconds=0.02)

    async def run() -> None:
        async with scene.serving(scene.effector(concurrency=3)) as effector:
            most = 0
            while not scene.done():
                most = max(most, effector.calling)
                await asyncio.sleep(0.002)
            assert 3 == most

    asyncio.run(run())


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


def test_stopping_hands_back_what_was_not_called_and_leaves_what_was(scene: Scene):
    scene.partitions = 8
    running = [scene.stage(f"k{n}", "nap", name=f"{n}", seconds=30.0) for n in range(4)]

    async def run() -> None:
        async with scene.serving(scene.effector(grace=0.2)):
            await until(lambda: len(scene.begun) == len({each.partition for each in scene.broker.messages("intents")}))

    asyncio.run(run())
    now = system_clock()
    called = [each for each in running if isinstance(scene.store.look(each, now=now), Busy)]
    assert (len(scene.begun), sorted(called)) == (len(called), sorted(each[1] for each in scene.heard.told if each[0] == "left"))
    assert {Free(0)} >= {scene.store.look(each, now=now) for each in running if each not in called}
    assert ([], {}) == (scene.results(), scene.broker.acknowledged("intents", "g"))


def test_a_tool_that_ends_within_the_grace_is_published_and_acknowledged_before_the_end(scene: Scene):
    name = scene.stage("k", "nap", name="x", seconds=0.3)

    async def run() -> None:
        async with scene.serving(scene.effector(grace=10.0)):
            await until(lambda: scene.begun)

    asyncio.run(run())
    assert ({name: "OK"}, True) == (scene.statuses(), scene.done())


def test_when_a_partition_goes_to_another_member_the_call_under_way_is_not_repeated(scene: Scene):
    scene.partitions = 2
    names = [scene.stage(f"k{n}", "nap", name=f"{n}", seconds=0.4) for n in range(6)]

    async def run() -> None:
        async with scene.serving(scene.effector()) as first:
            await until(lambda: len(scene.begun) == 2)
            async with scene.serving(scene.effector()) as second:
                await until(scene.done)
                assert (1, 1) == (len(first.report()["partitions"]), len(second.report()["partitions"]))

    asyncio.run(run())
    assert (sorted(scene.begun), dict.fromkeys(names, "OK")) == ([f"{n}" for n in range(6)], scene.statuses())


def test_a_question_is_published_as_it_came_and_once(scene: Scene):
    asked = facts.ApprovalRequested("q-1", 0, 0, "Pay?", "support", {"cents": 1}, b"d" * 32, system_clock() + MINUTE)
    message = encoded(asked, "a-k")
    scene.publish(message, message, message)
    scene.serve()
    (published,) = scene.broker.messages("approvals")
    assert (message.key, message.value, message.headers) == (published.key, published.value, published.headers)
    assert ([], [], "ASKED") == (scene.results(), scene.begun, scene.store.look("q-1", now=system_clock()).status)  # type: ignore[union-attr]


def test_a_question_past_its_deadline_is_asked_of_nobody(scene: Scene):
    scene.publish(encoded(facts.ApprovalRequested("q-1", 0, 0, "Pay?", "support", {}, b"d" * 32, system_clock() - 1), "a-k"))
    scene.serve()
    assert ([], [], []) == (scene.broker.messages("approvals"), scene.results(), scene.dead())


def test_while_nobody_takes_questions_they_wait_and_nothing_else_does(scene: Scene):
    scene.partitions = 1
    scene.down.add("approvals")
    scene.publish(encoded(facts.ApprovalRequested("q-1", 0, 0, "Pay?", "support", {}, b"d" * 32, system_clock() + MINUTE), "a-k"))
    scene.stage("other")

    async def run() -> None:
        async with scene.serving():
            await until(lambda: scene.heard.failures.count(("approvals", "BusUnavailable")) >= 2)
            assert (1, {}) == (len(scene.results()), scene.broker.acknowledged("intents", "g"))
            scene.down.clear()
            await until(scene.done)

    asyncio.run(run())
    assert 1 == len(scene.broker.messages("approvals"))


def test_a_source_that_fails_is_joined_again_and_nothing_is_carried_out_twice(scene: Scene, monkeypatch):
    from intentlog.effector.bus import BusUnavailable
    from intentlog.effector.bus.memory import MemorySource

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


def test_a_partition_with_too_much_in_hand_is_paused_and_resumed(scene: Scene):
    scene.partitions = 1
    first = scene.stage("held", name="first")
    for n in range(400):
        scene.stage("held", name=f"{n}")
    now = system_clock()
    theirs = scene.store.claim(first, "somebody", now=now, until=now + MINUTE)

    async def run() -> None:
        async with scene.serving() as effector:
            await until(lambda: effector._lanes and effector._lanes[0].paused)
            assert effector.open < 600
            scene.stage("behind", name="behind")
            await until(lambda: effector.counts.busy >= 3)
            assert [] == scene.begun
            scene.store.release(first, theirs.token)  # type: ignore[union-attr]
            await until(scene.done)
            assert not effector._lanes[0].paused

    asyncio.run(run())
    assert ["first", *(f"{n}" for n in range(400)), "behind"] == scene.begun


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
