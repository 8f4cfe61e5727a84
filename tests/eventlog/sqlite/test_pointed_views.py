"""A file that was made before names meant views: brought up to date with all that is in it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from intentlog.eventlog.errors import StoreSchemaError
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.sqlite.schema import APPLICATION_ID
from intentlog.eventlog.sqlite.statements import statement


def older(path: Path) -> str:
    """A log of the first release, with a view in it; its URL."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(statement("001_first_tables"))
        connection.execute("INSERT INTO views (name, revision) VALUES ('sums', 3)")
        connection.execute("INSERT INTO view_rows (view, key, value) VALUES ('sums', 'a', x'31')")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("PRAGMA user_version = 1")
        connection.execute("PRAGMA journal_mode = wal")
        connection.commit()
    return f"sqlite:///{path}"


def test_an_older_file_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(StoreSchemaError, match=r"older release \(schema 1.*eventlog init"):
        open_log(older(tmp_path / "old.db"), create=False, read_only=True)


def test_an_older_file_keeps_its_views_and_learns_names(tmp_path: Path) -> None:
    with closing(open_log(older(tmp_path / "old.db"))) as log:
        with log.views.transaction("sums") as view:
            assert b"1" == view.get("a")
            view.put("a", b"2")
        assert log.views.point("total", "sums", expected=None)
        assert b"2" == log.views.read("total").get("a")
