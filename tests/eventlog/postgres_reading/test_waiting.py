"""Waiting: woken at once by hints, and by looking when every hint is lost; idle, it costs a few looks a second."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg
import pytest

from intentlog.eventlog.opening import open_log
from intentlog.eventlog.postgres import PostgresLog, waiting
from intentlog.eventlog.postgres.address import parse_address
from intentlog.eventlog.postgres.waiting import Signal
from intentlog.eventlog.versions import ANY
from tests.eventlog.postgres_reading.helping import Session, ended, event, in_threads, until
from tests.services.postgres import PostgresServer

_LISTENERS = "SELECT pid FROM pg_stat_activity WHERE application_name = 'intentlog hints' AND datname = current_database() AND query LIKE 'LISTEN%'"


def listeners(psql: Session) -> list[int]:
    return [pid for (pid,) in psql.execute(_LISTENERS.encode()).fetchall()]


class Waiter:
    """A thread that waits behind a position; how long it took."""

    def __init__(self, log: PostgresLog, after: int) -> None:
        self.news: bool | None = None
        self.took = 0.0
        self._log = log
        self._after = after
        self.threads = in_threads(self._run)

    def _run(self) -> None:
        begun = time.monotonic()
        self.news = self._log.wait(self._after, 50)
        self.took = time.monotonic() - begun

    def end(self) -> float:
        ended(self.threads)
        assert self.news
        return self.took


@pytest.fixture
def without_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is not woken waits to the end of its patience."""
    monkeypatch.setattr(waiting, "EAGER", 1_000.0)
    monkeypatch.setattr(waiting, "IDLE", 1_000.0)


@pytest.mark.usefixtures("without_polling")
def test_an_append_wakes_its_own_log_and_all_others_without_any_polling(url: str, log: PostgresLog, psql: Session) -> None:
    with closing(open_log(url)) as opened, closing(open_log(url, read_only=True)) as reading:
        after = log.last_position()
        waiters = [Waiter(each, after) for each in (log, opened, reading)]  # type: ignore[arg-type]
        until(lambda: len(listeners(psql)) == 3, "all of them listen")
        log.append("a-1", [event()], ANY)
        assert max(each.end() for each in waiters) < 40


def test_a_log_whose_listener_was_ended_is_told_by_polling_and_listens_again(log: PostgresLog, other: PostgresLog, psql: Session) -> None:
    waiter = Waiter(other, log.last_position())
    (pid,) = until(lambda: listeners(psql), "it listens")
    psql.execute("SELECT pg_terminate_backend(%s)", (pid,))
    log.append("a-1", [event()], ANY)
    assert waiter.end() < 40
    assert until(lambda: [each for each in listeners(psql) if each != pid], "it listens again")


def test_a_log_whose_connection_fell_silent_is_told_by_polling() -> None:
    with PostgresServer() as server:
        database = server.start().create_database()
        with (
            closing(open_log(f"{database}?schema=readings")) as log,
            closing(open_log(f"{database}?schema=readings")) as other,
            psycopg.connect(database, autocommit=True) as psql,
        ):
            assert isinstance(other, PostgresLog)
            waiter = Waiter(other, log.last_position())
            (pid,) = until(lambda: listeners(psql), "it listens")
            with _silent(pid):
                log.append("a-1", [event()], ANY)
                assert waiter.end() < 40


@contextmanager
def _silent(pid: int) -> Iterator[None]:
    """The server's side of a connection says nothing and hears nothing, as behind a firewall that forgot about it."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_commit_between_the_first_look_and_the_listening_is_found(log: PostgresLog, other: PostgresLog, url: str) -> None:
    looks: list[int] = []

    def look() -> int:
        seen = other.last_position()
        if not looks:  # after the look, before anybody can have listened
            log.append("a-1", [event()], ANY)
        looks.append(seen)
        return seen

    alone = Signal(parse_address(url))
    begun = time.monotonic()
    assert alone.wait(other.last_position(), 50, look)
    assert time.monotonic() - begun < 40
    assert len(looks) >= 2
    alone.close()


def test_hints_are_few_however_many_appends_there_are(log: PostgresLog, psql: Session) -> None:
    psql.execute("LISTEN readings")
    begun = time.monotonic()
    for number in range(300):
        log.append("a-1", [event()], number - 1)
    lasted = time.monotonic() - begun
    hints = until(lambda: list(psql.notifies(timeout=0.5)), "a hint")
    assert len(hints) <= lasted / 0.02 + 2
    assert {hint.payload for hint in hints} == {""}
    assert hints[0].pid not in {pid for (pid,) in psql.execute("SELECT pid FROM pg_stat_activity WHERE application_name = 'intentlog writing'")}


def test_an_idle_log_is_looked_at_a_few_times_a_second(log: PostgresLog) -> None:
    looks: list[float] = []
    alone = Signal(log._database.address)

    def look() -> int:
        looks.append(time.monotonic())
        return 7

    begun = time.process_time()
    for _ in range(10):
        assert not alone.wait(7, 0.3, look)
    # Ten until the pauses have grown, then five a second, and one at each end.
    assert len(looks) <= 10 + 15 + 20
    assert time.process_time() - begun < 0.5
    alone.close()


def test_threads_that_wait_together_share_their_looks(log: PostgresLog) -> None:
    looks: list[float] = []
    alone = Signal(log._database.address)

    def look() -> int:
        looks.append(time.monotonic())
        return 7

    def wait() -> None:
        assert not alone.wait(7, 2.0, look)

    ended(in_threads(*[wait] * 40))
    assert len(looks) < 40 * 5, "each for itself would be some 800"
    alone.close()


def test_appends_that_are_still_hidden_do_not_make_a_waiting_thread_look_all_the_time(log: PostgresLog, psql: Session) -> None:
    looks: list[int] = []
    alone = Signal(log._database.address, read_only=True)

    def look() -> int:
        looks.append(1)
        return 7

    def hurry() -> None:
        stop = time.monotonic() + 1.0
        while time.monotonic() < stop:
            alone._heard()

    threads = in_threads(hurry)
    assert not alone.wait(7, 1.0, look)
    ended(threads)
    assert len(looks) < 2 * 1.0 / 0.005 + 10
    alone.close()


def test_a_closed_log_leaves_no_thread_and_no_connection(url: str, psql: Session) -> None:
    def ours() -> Any:
        return psql.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'intentlog %' AND datname = current_database()").fetchone()

    until(lambda: ours() == (0,), "what made the log has gone")
    with closing(open_log(url)) as opened:
        opened.wait(opened.last_position(), 0.01)
        until(lambda: listeners(psql), "it listens")
        opened.append("a-1", [event()], ANY)
        assert ours() > (0,)
    until(lambda: ours() == (0,), "everything has been given back")
