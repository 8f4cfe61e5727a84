"""What the runners do beyond the kit's promises: progress, other runners, handlers that change their mind, codecs."""

from __future__ import annotations

import threading

import pytest

from intentlog.eventlog.errors import LeaseLost, ProjectionFailed, Undecodable
from intentlog.eventlog.events import StoredEvent
from intentlog.eventlog.log import EventLog, View
from intentlog.eventlog.memory import open_memory
from intentlog.eventlog.projections import OnError, Progress, Projection, catch_up, follow, rebuild
from intentlog.eventlog.testing import StoreMaker
from intentlog.eventlog.testing.maker import Ticking, event, events, fresh, several, together
from intentlog.eventlog.versions import ANY


def count(view: View, stored: StoredEvent, decoded: object) -> None:
    view.put(stored.stream, str(int(view.get(stored.stream) or b"0") + 1).encode())


def filled(number: int) -> EventLog:
    log = open_memory()
    log.append("a-1", events(number), ANY)
    return log


def test_progress_is_told_after_every_batch():
    log, told = filled(10), list[Progress]()
    catch_up(log, Projection("p", count), batch=4, progress=told.append)
    assert [Progress(4, 4, 0), Progress(8, 8, 0), Progress(10, 10, 0)] == told


def test_an_empty_log_is_caught_up_with():
    assert Progress(0, 0, 0) == catch_up(open_memory(), Projection("p", count))


def test_events_that_arrive_during_a_run_wait_for_the_next_one():
    log = filled(2)

    def fertile(view: View, stored: StoredEvent, decoded: object) -> None:
        log.append("b-1", [event()], ANY)

    assert Progress(2, 2, 0) == catch_up(log, Projection("p", fertile))
    assert Progress(4, 2, 0) == catch_up(log, Projection("p", fertile))


def test_without_a_codec_a_handler_gets_no_decoded_value():
    log, seen = filled(1), list[object]()
    catch_up(log, Projection("p", lambda view, stored, decoded: seen.append(decoded)))
    assert [None] == seen


def test_the_reason_why_an_event_does_not_decode_is_parked_with_it():
    clock = Ticking()
    log = open_memory(clock=clock)
    log.append("a-1", events(1), ANY)

    class Closed:
        def decode_stored(self, stored: StoredEvent) -> object:
            raise Undecodable("no such class")

    assert Progress(1, 0, 1) == catch_up(log, Projection("p", count, on_error=OnError.PARK), codec=Closed())
    (parked,) = log.views.parked("p@v1")
    assert ("p@v1", 1, "a-1", 0, "Undecodable: no such class", clock.now) == (
        parked.projection,
        parked.position,
        parked.stream,
        parked.version,
        parked.error,
        parked.parked_at,
    )


@pytest.mark.parametrize("batch", [1, 3, 100])
def test_a_handler_that_fails_earlier_the_second_time_is_taken_at_its_word(batch):
    log, calls = filled(10), list[int]()

    def moody(view: View, stored: StoredEvent, decoded: object) -> None:
        calls.append(stored.version)
        if stored.version == 7 or (stored.version == 4 and calls.count(4) == 2):
            raise ValueError(f"moody at {stored.version}")
        count(view, stored, decoded)

    done = catch_up(log, Projection("p", moody, on_error=OnError.PARK), batch=batch)
    handled = int(log.views.read("p").get("a-1") or b"0")
    assert (handled, len(log.views.parked("p@v1"))) == (done.handled, done.parked)
    assert (10, 10) == (done.position, done.handled + done.parked)


def test_a_stopped_projection_says_where_why_and_what_to_do():
    log = filled(3)

    def fussy(view: View, stored: StoredEvent, decoded: object) -> None:
        if stored.version == 1:
            raise KeyError("colour")

    with pytest.raises(ProjectionFailed) as stopped:
        catch_up(log, Projection("paint", fussy))
    (_, bad, _) = log.read("a-1")
    assert (
        f"Projection paint@v1 stopped at a-1 version 1 (thing.happened, position 2, event id {bad.id}): KeyError: 'colour'. Everything before it is kept. "
        "Mend the handler and run it again, or let the projection step over with OnError.PARK."
    ) == str(stopped.value)
    assert isinstance(stopped.value.__cause__, KeyError)
    assert ("paint@v1", bad) == (stopped.value.view, stopped.value.event)


def test_a_lease_that_a_handler_lost_ends_the_run():
    log = filled(3)

    def fenced(view: View, stored: StoredEvent, decoded: object) -> None:
        raise LeaseLost("somebody took over")

    with pytest.raises(LeaseLost, match="somebody took over"):
        catch_up(log, Projection("p", fenced, on_error=OnError.PARK))
    assert (0, []) == (log.checkpoints.load("p@v1"), log.views.parked())


def test_two_runners_of_one_projection_handle_every_event_once(maker: StoreMaker):
    with several(maker, 2) as logs:
        logs[0].append("a-1", events(200), ANY)
        done = together(*[lambda log=log: catch_up(log, Projection("p", count), batch=3) for log in logs])
        assert b"200" == logs[0].views.read("p").get("a-1")
        assert 200 == sum(progress.handled for progress in done)


def test_a_view_rebuilt_under_a_follower_ends_complete(maker: StoreMaker):
    with several(maker, 2) as (log, other):
        log.append("a-1", events(100), ANY)
        stopped = threading.Event()
        follower = threading.Thread(target=lambda: follow(log, Projection("p", count), stop=stopped.is_set, batch=2, poll=0.005))
        follower.start()
        rebuild(other, Projection("p", count), batch=5)
        stopped.set()
        follower.join()
        catch_up(log, Projection("p", count))
        assert b"100" == log.views.read("p").get("a-1")


def test_a_follower_takes_up_a_rebuild_that_died_elsewhere(maker: StoreMaker):
    with several(maker, 2) as (log, other):
        log.append("a-1", events(9), ANY)
        answers = iter([False, False, True])

        def stop() -> bool:
            if (answer := next(answers)) is False and other.checkpoints.load("p@v1"):
                other.views.clear("p@v1")
            return answer

        assert Progress(log.last_position(), 18, 0) == follow(log, Projection("p", count), stop=stop)
        assert b"9" == log.views.read("p").get("a-1")


def test_two_projections_over_one_log_do_not_meet(maker: StoreMaker):
    with fresh(maker) as log:
        log.append("a-1", [event(type="x"), event(type="y"), event(type="x")], ANY)
        catch_up(log, Projection("xs", count, types=("x",)))
        catch_up(log, Projection("ys", count, types=("y",)))
        assert (b"2", b"1") == (log.views.read("xs").get("a-1"), log.views.read("ys").get("a-1"))
        log.views.clear("xs@v1")
        assert (0, log.last_position()) == (log.checkpoints.load("xs@v1"), log.checkpoints.load("ys@v1"))
