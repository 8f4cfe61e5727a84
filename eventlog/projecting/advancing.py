"""Events into a view, a batch a transaction. The log is read once, as a stream; what is in memory is one batch.

Events are read and decoded first; the transaction then only runs the handlers, so that it stays short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import attrs

from ..errors import LeaseLost, ProjectionFailed, ProjectionRefused, RetryableError
from ..events import StoredEvent
from ..log import EventLog, ParkedEvent, View, ViewTransaction
from .declared import Decoder, OnError, Projection

_MOST_BYTES: Final = 8 << 20
"""Payload bytes after which a batch ends early."""


@attrs.frozen
class Progress:
    """How far a run has come: the checkpoint, and how many events it handled and parked."""

    position: int = 0
    handled: int = 0
    parked: int = 0

    @property
    def seen(self) -> int:
        """Events that were taken, one way or the other."""
        return self.handled + self.parked


Told = Callable[[Progress], None] | None


def standing_of(log: EventLog, projection: Projection) -> tuple[int, int]:
    """The view's checkpoint, and where the log is complete now.

    Raises ``ProjectionRefused`` for a checkpoint ahead of the log: nothing that such a view holds can be trusted.
    """
    reached = log.checkpoints.load(projection.view)
    end = log.last_position()  # asked for second: another runner may be moving the checkpoint right now
    if reached > end:
        raise ProjectionRefused(
            f"The checkpoint of {projection.view} is at position {reached}, ahead of the log, which ends at {end}: the log was restored "
            f"from an older backup, or this is another log. Restore the whole of it, or build the view again from what the log holds: "
            f"eventlog projections rebuild {projection.name} --version {projection.version} --in-place"
        )
    return reached, end


def batches(log: EventLog, projection: Projection, after: int, upto: int, most: int) -> Iterator[tuple[list[StoredEvent], int]]:
    """Events in order, at most ``most`` at once, each time with the position that they bring the view to; the last is ``upto``."""
    events: list[StoredEvent] = []
    size = 0
    for event in log.read_all(after=after, upto=upto, types=projection.types):
        events.append(event)
        size += len(event.data) if isinstance(event.data, bytes) else 0  # what a hand put there is poison, not our crash
        if len(events) >= most or size >= _MOST_BYTES:
            yield events, event.position
            events, size = [], 0
    yield events, upto


class Poisoned(Exception):
    """The event at ``index`` of a batch cannot be taken; leaving the transaction with this rolls it back."""

    def __init__(self, index: int, cause: Exception) -> None:
        super().__init__(index)
        self.index = index
        self.cause = cause


class HandlerLostLease(Exception):
    """A handler's own ``LeaseLost``, kept apart from the one that a store raises when two runners meet."""

    def __init__(self, error: LeaseLost) -> None:
        super().__init__(error)
        self.error = error


