"""No tail passes an event that it cannot see yet, whatever keeps that one back; and none stops for events that never were."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from functools import partial

import psycopg
import pytest

from intentlog.eventlog.errors import LogUnavailable
from intentlog.eventlog.events import StoredEvent
from intentlog.eventlog.log import AppendRequest, EventLog, StreamAppend
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.postgres import PostgresLog
from intentlog.eventlog.tail import tail
from intentlog.eventlog.versions import ANY
from tests.eventlog.postgres_reading.helping import HELD, Session, ended, event, held_append, hold_back, in_threads, until
from tests.services.postgres import PostgresServer


class Tail:
    """A tail in a thread, and what it has seen so far."""

    def __init__(self, log: EventLog, types: tuple[str, ...] = (), categories: tuple[str, ...] = ()) -> None:
        self.seen: list[StoredEvent] = []
        self.stop = threading.Event()
        self._log = log
        self._types = types
        self._categories = categories
        self.threads = in_threads(self._run)

    def _run(self) -> None:
        for batch in tail(self._log, after=0, stop=self.stop.is_set, batch=7, types=self._types, categories=self._categories):
            self.seen += batch

    def end(self) -> list[StoredEvent]:
        self.stop.set()
        ended(self.threads)
        return self.seen


@pytest.fixture
def tails(url: str, log: PostgresLog) -> Iterator[list[Tail]]:
    """Two tails with the log to themselves, one of them for reading only, and two that want some events only."""
    logs = [open_log(url), open_log(url, read_only=True)]
    made = [Tail(logs[0]), Tail(logs[1]), Tail(log, types=(HELD, "late.one")), Tail(log, categories=("held", "late"))]
    yield made
    for each in made:
        each.stop.set()
        ended(each.threads)
    for each_log in logs:
        each_log.close()


def test_no_tail_passes_an_event_that_is_still_invisible(log: PostgresLog, other: PostgresLog, psql: Session, tails: list[Tail]) -> None:
    hold_back(psql)
    log.append("early-1", [event()], ANY)
    before = until(log.last_position, "the first event")
    with held_append(other, psql):
        for number in range(50):
            log.append(f"late-{number}", [event(kind="late.one")], ANY)
        assert log.head("late-49") == 0, "later events are committed"
        assert len(list(log.read("late-49"))) == 1, "a stream is read as it is"
        for reader in (log, other):
            assert reader.last_position() == before
            assert list(reader.read_all(after=before)) == []
            assert list(reader.read_all(after=before, types=["late.one"])) == []
            assert list(reader.read_all(after=before, categories=["late"])) == []
            assert not reader.wait(before, 0.1)
        assert all(each.stream == "early-1" for found in tails for each in found.seen)
    until(lambda: all(len(found.seen) >= 51 for found in tails), "every tail has everything")
    orders = [[each.stream for each in found.end()] for found in tails]
    assert orders[0] == ["early-1", "held-1", *(f"late-{number}" for number in range(50))]
    assert orders[1] == orders[0]
    assert orders[2] == orders[3] == orders[0][1:]


def test_many_events_are_held_back_and_come_one_after_the_other(log: PostgresLog, other: PostgresLog, psql: Session, tails: list[Tail]) -> None:
    hold_back(psql)
    for turn in range(5):
        with held_append(other, psql, f"held-{turn}"):
            log.append_batch([AppendRequest([StreamAppend(f"late-{turn}-{number}", [event(kind="late.one")], ANY)]) for number in range(3)])
    until(lambda: all(len(found.seen) == 20 for found in tails), "every tail has everything")
    whole = [name for turn in range(5) for name in (f"held-{turn}", *(f"late-{turn}-{number}" for number in range(3)))]
    for found in tails:
        positions = [each.position for each in found.end()]
        assert positions == sorted(set(positions))
        assert [each.stream for each in found.seen] == whole


def test_a_transaction_that_has_nothing_to_do_with_the_log_delays_it_and_loses_nothing(
    log: PostgresLog, postgres_server: PostgresServer, tails: list[Tail]
) -> None:
    before = log.last_position()
    elsewhere = postgres_server.create_database()
    with psycopg.connect(elsewhere) as session:
        session.execute("CREATE TABLE unrelated (number int)")
        for number in range(30):
            log.append(f"late-{number}", [event(kind="late.one")], ANY)
        assert log.last_position() == before
        assert [each for found in tails for each in found.seen] == []
        session.rollback()
    until(lambda: all(len(found.seen) == 30 for found in tails), "every tail has everything")
    postgres_server.drop_database(elsewhere)


def test_a_hundred_thousand_events_that_were_rolled_back_leave_no_gap_to_wait_for(log: PostgresLog, other: PostgresLog, psql: Session) -> None:
    log.append("a-1", [event()], ANY)
    (first,) = log.read_all()
    with psql.transaction(force_rollback=True):
        psql.execute("""
            INSERT INTO events (position, stream_id, version, recorded_at, schema, event_id, type, data)
            SELECT ((pg_current_xact_id()::text::bigint + xid_offset) << 20) + n, 1, n, 0, 1, decode(lpad(to_hex(n), 32, '0'), 'hex'), 'never.was', 'x'
            FROM generate_series(1, 100000) AS n, meta
        """)
    assert log.last_position() == first.position
    assert [each.version for each in log.read_all()] == [0]
    log.append("a-1", [event()], 0)
    assert other.wait(first.position, 30)
    assert [each.version for each in other.read_all(after=first.position)] == [1]


def test_a_hundred_thousand_transactions_that_failed_cost_a_tail_nothing(log: PostgresLog, psql: Session) -> None:
    log.append("a-1", [event()], ANY)
    (first,) = log.read_all()
    psql.execute("""
        DO $$ BEGIN FOR n IN 1..100000 LOOP
            BEGIN INSERT INTO checkpoints VALUES (n, 'failed'); RAISE EXCEPTION 'no'; EXCEPTION WHEN raise_exception THEN NULL; END;
        END LOOP; END $$
    """)
    log.append("a-1", [event()], 0)
    begun = time.process_time()
    assert log.wait(first.position, 30)
    (second,) = log.read_all(after=first.position, types=["thing.happened"])
    assert (second.position >> 20) - (first.position >> 20) > 100_000
    assert time.process_time() - begun < 0.5, "nobody walks through the gap"


def test_a_tail_goes_on_where_it_was_when_the_server_has_been_restarted() -> None:
    with PostgresServer() as server:
        server.start(fsync=True)
        log = open_log(f"{server.create_database()}?schema=readings")
        writer = open_log(log.url)
        seen: list[StoredEvent] = []
        stop, cut = threading.Event(), threading.Event()

        def follow() -> None:
            while not stop.is_set():
                try:
                    for batch in tail(log, after=seen[-1].position if seen else 0, stop=stop.is_set):
                        seen.extend(batch)
                except LogUnavailable:
                    cut.set()
                    stop.wait(0.02)

        threads = in_threads(follow)
        for turn in range(3):
            writer.append("a-1", [event(), event()], ANY)
            until(partial(_has, seen, 2 * turn + 2), "the tail is up to date")
            cut.clear()
            (server.stop if turn % 2 else server.stop_immediately)()
            assert cut.wait(30), "the tail was told"
            server.start(fsync=True)
            until(lambda: _is_there(writer), "the server is there again")
        writer.append("a-1", [event()], 5)
        until(lambda: len(seen) >= 7, "the tail is up to date")
        stop.set()
        ended(threads)
        assert [each.version for each in seen] == list(range(7))
        log.close()
        writer.close()


def _has(seen: list[StoredEvent], count: int) -> bool:
    return len(seen) == count


def _is_there(log: EventLog) -> bool:
    try:
        return log.head("a-1") >= 0
    except LogUnavailable:
        return False
