"""A log that is opened for reading: no right to write is needed, nothing is left beside it, and nothing can be written."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from intentlog.eventlog.errors import LogUnavailable, StoreSchemaError, TerminalError
from intentlog.eventlog.events import NewEvent
from intentlog.eventlog.log import EventLog, Snapshot, Wake
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.sqlite import looking
from intentlog.eventlog.versions import ANY


def staged(number: int) -> NewEvent:
    return NewEvent(number.to_bytes(16, "big"), "t", 1, b"\x80")


def fill(path: Path, *numbers: int) -> None:
    with closing(open_log(f"sqlite:///{path}")) as log:
        for number in numbers:
            log.append("a-1", [staged(number)], ANY, wakes=[Wake("q", 1)])


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user may look into; pytest's own are private."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.fixture
def path(place: Path) -> Path:
    fill(place / "t.db", 1, 2)
    return place / "t.db"


def versions(log: EventLog) -> list[int]:
    return [event.version for event in log.read_all()]


LOOK = """
import os, sys
from intentlog.eventlog.opening import open_log
log = open_log(f"sqlite:///{sys.argv[2]}")  # loads what this user could not load any more further down
list(log.read_all())
log.close()
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
log = open_log(f"sqlite:///{sys.argv[1]}", read_only=True)
print(len(list(log.read_all())))
log.close()
"""


def as_nobody(path: Path, scratch: Path) -> tuple[str, str]:
    """What a user without rights reads of ``path``, and the last line of its complaints."""
    done = subprocess.run([sys.executable, "-c", LOOK, str(path), str(scratch / "own.db")], capture_output=True, text=True, timeout=50)
    return done.stdout.strip(), done.stderr.strip().splitlines()[-1] if done.stderr else ""


WRITES: list[Callable[[EventLog], object]] = [
    lambda log: log.append("a-1", [staged(9)], ANY),
    lambda log: log.checkpoints.save("c", 1),
    lambda log: log.checkpoints.reset("c"),
    lambda log: log.snapshots.save("a-1", Snapshot(0, "f", b"")),
    lambda log: log.snapshots.delete(),
    lambda log: log.schedule.wake("q", "a-1", 1),
    lambda log: log.schedule.claim_due("q", "me", now=9, until=10, limit=1),
    lambda log: log.schedule.evict("me"),
    lambda log: log.views.clear("v"),
]


@pytest.mark.parametrize("write", WRITES)
def test_whatever_writes_says_that_the_log_is_for_reading(path: Path, write: Callable[[EventLog], object]) -> None:
    with closing(open_log(f"sqlite:///{path}", read_only=True)) as log:
        with pytest.raises(TerminalError, match="open for reading only"):
            write(log)
        assert versions(log) == [0, 1]


def test_reading_leaves_nothing_behind(path: Path) -> None:
    before = path.read_bytes()
    with closing(open_log(f"sqlite:///{path}", read_only=True)) as log:
        assert versions(log) == [0, 1]
    assert [path] == list(path.parent.iterdir())
    assert before == path.read_bytes()


def test_a_reader_neither_waits_for_a_writer_nor_misses_what_it_commits(path: Path) -> None:
    with closing(open_log(f"sqlite:///{path}")) as writer, closing(sqlite3.connect(path, isolation_level=None)) as other:
        writer.append("a-1", [staged(3)], ANY)
        other.execute("BEGIN IMMEDIATE")
        with closing(open_log(f"sqlite:///{path}", read_only=True)) as log:
            assert versions(log) == [0, 1, 2]
            other.execute("ROLLBACK")
            writer.append("a-1", [staged(4)], ANY)
            assert log.wait(3, 0)
            assert versions(log) == [0, 1, 2, 3]


def test_a_missing_log_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreSchemaError, match="eventlog init"):
        open_log(f"sqlite:///{tmp_path}/t.db", read_only=True)
    with pytest.raises(StoreSchemaError, match="memory log begins"):
        open_log("memory://", read_only=True)
    assert [] == list(tmp_path.iterdir())


def test_a_bare_file_is_looked_at_again_when_somebody_wrote(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda place, mode: not mode & os.W_OK)  # what the system says to a user without rights
    with closing(open_log(f"sqlite:///{path}", read_only=True)) as log:
        assert versions(log) == [0, 1]
        assert [path] == list(path.parent.iterdir())
        monkeypatch.undo()
        fill(path, 3)
        assert versions(log) == [0, 1, 2]


@pytest.mark.parametrize("folder", [0o755, 0o555, 0o777])
def test_a_user_without_rights_reads_the_log(path: Path, tmp_path: Path, folder: int) -> None:
    path.chmod(0o444)
    path.parent.chmod(folder)
    try:
        assert ("2", "") == as_nobody(path, tmp_path)
        assert [path] == list(path.parent.iterdir())
    finally:
        path.parent.chmod(0o755)


def test_a_user_without_rights_reads_while_the_owner_writes(path: Path, tmp_path: Path) -> None:
    with closing(open_log(f"sqlite:///{path}")) as log:
        log.append("a-1", [staged(3)], ANY)
        for each in path.parent.iterdir():
            each.chmod(0o644)
        assert ("3", "") == as_nobody(path, tmp_path)


def test_a_write_ahead_log_that_cannot_be_read_is_said(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(open_log(f"sqlite:///{path}")) as log:
        log.append("a-1", [staged(3)], ANY)
        monkeypatch.setattr(os, "access", lambda place, mode: not str(place).endswith("-wal"))
        with pytest.raises(LogUnavailable, match=r"-wal holds [0-9]+ bytes .* cannot read them.*copy all three"):
            looking.way_to_read(path)
