"""Following the log as it grows. What to do with the events is the caller's; where it stands, too.

A tail asks for what is complete (``last_position``) and reads up to there, so it never shows an event before an
earlier one. Its cursor moves past events that its filters left out: what was looked at once is not looked at again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from .events import StoredEvent
from .log import EventLog

_SLOWEST: Final = 8
"""How many times ``poll`` a quiet log is left alone at most."""


def tail(
    log: EventLog,
    *,
    after: int,
    types: Iterable[str] = (),
    categories: Iterable[str] = (),
    stop: Callable[[], bool],
    poll: float = 0.05,
    batch: int = 500,
) -> Iterator[list[StoredEvent]]:
    """Batches of at most ``batch`` events behind position ``after``, in commit order, until ``stop()`` is true.

    An append through the same log object is seen at once. ``stop`` is looked at before every batch and every ``poll``
    seconds, less and less often while the log is quiet (at most 8 × ``poll``). To go on after a restart, pass
    the position of the last event that was handled. Raises ``LogUnavailable`` when the store does.
    """
    kinds, groups = tuple(types), tuple(categories)
    cursor, pause = after, Pause(poll)
    while not stop():
        complete = log.last_position()
        if complete <= cursor:
            pause.wait(log, cursor)
            continue
        pause.reset()
        events = list(log.read_all(after=cursor, upto=complete, types=kinds, categories=groups, limit=batch))
        cursor = events[-1].position if len(events) == batch else complete
        if events:
            yield events


class Pause:
    """A wait for news that grows while there is none."""

    def __init__(self, poll: float) -> None:
        if poll <= 0:
            raise ValueError(f"poll must be more than 0 seconds, not {poll!r}")
        self._poll = poll
        self._next = poll

    def wait(self, log: EventLog, after: int) -> None:
        """Until the log has passed position ``after``, or the present pause is over."""
        if not log.wait(after, self._next):
            self._next = min(self._next * 2, self._poll * _SLOWEST)

    def reset(self) -> None:
        self._next = self._poll
