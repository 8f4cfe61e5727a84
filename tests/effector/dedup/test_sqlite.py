"""The SQLite store's own: its file, other files, newer files, and what is removed in passing."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from intentlog.effector.dedup import DedupSchemaError, StoreUnavailable, open_dedup
from intentlog.effector.dedup.checking import MARGIN, SWEEP
from intentlog.effector.testing.dedup.maker import LEASE, NOON, claimed, completed
from intentlog.eventlog.opening import open_log


def rows(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT count(*) FROM records").fetchone()[0])


def test_expired_results_are_removed_in_passing_a_bounded_number_at_a_time(tmp_path: Path) -> None:
    path, later = tmp_path / "dedup.db", NOON + LEASE + MARGIN
    with closing(open_dedup(f"sqlite:///{path}?synchronous=off")) as store:
        for number in range(2 * SWEEP + 5):
            completed(store, f"old{number}", ttl=LEASE)
        claimed(store, "held")
        assert 2 * SWEEP + 6 == rows(path)
        completed(store, "new0", now=later - 1)
        assert 2 * SWEEP + 7 == rows(path)
        completed(store, "new1", now=later)
        assert SWEEP + 8 == rows(path)
        completed(store, "new2", now=later)
        completed(store, "new3", now=later)
        assert {"held", "new0", "new1", "new2", "new3"} == ids(path)


def ids(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        return {name for (name,) in connection.execute("SELECT intent_id FROM records")}


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("PRAGMA user_version = 2", "was made by a newer release: its schema is 2"),
        ("PRAGMA application_id = 7", "is a database of something else (application id 7"),
        ("DROP TABLE records", "lacks a part of its own: no such table: records"),
        ("ALTER TABLE records DROP COLUMN attempts", "lacks a part of its own: no such column: attempts"),
    ],
)
def test_a_file_that_is_not_ours_any_more_is_refused(tmp_path: Path, wrong: str, told: str) -> None:
    path = tmp_path / "dedup.db"
    open_dedup(f"sqlite:///{path}").close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(wrong)
        connection.commit()
    with pytest.raises(DedupSchemaError) as refusal:
        open_dedup(f"sqlite:///{path}")
    assert told in str(refusal.value)


def test_a_log_is_no_dedup_store_and_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    open_log(f"sqlite:///{path}").close()
    before = path.read_bytes()
    with pytest.raises(DedupSchemaError, match="a file of its own, apart from the log"):
        open_dedup(f"sqlite:///{path}")
    assert before == path.read_bytes()


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("these are no pages of a database, and never were " * 100)
    for place, told in (("text.db", "not an SQLite database"), ("", "is a folder"), ("missing/dedup.db", "does not exist")):
        with pytest.raises(DedupSchemaError, match=told):
            open_dedup(f"sqlite:///{tmp_path}/{place}".rstrip("/"))


def test_a_file_that_another_keeps_locked_is_unavailable_after_the_busy_timeout(tmp_path: Path) -> None:
    path = tmp_path / "dedup.db"
    with closing(open_dedup(f"sqlite:///{path}?busy_timeout_ms=50")) as store, closing(sqlite3.connect(path, isolation_level=None)) as other:
        mine = claimed(store, "one")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="stayed locked by another writer"):
            store.attempt("one", mine.token, now=NOON)
        with pytest.raises(StoreUnavailable):
            store.ping()
        assert "Busy" == type(store.claim("one", "you", now=NOON, until=NOON + 1)).__name__, "who waits for an intent needs no lock"
        other.execute("ROLLBACK")
        assert 1 == store.attempt("one", mine.token, now=NOON)


def test_less_durable_settings_are_told(tmp_path: Path) -> None:
    with closing(open_dedup(f"sqlite:///{tmp_path}/a.db")) as store:
        assert () == store.caveats
    with closing(open_dedup(f"sqlite:///{tmp_path}/a.db?synchronous=normal")) as store:
        assert ["synchronous=normal" in caveat for caveat in store.caveats] == [True]
