"""The views for people with psql: every column says what the commands say of the same log."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from intentlog.agents import facts
from intentlog.agents.app import runtime_codec
from intentlog.agents.operating import readmit, standing
from intentlog.agents.signing import KeyRing
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.postgres.schema import MIGRATIONS
from intentlog.eventlog.postgres.statements import statement
from intentlog.eventlog.versions import ANY
from tests.eventlog.postgres.shop import done, make_shop, run_shop, send, told
from tests.services.postgres import Databases

PAGE = Path(__file__).parents[3] / "docs" / "postgresql.md"
COLUMNS = {
    "history": "position recorded_at stream agent key version type schema fields id correlation causation event_id stream_id",
    "runs": "agent key state events began_at last_type last_at age stream stream_id",
    "waiting": "agent key state seq wait kind mode since deadline age stream",
    "intents": (
        "agent key intent_id tool args status attempts staged_at attempted_at settled_at expires_at retry_at age value failure settled_by reason "
        "business_key seq step stream"
    ),
    "dead_letters": "agent key kind seq input_id attempts since age error message holds stream version position",
    "lag": "name position horizon events more oldest_at age parked live",
}


@pytest.fixture(scope="module")
def url(postgres_server: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A log in which something of everything has happened."""
    made = postgres_server.create_database()
    with pytest.MonkeyPatch.context() as patch:
        make_shop(tmp_path_factory.mktemp("shop"), patch)
        run_shop(made)
        yield made
    postgres_server.drop_database(made)


def rows(url: str, view: str, order: str = "stream") -> list[dict[str, Any]]:
    """A view as somebody without a search path of ours sees it."""
    with psycopg.connect(url, autocommit=True, row_factory=dict_row) as connection:
        connection.execute("SET search_path = ''")
        connection.execute("SET timezone = 'UTC'")
        return connection.execute(f"SELECT * FROM intentlog.{view} ORDER BY {order}".encode()).fetchall()


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def moment(micros: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)


def of_type(url: str, *types: str) -> list[dict[str, Any]]:
    return told("tail", "--after", "0", "--log", url, *(word for each in types for word in ("--type", each)))


def fresh(age: timedelta, since: datetime) -> bool:
    """Whether an age was taken a moment ago."""
    return timedelta() <= datetime.now(UTC) - since - age < timedelta(seconds=60)


