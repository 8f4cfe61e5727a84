"""What goes wrong between a log and its server, and what the log says of it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

import psycopg
import pytest

from intentlog.eventlog import open_log
from intentlog.eventlog.errors import LogError, LogUnavailable, TerminalError
from intentlog.eventlog.log import Appended, Duplicate
from intentlog.eventlog.postgres.address import parse_address
from intentlog.eventlog.postgres.connection import Database
from intentlog.eventlog.postgres.faults import translated, unreachable
from intentlog.eventlog.testing.maker import event, events, patiently
from intentlog.eventlog.versions import ANY
from tests.eventlog.postgres.cutting import Proxy
from tests.eventlog.postgres.opening import opened
from tests.services.postgres import NoPostgres, PostgresServer


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """A server of the test's own, to be stopped and broken."""
    try:
        server = PostgresServer()
    except NoPostgres as reason:
        pytest.skip(str(reason))
    with server:
        yield server.start()


def run(url: str, statement: str) -> list[tuple]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def end_others(url: str) -> int:
    """Terminate every other backend of the database, as an administrator or a fail-over does; how many there were."""
    return len(run(url, "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"))


def test_a_stopped_server_is_unavailable_and_a_started_one_just_works(server):
    log = opened(server.create_database())
    log.append("a-1", [event(b"before")], -1)
    server.stop_immediately()
    for call in (lambda: log.append("a-1", [event()], 0), lambda: list(log.read("a-1")), log.schedule.owners, lambda: log.checkpoints.save("x", 1)):
        with pytest.raises(LogUnavailable, match=r"no connection to|failed") as refused:
            call()
        assert isinstance(refused.value.__cause__, psycopg.OperationalError)
    server.start()
    patiently(lambda: log.append("a-1", [event(b"after")], 0))
    assert [b"before", b"after"] == [found.data for found in log.read_all()]
    log.close()


def test_a_read_whose_connection_was_cut_is_made_again(postgres_url):
    log = opened(postgres_url)
    log.append("a-1", [event()], -1)
    assert end_others(postgres_url) > 0
    assert 1 == len(list(log.read("a-1")))
    assert end_others(postgres_url) > 0
    assert 0 == log.head("a-1")
    log.close()


def test_an_append_whose_connection_was_cut_is_never_made_again_by_itself(postgres_url):
    log = opened(postgres_url)
    same = event()
    log.append("a-1", [event()], -1)
    end_others(postgres_url)
    with pytest.raises(LogUnavailable, match="sent again"):
        log.append("a-1", [same], 0)
    assert isinstance(log.append("a-1", [same], 0), Appended)
    log.close()


