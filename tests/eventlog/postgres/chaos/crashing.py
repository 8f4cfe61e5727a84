"""A server that crashes at random moments while three processes work on its log, and the proof that they get on after every crash."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

import attrs
import psycopg

from intentlog.eventlog import EventLog, LogUnavailable
from tests.acceptance.harness import Ended, child, end_of, eventlog
from tests.eventlog.postgres_reading.helping import until
from tests.services.postgres import PostgresServer

T = TypeVar("T")
WORKERS = 3
#: A short lease: what a crash leaves leased by a process that does not know of it is taken up again after so long.
LEASE_MS = 2_000
#: Seconds after a crash within which the log has to grow: a lease, the longest back-off of a worker, and room for a busy machine.
PROGRESS = 30.0


def patiently(look: Callable[[], T]) -> T:
    """What ``look()`` gives once the server is there."""
    deadline = time.monotonic() + PROGRESS
    while True:
        try:
            return look()
        except LogUnavailable:
            assert time.monotonic() < deadline, "the log object does not find its server again"
            time.sleep(0.02)


@attrs.define(eq=False)
class Workers:
    """Three times the same ``eventlog run``."""

    started: list[subprocess.Popen[str]]

    def running(self) -> bool:
        return any(each.poll() is None for each in self.started)

    def check(self) -> None:
        """None of them has ended badly."""
        failed = [end_of(each) for each in self.started if each.poll() not in (None, 0)]
        assert not failed, f"ended with {failed[0].code}:\n{failed[0].output}"

    def stop(self) -> None:
        """As an operator does, in good order."""
        for each in self.started:
            each.terminate()

    def ends(self) -> list[Ended]:
        return [end_of(each) for each in self.started]


@contextmanager
def working(url: str, app: str, env: Mapping[str, str], *more: str | Path) -> Iterator[Workers]:
    """Three processes of ``app``, all of them at work when the block begins."""
    with ExitStack() as held:
        names = [f"{url}?application_name=worker-{number}" for number in range(WORKERS)]
        commands = [eventlog("run", app, "--log", name, "--lease-ms", str(LEASE_MS), *more) for name in names]
        workers = Workers([held.enter_context(child(command, env)) for command in commands])
        until(lambda: not workers.running() or _at_work(url) == WORKERS, "three processes are at work")
        try:
            yield workers
        except BaseException:
            for each in workers.started:
                each.terminate()
                print(end_of(each, 10.0).output)
            raise


def _at_work(url: str) -> int:
    """How many have looked for what is due."""
    sql = "SELECT count(DISTINCT application_name) FROM pg_stat_activity WHERE application_name LIKE 'worker-%' AND query LIKE '%schedule%'"
    with psycopg.connect(url, autocommit=True) as connection:
        (count,) = connection.execute(sql).fetchone() or (0,)
        return int(count)


@attrs.define(eq=False)
class Crashes:
    """Crashes of one server, at moments that ``moments`` chooses."""

    server: PostgresServer
    log: EventLog
    moments: random.Random
    #: Seconds between two of them at most, and how long the server stays away.
    apart: float = 1.0
    away: float = 0.3
    count: int = 0
    #: Seconds until the log grew again, crash by crash.
    silences: list[float] = attrs.field(factory=list)

    def crash(self, over: Callable[[], bool]) -> bool:
        """One more, unless the work is over; then the log has to grow again, or the work to end. Whether there was one."""
        time.sleep(self.moments.uniform(0.05, self.apart))  # a random moment is the point
        if over():
            return False
        before = patiently(self.log.last_position)
        self.server.stop_immediately()
        time.sleep(self.moments.uniform(0, self.away))
        self.server.start(fsync=True)
        self.count += 1
        begun = time.monotonic()
        until(lambda: over() or patiently(self.log.last_position) > before, f"the log grows after crash {self.count}")
        self.silences.append(time.monotonic() - begun)
        assert self.silences[-1] < PROGRESS, self.silences
        return True
