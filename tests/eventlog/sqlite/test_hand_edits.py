"""A file that was edited by hand is told from one that works, in words that name the table, the row and the value."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from intentlog.eventlog.codec import Codec
from intentlog.eventlog.errors import StoreSchemaError, UnknownEventType
from intentlog.eventlog.events import NewEvent
from intentlog.eventlog.inspecting import odd_cells_of
from intentlog.eventlog.log import EventLog, ParkedEvent, Wake
from intentlog.eventlog.odd import NotText
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.registry import EventRegistry
from intentlog.eventlog.sqlite.schema import TABLES
from intentlog.eventlog.testing.maker import event, request
from intentlog.eventlog.versions import ANY


def made(path: Path) -> str:
    url = f"sqlite:///{path}"
    with closing(open_log(url)) as log:
        log.append("a-1", [NewEvent(b"1" * 16, "t", 1, b"\x80")], ANY, wakes=[Wake("turn", 5)])
        log.checkpoints.save("effector", 1)
    return url


def edited(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(sql)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("create", [True, False])
def test_a_dropped_table_is_named_when_the_log_is_opened(tmp_path: Path, table: str, create: bool) -> None:
    url = made(tmp_path / "t.db")
    edited(tmp_path / "t.db", f"DROP TABLE {table}")
    with pytest.raises(StoreSchemaError, match=f"lacks its table {table}.*backup.*eventlog init"):
        open_log(url, create=create)


@pytest.mark.parametrize(
    ("sql", "ask", "words"),
    [
        ("UPDATE schedule SET wake_at = 'soon'", lambda log: log.schedule.next_wake("turn"), "table schedule.*turn.*wake_at is 'soon'"),
        ("UPDATE schedule SET wake_at = 'soon'", lambda log: log.schedule.wakes("turn", ["a-1"]), "table schedule.*a-1.*wake_at is 'soon'"),
        ("UPDATE schedule SET wake_at = 1.5", lambda log: log.schedule.claim_due("turn", "me", now=9, until=10, limit=1), "a-1.*wake_at is 1.5"),
        ("UPDATE checkpoints SET position = 'x'", lambda log: log.checkpoints.load("effector"), "table checkpoints.*effector.*position is 'x'"),
        ("UPDATE checkpoints SET position = 'x'", lambda log: log.checkpoints.all(), "table checkpoints.*effector.*position is 'x'"),
        ("UPDATE checkpoints SET position = x'00'", lambda log: log.views.read("effector"), "table checkpoints.*effector.*position is b"),
        ("UPDATE events SET version = 'x'", lambda log: log.head("a-1"), "table events.*a-1.*version is 'x'"),
    ],
)
def test_a_value_of_the_wrong_type_is_named(tmp_path: Path, sql: str, ask: Callable[[EventLog], object], words: str) -> None:
    url = made(tmp_path / "t.db")
    edited(tmp_path / "t.db", sql)
    with closing(open_log(url)) as log, pytest.raises(StoreSchemaError, match=words):
        ask(log)


def test_a_row_without_bytes_can_still_be_read(tmp_path: Path) -> None:
    url = made(tmp_path / "t.db")
    edited(tmp_path / "t.db", "UPDATE events SET data = 7")
    with closing(open_log(url)) as log:
        found: list[object] = [event.data for event in log.read("a-1")]
        assert [7] == found


def test_text_that_is_none_is_read_as_what_it_is_beside_everything_else(tmp_path: Path) -> None:
    url = made(tmp_path / "t.db")
    with closing(open_log(url)) as log:
        log.append("a-1", [event()], ANY)
        whole = list(log.read("a-1"))
        assert len(whole) > 1
        edited(tmp_path / "t.db", "UPDATE events SET type = CAST(x'61ff' AS TEXT) WHERE version = 0")
        odd: Any = NotText(b"a\xff")
        for found in (list(log.read("a-1")), list(log.read_all())):
            assert [whole[0]._replace(type=odd), *whole[1:]] == found
        rows = next(iter(log.rows("a-1")))
        assert [odd, whole[1].type] == [row[1] for row in rows[:2]]
        with pytest.raises(UnknownEventType, match=r"a-1 version 0.*text that is not UTF-8 .x'61ff'"):
            Codec(EventRegistry()).decode_stored(found[0])
        assert whole[1:] == list(log.read("a-1", after=0))


def test_a_stream_whose_name_is_no_text_hides_no_other_however_many_there_are(tmp_path: Path) -> None:
    url = made(tmp_path / "t.db")
    with closing(open_log(url)) as log:
        names = [f"b-{number:04}" for number in range(1_500)]
        log.append_batch([request(name, event()) for name in names])
        assert ["a-1", *names] == list(log.streams())
        edited(tmp_path / "t.db", "UPDATE streams SET name = CAST(x'622d30303031ff' AS TEXT) WHERE name = 'b-0777'")
        assert ["a-1", *(name for name in names if name != "b-0777")] == list(log.streams())
        (odd,) = odd_cells_of(log)
        assert ("streams", "name") == (odd.table, odd.column)


def test_a_log_that_nobody_edited_has_no_odd_cell_whatever_its_text(tmp_path: Path) -> None:
    url = made(tmp_path / "t.db")
    with closing(open_log(url)) as log:
        log.append("a-🙂", [event(type="größe")], ANY)
        log.checkpoints.save("größe", 1)
        with log.views.transaction("ä") as view:
            view.put("ö", b"")
            view.checkpoint(1)
            view.park(ParkedEvent("ä", 1, "a-🙂", 0, "ü", 5))
        assert [] == list(odd_cells_of(log))