class _Moved(Exception):
    """Another runner has moved the checkpoint since the batch was read."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


class Run:
    """One projection over one log."""

    def __init__(self, log: EventLog, projection: Projection, codec: Decoder | None) -> None:
        self._log = log
        self._projection = projection
        self._codec = codec

    def through(self, after: int, target: int, *, batch: int, told: Told, stop: Callable[[], bool] | None = None) -> Progress:
        """From checkpoint ``after`` to ``target``, or until ``stop()`` is true behind a batch.

        Raises ``ProjectionFailed`` under ``STOP``, with everything before kept.
        """
        if batch < 1:
            raise ValueError(f"batch must be 1 event or more, not {batch!r}")
        done = Progress(after)
        while done.position < target:
            for events, upto in batches(self._log, self._projection, done.position, target, batch):
                done = self._advance(done, events, upto)
                if told is not None:
                    told(done)
                if stop is not None and done.position < target and stop():
                    return done
                if done.position != upto:
                    break  # another runner was here: read on from where the view really stands
        return done

    def decoded(self, event: StoredEvent) -> object:
        """The value that the handler gets; a ``Poisoned``, to be raised when its turn comes, for what does not decode."""
        if self._codec is None:
            return None
        try:
            return self._codec.decode_stored(event)
        except RetryableError:
            raise
        except Exception as error:
            return Poisoned(0, error)

    def handle(self, view: View, index: int, event: StoredEvent, value: object) -> None:
        """Run the handler. Raises ``Poisoned`` with ``index``, ``HandlerLostLease``, or a ``RetryableError`` as it is."""
        if isinstance(value, Poisoned):
            raise Poisoned(index, value.cause)
        try:
            self._projection.handle(view, event, value)
        except LeaseLost as error:
            raise HandlerLostLease(error) from error
        except RetryableError:
            raise
        except Exception as error:
            raise Poisoned(index, error) from error

    def parked(self, event: StoredEvent, error: Exception) -> ParkedEvent:
        """What is kept of an event that is stepped over."""
        return ParkedEvent(self._projection.view, event.position, event.stream, event.version, described(error), self._log.clock())

    def _advance(self, done: Progress, events: Sequence[StoredEvent], upto: int) -> Progress:
        """Take ``events`` and move the checkpoint to ``upto``; one transaction, and one more for each poison event among them."""
        values = [self.decoded(event) for event in events]
        begin, end = 0, len(events)
        poison: Exception | None = None
        while True:
            try:
                self._commit(done.position, events[begin:end], values[begin:end], upto, None if poison is None else events[end], poison)
            except _Moved as moved:
                return attrs.evolve(done, position=moved.position)
            except LeaseLost:
                # Another runner's block was committed first; the view stands where that one left it.
                return attrs.evolve(done, position=self._log.checkpoints.load(self._projection.view))
            except HandlerLostLease as lost:
                raise lost.error from lost.error.__cause__
            except Poisoned as found:
                end, poison = begin + found.index, found.cause
                continue
            if poison is None:
                return Progress(upto, done.handled + end - begin, done.parked)
            if self._projection.on_error is OnError.STOP:
                raise self._failed(events[end], poison) from poison
            done = Progress(events[end].position, done.handled + end - begin, done.parked + 1)
            begin, end, poison = end + 1, len(events), None

    def _commit(
        self, position: int, events: Sequence[StoredEvent], values: Sequence[object], upto: int, bad: StoredEvent | None, error: Exception | None
    ) -> None:
        """One transaction: the handlers of ``events`` and, when the event ``bad`` follows them, its parking."""
        with self._log.views.transaction(self._projection.view) as view:
            if view.position != position:
                raise _Moved(view.position)
            for index, (event, value) in enumerate(zip(events, values, strict=True)):
                self.handle(view, index, event, value)
            if bad is None or error is None:
                view.checkpoint(upto)
            elif self._projection.on_error is OnError.PARK:
                view.park(self.parked(bad, error))
                view.checkpoint(bad.position)
            else:
                _checkpoint_behind(view, events)

    def _failed(self, event: StoredEvent, error: Exception) -> ProjectionFailed:
        projection = self._projection
        return ProjectionFailed(
            f"Projection {projection.view} stopped at {event.stream} version {event.version} ({event.type}, position {event.position}, "
            f"event id {shown_id(event)}): {described(error)}. Everything before it is kept. "
            "Mend the handler and run it again, or let the projection step over with OnError.PARK.",
            projection.view,
            event,
        )


def _checkpoint_behind(view: ViewTransaction, events: Sequence[StoredEvent]) -> None:
    if events:
        view.checkpoint(events[-1].position)


def described(error: Exception) -> str:
    """An error in one line; one whose own text cannot be had is told by its type."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception as worse:
        return f"{type(error).__name__} (its text cannot be had: {type(worse).__name__})"


def shown_id(event: StoredEvent) -> str:
    """The event's id as ``eventlog tail --json`` shows it: a UUID; hexadecimal digits when it is none."""
    if not isinstance(event.event_id, bytes):  # a hand's doing
        return repr(event.event_id)
    return str(event.id) if len(event.event_id) == 16 else event.event_id.hex()
