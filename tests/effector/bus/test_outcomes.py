"""What an intent from a bus ends in, whatever its tool does, and when it is tried again."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import timedelta
from typing import Any

import pytest

from intentlog.agents import ToolSet, tool
from intentlog.agents.retry import RetryPolicy
from intentlog.effector.bus import MemoryBroker
from intentlog.effector.bus.postponing import record_of
from intentlog.effector.dedup import Done, Free
from intentlog.eventlog.clock import SECOND, system_clock
from tests.effector.bus.scene import MINUTE, Odd, Scene, retryable, staged, until


@pytest.fixture
def scene() -> Scene:
    return Scene()


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


def closes() -> None:
    raise GeneratorExit


ENDS = {
    "raises": (lambda: 1 / 0, "ERROR", "ZeroDivisionError"),
    "raises what is no Exception": (odd, "ERROR", "Odd"),
    "exits": (exits, "ERROR", "SystemExit"),
    "closes": (closes, "ERROR", "GeneratorExit"),
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


async def cancels_itself() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(60)


async def cut_off() -> None:
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        raise ConnectionError("cut off") from None


@pytest.mark.parametrize("do, kind", [(cancels_itself, "CancelledError"), (cut_off, "TimedOut")], ids=["by itself", "by its timeout"])
def test_a_tool_that_is_cancelled_is_an_error_at_once_called_once_and_the_key_goes_on(scene: Scene, do: Any, kind: str):
    @tool(side_effect=True, timeout=timedelta(seconds=0.2), retry_on=ConnectionError)
    async def ends(name: str) -> None:
        scene.begun.append(name)
        await do()

    scene.stage("k", "ends", name="x")
    scene.stage("k", name="y")
    scene.serve(scene.effector(tools=ToolSet([*scene.tools, ends])))
    (_, first), (_, second) = scene.results()
    assert ("ERROR", kind, "OK", ["x", "y"]) == (first.status, first.failure.type, second.status, scene.begun)  # type: ignore[union-attr]


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


def test_arguments_that_an_older_tool_does_not_know_are_held_like_an_unknown_tool(scene: Scene):
    older = ToolSet([*scene.tools, tool(side_effect=True, name="pay")(today)])
    newer = ToolSet([*scene.tools, tool(side_effect=True, name="pay")(in_a_currency)])
    name = scene.stage("k", "pay", name="x", currency="EUR")
    brief = scene.stage("brief", "pay", ttl=SECOND // 2, name="x", currency="EUR")

    async def run() -> None:
        async with scene.serving(scene.effector(hold_unknown=True, tools=older)) as effector:
            await until(lambda: brief in scene.statuses())
            assert ({brief: "EXPIRED"}, {"unknown tool": 1}) == (scene.statuses(), dict(effector.waiting))
        async with scene.serving(scene.effector(hold_unknown=True, tools=newer)):
            await until(scene.done)

    asyncio.run(run())
    assert {name: "OK", brief: "EXPIRED"} == scene.statuses()


def in_a_currency(name: str, currency: str) -> str:
    return f"{name} {currency}"


def test_what_a_newer_effector_did_is_published_by_one_that_does_not_know_the_tool(scene: Scene):
    name, message = staged("k", "tomorrow", name="x")
    scene.publish(message)
    scene.serve(scene.effector(tools=ToolSet([tool(side_effect=True, name="tomorrow")(today)])))
    scene.publish(message)
    scene.serve(scene.effector(hold_unknown=True))
    assert ({name: "OK"}, 2) == (scene.statuses(), len(scene.results()))


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
