"""Parked events taken up again: once each, with their writes, whoever else is at it."""

from __future__ import annotations

from typing import Any

import pytest

from intentlog.eventlog.errors import LeaseLost, LogUnavailable, ProjectionRefused
from intentlog.eventlog.events import StoredEvent
from intentlog.eventlog.log import EventLog, ParkedEvent, View
from intentlog.eventlog.memory import open_memory
from intentlog.eventlog.projections import OnError, Projection, catch_up, retry_parked
from intentlog.eventlog.testing import StoreMaker
from intentlog.eventlog.testing.maker import event, events, patiently, several, together
from intentlog.eventlog.versions import ANY


def hostile(view: View, stored: StoredEvent, decoded: object) -> None:
    raise ValueError("not yet")


def count(view: View, stored: StoredEvent, decoded: object) -> None:
    view.put(stored.stream, str(int(view.get(stored.stream) or b"0") + 1).encode())


def parked_in(log: EventLog, number: int) -> None:
    """Have ``number`` events parked by ``p@v1``."""
    log.append("a-1", [event(str(each).encode()) for each in range(number)], ANY)
    catch_up(log, Projection("p", hostile, on_error=OnError.PARK))


def test_what_fails_again_is_parked_with_its_new_error_and_none_of_its_writes() -> None:
    log = open_memory()
    parked_in(log, 120)

    def odd(view: View, stored: StoredEvent, decoded: object) -> None:
        view.put("last", stored.data)
        if int(stored.data) % 2 == 0:
            raise KeyError(int(stored.data))
        count(view, stored, decoded)

    done = retry_parked(log, Projection("p", odd))
    assert (60, 60, b"60", b"119") == (done.handled, len(done.parked), log.views.read("p").get("a-1"), log.views.read("p").get("last"))
    assert [f"KeyError: {number}" for number in range(0, 120, 2)] == [each.error for each in done.parked]


def test_retries_at_once_handle_every_event_once(maker: StoreMaker) -> None:
    with several(maker, 2) as logs:
        parked_in(logs[0], 130)
        done = together(*[lambda log=log: patiently(lambda: retry_parked(log, Projection("p", count))) for log in logs])
        assert (130, b"130") == (sum(each.handled for each in done), logs[0].views.read("p").get("a-1"))
        assert [] == logs[0].views.parked()


def test_a_retry_beside_a_follower_loses_nothing(maker: StoreMaker) -> None:
    with several(maker, 2) as (log, other):
        parked_in(log, 60)
        log.append("a-1", events(300), ANY)
        together(lambda: retry_parked(log, Projection("p", count)), lambda: catch_up(other, Projection("p", count), batch=5))
        assert (b"360", []) == (log.views.read("p").get("a-1"), log.views.parked())


@pytest.mark.parametrize("error", [LeaseLost("somebody took over"), LogUnavailable("away")])
def test_an_error_that_may_pass_ends_the_retry_and_keeps_everything_parked(error: Exception) -> None:
    log = open_memory()
    parked_in(log, 3)

    def away(view: View, stored: StoredEvent, decoded: object) -> None:
        raise error

    with pytest.raises(type(error), match=str(error)):
        retry_parked(log, Projection("p", away))
    assert ["ValueError: not yet"] * 3 == [each.error for each in log.views.parked()]


def test_an_event_that_does_not_decode_yet_stays_parked() -> None:
    log = open_memory()
    parked_in(log, 2)

    class Half:
        def decode_stored(self, stored: StoredEvent) -> Any:
            return {"0": "zero"}[stored.data.decode()]

    done = retry_parked(log, Projection("p", count), codec=Half())
    assert (1, ["KeyError: '1'"]) == (done.handled, [each.error for each in done.parked])


def test_a_parked_event_that_is_not_in_the_log_is_said_so() -> None:
    log = open_memory()
    log.append("a-1", events(1), ANY)
    with log.views.transaction("p@v1") as view:
        view.park(ParkedEvent("p@v1", 7, "a-1", 3, "ValueError: x", 0))
    with pytest.raises(ProjectionRefused, match=r"position 7 \(a-1 version 3\) is not in this log"):
        retry_parked(log, Projection("p", count))


def test_nothing_parked_is_nothing_to_do() -> None:
    done = retry_parked(open_memory(), Projection("p", count))
    assert (0, ()) == (done.handled, done.parked)
