"""Views in PostgreSQL: a projection's own tables beside its rows, and blocks that keep no tail waiting."""

from __future__ import annotations

import threading

import psycopg
import pytest

from intentlog.eventlog.errors import LogUnavailable, StoreSchemaError
from intentlog.eventlog.log import ParkedEvent
from intentlog.eventlog.postgres import PostgresLog
from intentlog.eventlog.versions import ANY
from tests.eventlog.postgres_reading.helping import Session, ended, event, in_threads, until


def test_a_projections_own_table_moves_with_its_checkpoint(log: PostgresLog, psql: Session) -> None:
    psql.execute("CREATE TABLE totals (name text PRIMARY KEY, cents bigint)")
    with log.views.transaction("totals") as view:
        assert view.execute("INSERT INTO readings.totals VALUES ($1, $2)", ("a", 5)) == []
        assert view.execute("SELECT cents FROM readings.totals WHERE name = $1", ("a",)) == [(5,)]
        assert psql.execute("SELECT count(*) FROM totals").fetchone() == (0,)
        view.put("a", b"5")
        view.checkpoint(7)
    assert psql.execute("SELECT * FROM totals").fetchall() == [("a", 5)]
    assert log.checkpoints.load("totals") == 7
    with pytest.raises(ZeroDivisionError):
        _spoil(log)
    assert psql.execute("SELECT * FROM totals").fetchall() == [("a", 5)]
    assert log.checkpoints.load("totals") == 7


def _spoil(log: PostgresLog) -> None:
    with log.views.transaction("totals") as view:
        view.execute("UPDATE readings.totals SET cents = 99")
        view.checkpoint(8)
        raise ZeroDivisionError


def test_a_statement_that_fails_raises_an_error_of_ours_and_keeps_nothing(log: PostgresLog) -> None:
    with pytest.raises(StoreSchemaError, match="no_such_table") as caught:
        _write_nowhere(log)
    assert isinstance(caught.value.__cause__, psycopg.errors.UndefinedTable)
    assert list(log.views.read("totals").items()) == []


def _write_nowhere(log: PostgresLog) -> None:
    with log.views.transaction("totals") as view:
        view.put("a", b"5")
        view.execute("INSERT INTO no_such_table VALUES (1)")


def test_a_block_keeps_no_tail_waiting_until_it_ends(log: PostgresLog) -> None:
    before = log.last_position()
    with log.views.transaction("slow") as view:
        view.put("a", b"1")
        assert view.get("a") == b"1"
        assert list(view.items()) == [("a", b"1")]
        log.append("a-1", [event()], ANY)
        assert log.horizon() is None
        assert log.last_position() > before
        view.checkpoint(3)
    assert log.checkpoints.load("slow") == 3


def test_two_processes_take_turns_with_one_view(log: PostgresLog, other: PostgresLog) -> None:
    order: list[str] = []
    inside = threading.Event()

    def second() -> None:
        inside.wait()
        with other.views.transaction("turns") as view:
            order.append(f"second sees {view.position}")
            view.checkpoint(view.position + 1)

    threads = in_threads(second)
    with log.views.transaction("turns") as view:
        inside.set()
        threads[0].join(0.2)
        assert threads[0].is_alive(), "it waits for its turn"
        order.append("first")
        view.checkpoint(5)
    ended(threads)
    assert order == ["first", "second sees 5"]
    assert log.checkpoints.load("turns") == 6


def test_a_block_whose_connection_is_ended_keeps_nothing_and_says_that_it_may_be_run_again(log: PostgresLog, psql: Session) -> None:
    with pytest.raises(LogUnavailable):
        _cut(log, psql)
    assert (log.checkpoints.load("cut"), list(log.views.read("cut").items())) == (0, [])
    with log.views.transaction("cut") as view:
        view.put("a", b"2")
    assert log.views.read("cut").get("a") == b"2"


def _cut(log: PostgresLog, psql: Session) -> None:
    with log.views.transaction("cut") as view:
        view.put("a", b"1")
        view.checkpoint(4)
        (pid,) = view.execute("SELECT pg_backend_pid()")[0]
        psql.execute("SELECT pg_terminate_backend(%s)", (pid,))


def test_a_name_is_pointed_at_a_view_only_when_its_last_commit_counts(log: PostgresLog, other: PostgresLog, psql: Session) -> None:
    """A commit to the live view that is under way when the name moves is waited for, and then the shadow is behind."""
    for view, position in (("sums@v1", 5), ("sums@v2", 6)):
        with log.views.transaction(view) as writing:
            writing.checkpoint(position)
    assert log.views.point("sums", "sums@v1", expected=None)
    psql.execute("""
        CREATE FUNCTION wait_at_the_gate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NULL; END $$;
        CREATE TRIGGER gate AFTER UPDATE ON checkpoints FOR EACH ROW EXECUTE FUNCTION wait_at_the_gate();
        SELECT pg_advisory_lock(7);
    """)
    answers: list[bool] = []

    def live() -> None:
        with other.views.transaction("sums@v1") as writing:
            writing.checkpoint(9)

    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
    threads = in_threads(live)
    until(lambda: psql.execute(waiting).fetchall() == [(1,)], "the commit stands at the gate")
    threads += in_threads(lambda: answers.append(log.views.point("sums", "sums@v2", expected="sums@v1")))
    until(lambda: psql.execute(waiting).fetchall() == [(2,)], "the change of the name waits for it")
    psql.execute("SELECT pg_advisory_unlock(7)")
    ended(threads)
    assert answers == [False]
    assert log.views.pointed() == {"sums": "sums@v1"}


def test_only_one_of_many_makes_a_name_mean_something_first(log: PostgresLog, other: PostgresLog) -> None:
    answers: list[bool] = []
    ended(
        in_threads(
            *[lambda log=each, view=f"v{number}": answers.append(log.views.point("sums", view, expected=None)) for number, each in enumerate((log, other) * 4)]
        )
    )
    assert sorted(answers) == [False] * 7 + [True]


def test_an_error_text_that_no_column_can_hold_is_parked_all_the_same(log: PostgresLog) -> None:
    with log.views.transaction("odd") as view:
        view.park(ParkedEvent("odd", 4, "a-1", 2, "ValueError: \0 and \ud800", 7))
    (parked,) = log.views.parked("odd")
    assert parked.error == "ValueError: \\x00 and \\ud800"


@pytest.mark.parametrize("key", ["a\0b", "\ud800"])
def test_a_key_that_no_column_can_hold_is_refused_when_it_is_put_and_absent_when_it_is_asked_for(log: PostgresLog, key: str) -> None:
    with log.views.transaction("odd") as view:
        with pytest.raises(ValueError, match="key"):
            view.put(key, b"")
        view.delete(key)
        assert (view.get(key), list(view.items(key))) == (None, [])
    assert (log.views.read("odd").get(key), list(log.views.read("odd").items(key))) == (None, [])


def test_large_views_are_walked_in_parts(log: PostgresLog) -> None:
    with log.views.transaction("large") as view:
        for number in range(3_000):
            view.put(f"k{number:05}", bytes(10 if number % 500 else 2 << 20))
    keys = [key for key, _ in log.views.read("large").items()]
    assert keys == [f"k{number:05}" for number in range(3_000)]
    with log.views.transaction("large") as view:
        for number in range(0, 3_000, 2):
            view.delete(f"k{number:05}")
    assert [key for key, _ in log.views.read("large").items()] == keys[1::2]
