"""Many projections at once: one that stops holds up no other, and what may pass is waited for."""

from __future__ import annotations

import itertools
import threading
import time

import pytest

from intentlog.eventlog.errors import LogUnavailable, ProjectionFailed
from intentlog.eventlog.events import StoredEvent
from intentlog.eventlog.log import EventLog, View
from intentlog.eventlog.memory import open_memory
from intentlog.eventlog.projections import OnError, Progress, Projection, follow, run_all
from intentlog.eventlog.testing import StoreMaker
from intentlog.eventlog.testing.maker import PATIENCE, events, fresh
from intentlog.eventlog.versions import ANY


def count(view: View, stored: StoredEvent, decoded: object) -> None:
    view.put(stored.stream, str(int(view.get(stored.stream) or b"0") + 1).encode())


def hostile(view: View, stored: StoredEvent, decoded: object) -> None:
    if stored.version == 4:
        raise ValueError("poison")
    count(view, stored, decoded)


def filled(log: EventLog, number: int) -> EventLog:
    log.append("a-1", events(number), ANY)
    return log


def never() -> bool:
    return False


def test_one_that_stops_holds_up_no_other(maker: StoreMaker) -> None:
    with fresh(maker) as log:
        filled(log, 20)
        told = list[tuple[str, Exception]]()
        wanted = [Projection("good", count), Projection("bad", hostile), Projection("mild", hostile, on_error=OnError.PARK)]
        ended = run_all(log, wanted, stop=never, until_idle=True, trouble=lambda projection, error: told.append((projection.name, error)))
        end = log.last_position()
        assert [Progress(end, 20, 0), Progress(end, 19, 1)] == [ended[0].progress, ended[2].progress]
        assert [None, ProjectionFailed, None] == [each.error and type(each.error) for each in ended]
        assert [("bad", ended[1].error)] == told
        assert b"4" == log.views.read("bad").get("a-1")


def test_the_newest_version_answers_to_a_name_that_none_does(maker: StoreMaker) -> None:
    with fresh(maker) as log:
        filled(log, 2)
        wanted = [Projection("p", count), Projection("p", count, version=3), Projection("p", count, version=2)]
        for _ in range(2):
            run_all(log, wanted, stop=never, until_idle=True)
            assert {"p": "p@v3"} == log.views.pointed()
            wanted.append(Projection("p", count, version=4))


def test_the_others_follow_on_after_one_has_stopped(maker: StoreMaker) -> None:
    with fresh(maker) as log:
        filled(log, 10)
        stopped, over = threading.Event(), threading.Event()
        deadline = time.monotonic() + PATIENCE

        def feed() -> None:
            assert stopped.wait(PATIENCE)
            filled(log, 10)

        feeder = threading.Thread(target=feed)
        feeder.start()
        ended = run_all(
            log,
            [Projection("bad", hostile), Projection("good", count)],
            stop=lambda: over.is_set() or time.monotonic() > deadline or log.views.read("good").get("a-1") == b"20",
            poll=0.01,
            trouble=lambda projection, error: stopped.set(),
        )
        feeder.join()
        assert (b"20", 20) == (log.views.read("good").get("a-1"), ended[1].progress.handled)


def away_for(tries: int) -> Projection:
    left = itertools.count()

    def absent(view: View, stored: StoredEvent, decoded: object) -> None:
        if stored.version == 3 and next(left) < tries:
            raise LogUnavailable("away")
        count(view, stored, decoded)

    return Projection("p", absent)


@pytest.mark.parametrize("until_idle", [True, False])
def test_what_may_pass_is_told_and_tried_again(until_idle: bool) -> None:
    log, told = filled(open_memory(), 6), list[str]()
    (ended,) = run_all(
        log,
        [away_for(2)],
        stop=lambda: log.views.read("p").get("a-1") == b"6",
        until_idle=until_idle,
        batch=2,
        poll=0.01,
        trouble=lambda _, error: told.append(str(error)),
    )
    assert (Progress(6, 6, 0), None, ["away", "away"]) == (ended.progress, ended.error, told)


def test_patience_ends_where_nothing_comes_of_it() -> None:
    log = filled(open_memory(), 6)
    (ended,) = run_all(log, [away_for(10_000)], stop=never, until_idle=True, patience=0.2, poll=0.01)
    assert isinstance(ended.error, LogUnavailable)
    assert Progress(0, 0, 0) == ended.progress


def test_a_pause_after_trouble_ends_when_told_to_stop() -> None:
    log, over = filled(open_memory(), 6), threading.Event()
    began = time.monotonic()
    run_all(log, [away_for(10_000)], stop=over.is_set, poll=0.01, trouble=lambda _, error: over.set())
    assert time.monotonic() - began < 5


def test_what_no_handler_may_do_is_told_as_it_is() -> None:
    class Odd(BaseException):
        pass

    def leaving(view: View, stored: StoredEvent, decoded: object) -> None:
        raise Odd

    (ended,) = run_all(filled(open_memory(), 1), [Projection("p", leaving)], stop=never, until_idle=True)
    assert isinstance(ended.error, Odd)


def test_a_long_way_is_left_where_it_is_told_to_stop() -> None:
    log = filled(open_memory(), 100)
    (ended,) = run_all(log, [Projection("p", count)], stop=lambda: log.checkpoints.load("p@v1") >= 20, until_idle=True, batch=10)
    assert (Progress(20, 20, 0), 20) == (ended.progress, log.checkpoints.load("p@v1"))
    assert Progress(30, 10, 0) == follow(log, Projection("p", count), stop=lambda: log.checkpoints.load("p@v1") >= 30, batch=10)


def test_a_store_that_goes_away_while_nothing_is_to_be_done_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    log, told, waits = filled(open_memory(), 3), list[str](), itertools.count()
    wait = log.wait

    def away(after: int, timeout: float) -> bool:
        if next(waits) < 2:
            raise LogUnavailable("away")
        filled(log, 1)
        return wait(after, timeout)

    monkeypatch.setattr(log, "wait", away)
    (ended,) = run_all(log, [Projection("p", count)], stop=lambda: log.views.read("p").get("a-1") == b"4", trouble=lambda _, error: told.append(str(error)))
    assert (None, 4, ["away", "away"]) == (ended.error, ended.progress.handled, told)
