"""A file that was edited by hand is told from one that works, in words that name the table, the row and the value."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from intentlog.eventlog.errors import StoreSchemaError
from intentlog.eventlog.events import NewEvent
from intentlog.eventlog.log import EventLog, Wake
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.sqlite.schema import TABLES
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
        ("UPDATE events SET type = CAST(x'ff' AS TEXT)", lambda log: list(log.read("a-1")), "no text"),
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
