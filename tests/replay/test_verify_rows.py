"""What no reader of streams comes across is found all the same, and the chain has it in: rows beside every stream, dropped indexes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from intentlog.eventlog.events import NewEvent
from intentlog.eventlog.versions import ANY
from intentlog.replay.chaining import chain_of_unseen
from intentlog.replay.verify import FaultKind, StreamReport, verify_all
from tests.cli.conftest import call
from tests.replay.world import STREAM, RefundAsked, World, app_of, paying
from tests.stores import Store

APP = app_of(paying)
OTHER = b"another event id"
#: Puts one more row there, like that of version 1, but for the stream, the version and the id of the event.
PUT_IN = (
    "INSERT INTO events (position, stream_id, version, event_id, type, schema, recorded_at, data) "
    "SELECT (SELECT max(position) FROM events) + 1, {stream}, {version}, ?, type, schema, recorded_at, data FROM events WHERE version = 1"
)
#: Statements that drop an index, by store.
DROPPED = {
    "sqlite": ["DROP INDEX events_by_version", "DROP INDEX events_by_id", "DROP INDEX schedule_by_wake"],
    "postgresql": [
        "ALTER TABLE events DROP CONSTRAINT events_by_version",
        "ALTER TABLE events DROP CONSTRAINT events_by_id",
        "DROP INDEX schedule_by_wake",
    ],
}


@pytest.fixture
def kept(shared_url: str) -> Iterator[World]:
    world = World(shared_url)
    world.story(APP, RefundAsked("o-1", 4200))
    yield world
    world.log.close()


@pytest.fixture
def put_in(kept: World, shared_store: Store, shared_url: str) -> Any:
    def run(stream: str = "stream_id", version: int = -7) -> None:
        assert 1 == shared_store.edit(shared_url, PUT_IN.format(stream=stream, version=version), OTHER)

    return run


def by_stream(world: World, streams: list[str] | None = None) -> dict[str, StreamReport]:
    return {report.stream: report for report in verify_all(world.log, APP, streams)}


def test_a_row_below_version_0_is_a_fault_of_its_stream(kept, put_in):
    put_in()
    fault = by_stream(kept)[STREAM].faults[FaultKind.UNSEEN]
    assert (STREAM, -7, 1) == (fault.stream, fault.version, fault.count)
    assert f"has version -7 of the stream {STREAM}" in fault.text
    assert {FaultKind.UNSEEN} == set(by_stream(kept, [STREAM])[STREAM].faults)


def test_a_row_of_a_stream_without_a_name_is_a_fault_of_the_log(kept, put_in):
    put_in("777", 0)
    reports = by_stream(kept)
    assert ({"", STREAM}, True) == (set(reports), reports[STREAM].sound)
    assert "of the stream (777)" in reports[""].faults[FaultKind.UNSEEN].text


def test_a_stream_with_nothing_but_such_a_row_is_not_said_to_be_deleted(kept, shared_store, shared_url):
    shared_store.edit(shared_url, "DELETE FROM events WHERE version > 0")
    shared_store.edit(shared_url, "UPDATE events SET version = -7")
    assert {FaultKind.UNSEEN} == {kind for kind in by_stream(kept)[STREAM].faults if kind in (FaultKind.UNSEEN, FaultKind.EMPTY)}


def test_all_such_rows_are_counted_and_the_first_is_told(kept, put_in, shared_store, shared_url):
    put_in(version=-7)
    shared_store.edit(shared_url, PUT_IN.format(stream="stream_id", version=-8), b"and another one!")
    fault = by_stream(kept)[STREAM].faults[FaultKind.UNSEEN]
    assert (-7, 2) == (fault.version, fault.count)


@pytest.mark.parametrize(("stream", "version"), [("stream_id", -7), ("777", 0)])
def test_the_chain_has_such_a_row_in_it(kept, put_in, shared_url, tmp_path, stream, version):
    monday, tuesday = str(tmp_path / "monday"), str(tmp_path / "tuesday")
    before = call("verify", "--log", shared_url, "--chain-out", monday)
    assert (0, -1) == (before.exit_code, chain_of_unseen(kept.log).version)
    put_in(stream, version)
    after = call("verify", "--log", shared_url, "--chain-out", tuesday)
    assert 1 == after.exit_code
    assert before.stdout.splitlines()[-1] != after.stdout.splitlines()[-1]
    compared = call("verify", "--log", shared_url, "--chain-from", monday)
    assert "1 rows belong to no stream for its readers, and 0 did then" in compared.stdout.replace("\n  ", " ")
    same = call("verify", "--log", shared_url, "--chain-from", tuesday)
    assert (1, False) == (same.exit_code, FaultKind.CHAIN.value in same.stdout)


def test_a_row_that_was_in_the_chain_and_is_gone_is_found(kept, put_in, shared_store, shared_url, tmp_path):
    put_in()
    file = str(tmp_path / "monday")
    call("verify", "--log", shared_url, "--chain-out", file)
    shared_store.edit(shared_url, "DELETE FROM events WHERE version = -7")
    compared = call("verify", "--log", shared_url, "--chain-from", file, "--json")
    assert ["chain"] == [fault["kind"] for line in compared.stdout.splitlines() for fault in json.loads(line).get("faults", [])]


@pytest.mark.parametrize("which", range(3))
def test_a_dropped_index_is_a_fault_and_init_makes_it_anew(kept, shared_store, shared_url, which):
    shared_store.edit(shared_url, DROPPED[shared_store.name][which])
    found = call("verify", "--log", shared_url)
    assert (1, True) == (found.exit_code, "an index is missing" in found.stdout)
    made = [json.loads(call("init", "--log", shared_url, "--json").stdout)["made"] for _ in range(2)]
    assert [True, False] == made
    assert 0 == call("verify", "--log", shared_url).exit_code


def test_a_version_that_is_there_twice_is_no_hole_and_stands_in_the_indexs_way(kept, put_in, shared_store, shared_url):
    shared_store.edit(shared_url, DROPPED[shared_store.name][0])
    put_in(version=4)
    reports = by_stream(kept)
    assert {FaultKind.INDEX} == set(reports[""].faults)
    fault = reports[STREAM].faults[FaultKind.TWICE]
    assert (4, 1, False) == (fault.version, fault.count, FaultKind.HOLE in reports[STREAM].faults)
    assert "version 4 is there twice, at positions" in fault.text
    refused = call("init", "--log", shared_url)
    assert (3, True) == (refused.exit_code, f"version 4 of {STREAM} at positions" in refused.stderr), refused.output
    shared_store.edit(shared_url, "DELETE FROM events WHERE event_id = ?", OTHER)
    assert (0, 0) == (call("init", "--log", shared_url).exit_code, call("verify", "--log", shared_url).exit_code)


def test_an_event_id_that_is_there_twice_is_a_fault_of_the_second_and_stands_in_the_indexs_way(kept, shared_store, shared_url):
    shared_store.edit(shared_url, DROPPED[shared_store.name][1])
    taken = next(kept.log.read(STREAM, after=2, limit=1))
    shared_store.edit(shared_url, "UPDATE events SET event_id = ? WHERE version IN (5, 7)", taken.event_id)
    report = by_stream(kept)[STREAM]
    fault = report.faults[FaultKind.ID_TWICE]
    assert (5, 2, False) == (fault.version, fault.count, FaultKind.TWICE in report.faults)
    assert f"event id {taken.id} is there already, at position {taken.position}, and again at" in fault.text
    refused = call("init", "--log", shared_url)
    shared_store.edit(shared_url, "DELETE FROM events WHERE version IN (5, 7)")
    assert 0 == call("init", "--log", shared_url).exit_code
    assert (3, True) == (refused.exit_code, f"event {taken.event_id.hex()} of {STREAM} at positions" in refused.stderr), refused.output


def test_the_same_event_id_in_two_streams_is_no_fault(kept, shared_store, shared_url):
    shared_store.edit(shared_url, DROPPED[shared_store.name][1])
    first = next(kept.log.read(STREAM, limit=1))
    kept.log.append("notes-1", [NewEvent(first.event_id, "note", 1, b"\x80")], ANY)
    assert {""} == {stream for stream, report in by_stream(kept).items() if not report.sound}
    assert 0 == call("init", "--log", shared_url).exit_code
