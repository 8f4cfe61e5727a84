"""What an administrator does to the events table while it is written: nothing that would hold the writers up for long."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager

import psycopg
import pytest

from intentlog.eventlog.log import AppendRequest, StreamAppend
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.postgres import PostgresLog
from intentlog.eventlog.testing.maker import event
from tests.services.postgres import NoPostgres, PostgresServer

#: Rows in the table before, so that each of these takes a while: as many appends are held up by what an index of a small one begins and ends
#: with, and of those few that are made meanwhile they are more than one in a hundred.
ROWS = 500_000
SAMPLES = 2000
#: How much slower than idle the 99th percentile of appends may be meanwhile.
BAR = 5.0
#: Best of so many rounds, as every ratio is measured: whoever else has one of two cores for a moment costs more than any of this.
ROUNDS = 5
#: Seconds between two rounds, at least. Each makes every session plan its statements anew; a hundred of them a second would measure that.
BREATH = 0.1
#: An index as docs/postgresql.md says to make it: by one process, for three of them leave the writers no core on a small machine.
WORK = {
    "vacuum": ("VACUUM intentlog.events",),
    "vacuum-of-every-page": ("VACUUM (DISABLE_PAGE_SKIPPING, ANALYZE) intentlog.events",),
    "analyze": ("ANALYZE intentlog.events",),
    "index": (
        "SET max_parallel_maintenance_workers = 0",
        "CREATE INDEX CONCURRENTLY extra ON intentlog.events (type, recorded_at)",
        "DROP INDEX CONCURRENTLY intentlog.extra",
    ),
}

pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def full() -> Iterator[tuple[str, PostgresLog]]:
    """A log with so many rows that nothing is over at once, and its URL; commits reach the disk."""
    try:
        server = PostgresServer(below="/var/tmp")
    except NoPostgres as reason:
        pytest.skip(str(reason))
    with server:
        url = server.start(fsync=True).create_database()
        with closing(open_log(url)) as log:
            batch = 10_000
            for number in range(ROWS // batch):
                log.append_batch([AppendRequest([StreamAppend(f"old-{number}", [event(bytes(200)) for _ in range(batch)], -1)])])
            assert isinstance(log, PostgresLog)
            yield url, log


def p99(log: PostgresLog, stream: str, enough: Callable[[], bool] = lambda: True) -> float:
    """Seconds of an append that 1 in 100 takes longer than, over ``SAMPLES`` of them, and more until it is ``enough``."""
    taken: list[float] = []
    head = log.head(stream)
    while len(taken) < SAMPLES or not enough():
        new = event(bytes(200))
        began = time.perf_counter()
        log.append(stream, [new], head)
        taken.append(time.perf_counter() - began)
        head += 1
    return sorted(taken)[len(taken) * 99 // 100]


@contextmanager
def working(url: str, statements: Sequence[str]) -> Iterator[Callable[[], bool]]:
    """The statements again and again, while the block lasts; gives whether all of them were run through once."""
    stop, once = threading.Event(), threading.Event()
    faults: list[BaseException] = []

    def work() -> None:
        try:
            with psycopg.connect(url, autocommit=True) as connection:
                while not stop.is_set():
                    began = time.monotonic()
                    for statement in statements:
                        connection.execute(statement.encode())
                    once.set()
                    stop.wait(max(BREATH, time.monotonic() - began))
        except BaseException as fault:
            faults.append(fault)
            once.set()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield once.is_set
    finally:
        stop.set()
        thread.join()
    assert [] == faults


@pytest.mark.parametrize("work", WORK)
def test_appends_stay_within_five_times_their_idle_time(full, work):
    """Measured between two idle looks, against the faster one."""
    url, log = full
    told = []
    for _ in range(ROUNDS):
        before = p99(log, f"{work}-idle")
        with working(url, WORK[work]) as enough:
            meanwhile = p99(log, f"{work}-busy", enough)
        after = p99(log, f"{work}-idle")
        told.append(f"{1000 * before:.1f} and {1000 * after:.1f} ms idle, {1000 * meanwhile:.1f} ms during {work}")
        if meanwhile <= BAR * min(before, after):
            break
    else:
        raise AssertionError(told)
    print(told)
