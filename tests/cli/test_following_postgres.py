"""Commands that go on until ^C, on PostgreSQL: what holds the log back is told, and a server that dies and comes back costs time only."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import psycopg
import pytest

from intentlog.eventlog.errors import LogUnavailable
from intentlog.eventlog.log import EventLog
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.testing.maker import events
from intentlog.eventlog.versions import ANY
from tests.cli.conftest import begin, call, eventually
from tests.services.postgres import PostgresServer

VIEWS = """
from intentlog.eventlog.projections import Projection, Projections

def count(view, stored, decoded):
    view.put(stored.stream, str(int(view.get(stored.stream) or b"0") + 1).encode())

views = Projections([Projection("counts", count), Projection("again", count)])
"""
FOLLOWERS = [("tail", "-f", "--json", "-n", "0"), ("projections", "run", "--app", "views:views")]


class Running:
    """The command as a process, and all that it has said so far."""

    def __init__(self, *words: str) -> None:
        self.words, self.process = words, begin(*words)
        self.out, self.errors = list[str](), list[str]()
        self._readers = [self._reader(self.process.stdout, self.out), self._reader(self.process.stderr, self.errors)]

    @staticmethod
    def _reader(pipe: IO[str] | None, into: list[str]) -> threading.Thread:
        assert pipe is not None

        def read() -> None:
            with pipe:
                into.extend(pipe)

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        return thread

    def said(self, *words: str) -> bool:
        """Whether one line on stderr holds all of ``words``."""
        assert self.process.poll() is None, "".join(self.errors)
        return any(all(word in line for word in words) for line in list(self.errors))

    def end(self) -> int:
        """Its exit code after ^C."""
        self.process.send_signal(signal.SIGINT)
        try:
            return self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        finally:
            for each in self._readers:
                each.join(10)


@contextmanager
def running(*words: str) -> Iterator[Running]:
    made = Running(*words)
    try:
        yield made
    finally:
        if made.process.poll() is None:
            made.process.kill()
            made.process.wait()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with an app that keeps two views."""
    (tmp_path / "views.py").write_text(VIEWS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def prepared(url: str, monkeypatch: pytest.MonkeyPatch) -> EventLog:
    monkeypatch.setenv("EVENTLOG_URL", url)
    assert 0 == call("init").exit_code
    return open_log(url)


def begun(follower: Running, log: EventLog) -> None:
    """Wait until it follows: something that was appended has come out of it."""

    def shown() -> bool:
        log.append("first-1", events(1), ANY)  # a tail shows what came after its beginning only
        return _seen(follower, log, "first-1") > 0

    eventually(shown)


@pytest.mark.parametrize("words", FOLLOWERS, ids=lambda words: words[0])
def test_who_holds_the_log_back_is_told_and_so_is_that_it_is_over(
    words: tuple[str, ...], postgres_url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = prepared(postgres_url, monkeypatch)
    with running(*words) as follower:
        begun(follower, log)
        with psycopg.connect(postgres_url, application_name="forgotten") as holder:
            holder.execute("SELECT pg_current_xact_id()")
            log.append("a-1", events(2), ANY)
            pid, info = str(holder.info.backend_pid), holder.info
            eventually(lambda: follower.said(f"pid {pid}", info.user, "forgotten", info.dbname, "SELECT pg_current_xact_id()"))
            assert not follower.said("no longer")
            holder.rollback()
        eventually(lambda: follower.said(f"pid {pid}", "no longer holds the log back"))
        assert 130 == follower.end()
    log.close()


@pytest.mark.alone
@pytest.mark.parametrize("words", FOLLOWERS, ids=lambda words: words[0])
def test_a_server_that_dies_and_comes_back_is_told_of_once_and_nothing_is_skipped_or_doubled(
    words: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with PostgresServer() as server:
        server.start()
        log = prepared(server.create_database(), monkeypatch)
        with running(*words) as follower:
            begun(follower, log)
            for before in (0, 6):
                log.append("a-1", events(3), ANY)
                _reaches(follower, log, before + 3)
                server.stop_immediately()
                eventually(lambda: bool(_outages(follower)))
                server.start()
                _append(log)
                _reaches(follower, log, before + 6)
            assert 130 == follower.end()
            assert 1 <= len(_outages(follower)) <= 2, follower.errors
            assert all("LogUnavailable(" not in line for line in follower.errors), "an error is told in words"
        if words[0] == "tail":
            shown = [json.loads(line)["position"] for line in follower.out]
            assert shown == [each.position for each in log.read_all(after=shown[0] - 1)]
        log.close()


def _append(log: EventLog) -> None:
    made = events(3)

    def taken() -> bool:
        try:
            log.append("a-1", made, ANY)  # the same ids: appended once, however often it is asked for
        except LogUnavailable:
            return False
        return True

    eventually(taken, 60)


def _reaches(follower: Running, log: EventLog, count: int) -> None:
    eventually(lambda: _seen(follower, log, "a-1") == count, 60)


def _seen(follower: Running, log: EventLog, stream: str) -> int:
    """How many of a stream's events have come out of it."""
    assert follower.process.poll() is None, "".join(follower.errors)
    if follower.words[0] != "projections":
        return sum(json.loads(line)["stream"] == stream for line in list(follower.out))
    try:
        return min(int(log.views.read(name).get(stream) or b"0") for name in ("counts", "again"))
    except LogUnavailable:  # this side's connections died with the server, too
        return -1


def _outages(follower: Running) -> list[str]:
    return [line for line in list(follower.errors) if "keeping" not in line]
