"""Checks of writers that meet: one winner a version, no hole, nothing twice, from threads and from other processes."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Final

from ..errors import LogUnavailable, WrongExpectedVersion
from ..log import Appended, AppendRequest, Duplicate, EventLog, Outcome
from ..versions import ANY, NO_STREAM
from .maker import PATIENCE, StoreMaker, event, everything, expect, fresh, one, patiently, places, request, several, together

_WRITERS: Final = 8
_PROCESS: Final = """
import sys
from {package}.events import NewEvent
from {package}.errors import RetryableError
from {package}.opening import open_log

url, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
log = open_log(url, create=False)
for number in range(count):
    new = NewEvent(f"{{name}}{{number:015}}".encode(), "race.run", 1, b"{{}}")
    while True:
        try:
            log.append("race-processes", [new], log.head("race-processes"))
            break
        except RetryableError:
            pass
log.close()
"""


def two_writers_one_winner(maker: StoreMaker) -> None:
    """Two threads, each with its own log object where there can be two, want the same version: one gets it, the other is told."""
    with several(maker, 2) as logs:
        for version in range(60):
            contest = [_bid(log, "race-a", version - 1) for log in logs]
            outcomes = together(*contest)
            assert 1 == sum(isinstance(outcome, Appended) for outcome in outcomes), outcomes
            (loser,) = [outcome for outcome in outcomes if isinstance(outcome, WrongExpectedVersion)]
            assert version == loser.actual
            assert [version] == [found.version for found in loser.events]
        _contiguous(logs[0], "race-a", 60)


def _bid(log: EventLog, stream: str, expected: int) -> Callable[[], object]:
    new = event()
    return lambda: patiently(lambda: one(log, request(stream, new, expected=expected)))


def same_event_from_two_writers(maker: StoreMaker) -> None:
    """Two threads send the very same append: one is ``Appended``, the other a ``Duplicate`` with the same places."""
    with several(maker, 2) as logs:
        for version in range(40):
            same = request("race-same", event(), expected=version - 1)
            outcomes = together(*[_sent(log, same) for log in logs])
            assert {Appended, Duplicate} == {type(outcome) for outcome in outcomes}
            assert places(outcomes[0]) == places(outcomes[1])
        _contiguous(logs[0], "race-same", 40)


def _sent(log: EventLog, same: AppendRequest) -> Callable[[], Outcome]:
    return lambda: patiently(lambda: one(log, same))


def hot_stream(maker: StoreMaker) -> None:
    """Eight writers on one stream, each reloading when it loses: all their events are there once, without a hole."""
    each = 25
    with several(maker, _WRITERS) as logs:
        lost = sum(together(*[_stubborn(log, "race-hot", each) for log in logs]))
        _contiguous(logs[0], "race-hot", _WRITERS * each)
        assert lost >= 0
        assert _WRITERS * each == len({found.event_id for found in everything(logs[0])})


def _stubborn(log: EventLog, stream: str, count: int) -> Callable[[], int]:
    def run() -> int:
        lost = 0
        for _ in range(count):
            new = event()
            while True:
                try:
                    log.append(stream, [new], log.head(stream))
                    break
                except (WrongExpectedVersion, LogUnavailable):
                    lost += 1
        return lost

    return run


def many_streams_at_once(maker: StoreMaker) -> None:
    """Writers on streams of their own, in batches, do not lose or mix anything; positions are unique and ordered."""
    with several(maker, 4) as logs:
        together(*[_batches(log, f"race-own{number}") for number, log in enumerate(logs)])
        for number in range(4):
            _contiguous(logs[0], f"race-own{number}", 200)
        positions = [found.position for found in everything(logs[0])]
        assert positions == sorted(set(positions))
        assert 800 == len(positions)


def _batches(log: EventLog, stream: str) -> Callable[[], None]:
    def run() -> None:
        for _ in range(20):
            batch = [request(stream, event()) for _ in range(10)]
            assert all(isinstance(outcome, Appended | Duplicate) for outcome in patiently(lambda batch=batch: log.append_batch(batch)))  # type: ignore[misc]

    return run


def two_processes(maker: StoreMaker) -> None:
    """Two other processes and this one race on one stream of a shared store: no hole, nothing lost."""
    if not maker.shared:
        return
    with fresh(maker) as log:
        code = _PROCESS.format(package=__package__.rpartition(".")[0])
        racers = [subprocess.Popen([sys.executable, "-c", code, log.url, name, "40"]) for name in "ab"]
        _stubborn(log, "race-processes", 40)()
        assert [0, 0] == [racer.wait(PATIENCE) for racer in racers]
        _contiguous(log, "race-processes", 120)


def waiting_is_woken(maker: StoreMaker) -> None:
    """``wait`` returns at once when there is something already, soon after an append from another thread, and in time otherwise."""
    with fresh(maker) as log:
        begin = time.monotonic()
        assert not log.wait(0, 0.05)
        assert 0.04 < time.monotonic() - begin < 5
        timer = threading.Timer(0.1, lambda: log.append("wait-a", [event()], NO_STREAM))
        timer.start()
        begin = time.monotonic()
        assert log.wait(0, 30)
        assert time.monotonic() - begin < 10
        timer.join()
        assert log.wait(0, 0)
        assert not log.wait(log.last_position(), 0)


def waiting_sees_other_objects(maker: StoreMaker) -> None:
    """An append through another object on the same log ends a wait within the polling interval."""
    with several(maker, 2) as (log, other):
        timer = threading.Timer(0.05, lambda: other.append("wait-a", [event()], ANY))
        timer.start()
        begin = time.monotonic()
        assert log.wait(0, 30)
        assert time.monotonic() - begin < 10
        timer.join()


def closed_log_is_unavailable(maker: StoreMaker) -> None:
    """After ``close`` every door answers ``LogUnavailable``; closing twice is fine."""
    with fresh(maker) as log:
        log.append("shut-a", [event()], NO_STREAM)
        log.close()
        log.close()
        doors: list[Callable[[], object]] = [
            lambda: log.append("shut-a", [event()], ANY),
            lambda: list(log.read("shut-a")),
            lambda: list(log.rows("shut-a")),
            lambda: log.rows_of({"shut-a": -1}),
            lambda: list(log.read_all()),
            lambda: log.head("shut-a"),
            log.last_position,
            lambda: list(log.streams()),
            lambda: log.wait(99, 0.01),
            lambda: log.snapshots.load(["shut-a"]),
            lambda: log.checkpoints.save("shut", 1),
            lambda: log.schedule.claim_due("q", "me", now=0, until=1, limit=1),
            lambda: log.views.read("shut").get("a"),
            lambda: log.views.clear("shut"),
        ]
        for door in doors:
            with expect(LogUnavailable):
                door()


def reopened_log_holds_everything(maker: StoreMaker) -> None:
    """Another object on the same log sees the same events, wakes, leases and checkpoints."""
    if maker.reopen is None:
        return
    with several(maker, 2) as (log, other):
        log.append("kept-a", [event(), event()], NO_STREAM)
        log.schedule.acquire("q", ["kept-a"], "me", now=0, until=100)
        log.checkpoints.save("sub", 7)
        assert everything(log) == everything(other)
        assert {"me"} == other.schedule.owners()
        assert 7 == other.checkpoints.load("sub")
        log.close()
        assert 1 == other.head("kept-a")


def _contiguous(log: EventLog, stream: str, count: int) -> None:
    assert list(range(count)) == [found.version for found in log.read(stream)]


CHECKS = (
    two_writers_one_winner,
    same_event_from_two_writers,
    hot_stream,
    many_streams_at_once,
    two_processes,
    waiting_is_woken,
    waiting_sees_other_objects,
    closed_log_is_unavailable,
    reopened_log_holds_everything,
)
