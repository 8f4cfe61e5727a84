"""Locks, closing, and statements that end."""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from intentlog.eventlog.errors import LogUnavailable, TerminalError
from intentlog.eventlog.events import NewEvent
from intentlog.eventlog.ids import id_maker
from intentlog.eventlog.log import Appended, Snapshot, Wake
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.versions import ANY

new_id = id_maker()


def event(content: bytes = b"{}") -> NewEvent:
    return NewEvent(new_id(), "thing.happened", 1, content)


def test_a_write_lock_held_elsewhere_is_waited_for_and_then_named(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with closing(open_log(f"sqlite:///{path}?busy_timeout_ms=200")) as log, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        begun = time.monotonic()
        with pytest.raises(LogUnavailable) as caught:
            log.append("a-1", [event()], ANY)
        assert 0.2 <= time.monotonic() - begun < 2
        assert str(path) in str(caught.value)
        assert "busy_timeout_ms" in str(caught.value)
        other.execute("ROLLBACK")
        assert isinstance(log.append("a-1", [event()], ANY), Appended)


def test_a_write_lock_that_is_let_go_in_time_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with closing(open_log(f"sqlite:///{path}")) as log, closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        letting_go = threading.Timer(0.1, other.execute, ["ROLLBACK"])
        letting_go.start()
        assert isinstance(log.append("a-1", [event()], ANY), Appended)
        letting_go.join()


def test_reading_goes_on_while_somebody_else_writes(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with closing(open_log(f"sqlite:///{path}")) as log, closing(sqlite3.connect(path, isolation_level=None)) as other:
        log.append("a-1", [event()], ANY)
        other.execute("BEGIN IMMEDIATE")
        other.execute("DELETE FROM events")
        assert [each.version for each in log.read("a-1")] == [0]
        assert log.schedule.claim_due("turns", "w", now=1, until=2, limit=5) == [], "nothing is due, so no write lock is asked for"
        other.execute("ROLLBACK")


def test_a_reader_that_pauses_keeps_no_checkpoint_back(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with closing(open_log(f"sqlite:///{path}")) as log, closing(sqlite3.connect(path, isolation_level=None)) as other:
        log.append("a-1", [event() for _ in range(5_000)], ANY)
        streams, everything, rows = log.read("a-1"), log.read_all(), log.rows("a-1")
        assert (next(streams).version, next(everything).version, next(rows)[0][0]) == (0, 0, 0)
        log.append("a-2", [event()], ANY)
        assert other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() == (0, 0, 0)
        assert sum(1 for _ in streams) == sum(1 for _ in everything) == 4_999


def test_every_door_of_a_closed_log_says_that_it_is_closed(tmp_path: Path) -> None:
    log = open_log(f"sqlite:///{tmp_path}/log.db")
    log.append("a-1", [event()], ANY)
    log.close()
    log.close()
    doors = (
        lambda: log.append("a-1", [event()], ANY),
        lambda: log.read("a-1"),
        lambda: log.read("a-unknown"),
        lambda: log.rows("a-1"),
        log.read_all,
        lambda: log.head("a-1"),
        log.streams,
        lambda: log.wait(0, 1),
        lambda: log.snapshots.save("a-1", Snapshot(1, "f", b"")),
        lambda: log.views.read("v"),
        log.schedule.owners,
    )
    for door in doors:
        with pytest.raises(LogUnavailable, match="has been closed"):
            door()


def test_threads_that_read_and_write_at_once_see_whole_batches(tmp_path: Path) -> None:
    with closing(open_log(f"sqlite:///{tmp_path}/log.db?synchronous=off")) as log:
        faults: list[str] = []
        done = threading.Event()

        def look() -> None:
            while not done.is_set():
                count = sum(1 for _ in log.read_all())
                if count % 3:
                    faults.append(f"{count} events are no whole number of batches")

        readers = [threading.Thread(target=look) for _ in range(3)]
        writers = [threading.Thread(target=lambda: [log.append("a-1", [event(), event(), event()], ANY) for _ in range(50)]) for _ in range(3)]
        for thread in readers + writers:
            thread.start()
        for thread in writers:
            thread.join()
        done.set()
        for thread in readers:
            thread.join()
        assert faults == []
        assert [each.version for each in log.read("a-1")] == list(range(450))


def test_a_value_that_no_column_takes_spoils_nothing(tmp_path: Path) -> None:
    with closing(open_log(f"sqlite:///{tmp_path}/log.db")) as log:
        with pytest.raises(TerminalError, match="type"):
            log.append("a-1", [NewEvent(new_id(), None, 1, b"")], ANY)  # type: ignore[arg-type]
        with pytest.raises(OverflowError):
            log.append("b-1", [NewEvent(new_id(), "t", 1, b"")], ANY, wakes=[Wake("q", 1 << 70)])
        with pytest.raises(TypeError, match="correlation"):
            log.append("c-1", [NewEvent(new_id(), "t", 1, b"", correlation=object())], ANY)  # type: ignore[arg-type]
        assert list(log.streams()) == []
        assert log.append("d-1", [event()], ANY) == Appended((0,), ((1,),))


def test_a_full_disk_keeps_nothing_of_the_write_and_the_same_requests_pass_later(tmp_path: Path) -> None:
    with closing(open_log(f"sqlite:///{tmp_path}/log.db")) as log:
        log.append("a-1", [event()], ANY)
        with log._database.write() as connection:  # type: ignore[attr-defined]
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        large = [event(bytes(10_000)) for _ in range(5)]
        with pytest.raises(LogUnavailable, match="No room left"):
            log.append("b-1", large, ANY)
        assert (list(log.streams()), log.last_position()) == (["a-1"], 1)
        with log._database.write() as connection:  # type: ignore[attr-defined]
            connection.execute("PRAGMA max_page_count = 1000000")
        assert log.append("b-1", large, ANY) == Appended((0,), ((2, 3, 4, 5, 6),))
