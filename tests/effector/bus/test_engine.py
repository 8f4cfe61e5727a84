"""Intents from a bus, from their message to what is published and acknowledged."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from intentlog.effector.bus import wire
from intentlog.effector.dedup import Busy, Done, Free
from intentlog.eventlog.clock import system_clock
from tests.effector.bus.scene import CODEC, MINUTE, Scene, staged, until


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


def test_a_tool_sleeping_three_times_the_lease_is_dispatched_once(scene: Scene):
    """Show 4"""
    name = scene.stage("k", "nap", name="x", seconds=1.2)
    scene.serve(*(scene.effector(lease=0.4) for _ in range(3)))
    assert (["x"], {name: "OK"}) == (scene.begun, scene.statuses())
    assert [] == [each for each in scene.heard.told if each[0] == "lost"]


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


def test_a_claim_that_is_made_while_the_effector_ends_is_handed_back(scene: Scene, monkeypatch):
    """The store answers after the grace is over; whoever comes next waits for no lease."""
    name, gate, works = scene.stage("k"), threading.Event(), scene.store.claim

    def slow(intent_id, owner, *, now, until):
        gate.set()
        time.sleep(0.3)
        return works(intent_id, owner, now=now, until=until)

    monkeypatch.setattr(scene.store, "claim", slow)

    async def run() -> None:
        async with scene.serving(scene.effector(grace=0.0)):
            await until(gate.is_set)

    asyncio.run(run())
    assert (Free(0), []) == (scene.store.look(name, now=system_clock()), scene.begun)
    assert "release" in scene.store.asked
