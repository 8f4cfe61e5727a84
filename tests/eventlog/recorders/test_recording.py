"""What the library's suites do not ask of a recorder: holes, order, strangers in the log, two recorders on one log."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from eventsourcing.persistence import DataError, IntegrityError, OperationalError, StoredEvent

from intentlog.eventlog.errors import LogUnavailable
from intentlog.eventlog.events import NewEvent
from intentlog.eventlog.log import EventLog
from intentlog.eventlog.recorders import Layout, LogAggregateRecorder, LogApplicationRecorder
from intentlog.eventlog.versions import ANY, NO_STREAM

TEXT = Layout("account", "text")


def stored(key: str, version: int, topic: str = "t", state: bytes = b"s") -> StoredEvent:
    return StoredEvent(key, version, topic, state)


def ids(recorder, **asked) -> list[int]:
    return [each.id for each in recorder.select_notifications(None, 100, **asked)]


@pytest.fixture
def recorder(log) -> LogApplicationRecorder:
    return LogApplicationRecorder(log, TEXT)


def test_aggregates_are_ordinary_streams(log, recorder):
    recorder.insert_events([stored("acct-1", 1, "account.opened", b"{}"), stored("acct-1", 2)])
    assert ["account-acct-1"] == list(log.streams())
    assert [(0, "account.opened", b"{}"), (1, "t", b"s")] == [(e.version, e.type, e.data) for e in log.read("account-acct-1")]


def test_what_our_own_append_wrote_is_an_aggregate_too(log, recorder):
    log.append("account-acct-1", [TEXT.new_event(stored("acct-1", 1), 1, bytes(16))], NO_STREAM)
    recorder.insert_events([stored("acct-1", 2)])
    assert [stored("acct-1", 1), stored("acct-1", 2)] == recorder.select_events("acct-1")


@pytest.mark.parametrize("versions", [[1, 3], [2, 1], [1, 1], [2], [-1, 0]])
def test_a_new_aggregate_with_a_hole_is_refused_whole(log, recorder, versions):
    with pytest.raises(IntegrityError):
        recorder.insert_events([stored("other", 1), *(stored("a", version) for version in versions)])
    assert ([], [], []) == (list(log.read_all()), recorder.select_events("a"), recorder.select_events("other"))


@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("fresh", [True, False], ids=["another recorder", "the same recorder"])
def test_only_the_next_version_is_taken(log, recorder, start, fresh):
    recorder.insert_events([stored("a", start), stored("a", start + 1)])
    writer = LogApplicationRecorder(log, TEXT) if fresh else recorder
    for version in (-1, 0, 1, start + 1, start + 3):
        with pytest.raises(IntegrityError):
            writer.insert_events([stored("a", version)])
    third = writer.insert_events([stored("a", start + 2)])
    assert ids(recorder)[2:] == third
    assert [start, start + 1, start + 2] == [each.originator_version for each in recorder.select_events("a")]


def test_ids_follow_the_order_in_which_events_were_given(recorder):
    given = [stored("a", 1), stored("b", 0), stored("a", 2), stored("b", 1), stored("b", 2), stored("a", 3)]
    numbers = recorder.insert_events(given)
    found = recorder.select_notifications(None, 10)
    assert sorted(set(numbers)) == numbers == [each.id for each in found]
    assert [(g.originator_id, g.originator_version) for g in given] == [(n.originator_id, n.originator_version) for n in found]


def test_of_many_who_begin_an_aggregate_one_wins(log):
    recorders = [LogAggregateRecorder(log, TEXT) for _ in range(8)]
    barrier = threading.Barrier(8)

    def begin(number: int) -> bool:
        events = [stored("a", number % 2, state=b"%d" % number), stored("a", number % 2 + 1)]
        barrier.wait()
        try:
            recorders[number].insert_events(events)
        except IntegrityError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(begin, range(8)))
    winner = won.index(True)
    assert (1, 2) == (won.count(True), len(list(log.read_all())))
    for recorder in recorders:
        assert (winner % 2, b"%d" % winner) == ((first := recorder.select_events("a")[0]).originator_version, first.state)


def test_events_of_agents_are_no_notifications(log, recorder):
    staged = NewEvent(bytes(16), "intent.staged", 1, b"")
    log.append("refunds-acct-1", [staged], ANY)
    assert (None, []) == (recorder.max_notification_id(), ids(recorder))
    first, last = recorder.insert_events([stored("a", 1), stored("a", 2)])
    for number in range(1, 60):
        log.append("refunds-acct-1", [NewEvent(number.to_bytes(16), "intent.staged", 1, b"")], ANY)
    assert (last, [first, last]) == (recorder.max_notification_id(), ids(recorder))
    assert (62, [first]) == (len(list(log.read_all())), ids(recorder, stop=last - 1))


def test_categories_keep_applications_apart(log, recorder):
    other = LogApplicationRecorder(log, Layout("order", "text"))
    given = recorder.insert_events([stored("same", 1)]), other.insert_events([stored("same", 0, "o")])
    assert given == (ids(recorder), ids(other))
    assert ([stored("same", 1)], [stored("same", 0, "o")]) == (recorder.select_events("same"), other.select_events("same"))


@pytest.mark.parametrize("start", [0, 1])
def test_bounds_are_originator_versions(recorder, start):
    recorder.insert_events([stored("a", start + n) for n in range(4)])

    def versions(**asked) -> list[int]:
        return [each.originator_version - start for each in recorder.select_events("a", **asked)]

    assert [2, 3] == versions(gt=start + 1)
    assert [0, 1] == versions(lte=start + 1)
    assert [3, 2] == versions(desc=True, limit=2)
    assert [1, 0] == versions(lte=start + 1, desc=True)
    assert [0, 1, 2, 3] == versions(gt=-100, lte=100)
    assert [] == versions(gt=start + 3) == versions(lte=start - 1) == versions(lte=-100)


@pytest.mark.parametrize("nobody", ["", "a\nb", "\ud800"])
def test_an_id_that_cannot_exist_has_no_events_and_gets_none(recorder, nobody):
    assert [] == recorder.select_events(nobody)
    with pytest.raises(DataError, match="Invalid key"):
        recorder.insert_events([stored(nobody, 1)])


def test_a_closed_log_is_an_operational_error(log, recorder):
    log.close()
    for use in (lambda: recorder.insert_events([stored("a", 1)]), lambda: recorder.select_events("a"), recorder.max_notification_id, lambda: ids(recorder)):
        with pytest.raises(OperationalError, match="closed"):
            use()


class Hidden:
    """A log whose end is hidden, as it is in PostgreSQL while an older transaction is under way, or out of reach; and how often it was waited for."""

    def __init__(self, log: EventLog) -> None:
        self.hides = self.fails = False
        self.waits = 0
        self._log = log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def last_position(self) -> int:
        if self.fails:
            raise LogUnavailable("The log cannot be reached. Try again.")
        return 0 if self.hides else self._log.last_position()

    def wait(self, after: int, timeout: float) -> bool:
        self.waits += 1
        return not self.hides


def test_an_insert_waits_for_followers_once_while_a_transaction_lasts(log):
    hidden = Hidden(log)
    recorder = LogApplicationRecorder(hidden, TEXT)
    for turn in range(1, 3):
        recorder.insert_events([stored(f"shown-{turn}", 1)])
        hidden.hides = True
        for version in range(1, 5):
            assert recorder.insert_events([stored(f"hidden-{turn}", version)])
        assert turn == hidden.waits
        hidden.hides = False
    assert [*["hidden-1"] * 4, "shown-2", *["hidden-2"] * 4] == [each.originator_id for each in recorder.select_notifications(None, 100)][1:]


def test_an_insert_that_is_durable_is_no_error(log):
    hidden = Hidden(log)
    recorder = LogApplicationRecorder(hidden, TEXT)
    hidden.fails = True
    given = recorder.insert_events([stored("a", 1)])
    with pytest.raises(OperationalError, match="cannot be reached"):
        recorder.max_notification_id()
    hidden.fails = False
    assert given == ids(recorder)
