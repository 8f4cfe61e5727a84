"""Reading in chunks: all of it, in order, and in bounded memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from intentlog.eventlog.events import NewEvent
from intentlog.eventlog.ids import id_maker
from intentlog.eventlog.log import AppendRequest, EventLog, StreamAppend
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.versions import ANY, NO_STREAM
from tests.stores import Sqlite

new_id = id_maker()


def event(content: bytes = b"{}", kind: str = "thing.happened") -> NewEvent:
    return NewEvent(new_id(), kind, 1, content)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EventLog]:
    with closing(open_log(f"sqlite:///{tmp_path}/log.db?synchronous=off")) as opened:
        yield opened


@pytest.mark.parametrize("count", [1, 15, 16, 17, 2_047, 2_048, 2_049, 5_000])
def test_a_stream_of_any_length_comes_whole_in_both_directions(log: EventLog, count: int) -> None:
    log.append("a-1", [event() for _ in range(count)], NO_STREAM)
    versions = list(range(count))
    assert [each.version for each in log.read("a-1")] == versions
    assert [each.version for each in log.read("a-1", backwards=True)] == versions[::-1]
    assert [row[0] for chunk in log.rows("a-1") for row in chunk] == versions
    assert [row[0] for row in log.rows_of({"a-1": -1})["a-1"]] == versions
    assert [each.version for each in log.read_all()] == versions
    for limit in (0, 1, 16, 2_048, 3_000):
        assert [each.version for each in log.read("a-1", limit=limit)] == versions[:limit]
        assert [each.version for each in log.read("a-1", limit=limit, backwards=True)] == versions[::-1][:limit]
        assert [each.version for each in log.read_all(limit=limit)] == versions[:limit]


def test_a_read_covers_what_was_there_when_it_was_asked_for(log: EventLog) -> None:
    log.append("a-1", [event() for _ in range(3_000)], NO_STREAM)
    reads = [log.read("a-1"), log.read("a-1", backwards=True), log.read_all(), (row for chunk in log.rows("a-1") for row in chunk)]
    log.append("a-1", [event()], 2_999)
    assert [sum(1 for _ in read) for read in reads] == [3_000] * 4


def test_chunks_of_large_events_hold_few_of_them(log: EventLog) -> None:
    log.append("a-1", [event(bytes(1 << 20)) for _ in range(64)], NO_STREAM)
    sizes = [len(chunk) for chunk in log.rows("a-1")]
    assert sum(sizes) == 64
    assert max(sizes) <= 16


def test_a_rare_type_is_found_across_many_windows(log: EventLog) -> None:
    for _ in range(6):
        log.append("a-1", [event() for _ in range(9_000)], ANY)
        log.append("b-1", [event(kind="rare.thing")], ANY)
    assert [each.position for each in log.read_all(types=["rare.thing"])] == [9_001 * each for each in range(1, 7)]
    assert [each.position for each in log.read_all(categories=["b"], after=9_001, limit=2)] == [18_002, 27_003]
    assert list(log.read_all(types=["rare.thing"], categories=["a"])) == []


def test_tails_of_many_streams_come_with_one_call(log: EventLog) -> None:
    names = [f"a-{each}" for each in range(600)]
    log.append_batch([AppendRequest([StreamAppend(name, [event(name.encode()) for _ in range(3)], NO_STREAM)]) for name in names])
    found = log.rows_of({**dict.fromkeys(names, 0), "a-none": -1, "a-\ud800": -1})
    assert found["a-none"] == found["a-\ud800"] == []
    assert [[(row[0], row[3]) for row in found[name]] for name in names] == [[(1, name.encode()), (2, name.encode())] for name in names]


def test_more_streams_than_a_page_are_listed_once_and_in_order(log: EventLog) -> None:
    names = sorted(f"a-{each}" for each in range(2_500))
    log.append_batch([AppendRequest([StreamAppend(name, [event()], NO_STREAM)]) for name in names])
    assert list(log.streams("a-")) == names


LONG_READ = """
import resource, sys
from intentlog.eventlog.opening import open_log
log = open_log(sys.argv[1], create=False)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
counts = [sum(1 for _ in log.read_all()), sum(1 for _ in log.read("a-1")), sum(len(chunk) for chunk in log.rows("a-1"))]
counts.append(sum(1 for _ in log.read("a-1", backwards=True)))
log.close()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, *counts)
"""


def test_two_hundred_thousand_events_are_read_in_bounded_memory(log: EventLog) -> None:
    for _ in range(20):
        log.append("a-1", [event(bytes(300)) for _ in range(10_000)], ANY)
    said = subprocess.run([sys.executable, "-c", LONG_READ, log.url], capture_output=True, text=True, check=True)
    grown, *counts = map(int, said.stdout.split())
    assert counts == [200_000] * 4
    assert grown < 30_000, f"reading 200,000 events of 300 bytes took {grown} KiB"


def test_the_first_of_a_tail_lie_on_both_sides_of_a_hole(log: EventLog) -> None:
    """Else a stream with a hole longer than what is asked for would seem to end before it."""
    log.append("a-1", [event() for _ in range(20)], NO_STREAM)
    Sqlite().edit(log.url, "DELETE FROM events WHERE version BETWEEN 2 AND 15")
    assert [row[0] for row in log.rows_of({"a-1": -1}, most=4)["a-1"]] == [0, 1, 16, 17]
    assert [row[0] for row in log.rows_of({"a-1": 1}, most=4)["a-1"]] == [16, 17, 18, 19]
