"""Tracking and process recorders: how far an upstream application has been followed, committed together with what came of it.

A tracking record is an event at the end of its own stream, and part of the same append as the events it belongs to. The
version that the append expects there is what makes following exactly-once: of two workers that handled the same
notification one finds the stream moved on.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from threading import Event
from typing import Any, Final

from eventsourcing.persistence import IntegrityError, ProcessRecorder, StoredEvent, Tracking, TrackingRecorder, WaitInterruptedError

from ..errors import WrongExpectedVersion
from ..events import StoredEvent as LogEvent
from ..log import StreamAppend
from ..names import check_stream
from ..versions import EMPTY
from .faults import translated
from .layout import tracked_id, tracking_event
from .recording import LogApplicationRecorder, LogRecorder

#: Seconds until a wait looks again whether it was interrupted.
_PATIENCE: Final = 0.1


class LogTrackingRecorder(LogRecorder, TrackingRecorder):
    """The last notification that was handled, for each upstream application."""

    def insert_tracking(self, tracking: Tracking) -> None:
        """Record ``tracking``. Raises ``IntegrityError`` unless it is behind everything recorded for its application."""
        self._append_tracked([], tracking)

    def max_tracking_id(self, application_name: str) -> int | None:
        """The last recorded notification id of ``application_name``, or ``None``."""
        with translated():
            last = self._last(self.layout.tracking_stream(application_name))
        return None if last is None else tracked_id(last)

    def wait(self, application_name: str, notification_id: int | None, timeout: float = 1.0, interrupt: Event | None = None) -> None:
        """Until ``notification_id`` is tracked; woken by the append itself where the library would poll.

        Raises ``TimeoutError`` after ``timeout`` seconds, and ``WaitInterruptedError`` once ``interrupt`` is set.
        """
        deadline = time.monotonic() + timeout
        while True:
            with translated():
                seen = self.log.last_position()
            if self.has_tracking_id(application_name, notification_id):
                return
            if interrupt is not None and interrupt.is_set():
                raise WaitInterruptedError(f"Interrupted while waiting for notification {notification_id} of {application_name!r}.")
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"Notification {notification_id} of {application_name!r} was not tracked within {timeout} seconds.")
            with translated():
                self.log.wait(seen, min(left, _PATIENCE))

    def _append_tracked(self, parts: Sequence[StreamAppend], tracking: Tracking) -> tuple[tuple[int, ...], ...]:
        """Commit ``parts`` and ``tracking`` together: the positions of the events in ``parts``."""
        with translated():
            stream = check_stream(self.layout.tracking_stream(tracking.application_name))
            event = tracking_event(tracking, self._new_id())
            while True:
                step = StreamAppend(stream, [event], self._version_before(stream, tracking))
                try:
                    return self._append([*parts, step])[: len(parts)]
                except WrongExpectedVersion as error:
                    # Somebody else moved on; whether this record still comes behind is decided again.
                    if error.stream != stream:
                        raise

    def _version_before(self, stream: str, tracking: Tracking) -> int:
        last = self._last(stream)
        if last is None:
            return EMPTY
        if tracked_id(last) >= tracking.notification_id:
            raise IntegrityError(
                f"Notification {tracking.notification_id} of {tracking.application_name!r} cannot be tracked: "
                f"{tracked_id(last)} was recorded already, so this one has been handled."
            )
        return last.version

    def _last(self, stream: str) -> LogEvent | None:
        return next(iter(self.log.read(stream, backwards=True, limit=1)), None)


class LogProcessRecorder(LogTrackingRecorder, LogApplicationRecorder, ProcessRecorder):
    """Events together with the tracking of the notification they answer."""

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int] | None:
        """As for an application, and in the same commit the keyword argument ``tracking``, if there is one."""
        tracking: Tracking | None = kwargs.get("tracking")
        if tracking is None:
            return self._shown(self._insert(stored_events))
        with translated():
            parts = self._parts(stored_events)
        return self._shown([position for positions in self._append_tracked(parts, tracking) for position in positions])
