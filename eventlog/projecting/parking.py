"""Parked events, taken up again: what a mended handler can take leaves the list together with its writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from ..errors import LeaseLost, ProjectionRefused
from ..events import StoredEvent
from ..log import EventLog, ParkedEvent
from .advancing import HandlerLostLease, Poisoned, Run
from .declared import Decoder, Projection

_AT_ONCE: Final = 50
_TRIES: Final = 100


@attrs.frozen
class Retried:
    """What a retry came to."""

    handled: int
    #: Those that failed again, with their new errors, oldest first.
    parked: tuple[ParkedEvent, ...]


def retry_parked(log: EventLog, projection: Projection, *, codec: Decoder | None = None) -> Retried:
    """Give every parked event of this version's view to the handler once more, oldest first.

    They come out of turn: behind everything that the view has seen since. A handler for which the order matters wants a
    rebuild instead. Raises ``ProjectionRefused`` when a parked event is not in the log any more.
    """
    handled = 0
    waiting = log.views.parked(projection.view)
    for begin in range(0, len(waiting), _AT_ONCE):
        handled += _retried(log, projection, codec, [_event(log, each) for each in waiting[begin : begin + _AT_ONCE]])
    return Retried(handled, tuple(log.views.parked(projection.view)))


def _retried(log: EventLog, projection: Projection, codec: Decoder | None, events: Sequence[StoredEvent]) -> int:
    """One transaction over ``events``, begun anew without each that fails; how many were handled."""
    run, failed = Run(log, projection, codec), dict[int, Exception]()
    values = [run.decoded(event) for event in events]
    tries = 0
    while True:
        try:
            return _commit(log, run, projection.view, events, values, failed)
        except Poisoned as found:
            failed[found.index] = found.cause
        except HandlerLostLease as lost:
            raise lost.error from lost.error.__cause__
        except LeaseLost:
            # A follower in another process wrote to the view first.
            tries += 1
            if tries == _TRIES:
                raise


def _commit(log: EventLog, run: Run, view: str, events: Sequence[StoredEvent], values: Sequence[object], failed: dict[int, Exception]) -> int:
    handled = 0
    with log.views.transaction(view) as writing:
        waiting = {parked.position for parked in log.views.parked(view)}  # another retry may have been here
        for index, (event, value) in enumerate(zip(events, values, strict=True)):
            if event.position not in waiting:
                continue
            if index in failed:
                writing.park(run.parked(event, failed[index]))
                continue
            run.handle(writing, index, event, value)
            writing.unpark(event.position)
            handled += 1
    return handled


def _event(log: EventLog, parked: ParkedEvent) -> StoredEvent:
    for event in log.read(parked.stream, after=parked.version - 1, upto=parked.version):
        if event.position == parked.position:
            return event
    raise ProjectionRefused(
        f"The event parked by {parked.projection} at position {parked.position} ({parked.stream} version {parked.version}) is not in this log: "
        f"it was restored from an older backup, or this is another log. Build the view again: eventlog projections rebuild"
    )
