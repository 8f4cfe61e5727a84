"""Views in a file that others write to as well."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from intentlog.eventlog.errors import LeaseLost
from intentlog.eventlog.events import NewEvent
from intentlog.eventlog.log import EventLog
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.versions import ANY


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[EventLog, EventLog]]:
    """One file through two objects: to each other, two processes."""
    url = f"sqlite:///{tmp_path}/log.db"
    with closing(open_log(url)) as one, closing(open_log(url)) as two:
        yield one, two


def test_the_second_of_two_processes_in_one_view_is_undone(pair: tuple[EventLog, EventLog]) -> None:
    one, two = pair

    def overtaken() -> None:
        with one.views.transaction("totals") as slow:
            slow.put("k", b"slow")
            slow.checkpoint(5)
            with two.views.transaction("totals") as quick:
                quick.put("k", b"quick")
                quick.checkpoint(7)

    with pytest.raises(LeaseLost, match="Another process"):
        overtaken()
    assert (one.views.read("totals").get("k"), one.checkpoints.load("totals")) == (b"quick", 7)


def test_a_view_that_was_cleared_meanwhile_takes_no_older_writes(pair: tuple[EventLog, EventLog]) -> None:
    one, two = pair
    with one.views.transaction("totals") as first:
        first.put("k", b"1")

    def late() -> None:
        with one.views.transaction("totals") as view:
            view.put("k", b"late")
            two.views.clear("totals")

    with pytest.raises(LeaseLost):
        late()
    assert list(one.views.read("totals").items()) == []


def test_appends_go_on_inside_and_beside_a_view_transaction(pair: tuple[EventLog, EventLog]) -> None:
    one, two = pair
    with one.views.transaction("totals") as view:
        one.append("a-1", [NewEvent(bytes(16), "t", 1, b"")], ANY)
        two.append("b-1", [NewEvent(bytes(16), "t", 1, b"")], ANY)
        view.checkpoint(2)
    assert (one.last_position(), one.checkpoints.load("totals")) == (2, 2)


def test_many_rows_are_walked_in_key_order_with_the_changes_of_the_transaction_among_them(pair: tuple[EventLog, EventLog]) -> None:
    one, _ = pair
    keys = sorted([f"k{each:05d}" for each in range(3_000)] + ["k\0", "k", "k\U0010ffff"])
    with one.views.transaction("totals") as view:
        for key in keys:
            view.put(key, key.encode())
    assert [key for key, _ in one.views.read("totals").items("k")] == keys
    with one.views.transaction("totals") as view:
        view.delete("k00001")
        view.put("k00000x", b"new")
        expected = sorted({*keys, "k00000x"} - {"k00001"})
        assert [key for key, _ in view.items("k")] == expected
        with pytest.raises(ValueError, match="surrogate"):
            view.put("\ud800", b"")
    assert [key for key, _ in one.views.read("totals").items()] == expected
