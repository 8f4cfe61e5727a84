"""Following exactly once: tracking is part of the append."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from eventsourcing.persistence import DataError, IntegrityError, StoredEvent, Tracking, WaitInterruptedError

from intentlog.eventlog.recorders import Layout, LogProcessRecorder, LogTrackingRecorder

TEXT = Layout("order", "text")


def stored(key: str, version: int = 1) -> StoredEvent:
    return StoredEvent(key, version, "t", b"s")


@pytest.fixture
def recorder(log) -> LogProcessRecorder:
    return LogProcessRecorder(log, TEXT)


def test_a_notification_that_was_handled_leaves_nothing_the_second_time(log, recorder):
    given = recorder.insert_events([stored("a")], tracking=Tracking("Shop", 5))
    assert given == [each.id for each in recorder.select_notifications(None, 9)]
    with pytest.raises(IntegrityError, match="5 of 'Shop' cannot be tracked: 5 was recorded already"):
        LogProcessRecorder(log, TEXT).insert_events([stored("b")], tracking=Tracking("Shop", 5))
    assert ([], 5) == (recorder.select_events("b"), recorder.max_tracking_id("Shop"))


def test_events_that_conflict_leave_no_tracking(recorder):
    recorder.insert_events([stored("a")])
    with pytest.raises(IntegrityError, match="order-a"):
        recorder.insert_events([stored("a")], tracking=Tracking("Shop", 5))
    assert recorder.max_tracking_id("Shop") is None


def test_tracking_is_no_notification(recorder):
    first = recorder.insert_events([stored("a")], tracking=Tracking("Shop", 5))
    recorder.insert_tracking(Tracking("Shop", 6))
    last = recorder.insert_events([stored("b")], tracking=Tracking("Shop", 7))
    assert ([*first, *last], last) == ([each.id for each in recorder.select_notifications(None, 9)], [recorder.max_notification_id()])


def test_of_many_who_handle_the_same_notification_one_wins(log, recorder):
    barrier = threading.Barrier(8)

    def handle(number: int) -> bool:
        barrier.wait()
        try:
            recorder.insert_events([stored(f"a-{number}")], tracking=Tracking("Shop", 5))
        except IntegrityError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(handle, range(8)))
    assert (1, 2) == (won.count(True), len(list(log.read_all())))
    assert [f"order-a-{won.index(True)}"] == list(log.streams("order-"))


def test_records_that_cross_end_at_the_highest(recorder):
    with ThreadPoolExecutor(8) as pool:
        taken = [number for number, ok in zip(range(1, 41), pool.map(lambda n: attempt(recorder, n), range(1, 41)), strict=True) if ok]
    assert (40, True) == (recorder.max_tracking_id("Shop"), 40 in taken)
    followed = [each.version for each in recorder.log.read("order.tracking-Shop")]
    assert list(range(len(taken))) == followed


def attempt(recorder: LogProcessRecorder, number: int) -> bool:
    try:
        recorder.insert_tracking(Tracking("Shop", number))
    except IntegrityError:
        return False
    return True


def test_categories_follow_the_same_application_apart(log, recorder):
    recorder.insert_tracking(Tracking("Shop", 5))
    other = LogTrackingRecorder(log, Layout("report"))
    assert other.max_tracking_id("Shop") is None
    other.insert_tracking(Tracking("Shop", 3))
    assert (5, 3) == (recorder.max_tracking_id("Shop"), other.max_tracking_id("Shop"))


def test_an_application_name_that_is_no_key_is_refused(recorder):
    assert recorder.max_tracking_id("a\nb") is None
    with pytest.raises(DataError, match="control character"):
        recorder.insert_tracking(Tracking("a\nb", 1))


def test_a_wait_ends_with_the_record_it_waits_for(recorder):
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(recorder.wait, "Shop", 5, timeout=20)
        recorder.insert_tracking(Tracking("Shop", 4))
        assert not waiting.done()
        recorder.insert_tracking(Tracking("Shop", 6))
        waiting.result(10)


def test_a_wait_can_be_interrupted(recorder):
    interrupt = threading.Event()
    began = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(recorder.wait, "Shop", 5, timeout=60, interrupt=interrupt)
        interrupt.set()
        with pytest.raises(WaitInterruptedError, match="notification 5 of 'Shop'"):
            waiting.result(30)
    assert time.monotonic() - began < 30
