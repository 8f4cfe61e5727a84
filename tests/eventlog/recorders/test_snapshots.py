"""The log's own snapshots behind the library's snapshot recorder."""

from __future__ import annotations

import pytest
from eventsourcing.persistence import DataError, StoredEvent

from intentlog.eventlog.log import Snapshot
from intentlog.eventlog.recorders import Layout, LogSnapshotRecorder

TEXT = Layout("account", "text")


def stored(version: int, topic: str = "account.snapshot") -> StoredEvent:
    return StoredEvent("a", version, topic, b"state %d" % version)


@pytest.fixture
def recorder(log) -> LogSnapshotRecorder:
    return LogSnapshotRecorder(log, TEXT)


def test_a_snapshot_comes_back(recorder):
    assert None is recorder.insert_events([stored(10)])
    assert [stored(10)] == recorder.select_events("a", desc=True, limit=1)


def test_the_newest_is_kept(recorder):
    recorder.insert_events([stored(10), stored(30), stored(20), stored(30)])
    assert [stored(30)] == recorder.select_events("a")


def test_bounds_hold(recorder):
    recorder.insert_events([stored(10)])
    assert [stored(10)] == recorder.select_events("a", gt=9, lte=10)
    assert [] == recorder.select_events("a", gt=10) == recorder.select_events("a", lte=9) == recorder.select_events("a", limit=0) == recorder.select_events("b")


def test_snapshots_are_no_events_and_may_be_deleted(log, recorder):
    recorder.insert_events([stored(10)])
    assert ([], []) == (list(log.read_all()), list(log.streams()))
    assert 1 == log.snapshots.delete()
    assert [] == recorder.select_events("a")


def test_what_another_fold_kept_is_not_taken(log, recorder):
    log.snapshots.save("account-a", Snapshot(10, "5f3c", b"of an agent"))
    assert [] == recorder.select_events("a")


def test_an_id_that_is_no_key_is_refused(recorder):
    with pytest.raises(DataError, match="Invalid key"):
        recorder.insert_events([StoredEvent("", 1, "t", b"")])
