"""A run that is to end by itself does end when the store takes nothing any more; another one waits."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from intentlog.agents import App, Complete, Input, agent
from intentlog.agents.sending import send, typed_input
from intentlog.agents.worker import WorkerSettings
from intentlog.effector.outage import Outage
from intentlog.effector.process import Intake, Process, Progress
from intentlog.eventlog.clock import MILLISECOND, system_clock
from intentlog.eventlog.errors import LogUnavailable, WrongExpectedVersion
from intentlog.eventlog.memory import MemoryLog


@agent("notes")
async def notes(ctx, text: str) -> Complete:
    return Complete(text)


app = App(agents=[notes])


class FullLog(MemoryLog):
    """A log on a full disk: it can be read, and takes nothing."""

    full = False

    def append_batch(self, requests: Any) -> Any:
        if self.full:
            raise LogUnavailable("database or disk is full")
        return super().append_batch(requests)


def full_log() -> FullLog:
    log = FullLog("memory://", system_clock)
    send(app, log, Input("notes", "k", "x", "i"))
    log.full = True
    return log


def test_a_run_until_idle_gives_up_when_the_log_takes_nothing():
    process = Process(app, full_log(), "me", WorkerSettings(lease=300 * MILLISECOND), outage=Outage(bears=0.2))
    with pytest.raises(LogUnavailable, match=r"has taken nothing for .* so this run gives up: database or disk is full. What is in the log stays"):
        asyncio.run(asyncio.wait_for(process.run(until_idle=True), 30))


def test_a_run_that_serves_waits_for_as_long_as_it_takes():
    log = full_log()
    process = Process(app, log, "me", WorkerSettings(lease=300 * MILLISECOND), outage=Outage(bears=0.05))

    async def served() -> int:
        def look(progress: Progress) -> None:
            if process.outage.too_long() is not None:
                log.full = False
            if progress.turns:
                process.stop()

        return (await process.run(every=look)).turns

    assert 1 == asyncio.run(asyncio.wait_for(served(), 30))


def test_inputs_that_the_log_does_not_take_are_offered_again_until_it_does():
    log = full_log()
    troubles: list[str] = []
    given = [typed_input(app, Input("notes", "k", text, text)) for text in "abc"]
    helpings = [[Intake(stream, event, text) for (stream, event), text in zip(given, "abc", strict=True)], []]

    def told(doing: str, problem: BaseException) -> None:
        troubles.append(doing)
        log.full = troubles.count("taking inputs in") < 3

    process = Process(app, log, "me", WorkerSettings(lease=300 * MILLISECOND), on_error=told)
    progress = asyncio.run(asyncio.wait_for(process.run(lambda: helpings.pop(0), until_idle=True), 30))
    assert (3, 4) == (progress.accepted, sum(event.type == "activation.completed" for event in log.read_all()))
    assert "taking inputs in" in troubles


def test_a_run_until_idle_gives_up_when_its_inputs_are_not_taken():
    log = FullLog("memory://", system_clock)
    log.full = True
    stream, event = typed_input(app, Input("notes", "k", "x", "i"))
    process = Process(app, log, "me", WorkerSettings(lease=300 * MILLISECOND), outage=Outage(bears=0.2))
    with pytest.raises(LogUnavailable, match="this run gives up: database or disk is full"):
        asyncio.run(asyncio.wait_for(process.run(lambda: [Intake(stream, event, "i")], until_idle=True), 30))
    assert 0 == log.last_position()


class HalfFullLog(FullLog):
    """One that takes what others append, and nothing of ours."""

    others = 0

    def last_position(self) -> int:
        self.others += 1
        return super().last_position() + self.others


def test_a_run_until_idle_does_not_give_up_while_others_append():
    log = HalfFullLog("memory://", system_clock)
    send(app, log, Input("notes", "k", "x", "i"))
    log.full, began = True, time.monotonic()
    process = Process(app, log, "me", WorkerSettings(lease=300 * MILLISECOND), outage=Outage(bears=4.0))

    def look(progress: Progress) -> None:
        log.full = time.monotonic() - began < 6.0
        if log.full:
            process.outage.note(LogUnavailable("full"))

    assert 1 == asyncio.run(asyncio.wait_for(process.run(until_idle=True, every=look), 30)).turns


def outage_of(*happened: float | str) -> Outage:
    """20 s of patience, and failures at these seconds; ``"ok"`` is a commit, ``"at 5"`` says where the log ends."""
    now = [0.0]
    outage = Outage(clock=lambda: now[0])
    for each in happened:
        if each == "ok":
            outage.over()
        elif isinstance(each, str):
            outage.stands(int(each.removeprefix("at ")))
        else:
            now[0] = each
            outage.note(LogUnavailable("full"))
    return outage


@pytest.mark.parametrize(
    "happened, given_up",
    [
        ((0, 1, 2, 4, 8, 13, 18), False),
        ((0, 1, 2, 4, 8, 13, 18, 23), True),
        ((0, 1, 2, 4, 8, 13, "ok", 18, 23), False),
        ((0, 1, 2, "at 5", 8, "at 6", 13, 18, 23), False),
        ((0, 1, 2, "at 5", 8, "at 5", 13, 18, 23), True),
        (("at 5", 0, 1, "at 6", 13, 18, 23), True),
        ((0, 25), False),
        ((0, 1, 2, 100), False),
        ((), False),
    ],
)
def test_only_failures_without_a_commit_between_them_add_up(happened, given_up):
    assert given_up == (outage_of(*happened).too_long() is not None)


def test_other_errors_are_no_outage():
    outage = Outage(bears=0.0)
    for _ in range(5):
        outage.note(WrongExpectedVersion("notes-k", 1, 2))
    assert outage.too_long() is None
