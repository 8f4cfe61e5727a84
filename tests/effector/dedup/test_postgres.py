"""The PostgreSQL store's own: its schema, roles, settings, connections, and what is removed in passing."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from intentlog.effector.dedup import DedupSchemaError, StoreUnavailable, StoreUnfit, open_dedup
from intentlog.effector.dedup.checking import MARGIN, SWEEP
from intentlog.effector.testing.dedup.maker import DAY, LEASE, NOON, claimed, completed, together


def ask(url: str, statement: str) -> list[tuple]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def test_expired_results_are_removed_in_passing_a_bounded_number_at_a_time(postgres_url: str) -> None:
    later = NOON + LEASE + MARGIN
    count = "SELECT count(*) FROM intentlog_dedup.records"
    with closing(open_dedup(postgres_url)) as store:
        for number in range(SWEEP + 5):
            completed(store, f"old{number}", ttl=LEASE)
        claimed(store, "held")
        completed(store, "new0", now=later - 1)
        assert [(SWEEP + 7,)] == ask(postgres_url, count)
        completed(store, "new1", now=later)
        assert [(8,)] == ask(postgres_url, count)
        completed(store, "new2", now=later)
        assert [("held",), ("new0",), ("new1",), ("new2",)] == ask(postgres_url, "SELECT intent_id FROM intentlog_dedup.records ORDER BY 1")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("UPDATE intentlog_dedup.release SET version = 2", "made by a newer release: it is of version 2"),
        ("DROP TABLE intentlog_dedup.records", "lacks a part of schema intentlog_dedup"),
        ("ALTER TABLE intentlog_dedup.records DROP COLUMN attempts", "lacks a part of schema intentlog_dedup"),
    ],
)
def test_tables_that_are_not_of_this_release_are_refused(postgres_url: str, wrong: str, told: str) -> None:
    open_dedup(postgres_url).close()
    ask(postgres_url, wrong)
    with pytest.raises(DedupSchemaError) as refusal:
        open_dedup(postgres_url)
    assert told in str(refusal.value)


def test_tables_that_are_dropped_under_a_store_are_named(postgres_url: str) -> None:
    with closing(open_dedup(postgres_url)) as store:
        mine = claimed(store, "one")
        ask(postgres_url, "DROP SCHEMA intentlog_dedup CASCADE")
        with pytest.raises(DedupSchemaError, match="lacks a part of schema intentlog_dedup"):
            store.attempt("one", mine.token, now=NOON)


def test_many_that_open_an_empty_database_at_once_make_one_store(postgres_url: str) -> None:
    stores = together(*[lambda: open_dedup(postgres_url)] * 6)
    claimed(stores[0], "one")
    for store in stores:
        assert "Busy" == type(store.look("one", now=NOON)).__name__
        store.close()
    assert [(1,)] == ask(postgres_url, "SELECT count(*) FROM intentlog_dedup.release")


@pytest.fixture
def guest(postgres_url: str) -> Iterator[str]:
    """A role that has no rights yet; gone after the test, since roles belong to the whole server."""
    name = f"dedup_guest_{secrets.token_hex(4)}"
    ask(postgres_url, f"CREATE ROLE {name}")
    yield name
    ask(postgres_url, f"DROP OWNED BY {name}")
    ask(postgres_url, f"DROP ROLE {name}")


def test_a_role_without_rights_is_told_which(postgres_url: str, guest: str) -> None:
    open_dedup(postgres_url).close()
    url = f"{postgres_url}?options=-c%20role%3D{guest}"
    with pytest.raises(StoreUnfit, match="GRANT USAGE ON SCHEMA"):
        open_dedup(url)
    ask(postgres_url, f"GRANT USAGE ON SCHEMA intentlog_dedup TO {guest}")
    ask(postgres_url, f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA intentlog_dedup TO {guest}")
    with closing(open_dedup(url)) as store:
        completed(store, "one")


def test_a_database_that_does_not_wait_for_its_disk_is_made_to(postgres_url: str) -> None:
    name = postgres_url.rpartition("/")[2]
    ask(postgres_url, f'ALTER DATABASE "{name}" SET synchronous_commit = off')
    with closing(open_dedup(postgres_url)) as store:
        assert [("on",)] == store._connections.rows("SHOW synchronous_commit")  # type: ignore[attr-defined]


def test_a_server_without_fsync_is_told(postgres_url: str) -> None:
    ((fsync,),) = ask(postgres_url, "SHOW fsync")
    with closing(open_dedup(postgres_url)) as store:
        assert ([] if fsync == "on" else [True]) == ["fsync is off" in caveat for caveat in store.caveats]


def test_connections_that_the_server_ended_or_turned_read_only_are_replaced(postgres_url: str) -> None:
    with closing(open_dedup(f"{postgres_url}?patience_ms=20000")) as store:
        mine = claimed(store, "one")
        ask(postgres_url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'intentlog-dedup' AND datname = current_database()")
        assert 1 == store.attempt("one", mine.token, now=NOON)
        store._connections.rows("SET default_transaction_read_only = on")  # type: ignore[attr-defined]
        assert 2 == store.attempt("one", mine.token, now=NOON)


def test_a_standby_is_unavailable_and_says_why(postgres_url: str) -> None:
    open_dedup(postgres_url).close()
    name = postgres_url.rpartition("/")[2]
    ask(postgres_url, f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    with pytest.raises(StoreUnavailable, match="read-only"):
        open_dedup(postgres_url)


def test_many_threads_leave_few_connections(postgres_url: str) -> None:
    with closing(open_dedup(postgres_url)) as store:
        together(*[lambda number=number: completed(store, f"intent{number}") for number in range(30)])
        question = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'intentlog-dedup' AND datname = current_database()"
        patience = time.monotonic() + 20
        while (left := ask(postgres_url, question)[0][0]) > 8 and time.monotonic() < patience:
            time.sleep(0.05)  # the server hears of a closed connection a moment later
        assert left <= 8
        assert 30 == sum(type(store.look(f"intent{number}", now=NOON + DAY - 1)).__name__ == "Done" for number in range(30))
