"""The watchdog: it names whoever holds the log back, when that lasts, now and then again, and when it is over."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from intentlog.eventlog.opening import open_log
from intentlog.eventlog.postgres import PostgresLog
from intentlog.eventlog.postgres.watchdog import HorizonHeld, Watchdog, Watching, horizon
from intentlog.eventlog.versions import ANY
from intentlog.eventlog.watching import watching
from tests.eventlog.postgres_reading.helping import PATIENCE, Session, event, until
from tests.services.postgres import Databases


def test_nobody_is_in_the_way_while_nothing_waits(log: PostgresLog, postgres_url: str) -> None:
    log.append("a-1", [event()], ANY)
    assert log.horizon() is None
    with psycopg.connect(postgres_url) as session:
        session.execute("SELECT pg_current_xact_id()")
        assert log.horizon() is None, "an open transaction alone delays nobody"


def test_the_session_in_the_way_is_named_with_what_it_did_last(log: PostgresLog, postgres_server: Databases) -> None:
    elsewhere = postgres_server.create_database()
    with psycopg.connect(elsewhere, application_name="forgotten") as session:
        session.execute("CREATE TABLE  forgotten\n(number int)")
        session.execute("SELECT 1")
        log.append("a-1", [event(), event()], ANY)
        held = log.horizon()
        assert held is not None
        assert (held.pid, held.application, held.database) == (session.info.backend_pid, "forgotten", session.info.dbname)
        assert (held.events, held.state, held.query, held.prepared) == (2, "idle in transaction", "SELECT 1", "")
        assert held.age is not None and held.age >= 0
        for word in ("2 events", str(held.pid), "forgotten", session.info.dbname, "idle in transaction", "SELECT 1", "pg_terminate_backend"):
            assert word in str(held), word
        session.rollback()
    assert log.horizon() is None
    postgres_server.drop_database(elsewhere)


def test_of_two_sessions_the_older_one_is_named(log: PostgresLog, postgres_url: str) -> None:
    with psycopg.connect(postgres_url, application_name="old") as old, psycopg.connect(postgres_url, application_name="young") as young:
        old.execute("SELECT pg_current_xact_id()")
        young.execute("SELECT pg_current_xact_id()")
        log.append("a-1", [event()], ANY)
        first = log.horizon()
        old.rollback()
        second = log.horizon()
        young.rollback()
    assert [each.application for each in (first, second) if each is not None] == ["old", "young"]
    assert log.horizon() is None


def test_a_prepared_transaction_is_named_and_so_is_the_way_to_end_it(log: PostgresLog, psql: Session) -> None:
    psql.execute("BEGIN")
    psql.execute("SELECT pg_current_xact_id()")
    psql.execute("PREPARE TRANSACTION 'left behind'")
    log.append("a-1", [event()], ANY)
    held = log.horizon()
    psql.execute("ROLLBACK PREPARED 'left behind'")
    assert held is not None
    assert (held.pid, held.prepared, held.state) == (None, "left behind", "prepared")
    assert "'left behind'" in str(held) and "ROLLBACK PREPARED" in str(held)
    assert log.horizon() is None


def test_a_role_that_may_not_see_other_sessions_still_learns_which_one_it_is(log: PostgresLog, url: str, psql: Session, postgres_url: str) -> None:
    psql.execute("DROP ROLE IF EXISTS narrow; CREATE ROLE narrow LOGIN")
    psql.execute("GRANT USAGE ON SCHEMA readings TO narrow; GRANT SELECT ON ALL TABLES IN SCHEMA readings TO narrow")
    narrow = open_log(url.replace("postgres@", "narrow@"), read_only=True)
    assert isinstance(narrow, PostgresLog)
    with psycopg.connect(postgres_url, application_name="forgotten") as session:
        pid = session.info.backend_pid
        session.execute("SELECT pg_current_xact_id(), 'secret'")
        log.append("a-1", [event()], ANY)
        held = narrow.horizon()
        session.rollback()
    narrow.close()
    psql.execute("DROP OWNED BY narrow; DROP ROLE narrow")
    assert held is not None
    assert (held.pid, held.application, held.state) == (pid, "forgotten", "")
    assert "pg_read_all_stats" in str(held) and "secret" not in str(held)


class Scene:
    """A watchdog over moments and holders that a test makes up."""

    def __init__(self) -> None:
        self.now = 0.0
        self.held: HorizonHeld | None = None
        self.told: list[str] = []
        self.dog = Watchdog(lambda: self.held, self._on("held"), self._on("freed"), now=lambda: self.now)

    def _on(self, what: str) -> Callable[[HorizonHeld], None]:
        return lambda held: self.told.append(f"{self.now:g} {what} {held.transaction} {held.events}")

    def at(self, now: float, transaction: int | None = None, events: int = 1) -> None:
        self.now = now
        self.held = None if transaction is None else HorizonHeld(transaction, events, since=0)
        self.dog.look()


def test_it_tells_after_five_seconds_then_every_minute_and_when_it_is_over() -> None:
    scene = Scene()
    for now in range(131):
        scene.at(now, 7, now + 1)
    scene.at(131)
    scene.at(132)
    assert scene.told == ["5 held 7 6", "65 held 7 66", "125 held 7 126", "131 freed 7 131"]


def test_a_short_hold_is_not_told_and_each_holder_has_its_own_five_seconds() -> None:
    scene = Scene()
    for now in range(20):
        scene.at(now, now // 4, 1)
    scene.at(20)
    assert scene.told == []
    for now in range(30, 42):
        scene.at(now, 1 if now < 36 else 2, 1)
    assert scene.told == ["35 held 1 1", "36 freed 1 1", "41 held 2 1"]


def test_it_tells_of_a_transaction_that_stays_open_and_of_its_end(log: PostgresLog, postgres_url: str) -> None:
    told: list[str] = []
    with psycopg.connect(postgres_url, application_name="forgotten") as session, Watching(log._database, told.append, patience=0.0):
        pid = session.info.backend_pid
        session.execute("SELECT pg_current_xact_id()")
        log.append("a-1", [event()], ANY)
        until(lambda: len(told) == 1, "it is told")
        session.rollback()
        until(lambda: len(told) == 2, "its end is told")
    assert "forgotten" in told[0] and str(pid) in told[1]
    assert horizon(log._database) is None


def test_a_server_that_cannot_be_asked_does_not_end_the_watch(log: PostgresLog, psql: Session, postgres_url: str) -> None:
    told: list[str] = []
    with Watching(log._database, told.append, patience=0.0):
        psql.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'intentlog %' AND datname = current_database()")
        with psycopg.connect(postgres_url) as session:
            session.execute("SELECT pg_current_xact_id()")
            log.append("a-1", [event()], ANY)
            until(lambda: told, "it is told")


def test_other_stores_have_no_such_troubles() -> None:
    log = open_log("memory://")
    with watching(log, pytest.fail):
        log.append("a-1", [event()], ANY)


APP = """
from intentlog.agents import App, Complete, agent

@agent("notes")
async def notes(ctx, text: str):
    return Complete(text.upper())

app = App(agents=[notes])
"""
RUN = "from intentlog.eventlog.cli import main; main()"


def test_a_run_says_on_stderr_who_holds_its_log_back(url: str, log: PostgresLog, postgres_url: str, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    command = [sys.executable, "-W", "error", "-c", RUN, "run", "app:app", "--log", url]
    with psycopg.connect(postgres_url, application_name="forgotten") as session:
        pid = session.info.backend_pid
        session.execute("SELECT pg_current_xact_id()")
        log.append("elsewhere-1", [event()], ANY)
        with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as run:
            assert run.stderr is not None
            lines = iter(run.stderr.readline, "")
            told = next(line for line in lines if "cannot be shown" in line)
            session.rollback()
            freed = next(line for line in lines if "no longer" in line)
            run.send_signal(signal.SIGINT)
            run.communicate(timeout=PATIENCE)
    assert str(pid) in told and "forgotten" in told
    assert str(pid) in freed
