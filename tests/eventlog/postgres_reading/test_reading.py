"""Reading in chunks: all of it, in order, in bounded memory, with payloads from beside the table; rare events without one long statement."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from intentlog.eventlog.errors import StoreSchemaError
from intentlog.eventlog.log import AppendRequest, StreamAppend
from intentlog.eventlog.postgres import PostgresLog
from intentlog.eventlog.postgres.statements import statement
from intentlog.eventlog.versions import ANY, NO_STREAM
from tests.eventlog.postgres_reading.helping import Session, event


@pytest.mark.parametrize("count", [1, 127, 128, 129, 1_151, 1_152, 1_153, 5_000])
def test_a_stream_of_any_length_comes_whole_in_both_directions(log: PostgresLog, count: int) -> None:
    log.append("a-1", [event() for _ in range(count)], NO_STREAM)
    versions = list(range(count))
    assert [each.version for each in log.read("a-1")] == versions
    assert [each.version for each in log.read("a-1", backwards=True)] == versions[::-1]
    assert [row[0] for chunk in log.rows("a-1") for row in chunk] == versions
    assert [row[0] for row in log.rows_of({"a-1": -1})["a-1"]] == versions
    assert [each.version for each in log.read_all()] == versions
    for limit in (0, 1, 128, 1_152, 3_000):
        assert [each.version for each in log.read("a-1", limit=limit)] == versions[:limit]
        assert [each.version for each in log.read("a-1", limit=limit, backwards=True)] == versions[::-1][:limit]
        assert [each.version for each in log.read_all(limit=limit)] == versions[:limit]


def test_a_read_covers_what_was_there_when_it_was_asked_for(log: PostgresLog) -> None:
    log.append("a-1", [event() for _ in range(3_000)], NO_STREAM)
    reads = [log.read("a-1"), log.read("a-1", backwards=True), log.read_all(), (row for chunk in log.rows("a-1") for row in chunk)]
    log.append("a-1", [event()], 2_999)
    assert [sum(1 for _ in read) for read in reads] == [3_000] * 4


@pytest.mark.parametrize("size", [30_000, 1 << 20])
def test_chunks_of_large_events_hold_few_of_them(log: PostgresLog, size: int) -> None:
    log.append("a-1", [event(number.to_bytes(4, "big") + bytes(size)) for number in range(300)][: (40 << 20) // size], NO_STREAM)
    chunks = list(log.rows("a-1"))
    contents = [row[3] for chunk in chunks for row in chunk]
    assert contents == [number.to_bytes(4, "big") + bytes(size) for number in range(len(contents))]
    assert max(sum(len(row[3]) for row in chunk) for chunk in chunks) <= 5 << 20


def test_payloads_kept_once_beside_the_table_come_back_in_every_way_of_reading(log: PostgresLog, psql: Session) -> None:
    big, bigger = b"b" * 100_000, b"c" * 3_000_000
    contents = [b"small", big, b"", bigger, big, b"{}", bigger, bigger, big]
    log.append("a-1", [event(content) for content in contents], NO_STREAM)
    assert psql.execute("SELECT count(*) FROM blobs").fetchone() == (2,)
    assert [each.data for each in log.read("a-1")] == contents
    assert [each.data for each in log.read("a-1", backwards=True)] == contents[::-1]
    assert [each.data for each in log.read("a-1", after=2, limit=3)] == contents[3:6]
    assert [row[3] for chunk in log.rows("a-1") for row in chunk] == contents
    assert [row[3] for row in log.rows_of({"a-1": 0, "a-2": -1})["a-1"]] == contents[1:]
    assert [each.data for each in log.read_all()] == contents
    assert [each.data for each in log.read_all(categories=["a"], types=["thing.happened"], limit=4)] == contents[:4]


def test_a_payload_that_somebody_deleted_is_an_error_and_not_an_empty_one(log: PostgresLog, psql: Session) -> None:
    log.append("a-1", [event(b"small"), event(bytes(100_000))], NO_STREAM)
    psql.execute("DELETE FROM blobs")
    reads: list[Callable[[], Any]] = [
        lambda: list(log.read("a-1")),
        lambda: list(log.rows("a-1")),
        lambda: log.rows_of({"a-1": -1}),
        lambda: list(log.read_all()),
    ]
    for read in reads:
        with pytest.raises(StoreSchemaError, match="payload with SHA-256"):
            read()
    assert [each.data for each in log.read("a-1", payloads=False)] == [b"", b""]


def counted(log: PostgresLog, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each statement of the reader has been run."""
    counts: Counter[str] = Counter()
    rows = log._database.rows

    def count(sql: str, parameters: Sequence[Any] = (), **rest: Any) -> Any:
        counts[sql] += 1
        return rows(sql, parameters, **rest)

    monkeypatch.setattr(log._database, "rows", count)
    return counts


