"""What other effectors were found to do wrong, and what happens here instead. A trap that another file holds is named there.

Held elsewhere: a lease outlived by its tool, 500 keys that leave 500 tasks behind, clocks and leases (``test_effector``,
``service/test_troubles``); no health (``service/test_health``); threads lost to time-outs (``test_limits``); no way to try
an effect again (``test_retries``); a store that replicas do not share (``service/test_settings``).
"""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import Any

import pytest

from intentlog.agents import Retryable, ToolSet, facts, tool
from intentlog.agents.queues import EFFECTS
from intentlog.effector import phases
from intentlog.eventlog.clock import SECOND, system_clock
from intentlog.eventlog.errors import LogUnavailable
from intentlog.eventlog.events import NewEvent
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.versions import ANY
from tests.effector.service.test_troubles import Heard, serving, stopped, until
from tests.effector.test_effector import CODEC, Outside
from tests.effector.test_phases import pending
from tests.effector.test_retries import Wobbly

MINUTE = 60 * SECOND


class Flaky:
    """Lets a call of the store fail a few times, from where it is armed on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: Any, method: str, kind: str = "") -> None:
        self.left, self.met = 3, 0
        works = getattr(owner, method)

        def call(*given: Any, **named: Any) -> Any:
            mine = not kind or any(event.type == kind for request in given[0] for part in request.parts for event in part.events)
            if mine and self.left:
                self.left -= 1
                self.met += 1
                raise LogUnavailable("no route")
            return works(*given, **named)

        monkeypatch.setattr(owner, method, call)
        monkeypatch.setattr("intentlog.agents.committer._TRIES", 1)


PHASES = {
    "reading the tail": ("", "read_all", ""),
    "claiming": ("schedule", "acquire", ""),
    "renewing": ("schedule", "renew", ""),
    "recording an attempt": ("", "append_batch", "intent.attempted"),
    "recording a failed attempt": ("", "append_batch", "intent.postponed"),
    "recording an outcome": ("", "append_batch", "intent.settled"),
    "handing back": ("schedule", "release", ""),
    "saving the checkpoint": ("checkpoints", "save", ""),
}


@pytest.mark.parametrize("phase", PHASES)
def test_a_store_that_is_down_in_any_phase_is_told_of_waited_for_and_costs_no_call(phase, monkeypatch):
    """Elsewhere the failure of one key's store call hung the whole process without a word."""
    facet, method, kind = PHASES[phase]
    with Wobbly() as wobbly:
        # A key goes back apart from an outcome only when an attempt is put off: then as many are as the store is to be down.
        more = ["x2", "x3"] if phase == "handing back" else []
        wobbly.fails = {name: [ConnectionError("once")] for name in ("x", *more)}
        wobbly.seconds = {"slow": 0.4}
        wobbly.stage("x", "y", tool="wobbly")
        for name in more:
            wobbly.stage(name, key=name, tool="wobbly")
        wobbly.stage("slow", key="slow")
        flaky = Flaky(monkeypatch, getattr(wobbly.log, facet) if facet else wobbly.log, method, kind)
        heard, troubles = Heard(), list[str]()

        async def run() -> None:
            effector, committer = serving(wobbly, heard, lease=0.3)
            effector._on_error = effector._carrying._on_error = lambda doing, problem: troubles.append(type(problem).__name__)
            running = asyncio.create_task(effector.run(_keeping(troubles)))
            await until(lambda: wobbly.statuses() == ["OK", "OK"] and wobbly.statuses("slow") == ["OK"])
            wobbly.stage("z")
            await until(lambda: wobbly.statuses() == ["OK", "OK", "OK"] and all(wobbly.statuses(name) == ["OK"] for name in more))
            await until(lambda: flaky.left == 0)
            await stopped(effector, committer, running)

        asyncio.run(run())
        assert sorted(["slow", "x", "x", "y", "z", *more, *more]) == sorted(wobbly.begun)
        assert (3, True) == (flaky.met, "LogUnavailable" in troubles)


def _keeping(troubles: list[str]) -> Any:
    async def keep(name: str, part: Any) -> None:
        while True:
            try:
                await part()
                return
            except LogUnavailable as problem:
                troubles.append(type(problem).__name__)
                await asyncio.sleep(0.01)

    return keep


def test_an_intent_that_cannot_be_read_stops_its_own_key_and_nothing_else():
    """Elsewhere one undecodable message ended the process, and the next one, and the next."""
    with Outside() as outside:
        outside.log.append("a-bad", [NewEvent(outside.ids(), "intent.staged", 1, b"\xc1 no msgpack")], ANY)
        outside.stage("behind", key="bad")
        outside.stage("x", "y")

        async def run() -> None:
            effector, committer = serving(outside)
            running = asyncio.create_task(effector.run())
            await until(lambda: outside.statuses() == ["OK", "OK"])
            assert effector._following.outbox is not None
            assert ["a-bad"] == list(effector._following.outbox.blocked)
            await stopped(effector, committer, running)

        asyncio.run(run())
        assert ["x", "y"] == outside.begun


