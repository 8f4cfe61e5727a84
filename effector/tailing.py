"""Reading the tail of a log into a fold that knows how far it has read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from ..agents.leasing import in_thread
from ..eventlog.events import StoredEvent
from ..eventlog.log import EventLog


class Fold(Protocol):
    """What takes events in log order. Belongs to one event loop."""

    #: Position of the last event taken in.
    cursor: int

    def take(self, event: StoredEvent, fact: Any) -> None:
        """Take the next event in."""
        ...


async def take_in(log: EventLog, fold: Fold, read: Callable[[StoredEvent], Any], types: Iterable[str], categories: Iterable[str], helping: int) -> None:
    """Give ``fold`` everything that ``log`` has now, ``helping`` events at once.

    ``read`` makes the fact of an event, in a thread, while the loop goes on: an intent and its signature are given in one go, so that
    nobody sees the one without the other. Raises what reading the log raises.
    """

    def some() -> tuple[int, list[tuple[StoredEvent, Any]]]:
        last = log.last_position()
        if last <= fold.cursor:
            return last, []
        return last, [(event, read(event)) for event in log.read_all(after=fold.cursor, upto=last, types=types, categories=categories, limit=helping)]

    while True:
        last, events = await in_thread(some)
        is_all = len(events) < helping
        if not is_all and helping > 1 and events[-1][0].type == "intent.staged":
            events.pop()  # it comes again, with what stands behind it
        for event, fact in events:
            fold.take(event, fact)
        if is_all:
            break
    fold.cursor = max(fold.cursor, last)