def test_payloads_are_not_asked_for_when_nobody_wants_them(log: PostgresLog, monkeypatch: pytest.MonkeyPatch) -> None:
    log.append("a-1", [event(bytes(100_000)), event(b"{}")], NO_STREAM)
    counts = counted(log, monkeypatch)
    assert [each.data for each in log.read("a-1", payloads=False)] == [b"", b""]
    assert [each.data for each in log.read_all(payloads=False)] == [b"", b""]
    assert all("blob" not in sql for sql in counts)
    assert [len(each.data) for each in log.read("a-1")] == [100_000, 2]
    assert counts[statement("read_blobs")] == 1


def test_a_rare_type_is_found_across_many_windows_and_no_statement_looks_at_more_than_one(log: PostgresLog, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(6):
        log.append("a-1", [event() for _ in range(9_000)], ANY)
        log.append("b-1", [event(kind="rare.thing")], ANY)
    rare = [each.position for each in log.read("b-1")]
    counts = counted(log, monkeypatch)
    assert [each.position for each in log.read_all(types=["rare.thing"])] == rare
    beginning = statement("read_window").partition(":filters")[0]
    windows = sum(count for sql, count in counts.items() if sql.startswith(beginning))
    assert (windows, sum(counts.values())) == (3, 4), "54,006 events in windows of 20,000, and where the log ends"
    assert [each.position for each in log.read_all(categories=["b"], after=rare[0], limit=2)] == rare[1:3]
    assert list(log.read_all(types=["rare.thing"], categories=["a"])) == []
    assert sum(1 for _ in log.read_all(types=["thing.happened"])) == 54_000


def test_tails_of_many_streams_come_with_one_call(log: PostgresLog) -> None:
    names = [f"a-{each}" for each in range(600)]
    log.append_batch([AppendRequest([StreamAppend(name, [event(name.encode()) for _ in range(3)], NO_STREAM)]) for name in names])
    found = log.rows_of({**dict.fromkeys(names, 0), "a-none": -1, "a-\ud800": -1, "a-\0": -1})
    assert found["a-none"] == found["a-\ud800"] == found["a-\0"] == []
    assert [[(row[0], row[3]) for row in found[name]] for name in names] == [[(1, name.encode()), (2, name.encode())] for name in names]


def test_more_streams_than_a_page_are_listed_once_and_in_order(log: PostgresLog) -> None:
    names = sorted(f"a-{each}" for each in range(2_500))
    log.append_batch([AppendRequest([StreamAppend(name, [event()], NO_STREAM)]) for name in names])
    assert list(log.streams("a-")) == names


@pytest.mark.parametrize("name", ["a-\ud800", "a-\0"])
def test_a_name_that_no_column_can_hold_is_a_stream_that_is_not_there(log: PostgresLog, name: str) -> None:
    assert (list(log.read(name)), list(log.rows(name)), log.head(name), list(log.streams(name))) == ([], [], -1, [])
    assert log.schedule.wakes("q", [name]) == {}
    assert log.snapshots.load([name]) == {}
    assert list(log.read_all(types=[name], categories=[name])) == []


LONG_READ = """
import resource, sys
from intentlog.eventlog.opening import open_log
log = open_log(sys.argv[1], create=False)
log.last_position()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
counts = [sum(1 for _ in log.read_all()), sum(1 for _ in log.read("a-1")), sum(len(chunk) for chunk in log.rows("a-1"))]
counts.append(sum(1 for _ in log.read("a-1", backwards=True)))
log.close()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, *counts)
"""


def test_a_hundred_thousand_events_are_read_in_bounded_memory(log: PostgresLog, url: str) -> None:
    for _ in range(10):
        log.append("a-1", [event(bytes(300)) for _ in range(10_000)], ANY)
    said = subprocess.run([sys.executable, "-c", LONG_READ, url], capture_output=True, text=True, check=True)
    grown, *counts = map(int, said.stdout.split())
    assert counts == [100_000] * 4
    assert grown < 20_000, f"reading 100,000 events of 300 bytes took {grown} KiB"


def test_the_first_of_a_tail_lie_on_both_sides_of_a_hole(log: PostgresLog, psql: Session) -> None:
    log.append("a-1", [event() for _ in range(20)], NO_STREAM)
    psql.execute("DELETE FROM events WHERE version BETWEEN 2 AND 15")
    assert [row[0] for row in log.rows_of({"a-1": -1}, most=4)["a-1"]] == [0, 1, 16, 17]
    assert [row[0] for row in log.rows_of({"a-1": 1}, most=4)["a-1"]] == [16, 17, 18, 19]
