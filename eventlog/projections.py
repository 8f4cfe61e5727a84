"""Views built from the log. A projection's rows and its checkpoint move together, or not at all.

Events are read and decoded first; the transaction then only runs the handlers, so that it stays short. A *poison*
event is one that cannot be decoded or whose handler raises; ``OnError`` says what happens then. ``RetryableError``
(the store is away, for instance) is never poison: it ends the run and leaves view and checkpoint as they were.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import attrs

from .errors import LeaseLost, ProjectionFailed, RetryableError
from .events import StoredEvent
from .log import EventLog, ParkedEvent, View, ViewTransaction
from .tail import Pause


class Decoder(Protocol):
    """The part of a codec that a projection needs."""

    def decode_stored(self, event: StoredEvent) -> object: ...


Handler: TypeAlias = Callable[[View, StoredEvent, Any], None]
"""``handle(view, event, decoded)``; ``decoded`` is None when the projection runs without a codec."""


class OnError(enum.Enum):
    """What a poison event does to its projection."""

    STOP = "stop"
    """Everything before it is kept; then ``ProjectionFailed``. The next run meets the same event again."""
    SKIP = "skip"
    """It is parked with its error, together with the checkpoint that passes it, and the projection goes on."""


@attrs.frozen
class Projection:
    """A named view and the code that builds it."""

    #: Names the view and its checkpoint.
    name: str
    handle: Handler
    #: Event types it wants; empty: all of them.
    types: tuple[str, ...] = ()
    on_error: OnError = OnError.STOP


@attrs.frozen
class Progress:
    """How far a run has come: the checkpoint, and how many events it handled and parked."""

    position: int = 0
    handled: int = 0
    parked: int = 0


def catch_up(
    log: EventLog, projection: Projection, *, codec: Decoder | None = None, batch: int = 500, progress: Callable[[Progress], None] | None = None
) -> Progress:
    """Bring the view to where the log is complete now, ``batch`` events a transaction.

    ``progress`` is called after every transaction. Raises ``ProjectionFailed`` for a poison event under ``STOP``, with
    all events before it kept.
    """
    run = _Run(log, projection, codec)
    target = log.last_position()
    done = Progress(log.checkpoints.load(projection.name))
    while done.position < target:
        events = list(log.read_all(after=done.position, upto=target, types=projection.types, limit=batch))
        upto = events[-1].position if len(events) == batch else target
        done = run.advance(done, events, upto)
        if progress is not None:
            progress(done)
    return done


def rebuild(
    log: EventLog, projection: Projection, *, codec: Decoder | None = None, batch: int = 500, progress: Callable[[Progress], None] | None = None
) -> Progress:
    """Drop the view, its checkpoint and its parked events, then build it again from the first event.

    A rebuild that dies leaves a view with the checkpoint it has really reached: ``catch_up`` carries on from there.
    """
    log.views.clear(projection.name)
    return catch_up(log, projection, codec=codec, batch=batch, progress=progress)


def follow(
    log: EventLog,
    projection: Projection,
    *,
    stop: Callable[[], bool],
    codec: Decoder | None = None,
    poll: float = 0.05,
    batch: int = 500,
    progress: Callable[[Progress], None] | None = None,
) -> Progress:
    """Keep the view up to date until ``stop()`` is true; what this call handled and parked. Errors as in ``catch_up``."""
    pause = Pause(poll)
    total = Progress(log.checkpoints.load(projection.name))
    while not stop():
        # Asked for anew each time: a rebuild elsewhere moves it back, and this view must not stay behind then.
        reached = log.checkpoints.load(projection.name)
        if log.last_position() <= reached:
            pause.wait(log, reached)
            continue
        pause.reset()
        done = catch_up(log, projection, codec=codec, batch=batch, progress=progress)
        total = Progress(done.position, total.handled + done.handled, total.parked + done.parked)
    return total


class _Poisoned(Exception):
    """The event at ``index`` of a batch cannot be taken; leaving the transaction with this rolls it back."""

    def __init__(self, index: int, cause: Exception) -> None:
        super().__init__(index)
        self.index = index
        self.cause = cause


class _Moved(Exception):
    """Another runner has moved the checkpoint since the batch was read."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


class _HandlerLostLease(Exception):
    """A handler's own ``LeaseLost``, kept apart from the one that a store raises when two runners meet."""

    def __init__(self, error: LeaseLost) -> None:
        super().__init__(error)
        self.error = error


class _Run:
    """One projection over one log."""

    def __init__(self, log: EventLog, projection: Projection, codec: Decoder | None) -> None:
        self._log = log
        self._projection = projection
        self._codec = codec

    def advance(self, done: Progress, events: Sequence[StoredEvent], upto: int) -> Progress:
        """Take ``events`` and move the checkpoint to ``upto``; behind a poison event the rest is left for the next call."""
        decoded = [self._decode(event) for event in events]
        count = len(events)
        poison: tuple[StoredEvent, Exception] | None = None
        while True:
            try:
                self._commit(done.position, events[:count], decoded, upto, poison)
            except _Moved as moved:
                return attrs.evolve(done, position=moved.position)
            except LeaseLost:
                # Another runner's block was committed first; the view stands where that one left it.
                return attrs.evolve(done, position=self._log.checkpoints.load(self._projection.name))
            except _HandlerLostLease as lost:
                raise lost.error from lost.error.__cause__
            except _Poisoned as found:
                count, poison = found.index, (events[found.index], found.cause)
                continue
            break
        if poison is None:
            return Progress(upto, done.handled + count, done.parked)
        event, error = poison
        if self._projection.on_error is OnError.STOP:
            raise ProjectionFailed(
                f"Projection {self._projection.name!r} stopped at {event.stream} version {event.version} ({event.type}, position {event.position}): "
                f"{_described(error)}. Everything before it is kept. Mend the handler and run it again, or let the projection step over with OnError.SKIP."
            ) from error
        return Progress(event.position, done.handled + count, done.parked + 1)

    def _commit(self, position: int, events: Sequence[StoredEvent], decoded: Sequence[object], upto: int, poison: tuple[StoredEvent, Exception] | None) -> None:
        """One transaction: the handlers of ``events`` and, when ``poison`` follows them, its parking."""
        with self._log.views.transaction(self._projection.name) as view:
            if view.position != position:
                raise _Moved(view.position)
            for index, event in enumerate(events):
                self._handle(view, index, event, decoded[index])
            if poison is None:
                view.checkpoint(upto)
            elif self._projection.on_error is OnError.SKIP:
                bad, error = poison
                view.park(ParkedEvent(self._projection.name, bad.position, bad.stream, bad.version, _described(error), self._log.clock()))
                view.checkpoint(bad.position)
            elif events:
                view.checkpoint(events[-1].position)

    def _handle(self, view: ViewTransaction, index: int, event: StoredEvent, value: object) -> None:
        if isinstance(value, _Poisoned):
            raise _Poisoned(index, value.cause)
        try:
            self._projection.handle(view, event, value)
        except LeaseLost as error:
            raise _HandlerLostLease(error) from error
        except RetryableError:
            raise
        except Exception as error:
            raise _Poisoned(index, error) from error

    def _decode(self, event: StoredEvent) -> object:
        if self._codec is None:
            return None
        try:
            return self._codec.decode_stored(event)
        except RetryableError:
            raise
        except Exception as error:
            # Kept with its event, and raised or parked when its turn comes.
            return _Poisoned(0, error)


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
