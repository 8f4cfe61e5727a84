"""Following an application: read what there is, wait for more. No thread of its own, nothing to clean up.

A filter by topic moves on past what it leaves out, so neither a wake-up nor a restart reads that again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from eventsourcing.persistence import ApplicationRecorder, Notification, Subscription

from .faults import translated

if TYPE_CHECKING:
    from .recording import LogApplicationRecorder

_AT_ONCE: Final = 500
#: Seconds until a waiting subscription looks whether another thread has stopped it.
_PATIENCE: Final = 0.1


class LogSubscription(Subscription[ApplicationRecorder]):
    """Notifications in commit order, none skipped; ends when ``stop`` is called, from any thread."""

    def __init__(self, recorder: LogApplicationRecorder, gt: int | None = None, topics: Sequence[str] = ()) -> None:
        super().__init__(recorder, gt, topics)
        self._log = recorder.log
        self._after = gt or 0
        self._ready: deque[Notification] = deque()

    def __next__(self) -> Notification:
        """The next notification, waited for if need be. Raises ``OperationalError`` when the log is closed meanwhile."""
        while not self._has_been_stopped:
            if self._ready:
                return self._ready.popleft()
            self._look()
        raise StopIteration

    def _look(self) -> None:
        with translated():
            end = self._log.last_position()
            if end <= self._after:
                self._log.wait(self._after, _PATIENCE)
                return
        found = self._recorder.select_notifications(self._after, _AT_ONCE, end, self._topics, inclusive_of_start=False)
        self._ready.extend(found)
        self._after = found[-1].id if len(found) == _AT_ONCE else end
