"""What an append to PostgreSQL promises beyond what every store does: order under races, no deadlocks, large batches, one round trip."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from intentlog.eventlog.errors import LogUnavailable, TerminalError, WrongExpectedVersion
from intentlog.eventlog.events import NewEvent
from intentlog.eventlog.log import Appended, AppendRequest, Duplicate, Fence, StreamAppend, Wake
from intentlog.eventlog.planning import LookCloser
from intentlog.eventlog.postgres import PostgresLog, append, batch
from intentlog.eventlog.postgres.statements import statement
from intentlog.eventlog.testing.maker import event, events, request, together
from intentlog.eventlog.versions import ANY, EXISTS, NO_STREAM
from tests.eventlog.postgres.opening import opened

SLOW_ROWS = """
CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.01); RETURN NEW; END $$;
CREATE TRIGGER dawdle BEFORE INSERT ON intentlog.{table} FOR EACH ROW EXECUTE FUNCTION dawdle();
"""


@pytest.fixture
def log(postgres_url):
    log = opened(postgres_url)
    yield log
    log.close()


@pytest.fixture
def session(postgres_url):
    """A connection of the test's own, on the log's tables."""
    with psycopg.connect(postgres_url, autocommit=True, options="-c search_path=intentlog", cursor_factory=psycopg.RawCursor) as connection:
        yield connection


def in_thread(call: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(call()), daemon=True)
    thread.start()
    return thread, results


@pytest.fixture
def watcher(postgres_url):
    """Another: what a session sees of others stands still while its transaction lasts."""
    with psycopg.connect(postgres_url, autocommit=True, cursor_factory=psycopg.RawCursor) as connection:
        yield connection


def until_waiting(watcher: psycopg.Connection[Any], count: int = 1) -> list[tuple[str, str | None]]:
    """The kinds of lock that ``count`` sessions wait for, and their transaction ids where they have one."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        found = watcher.execute("SELECT l.locktype, a.backend_xid::text FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE NOT l.granted").fetchall()
        if len(found) == count:
            return found
        time.sleep(0.005)
    raise AssertionError(f"{count} sessions should wait for a lock, and these do: {found}")


def leave_room_for_few_locks(session: psycopg.Connection[Any]) -> None:
    """Take locks, a thousand at a time, until the server has no room for a thousand more, and give one thousand back."""
    taking = "SELECT count(pg_advisory_lock(number)) FROM generate_series($1::int, $1::int + 999) AS number"
    for first in range(0, 1_000_000, 1_000):
        try:
            session.execute(taking, (first,))
        except psycopg.errors.OutOfMemory:
            session.execute(taking.replace("lock", "unlock"), (first - 1_000,))
            return
    raise AssertionError("a server with room for a million locks cannot show what this test is about")


@pytest.fixture
def no_way_out_of_a_deadlock(monkeypatch):
    """A writer that is chosen to end a deadlock tries again. Not here: the error comes out."""
    monkeypatch.setattr(append, "_RACES", tuple(state for state in append._RACES if state != "40P01"))


def insert_theirs(session: psycopg.Connection[Any]) -> None:
    """Somebody's event at version 1 of the only stream, in the transaction that is open."""
    session.execute(
        "INSERT INTO events (position, stream_id, version, recorded_at, schema, event_id, type, data) "
        "SELECT (pg_current_xact_id()::text::bigint << 20) + 1, id, 1, 1, 1, $1, 'k', 'theirs' FROM streams",
        (bytes(16),),
    )


