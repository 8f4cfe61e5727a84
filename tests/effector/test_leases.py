"""When a lease is certain enough to call something under it, and for how long it is renewed."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from intentlog.effector.leases import Guard, Leases, NotBegun
from intentlog.effector.renewing import Heartbeat
from intentlog.effector.threads import in_own_thread
from intentlog.eventlog.clock import SECOND


class Times:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_lease_stands_from_the_moment_before_it_was_asked_for_and_not_in_its_last_tenth():
    times = Times()
    leases: Leases[str] = Leases(10 * SECOND, times)
    asked = leases.now()
    times.now += 4.0  # the store took its time
    leases.taken(["k"], asked)
    times.now = 108.9
    assert (True, False) == (leases.stands("k"), leases.stands("another"))
    times.now = 109.1
    assert not leases.stands("k")


def test_a_renewal_counts_from_before_it_was_sent_never_shortens_and_does_not_bring_back_what_is_over():
    times = Times()
    leases: Leases[str] = Leases(10 * SECOND, times)
    leases.taken(["k", "gone"], 100.0)
    leases.renewed(["k"], 105.0)
    leases.renewed(["k"], 101.0)  # an answer that comes late
    times.now = 113.0
    assert (True, False) == (leases.stands("k"), leases.stands("gone"))
    leases.over("k")
    leases.renewed(["k"], 113.0)
    assert not leases.stands("k")


async def _in_loop(called: list[str]) -> None:
    called.append("x")


CALLS: dict[str, Callable[[list[str]], Any]] = {
    "in the loop": _in_loop,
    "in a thread": lambda called: in_own_thread(lambda: called.append("x")),
}


@pytest.mark.parametrize("case", CALLS)
@pytest.mark.parametrize("renewal, called", [(True, ["x"]), (False, [])])
def test_what_no_longer_stands_is_asked_for_once_more_and_then_nothing_is_called(case: str, renewal: bool, called: list[str]):
    async def run() -> None:
        seen: list[str] = []
        standing, asked = [False], []
        guard = Guard(lambda: standing[0])

        async def renew() -> None:
            asked.append(1)
            standing[0] = renewal

        try:
            await guard.before(CALLS[case](seen), renew, lambda: None)
        except NotBegun:
            assert not renewal
        assert (called, not renewal, [1]) == (seen, guard.refused, asked)

    asyncio.run(run())


def test_a_function_whose_thread_gets_its_turn_late_is_not_called():
    """The loop found that it stands; it is the thread that calls."""

    async def run() -> None:
        called: list[str] = []
        answers = iter([True, True, False])
        guard = Guard(lambda: next(answers))

        async def renew() -> None:
            raise AssertionError("it stood")

        with pytest.raises(NotBegun):
            await guard.before(CALLS["in a thread"](called), renew, lambda: None)
        assert ([], True) == (called, guard.refused)

    asyncio.run(run())


def test_it_beats_while_the_loop_stands_still_and_until_calls_are_long_overdue():
    kept: list[tuple[float, list[str]]] = []

    async def run() -> None:
        begun = time.monotonic()
        deadlines = {"short": begun + 0.2, "long": begun + 0.8}
        heart: Heartbeat[None] = Heartbeat(
            0.05, lambda: kept.append((time.monotonic() - begun, heart.due(["short", "long", "idle"], deadlines, 0.2))), _nothing
        )
        running = asyncio.create_task(heart.run())
        await asyncio.sleep(0.01)
        time.sleep(1.6)  # noqa: ASYNC251 - the loop stands still
        running.cancel()

    asyncio.run(run())
    for name, until in (("short", 0.4), ("long", 1.0), ("idle", 1.0)):
        last = max(at for at, due in kept if name in due)
        assert until - 0.15 < last <= until, (name, last)
    assert kept[-1][0] > 1.3


def test_a_beat_that_fails_is_raised_in_the_loop_and_tried_again_while_that_stands_still():
    beats, threads = [], set()

    def beat() -> None:
        beats.append(1)
        threads.add(threading.current_thread().name)
        if len(beats) in (2, 3):
            raise OSError("away")

    async def run() -> None:
        running = asyncio.create_task(Heartbeat(0.05, beat, _nothing).run())
        await asyncio.sleep(0.01)
        time.sleep(0.5)  # noqa: ASYNC251 - the loop stands still
        with pytest.raises(OSError, match="away"):
            await running

    asyncio.run(run())
    assert len(beats) > 4
    assert {"intentlog-renewals"} == threads


def _nothing(told: object) -> None:
    pass
