"""What a tail does beyond the kit's promises: batches, its cursor, its pauses, its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from intentlog.eventlog.errors import LogUnavailable
from intentlog.eventlog.events import StoredEvent
from intentlog.eventlog.log import EventLog
from intentlog.eventlog.memory import open_memory
from intentlog.eventlog.tail import Pause, tail
from intentlog.eventlog.testing.maker import event, events
from intentlog.eventlog.versions import ANY


class Watched:
    """A log in front of another that writes down what it was asked."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self.looked_at = 0
        self.pauses: list[float] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def read_all(self, *, after: int, upto: int, **rest: object) -> Iterator[StoredEvent]:
        self.looked_at += upto - after
        return self._log.read_all(after=after, upto=upto, **rest)  # type: ignore[arg-type]

    def wait(self, after: int, timeout: float) -> bool:
        self.pauses.append(timeout)
        return self._log.wait(after, 0)


def times(count: int) -> Callable[[], bool]:
    """A ``stop`` that is false ``count`` times."""
    answers = iter([False] * count)
    return lambda: next(answers, True)


def test_batches_are_no_larger_than_asked_for():
    log = open_memory()
    log.append("a-1", events(10), ANY)
    assert [4, 4, 2] == [len(batch) for batch in tail(log, after=0, stop=times(3), batch=4)]


def test_a_tail_begins_behind_the_position_it_is_given():
    log = open_memory()
    log.append("a-1", events(10), ANY)
    third = log.append_batch([])
    assert [] == third
    assert [[7, 8, 9]] == [[found.version for found in batch] for batch in tail(log, after=7, stop=times(1))]


def test_no_batch_is_empty():
    log = open_memory()
    log.append("a-1", [event(type="noise")], ANY)
    assert [] == list(tail(log, after=0, types=["rare"], stop=times(5), poll=0.001))


def test_what_was_filtered_out_is_looked_at_once():
    log = Watched(open_memory())
    log.append("a-1", [event(type="noise") for _ in range(1_000)], ANY)
    assert [] == list(tail(log, after=0, types=["rare"], stop=times(20), poll=0.001))  # type: ignore[arg-type]
    assert 1_000 == log.looked_at


def test_a_filter_may_be_an_iterator():
    log = open_memory()
    log.append("a-1", [event(type="rare"), event(), event(type="rare")], ANY)
    assert [[0], [2]] == [[found.version for found in batch] for batch in tail(log, after=0, types=iter(["rare"]), stop=times(2), batch=1)]


def test_a_quiet_log_is_asked_less_and_less_often_until_something_comes():
    log = Watched(open_memory())
    following = tail(log, after=0, stop=times(9), poll=0.5)  # type: ignore[arg-type]
    assert [] == list(following)
    assert [0.5, 1.0, 2.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0] == log.pauses
    log.pauses.clear()
    log.append("a-1", [event()], ANY)
    for _ in tail(log, after=0, stop=times(4), poll=0.5):  # type: ignore[arg-type]
        continue
    assert [0.5, 1.0, 2.0] == log.pauses


def test_a_pause_must_last():
    with pytest.raises(ValueError, match="more than 0"):
        Pause(0)


def test_a_tail_that_is_stopped_before_it_begins_reads_nothing():
    log = open_memory()
    log.append("a-1", [event()], ANY)
    assert [] == list(tail(log, after=0, stop=lambda: True))


def test_a_closed_log_ends_the_tail_with_an_error():
    log = open_memory()
    log.append("a-1", [event()], ANY)
    following = tail(log, after=0, stop=lambda: False)
    assert 1 == len(next(following))
    log.close()
    with pytest.raises(LogUnavailable):
        next(following)
