"""init and tail."""

from __future__ import annotations

import json
import signal
import sqlite3

import pytest

from tests.cli.conftest import begin, call


def test_init_makes_a_log_and_says_so_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, second = call("init"), call("init", "--json")
    assert (0, True) == (first.exit_code, "made" in first.stdout)
    assert {"url": "sqlite:///eventlog.db", "made": False} == json.loads(second.stdout)


def test_init_leaves_a_database_of_something_else_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with sqlite3.connect("other.db") as other:
        other.execute("CREATE TABLE theirs (x)")
    other.close()
    before = (tmp_path / "other.db").read_bytes()
    done = call("init", "--log", "sqlite:///other.db")
    assert (3, True, before) == (done.exit_code, "something else" in done.stderr, (tmp_path / "other.db").read_bytes())


def fill(count: int) -> None:
    for number in range(count):
        call("send", "notes" if number % 2 else "orders", f"k{number}", json.dumps(f"text {number}"), "--id", f"i{number}")


def test_tail_prints_the_last_events_oldest_first(shop):
    fill(30)
    lines = call("tail", "-n", "3").stdout.splitlines()
    assert ["notes-k27", "orders-k28", "notes-k29"] == [line.split()[2] for line in lines]
    assert 20 == len(call("tail").stdout.splitlines())
    assert "" == call("tail", "-n", "0").stdout


def test_tail_filters_by_category_type_and_position(shop):
    fill(6)
    assert ["notes-k1", "notes-k3", "notes-k5"] == [json.loads(line)["stream"] for line in call("tail", "--category", "notes", "--json").stdout.splitlines()]
    assert "" == call("tail", "--type", "intent.staged").stdout
    positions = [json.loads(line)["position"] for line in call("tail", "--json").stdout.splitlines()]
    assert positions[4:] == [json.loads(line)["position"] for line in call("tail", "--json", "--after", str(positions[3])).stdout.splitlines()]
    assert positions[-1:] == [json.loads(line)["position"] for line in call("tail", "--json", "--after", str(positions[3]), "-n", "1").stdout.splitlines()]


def test_tail_gives_every_field_of_an_event_as_json(shop):
    call("send", "notes", "k", '"x"', "--id", "one")
    event = json.loads(call("tail", "--json").stdout)
    assert {"position", "stream", "version", "id", "type", "schema", "recorded_at", "correlation", "causation", "fields"} == set(event)
    assert ("input.received", "one", {"$bytes": "Ingi"}) == (event["type"], event["fields"]["input_id"], event["fields"]["payload"])


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_tail_follows_until_it_is_stopped(shop, number, code):
    call("send", "notes", "k0", '"x"')
    with begin("tail", "-f") as following:
        assert following.stdout is not None and following.stderr is not None
        assert "notes-k0" in following.stdout.readline()
        call("send", "notes", "k1", '"x"')
        assert "notes-k1" in following.stdout.readline()
        following.send_signal(number)
        assert (code, "") == (following.wait(20), following.stderr.read())


def test_tail_writes_nothing(shop):
    call("send", "notes", "k0", '"x"')
    with sqlite3.connect("eventlog.db") as log:
        log.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    log.close()
    before = (shop / "eventlog.db").read_bytes()
    for words in (("tail",), ("streams",), ("dead-letters", "list"), ("tail", "--json")):
        assert 0 == call(*words).exit_code
    assert before == (shop / "eventlog.db").read_bytes()
