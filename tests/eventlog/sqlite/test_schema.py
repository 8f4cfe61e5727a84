"""Opening: files that are missing, foreign, newer, unreadable, or new to two processes at once."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from intentlog.eventlog.errors import LogError, LogUnavailable, StoreSchemaError
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.sqlite.schema import APPLICATION_ID, MIGRATIONS


def refusal(url: str, kind: type[LogError], *, create: bool = True) -> str:
    with pytest.raises(kind) as caught:
        open_log(url, create=create)
    return str(caught.value)


def test_a_new_file_is_ours_in_wal_mode_and_of_this_release(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    open_log(f"sqlite:///{path}").close()
    with closing(sqlite3.connect(path)) as connection:
        found = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version", "journal_mode")]
    assert found == [APPLICATION_ID, len(MIGRATIONS), "wal"]


@pytest.mark.parametrize(("parameter", "level"), [("", 2), ("?synchronous=full", 2), ("?synchronous=normal", 1), ("?synchronous=off", 0)])
def test_the_writer_syncs_as_the_url_says(tmp_path: Path, parameter: str, level: int) -> None:
    with closing(open_log(f"sqlite:///{tmp_path}/log.db{parameter}")) as log, log._database.write() as connection:  # type: ignore[attr-defined]
        assert connection.execute("PRAGMA synchronous").fetchone() == (level,)


def test_a_missing_file_is_not_made_unless_asked_for(tmp_path: Path) -> None:
    message = refusal(f"sqlite:///{tmp_path}/absent.db", StoreSchemaError, create=False)
    assert f"{tmp_path}/absent.db" in message
    assert "eventlog init" in message
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_is_no_log_until_it_is_made_one(tmp_path: Path) -> None:
    (tmp_path / "log.db").touch()
    assert "eventlog init" in refusal(f"sqlite:///{tmp_path}/log.db", StoreSchemaError, create=False)
    open_log(f"sqlite:///{tmp_path}/log.db").close()
    open_log(f"sqlite:///{tmp_path}/log.db", create=False).close()


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert f"mkdir -p {tmp_path}/a/b" in refusal(f"sqlite:///{tmp_path}/a/b/log.db", StoreSchemaError)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    assert "is a folder" in refusal(f"sqlite:///{tmp_path}", StoreSchemaError)


@pytest.mark.parametrize("create", [True, False])
def test_a_file_of_something_else_is_left_alone(tmp_path: Path, create: bool) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("Dear diary, this is not a database. " * 100)
    before = path.read_bytes()
    assert "not an SQLite database" in refusal(f"sqlite:///{path}", StoreSchemaError, create=create)
    assert path.read_bytes() == before


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    before = path.read_bytes()
    assert "something else" in refusal(f"sqlite:///{path}", StoreSchemaError)
    assert path.read_bytes() == before


def test_a_log_of_a_newer_release_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    open_log(f"sqlite:///{path}").close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    message = refusal(f"sqlite:///{path}", StoreSchemaError)
    assert f"its schema is {len(MIGRATIONS) + 1}, this one knows up to {len(MIGRATIONS)}" in message


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that every user may enter, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


AS_NOBODY = """
import os, sys
from intentlog.eventlog.opening import open_log
import intentlog.eventlog.sqlite
from intentlog.eventlog.sqlite.statements import statement
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
try:
    open_log(sys.argv[1])
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize("name", ["log.db", "new.db"])
def test_a_place_that_may_not_be_written_to_is_said_so(public_folder: Path, name: str) -> None:
    path = public_folder / "log.db"
    open_log(f"sqlite:///{path}").close()
    path.chmod(0o444)
    public_folder.chmod(0o555)
    said = subprocess.run([sys.executable, "-c", AS_NOBODY, f"sqlite:///{public_folder}/{name}"], capture_output=True, text=True, check=True)
    public_folder.chmod(0o755)
    assert said.stdout.startswith(LogUnavailable.__name__), said.stdout + said.stderr
    assert str(public_folder) in said.stdout


OPENER = """
import sys, time
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.events import NewEvent
from intentlog.eventlog.versions import NO_STREAM
import intentlog.eventlog.sqlite.schema
print("ready", flush=True)
sys.stdin.readline()
log = open_log(sys.argv[1])
log.append(f"opener-{sys.argv[2]}", [NewEvent(bytes(16), "opened", 1, b"")], NO_STREAM)
log.close()
"""


def test_processes_that_open_a_new_file_at_once_all_get_it(tmp_path: Path) -> None:
    for attempt in range(5):
        url = f"sqlite:///{tmp_path}/{attempt}.db"
        openers = [
            subprocess.Popen([sys.executable, "-c", OPENER, url, str(each)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for each in range(4)
        ]
        for opener in openers:
            assert opener.stdout is not None
            assert opener.stdout.readline() == "ready\n"
        for opener in openers:
            assert opener.stdin is not None
            opener.stdin.write("go\n")
            opener.stdin.flush()
        complaints = [opener.communicate()[1] for opener in openers]
        assert complaints == [""] * 4
        with closing(open_log(url, create=False)) as log:
            assert list(log.streams()) == [f"opener-{each}" for each in range(4)]


def test_a_relative_path_is_taken_from_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with closing(open_log("sqlite:///rel.db")):
        assert os.path.exists(tmp_path / "rel.db")
