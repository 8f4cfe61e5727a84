"""Batches: the log read once, memory bounded by events and bytes, poison in the midst of a batch."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from intentlog.eventlog.errors import ProjectionFailed
from intentlog.eventlog.events import StoredEvent
from intentlog.eventlog.log import EventLog, View
from intentlog.eventlog.memory import open_memory
from intentlog.eventlog.projecting import advancing
from intentlog.eventlog.projecting.advancing import batches, described
from intentlog.eventlog.projections import OnError, Progress, Projection, catch_up, rebuild_beside
from intentlog.eventlog.testing import StoreMaker
from intentlog.eventlog.testing.maker import event, events, fresh
from intentlog.eventlog.versions import ANY


def count(view: View, stored: StoredEvent, decoded: object) -> None:
    view.put(stored.stream, str(int(view.get(stored.stream) or b"0") + 1).encode())


class Watched:
    """A log that notes every reading of the whole."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self.read = list[int]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def read_all(self, *, after: int = 0, **filters: Any) -> Iterator[StoredEvent]:
        self.read.append(after)
        return self._log.read_all(after=after, **filters)


def test_a_rebuild_reads_history_once_whatever_it_parks() -> None:
    log = open_memory()
    log.append("a-1", events(100), ANY)
    watched: Any = Watched(log)

    def fussy(view: View, stored: StoredEvent, decoded: object) -> None:
        if stored.version % 10 == 3:
            raise ValueError("a three")
        count(view, stored, decoded)

    done = rebuild_beside(watched, Projection("p", fussy, on_error=OnError.PARK), batch=7)
    assert ([0], Progress(100, 90, 10), 100) == (watched.read, done, done.seen)


def test_poison_in_a_row_is_parked_one_by_one() -> None:
    log = open_memory()
    log.append("a-1", events(10), ANY)

    def hostile(view: View, stored: StoredEvent, decoded: object) -> None:
        raise KeyError(stored.version)

    assert Progress(10, 0, 10) == catch_up(log, Projection("p", hostile, on_error=OnError.PARK), batch=4)
    assert list(range(10)) == [parked.version for parked in log.views.parked("p@v1")]


def test_an_error_that_is_false_is_an_error_all_the_same() -> None:
    class Empty(Exception):
        def __len__(self) -> int:
            return 0

    def hostile(view: View, stored: StoredEvent, decoded: object) -> None:
        raise Empty

    log = open_memory()
    log.append("a-1", events(2), ANY)
    with pytest.raises(ProjectionFailed):
        catch_up(log, Projection("p", hostile))
    assert Progress(2, 0, 2) == catch_up(log, Projection("p", hostile, on_error=OnError.PARK))


def test_an_error_without_a_text_is_told_by_its_type() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    assert "Mute (its text cannot be had: RuntimeError)" == described(Mute())


@pytest.mark.parametrize("most, sizes", [(3, [3, 3, 3, 1]), (10, [10, 0]), (11, [10])])
def test_batches_end_at_the_target(most: int, sizes: list[int]) -> None:
    log = open_memory()
    log.append("a-1", events(10), ANY)
    found = list(batches(log, Projection("p", count), 0, 10, most))
    assert (sizes, 10) == ([len(taken) for taken, _ in found], found[-1][1])


def test_a_batch_of_large_events_ends_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advancing, "_MOST_BYTES", 1_000)
    log = open_memory()
    log.append("a-1", [event(bytes(400)) for _ in range(7)], ANY)
    assert [3, 3, 1] == [len(taken) for taken, _ in batches(log, Projection("p", count), 0, 7, 100)]


def test_memory_does_not_grow_with_the_history(maker: StoreMaker) -> None:
    with fresh(maker) as log:
        for _ in range(40):
            log.append("a-1", [event(bytes(1_000)) for _ in range(250)], ANY)
        tracemalloc.start()
        try:
            assert 10_000 == rebuild_beside(log, Projection("p", count), batch=500).handled
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 8 << 20, f"{peak:,} bytes for a history of 10 MB"


@pytest.mark.parametrize("batch", [0, -1])
def test_a_batch_holds_an_event_at_least(batch: int) -> None:
    log = open_memory()
    log.append("a-1", events(1), ANY)
    with pytest.raises(ValueError, match="batch must be 1"):
        catch_up(log, Projection("p", count), batch=batch)


def test_a_run_may_end_before_the_end_of_the_log() -> None:
    log = open_memory()
    log.append("a-1", events(10), ANY)
    assert Progress(4, 4, 0) == catch_up(log, Projection("p", count), upto=4)
    assert Progress(4, 0, 0) == catch_up(log, Projection("p", count), upto=3)
    assert Progress(10, 6, 0) == catch_up(log, Projection("p", count), upto=99)
