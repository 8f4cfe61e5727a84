"""How the library's events lie in the log."""

from __future__ import annotations

from uuid import UUID

import pytest
from eventsourcing.persistence import DataError, IntegrityError, Notification, StoredEvent, Tracking

from intentlog.eventlog.errors import InvalidName
from intentlog.eventlog.events import StoredEvent as LogEvent
from intentlog.eventlog.recorders.layout import Layout, check_start, start_of, tracked_id, tracking_event

ONE = UUID("b2723fe2-c01a-40d2-875e-a3aac6a09ff5")


def logged(stream: str, version: int, new, position: int = 7) -> LogEvent:
    return LogEvent(position, stream, version, new.event_id, new.type, new.schema, new.data, 0, None, None)


@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("layout, given", [(Layout("account", "text"), "acct-42"), (Layout(), ONE)])
def test_an_event_comes_back_as_it_was_given(layout, given, start):
    stored = StoredEvent(given, start + 2, "account.opened", b"\x00state")
    event = logged(layout.checked_stream(given), 2, layout.new_event(stored, start, bytes(16)))
    assert stored == layout.stored_event(event)
    assert Notification(given, start + 2, "account.opened", b"\x00state", 7) == layout.notification(event)


def test_topic_and_state_are_columns_of_the_log_untouched():
    new = Layout("account", "text").new_event(StoredEvent("acct-42", 1, "account.opened", b"{}"), 1, bytes(16))
    assert ("account.opened", 1, b"{}", None, None) == (new.type, new.schema, new.data, new.correlation, new.causation)


def test_a_stream_is_the_category_and_the_id():
    assert "account-acct-42" == Layout("account", "text").checked_stream("acct-42")
    assert f"aggregate-{ONE}" == Layout().checked_stream(ONE)


def test_tracking_stands_in_a_category_of_its_own():
    assert "account.tracking-Shop" == Layout("account").tracking_stream("Shop")
    with pytest.raises(InvalidName, match=r"ends in '\.tracking'"):
        Layout("account.tracking")


def test_a_tracking_record_comes_back():
    assert 42 == tracked_id(logged("account.tracking-Shop", 0, tracking_event(Tracking("Shop", 42), bytes(16))))


def test_text_where_uuids_are_expected_is_refused_with_the_way_out():
    with pytest.raises(DataError, match=r"'acct-42' is not a UUID.*ORIGINATOR_ID_TYPE=text"):
        Layout().checked_stream("acct-42")


def test_a_text_id_found_where_uuids_are_expected_is_named():
    new = Layout(id_type="text").new_event(StoredEvent("acct-42", 1, "topic", b""), 1, bytes(16))
    with pytest.raises(DataError, match="aggregate-acct-42 does not bear a UUID"):
        Layout().stored_event(logged("aggregate-acct-42", 0, new))


@pytest.mark.parametrize("bad", ["", "a\nb", "e\u0301", "x" * 600])
def test_an_id_that_is_no_key_is_refused(bad):
    with pytest.raises(InvalidName, match="Invalid key"):
        Layout(id_type="text").checked_stream(bad)


def test_an_event_of_another_program_is_not_taken_for_an_aggregates():
    with pytest.raises(DataError, match=r"aggregate-x version 0 \(intent.staged, schema 3\) was not written.*EVENTLOG_CATEGORY"):
        start_of(LogEvent(1, "aggregate-x", 0, bytes(16), "intent.staged", 3, b"", 0, None, None))


@pytest.mark.parametrize("first", [-1, 2, 7])
def test_a_stream_begins_with_version_1_or_0(first):
    assert [0, 1] == [check_start("s", 0), check_start("s", 1)]
    with pytest.raises(IntegrityError, match=f"version {first} cannot be its first"):
        check_start("s", first)