def test_all_connections_that_died_are_told_from_new_ones(postgres_url):
    log = opened(f"{postgres_url}?pool_size=4")
    barrier = threading.Barrier(4)

    def slow() -> None:
        barrier.wait(30)
        log._database.rows("SELECT pg_sleep(0.2)")

    threads = [threading.Thread(target=slow) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert end_others(postgres_url) >= 4
    assert [-1] * 4 == [log.head("a-1") for _ in range(4)]
    log.append("a-1", [event()], -1)
    log.close()


def test_an_exhausted_pool_says_how_large_it_is_and_how_to_make_it_larger(postgres_url):
    log = opened(f"{postgres_url}?pool_size=1&pool_timeout=0.2")
    with log._database.transaction(read_only=True), pytest.raises(LogUnavailable, match=r"All 1 connections.*0\.2 s.*pool_size="):
        log.head("a-1")
    assert -1 == log.head("a-1")
    log.close()


def test_a_statement_that_takes_too_long_is_given_up_once(postgres_url):
    log = opened(f"{postgres_url}?statement_timeout=0.3")
    log.append("a-1", [event()], -1)
    with psycopg.connect(postgres_url) as holder:
        holder.execute("LOCK TABLE intentlog.events IN ACCESS EXCLUSIVE MODE")
        for call in (lambda: log.append("a-1", [event()], 0), lambda: log.head("a-1")):
            with pytest.raises(LogUnavailable, match=r"after 0\.3 s.*statement_timeout=") as refused:
                call()
            assert isinstance(refused.value.__cause__, psycopg.errors.QueryCanceled)
        holder.rollback()
    log.append("a-1", [event()], 0)
    log.close()


@pytest.mark.parametrize("given", ["lock_timeout=0.3", "options=-c%20lock_timeout%3D300ms"])
def test_who_only_reads_gives_up_a_lock_that_another_session_keeps_and_says_so(postgres_url, given):
    opened(postgres_url).close()
    url = f"{postgres_url}?{given}"
    with contextlib.closing(open_log(url, create=False, read_only=True)) as log, psycopg.connect(postgres_url) as holder:
        holder.execute("LOCK TABLE intentlog.events IN ACCESS EXCLUSIVE MODE")
        for call in (lambda: log.head("a-1"), lambda: open_log(url, create=False, read_only=True).close()):
            with pytest.raises(LogUnavailable, match=r"another session holds a lock on.*pg_locks.*lock_timeout=") as refused:
                call()
            assert isinstance(refused.value.__cause__, psycopg.errors.LockNotAvailable)
        holder.rollback()
        assert -1 == log.head("a-1")


def test_only_who_reads_gives_up_a_lock(postgres_url):
    opened(postgres_url).close()
    told = {}
    for read_only in (True, False):
        database = Database(parse_address(postgres_url), read_only=read_only)
        with contextlib.closing(database):
            told[read_only] = database.rows("SHOW lock_timeout")[0][0]
    assert {True: "10s", False: "0"} == told


def test_a_server_without_room_for_more_connections_says_so(server):
    url = server.create_database()
    opened(url).close()
    run(url, f'ALTER DATABASE "{urlsplit(url).path[1:]}" CONNECTION LIMIT 0')
    role = url.replace("//postgres@", "//guest@")
    run(url, "CREATE ROLE guest LOGIN")
    with pytest.raises(LogUnavailable, match=r"too many connections.*pool_size.*max_connections"):
        opened(role)


def test_a_server_that_turned_read_only_is_left_for_one_that_takes_writes(postgres_url):
    log = opened(postgres_url)
    database = urlsplit(postgres_url).path[1:]
    log.append("a-1", [event()], -1)
    run(postgres_url, f'ALTER DATABASE "{database}" SET default_transaction_read_only = on')
    end_others(postgres_url)
    with pytest.raises(LogUnavailable):
        log.append("a-1", [event()], 0)
    with pytest.raises(LogUnavailable, match="read-only") as refused:
        log.append("a-1", [event()], 0)
    assert isinstance(refused.value.__cause__, psycopg.OperationalError)
    assert "failed over" in str(refused.value)
    with pytest.raises(LogUnavailable, match=r"read-only.*failed over"):
        opened(postgres_url)
    reading = opened(postgres_url, read_only=True)
    assert 0 == reading.head("a-1")
    reading.close()
    with psycopg.connect(postgres_url, autocommit=True, options="-c default_transaction_read_only=off") as connection:
        connection.execute(f'ALTER DATABASE "{database}" RESET default_transaction_read_only'.encode())
    log.append("a-1", [event()], 0)
    assert 1 == log.head("a-1")
    log.close()


def test_a_connection_that_turned_read_only_is_not_used_again(postgres_url):
    log = opened(f"{postgres_url}?pool_size=1")
    log.append("a-1", [event()], -1)
    (before,) = log._database.rows("SELECT pg_backend_pid()")[0]
    with log._database._borrowed(True) as connection:
        connection.execute("SET default_transaction_read_only = on")
    log.append("a-1", [event()], 0)
    assert before != log._database.rows("SELECT pg_backend_pid()")[0][0]
    log.close()


def test_a_log_opened_for_reading_writes_nothing_whatever_is_asked(postgres_url):
    opened(postgres_url).close()
    log = opened(postgres_url, read_only=True)
    for call in (
        lambda: log.append("a-1", [event()], -1),
        lambda: log.append("a-1", [event()], ANY),
        lambda: log.schedule.wake("q", "a-1", 1),
        lambda: log.schedule.claim_due("q", "me", now=1, until=2, limit=1),
        lambda: log.checkpoints.save("x", 1),
        log.snapshots.delete,
        lambda: log.views.clear("v"),
        lambda: log._database.rows("INSERT INTO checkpoints VALUES (1, 'x') RETURNING 1"),
    ):
        with pytest.raises(TerminalError, match="open for reading only"):
            call()
    assert 0 == log.last_position()
    log.close()


def test_a_closed_log_says_so(postgres_url):
    log = opened(postgres_url)
    log.close()
    log.close()
    for call in (lambda: log.head("a-1"), lambda: log.append("a-1", [event()], -1), lambda: log.schedule.wake("q", "a-1", 1)):
        with pytest.raises(LogUnavailable, match="has been closed"):
            call()


@pytest.mark.parametrize(
    "said",
    [
        "FATAL:  the database system is starting up",
        "FATAL:  the database system is shutting down",
        "FATAL:  the database system is in recovery mode",
        "FATAL:  the database system is not yet accepting connections",
    ],
)
def test_a_server_that_comes_up_or_goes_down_is_waited_for_and_nobodys_rights_are_at_fault(said):
    error = str(unreachable(parse_address("postgresql://me@db/log"), psycopg.OperationalError(said)))
    assert ([True, True], []) == (
        [each in error for each in (said, "wait for it, and try again")],
        [each for each in ("lets this user", "Check that") if each in error],
    )


@pytest.mark.parametrize("said", ["FATAL:  sorry, too many clients already", "FATAL:  remaining connection slots are reserved for roles with a right"])
def test_a_server_that_is_full_is_told_from_one_that_is_not_there(said):
    error = unreachable(parse_address("postgresql://me@db/log"), psycopg.OperationalError(said))
    assert "max_connections" in str(error)
    assert "Check that the server runs" not in str(error)


@pytest.mark.parametrize("expected", [1, ANY])
def test_an_acknowledgement_that_was_lost_makes_the_retry_a_duplicate_with_the_first_positions(postgres_url, expected):
    port = urlsplit(postgres_url).port
    assert port is not None
    direct = opened(postgres_url)
    direct.append("a-1", events(2), -1)
    with Proxy(port, b"lose the answer to this") as proxy:
        log = opened(postgres_url.replace(f":{port}/", f":{proxy.port}/"))
        log.append("warm-1", [event()], ANY)
        new = [event(b"lose the answer to this"), *events(2)]
        with pytest.raises(LogUnavailable, match="sent again"):
            log.append("a-1", new, expected)
        assert proxy.lost
        again = log.append("a-1", new, expected)
        assert isinstance(again, Duplicate)
        stored = list(direct.read("a-1", after=1))
        assert [each.event_id for each in new] == [found.event_id for found in stored]
        assert ((2,), (tuple(found.position for found in stored),)) == (again.first_versions, again.positions)
        log.close()
    direct.close()


@pytest.mark.parametrize(
    "state, expected, named",
    [
        ("57P01", LogUnavailable, "sent again"),
        ("08006", LogUnavailable, "sent again"),
        ("53300", LogUnavailable, "max_connections"),
        ("53100", LogUnavailable, "no room"),
        ("40P01", LogUnavailable, "try again"),
        ("42P01", LogError, "eventlog init"),
        ("42501", LogError, "GRANT"),
        ("22003", TerminalError, "does not fit"),
        ("54000", TerminalError, "1 GB"),
        ("23505", LogError, "index"),
    ],
)
def test_every_kind_of_error_has_a_type_and_a_way_out(state, expected, named):
    error = translated(psycopg.errors.lookup(state)("it said so"), parse_address("postgresql://me:hunter2@db/log"))
    assert isinstance(error, expected)
    assert named in str(error)
    assert "it said so" in str(error)
    assert "hunter2" not in str(error)
