"""Aggregate and application recorders over any ``EventLog``.

The library lets versions have holes and finds them when an aggregate is next loaded. Here an insert states the version it
expects its stream to be at, so a hole is refused with the same ``IntegrityError`` as a conflict.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import groupby, pairwise
from operator import attrgetter
from typing import Any, Final
from uuid import UUID

from eventsourcing.persistence import AggregateRecorder, ApplicationRecorder, IntegrityError, Notification, Recorder, StoredEvent, Subscription

from ..errors import LogError, LogUnavailable
from ..ids import id_maker
from ..log import AppendRequest, EventLog, StreamAppend
from ..versions import EMPTY, NO_STREAM
from .faults import translated
from .layout import Layout, check_start, start_of
from .subscription import LogSubscription

_REMEMBERED: Final = 50_000
_GROWTH: Final = 16
#: Seconds that an insert waits until followers are shown what it wrote.
_PATIENCE: Final = 1.0


class LogRecorder(Recorder):
    """What all recorders have: a log, and how things lie in it."""

    def __init__(self, log: EventLog, layout: Layout) -> None:
        self.log = log
        self.layout = layout
        self._new_id = id_maker(log.clock)

    def _append(self, parts: Sequence[StreamAppend]) -> tuple[tuple[int, ...], ...]:
        """One all-or-nothing commit: the positions of each part's events. Raises the log's own errors."""
        (outcome,) = self.log.append_batch([AppendRequest(parts)])
        if isinstance(outcome, LogError):
            raise outcome
        return outcome.positions


class LogAggregateRecorder(LogRecorder, AggregateRecorder):
    """Aggregates as streams."""

    def __init__(self, log: EventLog, layout: Layout) -> None:
        super().__init__(log, layout)
        #: stream → the originator version it begins with, which never changes.
        self._starts: dict[str, int] = {}

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int] | None:
        """Append all of them in one commit; raises ``IntegrityError`` for versions that are taken or would leave a hole."""
        self._insert(stored_events)
        return None

    def select_events(
        self, originator_id: UUID | str, *, gt: int | None = None, lte: int | None = None, desc: bool = False, limit: int | None = None
    ) -> Sequence[StoredEvent]:
        """One aggregate's events with ``gt < version <= lte``, newest first when ``desc``."""
        stream = self.layout.stream(originator_id)
        with translated():
            start = self._start(stream)
            if start is None:
                return []
            after = EMPTY if gt is None else max(gt - start, EMPTY)
            upto = None if lte is None else lte - start
            return [self.layout.stored_event(event) for event in self.log.read(stream, after=after, upto=upto, limit=limit, backwards=desc)]

    def _insert(self, stored_events: Sequence[StoredEvent]) -> list[int]:
        with translated():
            if not stored_events:
                return []
            return [position for positions in self._append(self._parts(stored_events)) for position in positions]

    def _parts(self, stored_events: Sequence[StoredEvent]) -> list[StreamAppend]:
        """One part for each run of events of one aggregate, so that positions follow the order they were given in."""
        starts: dict[str, int] = {}
        parts = []
        for originator_id, group in groupby(stored_events, key=attrgetter("originator_id")):
            run = list(group)
            stream = self.layout.checked_stream(originator_id)
            for one, other in pairwise(run):
                if other.originator_version != one.originator_version + 1:
                    raise IntegrityError(f"Version {other.originator_version} of {stream} does not follow version {one.originator_version}.")
            first = run[0].originator_version
            start = starts.get(stream)
            if start is None:
                start = self._start(stream)
            expected = NO_STREAM if start is None else first - start - 1
            if start is None:
                start = check_start(stream, first)
            elif first < start:
                raise IntegrityError(f"Version {first} of {stream} lies before its first, which is {start}.")
            starts[stream] = start
            parts.append(StreamAppend(stream, [self.layout.new_event(stored, start, self._new_id()) for stored in run], expected))
        return parts

    def _start(self, stream: str) -> int | None:
        """The originator version that ``stream`` begins with; ``None`` while it is empty."""
        start = self._starts.get(stream)
        if start is None:
            first = next(iter(self.log.read(stream, limit=1)), None)
            if first is None:
                return None
            if len(self._starts) >= _REMEMBERED:
                self._starts.clear()
            start = self._starts[stream] = start_of(first)
        return start


class LogApplicationRecorder(LogAggregateRecorder, ApplicationRecorder):
    """The same, with all aggregates of the category in one order. Notification ids are positions: they grow, with gaps.

    What is not complete yet is not shown: neither a notification nor ``max_notification_id`` is past an event that is still
    being committed, by whomever.
    """

    def __init__(self, log: EventLog, layout: Layout) -> None:
        super().__init__(log, layout)
        #: Whether the last insert waited in vain.
        self._held_back = False

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int] | None:
        """As for aggregates; the notification ids of the events, in the order given. They are shown by then, see ``_shown``."""
        return self._shown(self._insert(stored_events))

    def select_notifications(
        self, start: int | None, limit: int, stop: int | None = None, topics: Sequence[str] = (), *, inclusive_of_start: bool = True
    ) -> Sequence[Notification]:
        """Up to ``limit`` notifications from ``start`` (or behind it) to ``stop``, in commit order."""
        after = 0 if start is None else start - 1 if inclusive_of_start else start
        with translated():
            found = self.log.read_all(after=max(after, 0), upto=stop, types=topics, categories=(self.layout.category,), limit=limit)
            return [self.layout.notification(event) for event in found]

    def max_notification_id(self) -> int | None:
        """The last notification's id. Other streams may have gone further, so the log is searched from its end in growing strides."""
        with translated():
            end, stride = self.log.last_position(), 1
            while end > 0:
                after = max(end - stride, 0)
                last = None
                for event in self.log.read_all(after=after, upto=end, categories=(self.layout.category,), payloads=False):
                    last = event.position
                if last is not None:
                    return last
                end, stride = after, stride * _GROWTH
            return None

    def _shown(self, ids: list[int]) -> list[int]:
        """``ids``, once followers are shown them: in PostgreSQL not before every transaction that began earlier has ended.

        The library prompts followers when an insert returns, and one that looked too early would not look again. Somebody's
        transaction may last for hours, though, so the wait is a second at most, and is not begun again while that one lasts.
        """
        if ids:
            # The events are durable; an error would say that they may not be. Whoever reads next is told.
            with suppress(LogUnavailable):
                shown = self.log.last_position() >= ids[-1]
                if not shown and not self._held_back:
                    shown = self.log.wait(ids[-1] - 1, _PATIENCE)
                self._held_back = not shown
        return ids

    def subscribe(self, gt: int | None = None, topics: Sequence[str] = ()) -> Subscription[ApplicationRecorder]:
        """Notifications behind ``gt``, those to come included."""
        return LogSubscription(self, gt, topics)
