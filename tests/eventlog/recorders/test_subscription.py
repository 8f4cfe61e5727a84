"""Following an application as it goes on."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import pytest
from eventsourcing.persistence import OperationalError, ProgrammingError, StoredEvent

from intentlog.eventlog.recorders import Layout, LogApplicationRecorder
from intentlog.eventlog.testing.maker import several

TEXT = Layout("account", "text")


def stored(key: str, version: int, topic: str = "t") -> StoredEvent:
    return StoredEvent(key, version, topic, b"s")


@pytest.fixture
def recorder(log) -> LogApplicationRecorder:
    return LogApplicationRecorder(log, TEXT)


def test_more_than_one_look_holds_comes_in_order(recorder):
    given = recorder.insert_events([stored("a", number) for number in range(1_203)])
    with recorder.subscribe() as subscription:
        assert given == [each.id for each in islice(subscription, 1_203)]
        (last,) = recorder.insert_events([stored("b", 1)])
        assert ("b", last) == ((each := next(subscription)).originator_id, each.id)


def test_what_is_recorded_meanwhile_arrives(recorder):
    (first,) = recorder.insert_events([stored("a", 1)])
    with recorder.subscribe(gt=first) as subscription, ThreadPoolExecutor(1) as pool:
        following = pool.submit(lambda: [each.originator_version for each in islice(subscription, 3)])
        for version in range(2, 5):
            recorder.insert_events([stored("a", version)])
        assert [2, 3, 4] == following.result(20)


def test_writers_at_once_lose_and_repeat_nothing(recorder):
    with recorder.subscribe() as subscription, ThreadPoolExecutor(5) as pool:
        following = pool.submit(lambda: [each.id for each in islice(subscription, 200)])
        writing = [pool.submit(lambda key: [recorder.insert_events([stored(key, number)])[0] for number in range(50)], f"a-{writer}") for writer in range(4)]
        given = sorted(number for writer in writing for number in writer.result(60))
        assert given == following.result(60)


def test_a_filter_moves_on_past_what_it_leaves_out(recorder):
    given = recorder.insert_events([stored("a", number, "rare" if number == 1 else "common") for number in range(700)])
    with recorder.subscribe(topics=["rare"]) as subscription, ThreadPoolExecutor(1) as pool:
        assert given[1] == next(subscription).id
        following = pool.submit(next, subscription)
        given = recorder.insert_events([stored("b", 0, "common"), stored("b", 1, "rare")])
        assert given[1] == following.result(20).id


def test_stop_from_another_thread_ends_a_wait(recorder):
    subscription = recorder.subscribe()
    ended = threading.Event()

    def follow() -> None:
        with subscription:
            assert [] == list(subscription)
        ended.set()

    thread = threading.Thread(target=follow)
    thread.start()
    subscription.stop()
    assert ended.wait(20)
    thread.join()


def test_stop_leaves_what_was_fetched(recorder):
    recorder.insert_events([stored("a", 1), stored("a", 2)])
    with recorder.subscribe() as subscription:
        assert 1 == next(subscription).originator_version
        subscription.stop()
        assert [] == list(subscription)


def test_a_subscription_is_entered_once(recorder):
    with recorder.subscribe() as subscription, pytest.raises(ProgrammingError, match="Already entered"):
        subscription.__enter__()


def test_a_log_that_is_closed_says_so(log, recorder):
    with recorder.subscribe() as subscription, ThreadPoolExecutor(1) as pool:
        following = pool.submit(next, subscription)
        log.close()
        with pytest.raises(OperationalError, match="closed"):
            following.result(20)


def test_another_handle_of_the_log_is_followed(maker):
    with several(maker, 2) as (one, other), LogApplicationRecorder(one, TEXT).subscribe() as subscription, ThreadPoolExecutor(1) as pool:
        following = pool.submit(next, subscription)
        LogApplicationRecorder(other, TEXT).insert_events([stored("a", 1)])
        assert "a" == following.result(20).originator_id
