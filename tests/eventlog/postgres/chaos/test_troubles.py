"""A serving ``eventlog run`` says in words what is wrong with its server, outlives it, and goes on by itself."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import attrs
import psycopg
import pytest

from intentlog.agents import Input
from intentlog.agents.sending import deliver, typed_input
from intentlog.eventlog import EventLog, LogUnavailable, open_log
from tests.acceptance.harness import PATIENCE, ROOT, eventlog, faults_of
from tests.eventlog.postgres.chaos.crashing import patiently
from tests.eventlog.postgres.chaos.gated import app
from tests.eventlog.postgres_reading.helping import until
from tests.services.postgres import PostgresServer

pytestmark = pytest.mark.timeout(200)

SERVING = "serving"
#: Short bounds, so that the troubles they bound come soon.
BOUNDS = f"pool_size=1&pool_timeout=0.5&statement_timeout=2&application_name={SERVING}"


@attrs.define(eq=False)
class Run:
    """One process that serves, the log it serves as others see it, and what it has said so far."""

    server: PostgresServer
    log: EventLog
    started: subprocess.Popen[bytes]
    said: Path
    _sent: int = 0

    def handles(self) -> None:
        """It takes up one more input, and finishes it."""
        name = f"i{self._sent}"
        self._sent += 1
        stream, event = typed_input(app, Input("notes", f"k-{name}", "x", name))
        patiently(lambda: deliver(self.log, [(stream, event)], [name]))
        until(lambda: self._over() or len(patiently(lambda: list(self.log.read_all(types=["activation.completed"])))) == self._sent, "it is handled")
        assert not self._over(), self.said.read_text()

    def says(self, *words: str) -> None:
        """It has told of a trouble in words like these."""
        until(lambda: self._over() or any(word in self.said.read_text() for word in words), f"it says one of {words}")
        assert not self._over(), self.said.read_text()

    def _over(self) -> bool:
        return self.started.poll() is not None


@contextmanager
def serving(server: PostgresServer, url: str, folder: Path) -> Iterator[Run]:
    """A run that has handled its first input; in the end it stops in good order and everything it was given is done, once."""
    (folder / "gate-open").touch()
    said = folder / "said"
    env = {**os.environ, "GATES": str(folder), "GATE": "gate"}
    command = eventlog("run", "tests.eventlog.postgres.chaos.gated:app", "--log", f"{url}{'&' if '?' in url else '?'}{BOUNDS}", "--lease-ms", "3000")
    with said.open("wb") as out, closing(open_log(url)) as log:
        started = subprocess.Popen(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        try:
            made = Run(server, log, started, said)
            made.handles()
            yield made
            made.handles()
            started.terminate()
            assert 0 == started.wait(PATIENCE), said.read_text()
            assert [] == faults_of(app, url, made._sent)
        finally:
            started.kill()
            started.wait()


def run(url: str, *statements: str) -> list[tuple]:
    with psycopg.connect(url, autocommit=True, options="-c default_transaction_read_only=off") as connection:
        for statement in statements:
            cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def test_it_outlives_a_fail_over_to_a_server_that_only_answers_questions_at_first(server, url, tmp_path):
    with serving(server, url, tmp_path) as made:
        server.stop()
        signal = server.data / "standby.signal"
        signal.touch()
        os.chown(signal, server.data.stat().st_uid, server.data.stat().st_gid)
        server.start(fsync=True)
        assert [(True,)] == run(url, "SELECT pg_is_in_recovery()")
        made.says("read-only", "hot standby", "takes no writes")
        with pytest.raises(LogUnavailable):
            made.log.append("a-1", [], -1)  # the first connection to be asked was cut by the stop, so this may be told of that
        with pytest.raises(LogUnavailable, match=r"read-only|takes no writes") as refused:
            made.log.append("a-1", [], -1)
        assert isinstance(refused.value.__cause__, psycopg.Error)
        with closing(open_log(url, read_only=True)) as reading:
            assert reading.last_position() > 0, "who only reads goes on reading"
        run(url, "SELECT pg_promote()")


def test_it_outlives_a_server_whose_sessions_turn_read_only_under_its_hands(server, url, tmp_path):
    with serving(server, url, tmp_path) as made:
        run(url, "ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()")
        made.says("read-only", "takes no writes")
        run(url, "ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()")


def test_it_outlives_statements_that_hang_and_a_pool_that_runs_dry(server, url, tmp_path):
    with serving(server, url, tmp_path) as made, psycopg.connect(url) as holder:
        holder.execute("LOCK TABLE intentlog.events, intentlog.schedule, intentlog.meta IN ACCESS EXCLUSIVE MODE")
        made.says("gave a statement up after 2 s")
        made.says("All 1 connections")
        holder.rollback()


def test_it_outlives_a_server_full_of_others(server, url, tmp_path):
    database = url.rpartition("/")[2]
    run(url, "CREATE ROLE guest LOGIN", f'GRANT CREATE ON DATABASE "{database}" TO guest')
    theirs = url.replace("//postgres@", "//guest@")
    with serving(server, f"{theirs}?schema=guests", tmp_path) as made, ExitStack() as crowd:
        others = fill(lambda: crowd.enter_context(psycopg.connect(theirs)))
        while run(url, f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = '{SERVING}'"):
            others += fill(lambda: crowd.enter_context(psycopg.connect(theirs)))
        assert others > 100
        made.says("too many clients", "remaining connection slots")

        def filled_and_opened() -> None:
            for _ in range(20):  # an attempt of the service's may have held a place while the crowd came, and given it back
                fill(lambda: crowd.enter_context(psycopg.connect(theirs)))
                open_log(f"{theirs}?schema=guests").close()

        with pytest.raises(LogUnavailable, match=r"too many clients|remaining connection slots") as refused:
            filled_and_opened()
        assert isinstance(refused.value.__cause__, psycopg.OperationalError)
        crowd.close()


def fill(enter: Callable[[], object]) -> int:
    """Take every connection there is; how many there were."""
    for count in range(1_000):
        try:
            enter()
        except psycopg.OperationalError:
            return count
    pytest.fail("a server without an end")


def test_every_thread_that_finds_the_pool_dry_is_told_so_and_is_served_later(server, url):
    with closing(open_log(f"{url}?pool_size=3&pool_timeout=0.5")) as log, ExitStack() as held:
        for _ in range(3):
            held.enter_context(log._database.transaction(read_only=True))  # type: ignore[attr-defined]
        began = time.monotonic()
        with pytest.raises(LogUnavailable, match=r"All 3 connections to .* stayed in use for 0\.5 s.*pool_size="):
            log.append("a-1", [], -1)
        assert time.monotonic() - began < 10
        held.close()
        assert -1 == log.head("a-1")