@pytest.mark.parametrize("status", ["OK", "ERROR", "UNKNOWN", "REJECTED"])
def test_an_outcome_on_record_beats_a_deadline_that_has_passed(outside_short, status):
    """Elsewhere an effect that had happened was reported EXPIRED when its message came again after the deadline."""
    outside = outside_short
    outside.stage("x", ttl=SECOND // 5)
    fact = facts.IntentSettled("x", status, "done", attempts=1, settled_by="e")
    outside.log.append("a-k", [CODEC.stage(fact, event_id=outside.ids())], ANY)
    time.sleep(0.25)
    outside.log.checkpoints.reset("effector")
    (effector,) = outside.serve(owners=("later",))
    assert ([status], [], 0) == (outside.statuses(), outside.begun, effector.counts.settled)


@pytest.fixture
def outside_short() -> Any:
    with Outside() as made:
        yield made


def test_a_key_that_somebody_else_holds_takes_no_place_while_it_is_waited_for():
    """Elsewhere every busy claim held one of the places for as long as it was busy."""
    with Outside() as outside:
        now = system_clock()
        keys = [f"busy{n}" for n in range(8)]
        outside.log.schedule.acquire(EFFECTS, [f"a-{key}" for key in keys], "somebody", now=now, until=now + 3600 * SECOND)
        for key in keys:
            outside.stage(key, key=key)
        outside.stage("free", key="free")
        outside.serve(concurrency=1, until=lambda: outside.statuses("free") == ["OK"])
        assert ["free"] == outside.begun


def named(name: str) -> str:
    return name


def test_keys_that_somebody_else_has_served_are_forgotten():
    with Outside() as outside:
        now = system_clock()
        outside.log.schedule.acquire(EFFECTS, ["a-k"], "somebody", now=now, until=now + 3600 * SECOND)
        outside.stage("x")

        async def run() -> None:
            effector, committer = serving(outside)
            running = asyncio.create_task(effector.run())
            await until(lambda: effector.counts.busy)
            assert ["a-k"] == list(effector._busy) == list(effector._busy_until)
            fact = facts.IntentSettled("x", "OK", settled_by="somebody")
            outside.log.append("a-k", [CODEC.stage(fact, event_id=outside.ids())], ANY)
            await until(lambda: not effector._busy and not effector._busy_until)
            await stopped(effector, committer, running)

        asyncio.run(run())


def test_an_unknown_tool_is_refused_for_good_or_held_and_never_refused_by_one_and_done_by_another():
    """Elsewhere REJECTED stood for a day after the tool had been deployed, for whoever asked for the same intent."""
    with Outside() as outside:
        outside.stage("x", tool="tomorrow")
        outside.serve()
        outside.tools = ToolSet([*outside.tools, tool(side_effect=True, name="tomorrow")(named)])
        outside.stage("y", tool="tomorrow")
        outside.serve(owners=("newer",))
        assert ["REJECTED", "OK"] == outside.statuses()


def test_a_result_that_no_store_would_take_is_an_error_that_says_how_large_it_is(monkeypatch):
    monkeypatch.setattr(phases, "MOST_BYTES", 1000)

    @tool(side_effect=True)
    async def large(text: str) -> str:
        return "x" * 5000

    outcome = asyncio.run(phases.execute(pending("large"), large, {"text": "x"}, CODEC))
    assert outcome.failure is not None
    assert ("ERROR", "ResultTooLarge") == (outcome.status, outcome.failure.type)
    assert "its result of 5,003 bytes is more than an outcome holds (1,000). Keep it elsewhere" in outcome.failure.message


def test_what_a_reconciler_finds_is_bounded_in_the_same_way(monkeypatch):
    monkeypatch.setattr(phases, "MOST_BYTES", 1000)

    @tool(side_effect=True, reconcile=lambda info, text: "x" * 5000)
    async def large(text: str) -> str: ...  # type: ignore[empty-body]

    outcome = asyncio.run(phases.recover(pending("large", attempts=1), large, {"text": "x"}, CODEC))
    assert outcome is not None
    assert ("UNKNOWN", None) == (outcome.status, outcome.value)


SKEWS = {
    "5 min ahead, a minute left": (5, MINUTE, "EXPIRED"),
    "5 min ahead, six minutes left": (5, 6 * MINUTE, "OK"),
    "5 min behind, over for a minute": (-5, -MINUTE, "OK"),
    "5 min behind, over for six minutes": (-5, -6 * MINUTE, "EXPIRED"),
}


@pytest.mark.parametrize("case", SKEWS)
def test_a_deadline_is_judged_by_the_effectors_own_clock_once_and_for_all(case, tmp_path):
    """A clock that is ahead fails closed: not run, and EXPIRED. One that is behind runs it later by what it is behind."""
    minutes, ttl, status = SKEWS[case]
    url = f"sqlite:///{tmp_path}/t.db"
    with Outside(url) as outside:
        other = open_log(url, clock=lambda: system_clock() + minutes * MINUTE)
        outside.stage("x", ttl=ttl)

        async def run() -> None:
            effector, committer = serving(outside, log=other)
            running = asyncio.create_task(effector.run())
            await until(outside.statuses)
            await stopped(effector, committer, running)

        asyncio.run(run())
        assert ([status], ["x"] if status == "OK" else []) == (outside.statuses(), outside.begun)
        other.close()


def test_a_back_off_is_judged_by_the_clock_of_who_tries_next(tmp_path):
    """A replica whose clock is ahead tries sooner; nothing worse: the attempt before is over, on record."""
    url = f"sqlite:///{tmp_path}/t.db"
    with Wobbly(url) as wobbly:
        wobbly.fails = {"x": [Retryable("wait", after=timedelta(minutes=4))]}
        wobbly.stage("x", tool="wobbly")
        wobbly.serve(until=lambda: bool(wobbly.of(facts.IntentPostponed)))
        other = open_log(url, clock=lambda: system_clock() + 5 * MINUTE)

        async def run() -> None:
            effector, committer = serving(wobbly, log=other)
            running = asyncio.create_task(effector.run())
            await until(wobbly.statuses)
            await stopped(effector, committer, running)

        asyncio.run(run())
        assert (["OK"], [1, 2]) == (wobbly.statuses(), wobbly.attempts)
        other.close()