def test_every_view_and_column_is_one_that_the_page_tells(url):
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT table_name, string_agg(column_name, ' ' ORDER BY ordinal_position) FROM information_schema.columns "
            "WHERE table_schema = 'intentlog' AND table_name IN (SELECT viewname FROM pg_views WHERE schemaname = 'intentlog') GROUP BY 1"
        ).fetchall()
    assert COLUMNS == dict(found)
    told_of = {line.split("`")[1]: set(line.split("`")[1::2]) for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `")}
    assert {} == {view: missing for view, columns in COLUMNS.items() if (missing := set(columns.split()) - told_of[view])}


def test_history_is_what_tail_prints(url):
    events, seen = of_type(url), rows(url, "history", "position")
    assert len(events) == len(seen) > 30
    for event, row in zip(events, seen, strict=True):
        names = ("position", "stream", "version", "type", "schema", "fields")
        assert {name: event[name] for name in names} == {name: row[name] for name in names}
        assert (event["stream"], at(event["recorded_at"])) == (f"{row['agent']}-{row['key']}", row["recorded_at"])
        assert [event[name] for name in ("id", "correlation", "causation")] == [row[name] and str(row[name]) for name in ("id", "correlation", "causation")]
        assert row["id"].bytes == row["event_id"]
    assert len({row["stream"] for row in seen}) == len({row["stream_id"] for row in seen})


def test_runs_are_the_streams_and_their_states(url):
    listed, seen = told("streams", "--log", url), rows(url, "runs")
    assert {"completed", "parked", "suspended", "due", "queued"} <= {each["state"] for each in listed}
    assert [(e["stream"], e["events"], e["state"], e["last_type"], at(e["last_at"])) for e in listed] == [
        (row["stream"], row["events"], row["state"], row["last_type"], row["last_at"]) for row in seen
    ]
    began = {event["stream"]: at(event["recorded_at"]) for event in of_type(url) if event["version"] == 0}
    assert began == {row["stream"]: row["began_at"] for row in seen}
    assert all(fresh(row["age"], row["last_at"]) for row in seen)
    assert [row["stream"] for row in seen] == [f"{row['agent']}-{row['key']}" for row in seen]
    assert len(seen) == len({row["stream_id"] for row in seen})


def test_waiting_is_what_the_suspended_ones_wait_for(url):
    states = {each["stream"]: each["state"] for each in told("streams", "--log", url)}
    last = {event["stream"]: event for event in of_type(url, "activation.suspended")}
    expected = [
        (stream, wait, states[stream], fields["seq"], fields["mode"], at(last[stream]["recorded_at"]), moment(fields["deadline"]))
        for stream in sorted(last)
        if states[stream] in ("suspended", "due")
        for fields in (last[stream]["fields"],)
        for wait in fields["waits"]
    ]
    seen = rows(url, "waiting", "stream, wait")
    names = ("stream", "wait", "state", "seq", "mode", "since", "deadline")
    assert expected == [tuple(row[name] for name in names) for row in seen]
    assert {"desk-answered": "signal", "desk-late": "approval", "desk-open": "approval", "orders-ann": "intent"} == {row["stream"]: row["kind"] for row in seen}
    assert [(each["stream"], each["id"]) for each in told("approvals", "list", "--log", url)] == [
        (row["stream"], row["wait"]) for row in seen if row["kind"] == "approval" and row["state"] == "suspended"
    ]
    assert all(fresh(row["age"], row["since"]) for row in seen)
    assert [row["stream"] for row in seen] == [f"{row['agent']}-{row['key']}" for row in seen]


def test_intents_have_their_latest_status(url):
    staged = of_type(url, "intent.staged")
    settled = {event["fields"]["intent_id"]: event for event in of_type(url, "intent.settled")}
    attempted = {event["fields"]["intent_id"]: event for event in of_type(url, "intent.attempted")}
    seen = {row["intent_id"]: row for row in rows(url, "intents", "staged_at")}
    assert len(staged) == len(seen) == 3
    for event in staged:
        fields, row = event["fields"], seen[event["fields"]["intent_id"]]
        end, begun = settled.get(fields["intent_id"]), attempted.get(fields["intent_id"])
        outcome = end["fields"] if end else {}
        assert (fields["tool"], fields["args"], fields["seq"], fields["step"], event["stream"]) == tuple(
            row[n] for n in ("tool", "args", "seq", "step", "stream")
        )
        assert (at(event["recorded_at"]), moment(fields["expires_at"]), None) == (row["staged_at"], row["expires_at"], row["business_key"])
        assert (at(end["recorded_at"]) if end else None, at(begun["recorded_at"]) if begun else None) == (row["settled_at"], row["attempted_at"])
        for name in ("status", "attempts", "settled_by", "reason", "value", "failure"):
            assert outcome.get(name, {"status": "STAGED", "attempts": 0}.get(name)) == row[name], name
        assert row["age"] == row["settled_at"] - row["staged_at"] if end else fresh(row["age"], row["staged_at"])
        assert event["stream"] == f"{row['agent']}-{row['key']}"
    listed = sorted((each["stream"], each["status"], each["attempts"]) for each in told("intents", "list", "--all", "--log", url))
    assert listed == sorted((row["stream"], row["status"], row["attempts"]) for row in seen.values())
    assert ["ERROR", "OK", "STAGED"] == sorted(row["status"] for row in seen.values())


def test_an_attempt_that_has_no_outcome_yet_is_told(postgres_url, tmp_path, monkeypatch):
    make_shop(tmp_path, monkeypatch)
    done("init", "--log", postgres_url)
    send(postgres_url, "orders", "ann", "book")
    done("worker", "shop:app", "--until-idle", "--log", postgres_url)
    (row,) = rows(postgres_url, "intents")
    log, codec = open_log(postgres_url), runtime_codec()
    for attempt in (1, 2):
        fact = facts.IntentAttempted(row["intent_id"], attempt, "me", 1)
        log.append(row["stream"], [codec.stage(fact, event_id=uuid.uuid4().bytes)], ANY)
    log.close()
    (row,) = rows(postgres_url, "intents")
    last = of_type(postgres_url, "intent.attempted")[-1]
    assert ("ATTEMPTED", 2, at(last["recorded_at"]), None, None) == tuple(row[n] for n in ("status", "attempts", "attempted_at", "settled_at", "retry_at"))
    log = open_log(postgres_url)
    later = facts.IntentPostponed(row["intent_id"], 2, facts.Failure("Busy", "not now"), 1_800_000_000_000_000, "me")
    log.append(row["stream"], [codec.stage(later, event_id=uuid.uuid4().bytes)], ANY)
    log.close()
    (row,) = rows(postgres_url, "intents")
    (listed,) = told("intents", "list", "--log", postgres_url)
    assert ("POSTPONED", 2, moment(1_800_000_000_000_000)) == (row["status"], row["attempts"], row["retry_at"])
    assert (listed["status"], listed["attempts"]) == (row["status"], row["attempts"])


def test_dead_letters_are_those_that_the_command_lists(url):
    listed, seen = told("dead-letters", "list", "--log", url), rows(url, "dead_letters", "position")
    assert {"orders-cid", "orders-dan"} == {each["stream"] for each in listed}
    assert [
        (
            e["stream"],
            e["kind"],
            e["seq"],
            e["id"],
            e["attempts"],
            e["holds"],
            at(e["at"]),
            e["version"],
            e["position"],
            e["failure"]["type"],
            e["failure"]["message"],
        )
        for e in listed
    ] == [tuple(row[n] for n in ("stream", "kind", "seq", "input_id", "attempts", "holds", "since", "version", "position", "error", "message")) for row in seen]
    assert all(fresh(row["age"], row["since"]) for row in seen)
    assert [row["stream"] for row in seen] == [f"{row['agent']}-{row['key']}" for row in seen]


def test_a_blocked_stream_is_a_dead_letter_until_a_worker_has_taken_it_up(postgres_url):
    log, codec = open_log(postgres_url), runtime_codec()

    def append(*written: object) -> None:
        log.append("orders-bob", [codec.stage(fact, event_id=uuid.uuid4().bytes) for fact in written], ANY)

    append(facts.InputReceived("one", "", 0, "json", b"1"), facts.StreamBlocked(0, facts.Failure("Undecodable", "what is this", "here")))
    (listed,) = told("dead-letters", "list", "--log", postgres_url)
    (row,) = rows(postgres_url, "dead_letters")
    assert ("blocked", "orders-bob", 1, "Undecodable", "what is this", None, None, None, False) == tuple(
        row[name] for name in ("kind", "stream", "version", "error", "message", "seq", "input_id", "attempts", "holds")
    )
    assert (listed["position"], at(listed["at"])) == (row["position"], row["since"])
    append(facts.SignalReceived("s", "hello"))
    assert 1 == len(rows(postgres_url, "dead_letters"))
    append(facts.TimerFired(0, "", 1))
    assert [] == rows(postgres_url, "dead_letters") == told("dead-letters", "list", "--log", postgres_url)
    log.close()


def test_an_intent_is_distrusted_until_somebody_vouches_for_it(postgres_url):
    log, codec = open_log(postgres_url), runtime_codec()
    staged = codec.stage(facts.IntentStaged("x", 0, 0, "pay", {}, b"d", log.clock() + 3_600_000_000), event_id=uuid.uuid4().bytes)

    def status() -> tuple[str, str]:
        (row,) = rows(postgres_url, "intents")
        return row["status"], standing(log, "x").status

    log.append("orders-bob", [staged], ANY)
    distrusted = facts.IntentDistrusted("x", "it is not signed", "e", staged.schema, staged.data)
    log.append("orders-bob", [codec.stage(distrusted, event_id=uuid.uuid4().bytes)], ANY)
    assert ("DISTRUSTED", "DISTRUSTED") == status()
    readmit(log, "x", KeyRing({"may": bytes(32)}), by="ada", reason="fine", patience=20.0)
    assert ("STAGED", "STAGED") == status()
    log.close()


def test_the_views_know_every_type_that_no_worker_writes():
    *_, known = re.findall(r"<> ALL \(ARRAY\[(.*?)\]", "".join(map(statement, MIGRATIONS)), re.DOTALL)  # as the last migration says it
    assert facts.ARRIVALS - {"stream.blocked"} <= set(re.findall(r"'([a-z_.]+)'", known))


def test_lag_is_what_the_command_counts(url):
    log = open_log(url)
    positions = [event.position for event in log.read_all()]
    log.checkpoints.save("open-orders@v1", positions[9])
    log.checkpoints.save("open-orders@v2", positions[-1])
    log.views.point("open-orders", "open-orders@v1", expected=None)
    counted = {each["view"]: each for each in told("projections", "lag", "--log", url)}
    seen = {row["name"]: row for row in rows(url, "lag", "name") if row["name"] in counted}
    assert {"open-orders@v1", "open-orders@v2"} == set(seen)
    for view, row in seen.items():
        names = ("position", "events", "more", "parked", "live")
        assert {name: counted[view][name] for name in names} == {name: row[name] for name in names}
        assert row["horizon"] > positions[-1]
    late, up = seen["open-orders@v1"], seen["open-orders@v2"]
    assert (None, None, moment(next(iter(log.read_all(after=positions[9]))).recorded_at)) == (up["age"], up["oldest_at"], late["oldest_at"])
    assert abs(late["age"] - timedelta(seconds=counted["open-orders@v1"]["age_seconds"])) < timedelta(seconds=60)
    assert any(row["name"].startswith("effector") for row in rows(url, "lag", "name"))
    log.close()


def test_payloads_that_lie_in_blobs_are_read(postgres_url):
    log, codec = open_log(postgres_url), runtime_codec()
    log.append("orders-bob", [codec.stage(facts.SignalReceived("s", "long", "x" * 100_000), event_id=uuid.uuid4().bytes)], ANY)
    log.close()
    (row,) = rows(postgres_url, "history")
    assert ("long", "x" * 100_000) == (row["fields"]["name"], row["fields"]["payload"])


def test_what_a_hand_left_in_a_table_spoils_no_view(url):
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE intentlog.events SET data = 'no payload', recorded_at = 9223372036854775807, event_id = 'x' || event_id, correlation = 'x'")
        for view in COLUMNS:
            connection.execute(f"SELECT * FROM intentlog.{view}".encode()).fetchall()
        connection.rollback()


@pytest.mark.parametrize("count", [63, 64, 65])
def test_states_of_long_streams_are_told_from_their_ends_as_the_command_does(postgres_url, count):
    log, codec = open_log(postgres_url), runtime_codec()
    received = [codec.stage(facts.InputReceived(f"i{n}", "", 0, "json", b"1"), event_id=uuid.uuid4().bytes) for n in range(2)]
    remarks = [codec.stage(facts.ApprovalDecided("a", b"", True, "ada"), event_id=uuid.uuid4().bytes) for _ in range(count - 3)]
    over = codec.stage(facts.Completed(0, 1, 1, 0, None), event_id=uuid.uuid4().bytes)
    log.append("orders-bob", [*received, *remarks, over], ANY)
    log.append("orders-eve", [*received, over, *remarks], ANY)
    log.close()
    assert [(each["stream"], each["state"]) for each in told("streams", "--log", postgres_url)] == [
        (r["stream"], r["state"]) for r in rows(postgres_url, "runs")
    ]
