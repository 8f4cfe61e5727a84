"""Schedules on a log: each moment delivered once, whoever dies, races or sleeps late."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from intentlog.agents import App, agent, facts
from intentlog.agents.committer import Committer
from intentlog.agents.errors import DefinitionError, InputRefused
from intentlog.agents.firing import CRON, Schedules
from intentlog.agents.schedules import Schedule, cron, every
from intentlog.agents.worker import Worker, WorkerSettings
from intentlog.eventlog.clock import SECOND, Micros, from_datetime
from intentlog.eventlog.log import EventLog
from intentlog.eventlog.opening import open_log
from intentlog.replay import replay_all
from intentlog.replay.verify import verify_all
from tests.agents.world import START, Clock

BERLIN = ZoneInfo("Europe/Berlin")
HOUR, DAY = 3600 * SECOND, 86_400 * SECOND


def app_of(*schedules: Schedule) -> App:
    @agent("reports", schedules=schedules)
    async def reports(ctx: Any, what: str) -> str:
        return f"{what} {ctx.input_id}"

    return App(agents=[reports])


@pytest.fixture
def place(log_url: str) -> Any:
    clock = Clock()
    log = open_log(log_url, clock=clock)
    yield log, clock
    log.close()


def ids(app: App, log: EventLog, stream: str = "reports-k") -> list[str]:
    decoded = [app.codec.decode_stored(stored) for stored in log.read(stream)]
    return [fact.input_id.removeprefix("cron:reports:") for fact in decoded if isinstance(fact, facts.InputReceived)]


def wait_until(clock: Clock, log: EventLog) -> Micros:
    """Let time jump to the next moment."""
    moment = log.schedule.next_wake(CRON)
    assert moment is not None
    clock.now = moment
    return moment


def daily(**options: Any) -> Schedule:
    return cron("30 2 * * *", zone="Europe/Berlin", key="k", input="daily", **options)


def test_a_year_of_firings_has_one_for_each_day(place):
    log, clock = place
    clock.now = from_datetime(datetime(2026, 1, 1, tzinfo=BERLIN))
    app = app_of(daily(), cron("15 1 * * *", zone="America/New_York", name="ny", key="k", input="ny"))
    schedules = Schedules(app, log, "w")
    schedules.plan()
    while wait_until(clock, log) < from_datetime(datetime(2027, 1, 1, tzinfo=BERLIN)):
        schedules.fire()
    fired = ids(app, log)
    assert 365 == len([each for each in fired if each.startswith("k:")])
    assert 365 == len([each for each in fired if each.startswith("ny:")])
    assert len(set(fired)) == len(fired)
    assert {"k:2026-03-29T03:00:00+02:00", "k:2026-10-25T02:30:00+02:00"} < set(fired)


def test_before_its_moment_nothing_is_delivered(place):
    log, clock = place
    app = app_of(daily())
    schedules = Schedules(app, log, "w")
    schedules.plan()
    assert 0 == schedules.fire()
    wait_until(clock, log)
    clock.now -= 1
    assert 0 == schedules.fire()
    clock.now += 1
    assert (1, 0) == (schedules.fire(), schedules.fire())


def test_planning_again_changes_nothing(place):
    log, _ = place
    app = app_of(daily())
    for _ in range(3):
        Schedules(app, log, "w").plan()
    assert 0 == log.head("reports.cron-k")


def test_two_workers_that_race_deliver_each_moment_once(place):
    log, clock = place
    app = app_of(every(timedelta(minutes=5), key="k", input="beat"))
    racing = [Schedules(app, log, name) for name in ("one", "two")]
    for each in racing:
        each.plan()
    for _ in range(30):
        wait_until(clock, log)
        threads = [threading.Thread(target=each.fire) for each in racing]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert 30 == len(ids(app, log)) == len(set(ids(app, log)))


class Died(BaseException):
    """As SIGKILL would have it."""


def dying(at: str) -> Callable[[str, str], None]:
    def boundary(name: str, stream: str) -> None:
        if name == at:
            raise Died

    return boundary


@pytest.mark.parametrize("boundary", ["schedule.due", "schedule.fired"])
def test_whoever_dies_between_firing_and_the_next_moment_fires_once(place, boundary):
    log, clock = place
    app = app_of(every(timedelta(minutes=5), key="k", input="beat"))
    Schedules(app, log, "first").plan()
    wait_until(clock, log)
    with pytest.raises(Died):
        Schedules(app, log, "first", boundary=dying(boundary)).fire()
    clock.tick(31)  # the lease of the dead one runs out
    Schedules(app, log, "second").fire()
    assert 1 == len(ids(app, log))
    wait_until(clock, log)
    Schedules(app, log, "second").fire()
    assert 2 == len(ids(app, log))


@pytest.mark.parametrize("policy, expected", [("last", [29]), ("all", [27, 28, 29]), ("none", [])])
def test_what_passed_while_nothing_ran_is_made_up_for_as_the_schedule_says(place, policy, expected):
    log, clock = place
    clock.now = from_datetime(datetime(2026, 6, 26, 12, tzinfo=BERLIN))
    app = app_of(daily(catch_up=policy))
    Schedules(app, log, "w").plan()
    clock.now = from_datetime(datetime(2026, 6, 29, 12, tzinfo=BERLIN))
    later = Schedules(app, log, "w")
    later.plan()
    later.fire()
    assert [f"k:2026-06-{day}T02:30:00+02:00" for day in expected] == ids(app, log)
    assert from_datetime(datetime(2026, 6, 30, 2, 30, tzinfo=BERLIN)) == log.schedule.next_wake(CRON)


def test_more_missed_moments_than_one_append_takes_are_all_delivered(place):
    log, clock = place
    app = app_of(every(timedelta(minutes=1), key="k", input="beat", catch_up="all"))
    schedules = Schedules(app, log, "w")
    schedules.plan()
    clock.now += 350 * 60 * SECOND
    while schedules.fire():
        pass
    assert 350 == len(ids(app, log)) == len(set(ids(app, log)))


def test_a_schedule_that_leaves_out_what_was_missed_is_not_thrown_off_by_a_second(place):
    log, clock = place
    app = app_of(daily(catch_up="none"))
    schedules = Schedules(app, log, "w")
    schedules.plan()
    wait_until(clock, log)
    clock.tick(5)
    assert 1 == schedules.fire()


def test_a_changed_schedule_is_planned_anew_and_a_clock_set_back_fires_nothing_twice(place):
    log, clock = place
    before, after = app_of(every(timedelta(hours=6), key="k", input="beat")), app_of(every(timedelta(hours=1), key="k", input="beat"))
    Schedules(before, log, "w").plan()
    schedules = Schedules(after, log, "w")
    schedules.plan()
    assert START // HOUR * HOUR + HOUR == wait_until(clock, log)
    assert 1 == schedules.fire()
    clock.tick(-1800)
    assert 0 == schedules.fire()
    wait_until(clock, log)
    schedules.fire()
    assert 2 == len(ids(after, log))


def test_older_code_delivers_what_newer_code_planned_and_then_goes_on_its_own_way(place):
    log, clock = place
    old, new = app_of(every(timedelta(hours=6), key="k", input="old")), app_of(every(timedelta(hours=1), key="other", name="k", input="new"))
    older = Schedules(old, log, "old")
    older.plan()
    Schedules(new, log, "new").plan()
    wait_until(clock, log)
    older.fire()
    assert (1, 0) == (len(ids(new, log, "reports-other")), len(ids(old, log)))


def test_a_schedule_this_code_does_not_know_is_left_to_others(place):
    log, clock = place
    known = app_of(every(timedelta(hours=1), key="k", input="beat"))
    Schedules(known, log, "w").plan()
    wait_until(clock, log)
    assert 0 == Schedules(app_of(), log, "x").fire()
    clock.tick(61)
    assert 1 == Schedules(known, log, "w").fire()


def test_an_input_id_used_by_hand_does_not_stop_the_schedule(place):
    log, clock = place
    from intentlog.agents import Input, send

    app = app_of(every(timedelta(hours=1), key="k", input="beat"))
    schedules, heard = Schedules(app, log, "w"), []
    schedules.plan()
    wait_until(clock, log)
    (planned,) = (app.codec.decode_stored(stored) for stored in log.read("reports.cron-k"))
    send(app, log, Input("reports", "k", "something else", planned.input.input_id))
    assert 0 == schedules.fire(lambda doing, problem: heard.append(doing))
    assert ["firing reports.cron-k"] == heard
    wait_until(clock, log)
    assert 1 == schedules.fire()


async def comes_true(holds: Callable[[], bool]) -> None:
    for _ in range(1000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never came to hold")


def test_a_worker_keeps_its_schedules_and_runs_what_they_bring(place):
    log, clock = place
    app = app_of(every(timedelta(hours=1), key="k", input="beat"))

    async def serve() -> None:
        committer = Committer(log)
        worker = Worker(app, log, owner="w", committer=committer, settings=WorkerSettings(poll=0.005))
        running = asyncio.create_task(worker.run())
        try:
            async with asyncio.timeout(10):
                await comes_true(lambda: log.schedule.next_wake(CRON) is not None)
                wait_until(clock, log)
                await comes_true(lambda: any(stored.type == "activation.completed" for stored in log.read("reports-k")))
                for _ in range(200):
                    if await worker.idle():
                        break
                    await asyncio.sleep(0.01)
                assert await worker.idle()
        finally:
            worker.stop()
            await running
            committer.close()

    asyncio.run(serve())
    assert 1 == len(ids(app, log))
    assert ["same"] == [replayed.verdict.value for replayed in replay_all(log, app)]
    assert all(report.sound for report in verify_all(log, app))


def test_an_input_the_agent_cannot_take_is_refused_at_the_start():
    with contextlib.closing(open_log("memory://")) as log, pytest.raises(InputRefused):
        Schedules(app_of(every(timedelta(hours=1), key="k", input=7)), log, "w")


def test_two_schedules_of_one_name_and_a_clash_of_streams_are_refused():
    with pytest.raises(DefinitionError, match="two schedules are named 'k'"):
        app_of(daily(), daily())

    @agent("reports.cron")
    async def other(ctx: Any) -> None: ...

    with pytest.raises(DefinitionError, match=r"may not be named 'reports\.cron'"):
        App(agents=[app_of(daily()).agent("reports"), other])