def noted_calls(log: PostgresLog, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements by which ``log`` appends from now on, as they come."""
    calls: list[str] = []
    real = log._database.call

    def noted(sql: str, values: Any) -> Any:
        calls.append(sql)
        return real(sql, values)

    monkeypatch.setattr(log._database, "call", noted)
    return calls


def versions_by_position(log, stream: str) -> list[int]:
    return [found.version for found in sorted(log.read(stream), key=lambda found: found.position)]


def test_a_writer_that_waits_for_a_stream_has_no_transaction_id_yet_so_positions_grow_along_it(log, session, watcher):
    log.append("a-1", [event(b"first")], NO_STREAM)
    with session.transaction():
        session.execute(statement("lock_streams"), (["a-1"],))
        late, outcome = in_thread(lambda: log.append_batch([request("b-1", event()), request("a-1", event(b"late"))]))
        assert [("advisory", None)] == until_waiting(watcher), "its position would be lower than that of what it waits for"
        # One that names its version waits for nobody.
        log.append("a-1", [event(b"second")], 0)
    late.join(30)
    assert [Appended, Appended] == [type(each) for each in outcome[0]]
    assert [b"first", b"second", b"late"] == [found.data for found in log.read("a-1")]
    assert [0, 1, 2] == versions_by_position(log, "a-1")
    assert [found for found in log.read_all() if found.stream == "a-1"] == list(log.read("a-1"))


def test_a_batch_that_loses_a_race_is_written_by_another_transaction(log, session, watcher):
    log.append("a-1", [event()], NO_STREAM)
    with session.transaction():
        # Somebody's event that is not committed yet: the append finds the head at 0, gets its id, and waits for the index entry.
        insert_theirs(session)
        late, outcome = in_thread(lambda: log.append("a-1", [event(b"mine")], ANY))
        ((_, first_id),) = until_waiting(watcher)
    late.join(30)
    assert [b"theirs", b"mine"] == [found.data for found in log.read("a-1", after=0)]
    assert [0, 1, 2] == versions_by_position(log, "a-1")
    assert first_id is not None
    assert int(first_id) < outcome[0].positions[0][0] >> 20


@pytest.mark.usefixtures("no_way_out_of_a_deadlock")
@pytest.mark.parametrize("table", ["events", "streams", "schedule"])
@pytest.mark.parametrize("expected", [NO_STREAM, ANY])
def test_batches_over_the_same_streams_in_opposite_order_do_not_deadlock(log, session, table, expected):
    session.execute(SLOW_ROWS.format(table=table))
    names = [f"a-{number}" for number in range(6)]
    for round_ in range(3):
        turns = [[f"{name}.{round_}" for name in order] for order in (names, names[::-1])]
        batches = [[request(name, event(), expected=expected, wakes=[Wake("q", 1)]) for name in turn] for turn in turns]
        outcomes = together(*[lambda each=each: log.append_batch(each) for each in batches])
        winners = [sum(isinstance(each, Appended) for each in found) for found in outcomes]
        assert 6 == max(winners)
        assert (0 if expected is NO_STREAM else 6) == min(winners)


@pytest.mark.usefixtures("no_way_out_of_a_deadlock")
def test_writers_of_exact_versions_in_opposite_order_do_not_deadlock(log, session):
    names = [f"a-{number}" for number in range(6)]
    log.append_batch([request(name, event()) for name in names])
    session.execute(SLOW_ROWS.format(table="events"))
    batches = [[request(name, event(), expected=0) for name in order] for order in (names, names[::-1])]
    outcomes = together(*[lambda each=each: log.append_batch(each) for each in batches])
    assert [0, 6] == sorted(sum(isinstance(each, Appended) for each in found) for found in outcomes)


@pytest.mark.usefixtures("no_way_out_of_a_deadlock")
def test_requests_over_several_streams_in_opposite_order_all_come_through(log, session):
    session.execute(SLOW_ROWS.format(table="events"))

    def write(names: list[str]) -> list[Any]:
        return [log.append_batch([AppendRequest([StreamAppend(name, events(2), ANY) for name in names])]) for _ in range(5)]

    together(lambda: write(["a-1", "a-2"]), lambda: write(["a-2", "a-1"]))
    for name in ("a-1", "a-2"):
        assert list(range(20)) == versions_by_position(log, name)


@pytest.mark.usefixtures("no_way_out_of_a_deadlock")
def test_fences_in_opposite_order_do_not_deadlock(log, session, watcher):
    names = [f"a-{number:02}" for number in range(20)]
    tokens = log.schedule.acquire("q", names, "me", now=1, until=1 << 60)

    def write(stream: str, order: list[str]) -> Any:
        return log.append_batch([AppendRequest([StreamAppend(stream, [event()], NO_STREAM)], [Fence("q", name, tokens[name]) for name in order])])

    with session.transaction():
        session.execute("SELECT FROM schedule WHERE name = 'a-10' FOR UPDATE")
        running = [in_thread(lambda: write("x-1", names)), in_thread(lambda: write("y-1", names[::-1]))]
        until_waiting(watcher, 2)
    for thread, _ in running:
        thread.join(30)
    assert [Appended, Appended] == [type(outcome) for _, (found,) in running for outcome in found]


def test_a_usual_batch_is_one_round_trip_and_one_transaction(log, session, monkeypatch):
    tokens = log.schedule.acquire("q", ["a-1"], "me", now=1, until=1 << 60)
    log.append("a-2", [event()], NO_STREAM)
    calls = noted_calls(log, monkeypatch)
    monkeypatch.setattr(log._database, "transaction", None)
    outcomes = log.append_batch(
        [
            AppendRequest([StreamAppend("a-1", events(2), NO_STREAM, [Wake("q", 5)])], [Fence("q", "a-1", tokens["a-1"], release=True)]),
            AppendRequest([StreamAppend("a-2", events(1), EXISTS), StreamAppend("a-1", events(1), 1)]),
            request("a-3", event(), event(), wakes=[Wake("q", None), Wake("p", 7, sooner=True)]),
            request("a-3", expected=ANY, wakes=[Wake("q", 9, sooner=True)]),
            request("a-3", event()),
        ]
    )
    assert [statement("append_events")] == calls
    assert [(0,), (1, 2), (0,), (2,), (2,)] == [each.first_versions for each in outcomes]
    stored = {(found.stream, found.version): found.position for found in log.read_all()}
    assert stored["a-1", 0] + 1 == stored["a-1", 1]
    assert ((stored["a-2", 1],), (stored["a-1", 2],)) == outcomes[1].positions
    ids = {position >> 20 for place, position in stored.items() if place != ("a-2", 0)}
    assert 1 == len(ids)
    assert [("p", "a-3", 7, None), ("q", "a-1", 5, None), ("q", "a-3", 9, None)] == session.execute(
        "SELECT queue, name, wake_at, owner FROM schedule ORDER BY 1, 2"
    ).fetchall()


@pytest.mark.parametrize(
    "why, appended",
    [
        ("at its head", [request("a-1", event(), NewEvent(bytes(16), "k", 3, b"{}", bytes([1] * 16), bytes([2] * 16)), expected=0)]),
        ("wherever it ends", [request("a-1", event(), expected=ANY)]),
        ("to begin with", [request("a-2", event(), expected=NO_STREAM)]),
        ("with a wake-up", [request("a-1", event(), expected=0, wakes=[Wake("q", 7)])]),
        ("large", [request("a-1", event(bytes(70_000)), expected=0)]),
        ("nothing", [request("a-1", expected=0)]),
        ("for two", [request("a-1", event(), expected=0), request("a-2", event(), expected=NO_STREAM)]),
        ("in two requests", [request("a-1", event(), expected=0), request("a-1", event(), expected=1)]),
    ],
)
def test_events_for_one_stream_at_its_head_go_by_a_shorter_statement_and_all_others_by_the_whole_one(log, monkeypatch, why, appended):
    log.append("a-1", [event()], NO_STREAM)
    calls = noted_calls(log, monkeypatch)
    outcomes = log.append_batch(appended)
    assert [statement("append_to_one" if why in ("at its head", "in two requests") else "append_events")] == calls
    told = [
        (part.stream, first + place, position)
        for each, outcome in zip(appended, outcomes, strict=True)
        for part, first, positions in zip(each.parts, outcome.first_versions, outcome.positions, strict=True)
        for place, position in enumerate(positions)
    ]
    given = [found for each in appended for part in each.parts for found in part.events]
    stored = list(log.read_all())[1:]
    assert told == [(found.stream, found.version, found.position) for found in stored]
    assert given == [NewEvent(found.event_id, found.type, found.schema, found.data, found.correlation, found.causation) for found in stored]


def test_a_writer_of_an_exact_version_that_loses_is_told_what_it_had_not_seen(log, session, watcher):
    log.append("a-1", [event()], NO_STREAM)
    with session.transaction():
        # Not committed yet: the writer finds the head where it expects it, and waits for the index entry.
        insert_theirs(session)
        late, outcome = in_thread(lambda: log.append_batch([request("a-1", event(b"mine"), expected=0)]))
        until_waiting(watcher)
    late.join(30)
    ((lost,),) = outcome
    assert isinstance(lost, WrongExpectedVersion) and [b"theirs"] == [found.data for found in lost.events]
    assert [0, 1] == versions_by_position(log, "a-1")


def test_a_batch_of_losers_takes_no_transaction_id(log, session, monkeypatch):
    monkeypatch.setattr(log._signal, "reached", lambda position: None)  # a hint takes one
    log.append("a-1", [event()], NO_STREAM)
    before = session.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text").fetchall()
    (outcome,) = log.append_batch([request("a-1", event(), expected=7)])
    assert isinstance(outcome, WrongExpectedVersion)
    assert before == session.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text").fetchall()


def test_writers_that_are_never_let_in_are_told_so(log, monkeypatch):
    monkeypatch.setattr(append, "_PATIENCE", 0.05)
    tried: list[int] = []

    def race(*_: object) -> None:
        tried.append(1)
        raise LookCloser

    monkeypatch.setattr(append, "_racing", race)
    with pytest.raises(LogUnavailable, match="other writers were faster"):
        log.append_batch([request("a-1", event(), expected=0), request("a-1", event())])
    assert len(tried) > 1


@pytest.mark.parametrize("sizes", [[16 << 20], [200 << 10] * 100, [300] * 20_000], ids=["16 MB", "100 of 200 KB", "20,000 of 300 B"])
def test_a_large_append_is_one_transaction_within_20_seconds_and_comes_back_whole(log, sizes):
    new = [event(os.urandom(size)) for size in sizes]
    begun = time.monotonic()
    done = log.append("a-1", new, NO_STREAM)
    assert time.monotonic() - begun < 20
    assert [(found.event_id, found.data) for found in log.read("a-1")] == [(each.event_id, each.data) for each in new]
    assert [found.position for found in log.read_all()] == list(done.positions[0])
    assert 1 == len({position >> 20 for position in done.positions[0]})
    begun = time.monotonic()
    assert Duplicate((0,), done.positions) == log.append("a-1", new, NO_STREAM)
    assert time.monotonic() - begun < 20


@pytest.mark.parametrize("expected", [ANY, EXISTS])
def test_a_batch_over_ten_thousand_streams_wherever_they_end_is_written_within_20_seconds(log, session, expected):
    names = [f"a-{number}" for number in range(10_000)]
    assert {Appended} == {type(each) for each in log.append_batch([request(name, event(), expected=NO_STREAM) for name in names])}
    leave_room_for_few_locks(session)
    begun = time.monotonic()
    outcomes = log.append_batch([request(name, event(), expected=expected) for name in names])
    assert time.monotonic() - begun < 20
    assert {(Appended, (1,))} == {(type(each), each.first_versions) for each in outcomes}
    new = [request(f"b-{number}", event(), expected=expected) for number in range(10_000)]
    assert {WrongExpectedVersion if expected is EXISTS else Appended} == {type(each) for each in log.append_batch(new)}


def test_batches_over_thousands_of_streams_that_race_all_come_through(log):
    names = [f"a-{number}" for number in range(1_500)]
    together(*[lambda: log.append_batch([request(name, event(), expected=ANY) for name in names]) for _ in range(3)])
    assert {2} == {log.head(name) for name in names[::100]}


def test_large_and_small_requests_of_one_batch_each_get_their_outcome(log, session):
    log.append("a-1", [event()], NO_STREAM)
    same = [event(os.urandom(3 << 20)) for _ in range(2)]
    log.append("b-1", same, NO_STREAM)
    tokens = log.schedule.acquire("q", ["c-1"], "me", now=1, until=1 << 60)
    outcomes = log.append_batch(
        [
            request("a-1", event(os.urandom(5 << 20)), expected=0, wakes=[Wake("q", 3)]),
            request("b-1", *same),
            request("a-1", event(), expected=0),
            AppendRequest([StreamAppend("c-1", [event(same[0].data)], ANY)], [Fence("q", "c-1", tokens["c-1"], release=True)]),
        ]
    )
    assert [Appended, Duplicate, WrongExpectedVersion, Appended] == [type(each) for each in outcomes]
    assert [0, 1] == versions_by_position(log, "a-1")
    assert same[0].data == next(iter(log.read("c-1"))).data
    assert [(3,)] == session.execute("SELECT count(*) FROM blobs").fetchall()
    assert [("a-1", 3, None), ("c-1", None, None)] == session.execute("SELECT name, wake_at, owner FROM schedule ORDER BY 1").fetchall()


def test_a_payload_is_kept_beside_the_events_only_when_it_is_large_and_then_once(log, session):
    edge = batch.LARGEST_INLINE
    large = os.urandom(edge + 1)
    log.append("a-1", [event(os.urandom(edge)), event(large), event(large)], NO_STREAM)
    assert [(edge + 1,)] == session.execute("SELECT octet_length(data) FROM blobs").fetchall()
    assert [edge, 0, 0] == [size for (size,) in session.execute("SELECT octet_length(data) FROM events ORDER BY version")]
    assert [large, large] == [found.data for found in log.read("a-1", after=0)]


def test_more_events_than_a_transaction_has_places_for_are_refused(log, monkeypatch):
    monkeypatch.setattr(batch, "_MOST_EVENTS", 10)
    with pytest.raises(TerminalError, match=r"11 events.*fewer requests"):
        log.append("a-1", events(11), ANY)
    log.append("a-1", events(10), ANY)
    assert 9 == log.head("a-1")


def test_text_without_a_utf8_form_is_refused_and_nothing_is_kept(log):
    for name in ("bad\ud800", "bad\0"):
        with pytest.raises(TerminalError):
            log.append_batch([request("a-1", event()), request("a-1", event(type=name))])
    assert -1 == log.head("a-1")
