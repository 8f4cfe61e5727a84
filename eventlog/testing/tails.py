"""Checks of tails: every event once, in the one order, whatever the writers, the delays and the restarts."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable
from typing import Final

from ..events import StoredEvent
from ..log import EventLog
from ..tail import tail
from ..versions import ANY, NO_STREAM
from .maker import PATIENCE, StoreMaker, event, events, everything, fresh, patiently, request, several, together

_WRITERS: Final = 4
_ROUNDS: Final = 30


def tails_see_every_event_once_in_order(maker: StoreMaker) -> None:
    """Four writers with random pauses, four tails, two of them stopped and resumed again and again: all see the one order."""
    total = sum(_sizes(number, _ROUNDS) for number in range(_WRITERS))
    with several(maker, _WRITERS + 4) as logs:
        writers = [_delayed_writer(log, number) for number, log in enumerate(logs[:_WRITERS])]
        steady = [_steady(log, total) for log in logs[_WRITERS : _WRITERS + 2]]
        resumed = [_resumed(log, total, seed) for seed, log in enumerate(logs[_WRITERS + 2 :])]
        seen = [result for result in together(*writers, *steady, *resumed) if result]
        order = [found.position for found in everything(logs[0])]
        assert total == len(order)
        assert order == sorted(set(order))
        assert [order] * 4 == seen


def _sizes(number: int, rounds: int) -> int:
    return sum((number + round_) % 3 + 1 for round_ in range(rounds))


def _delayed_writer(log: EventLog, number: int) -> Callable[[], list[int]]:
    def run() -> list[int]:
        chance = random.Random(number)
        for round_ in range(_ROUNDS):
            time.sleep(chance.random() * 0.01)
            batch = [request(f"tail-{number}", *events((number + round_) % 3 + 1))]
            patiently(lambda batch=batch: log.append_batch(batch))  # type: ignore[misc]
        return []

    return run


def _steady(log: EventLog, total: int) -> Callable[[], list[int]]:
    def run() -> list[int]:
        seen: list[int] = []
        _take(tail(log, after=0, stop=_late(lambda: len(seen) >= total), poll=0.005, batch=7), seen)
        return seen

    return run


def _resumed(log: EventLog, total: int, seed: int) -> Callable[[], list[int]]:
    """Stops after a few batches, and goes on from the last event it has handled with a new tail."""

    def run() -> list[int]:
        chance = random.Random(seed)
        seen: list[int] = []
        over = _late(lambda: len(seen) >= total)
        while not over():
            upto = len(seen) + chance.randint(1, 20)
            _take(tail(log, after=seen[-1] if seen else 0, stop=lambda: over() or len(seen) >= upto, poll=0.005, batch=chance.randint(1, 9)), seen)  # noqa: B023
        return seen

    return run


def _take(batches: Iterable[list[StoredEvent]], seen: list[int]) -> None:
    for batch in batches:
        seen.extend(found.position for found in batch)


def _late(done: Callable[[], bool]) -> Callable[[], bool]:
    """``done``, or far too late: a tail that skips an event must fail its check and not hang."""
    deadline = time.monotonic() + PATIENCE / 2
    return lambda: done() or time.monotonic() > deadline


def tail_filters_without_losing_its_place(maker: StoreMaker) -> None:
    """With filters a tail gives what ``read_all`` gives, and sees later events behind a long run of others."""
    with fresh(maker) as log:
        log.append("noise-a", events(1_200), NO_STREAM)
        log.append("quiet-a", [event(type="kind.rare"), event(), event(type="kind.rare")], NO_STREAM)
        seen: list[StoredEvent] = []
        for batch in tail(log, after=0, types=["kind.rare"], categories=["quiet"], stop=_late(lambda: len(seen) >= 3), poll=0.005, batch=2):
            seen.extend(batch)
            if len(seen) == 2:
                log.append("noise-a", events(10), ANY)
                log.append("quiet-a", [event(type="kind.rare")], ANY)
        assert list(log.read_all(types=["kind.rare"], categories=["quiet"])) == seen


def tail_is_woken_by_an_append(maker: StoreMaker) -> None:
    """A tail on a quiet log gives an event soon after it was appended, and stops soon after it was told to."""
    with fresh(maker) as log:
        stopped = threading.Event()
        timers = [threading.Timer(0.1, lambda: log.append("woken-a", [event()], NO_STREAM)), threading.Timer(0.4, stopped.set)]
        begin = time.monotonic()
        for timer in timers:
            timer.start()
        batches = list(tail(log, after=0, stop=stopped.is_set, poll=0.02))
        assert [1] == [len(batch) for batch in batches]
        assert time.monotonic() - begin < 10
        for timer in timers:
            timer.join()


CHECKS = (tails_see_every_event_once_in_order, tail_filters_without_losing_its_place, tail_is_woken_by_an_append)
