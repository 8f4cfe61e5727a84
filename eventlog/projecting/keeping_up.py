"""Bringing views to where the log is, and keeping them there: one projection, or every one that an app declares."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

import attrs

from ..errors import RetryableError
from ..log import EventLog
from ..tail import Pause
from .advancing import Progress, Run, Told, standing_of
from .declared import Decoder, Projection

_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 5.0


def catch_up(
    log: EventLog, projection: Projection, *, codec: Decoder | None = None, batch: int = 500, upto: int | None = None, progress: Told = None
) -> Progress:
    """Bring the version's view to where the log is complete now (or to position ``upto``), ``batch`` events a transaction.

    The first version of a name that is run becomes the live one. ``progress`` is called after every batch. Raises
    ``ProjectionFailed`` for a poison event under ``STOP``, with all events before it kept, and ``ProjectionRefused`` when
    the checkpoint is ahead of the log.
    """
    reached, end = standing_of(log, projection)
    _answer_to_the_name(log, projection)
    return Run(log, projection, codec).through(reached, end if upto is None else min(upto, end), batch=batch, told=progress)


def _answer_to_the_name(log: EventLog, projection: Projection) -> None:
    """Make this version the live one if there is none."""
    if projection.name not in log.views.pointed():
        log.views.point(projection.name, projection.view, expected=None)


def rebuild(log: EventLog, projection: Projection, *, codec: Decoder | None = None, batch: int = 2_000, progress: Told = None) -> Progress:
    """Drop the version's view, its checkpoint and its parked events, then build it again from the first event, in place.

    Readers of a live view see it grow; ``rebuild_beside`` spares them that. A rebuild that dies leaves a view with the
    checkpoint it has really reached: ``catch_up`` carries on from there. Errors as in ``catch_up``.
    """
    log.views.clear(projection.view)
    return catch_up(log, projection, codec=codec, batch=batch, progress=progress)


def follow(
    log: EventLog,
    projection: Projection,
    *,
    stop: Callable[[], bool],
    codec: Decoder | None = None,
    poll: float = 0.05,
    batch: int = 500,
    progress: Told = None,
) -> Progress:
    """Keep the view up to date until ``stop()`` is true, looked at behind every batch; what this call handled and parked.

    Errors as in ``catch_up``.
    """
    pause = Pause(poll)
    total = Progress(log.checkpoints.load(projection.view))
    while not stop():
        # Asked for anew each time: a rebuild elsewhere moves it back, and this view must not stay behind then.
        reached, end = standing_of(log, projection)
        if end <= reached:
            pause.wait(log, reached)
            continue
        pause.reset()
        _answer_to_the_name(log, projection)
        done = Run(log, projection, codec).through(reached, end, batch=batch, told=progress, stop=stop)
        total = Progress(done.position, total.handled + done.handled, total.parked + done.parked)
    return total


@attrs.frozen
class Ended:
    """How one projection's run ended."""

    projection: Projection
    #: The last that was heard of it.
    progress: Progress
    #: What stopped it, or None.
    error: BaseException | None = None


def run_all(
    log: EventLog,
    projections: Sequence[Projection],
    *,
    stop: Callable[[], bool],
    codec: Decoder | None = None,
    until_idle: bool = False,
    poll: float = 0.05,
    batch: int = 500,
    patience: float = 20.0,
    trouble: Callable[[Projection, Exception], None] | None = None,
) -> list[Ended]:
    """Follow with every projection, each in a thread of its own, so that one that stops holds up no other.

    Of the versions of a name that has no live one, the newest becomes it. Ends when ``stop()`` is true or none is left;
    with ``until_idle`` when each has come to where the log was complete. A ``RetryableError`` is tried again, ever more
    slowly; with ``until_idle`` it ends its projection once ``patience`` seconds have brought nothing. ``trouble`` is told
    of these and of what ends a projection, when it happens, from the projection's thread. How each ended, in the order given.
    """
    newest = {each.name: each for each in sorted(projections, key=lambda each: each.version)}
    runners = [_Runner(log, each, codec, stop, until_idle, poll, batch, patience, trouble, newest[each.name] is each) for each in projections]
    threads = [threading.Thread(target=runner.run, name=f"projection {runner.projection.view}", daemon=True) for runner in runners]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [Ended(runner.projection, runner.progress, runner.error) for runner in runners]


@attrs.define(eq=False)
class _Runner:
    """One projection's thread."""

    log: EventLog
    projection: Projection
    codec: Decoder | None
    stop: Callable[[], bool]
    until_idle: bool
    poll: float
    batch: int
    patience: float
    trouble: Callable[[Projection, Exception], None] | None
    #: Whether it becomes the live version when there is none.
    may_be_live: bool
    progress: Progress = attrs.field(factory=Progress, init=False)
    error: BaseException | None = attrs.field(default=None, init=False)

    def run(self) -> None:
        try:
            self._keep_up()
        except BaseException as error:  # told to whoever waits for this thread
            self.error = error
            if self.trouble is not None and isinstance(error, Exception) and not isinstance(error, RetryableError):
                self.trouble(self.projection, error)

    def _keep_up(self) -> None:
        quiet, rest, well = Pause(self.poll), _FIRST_PAUSE, time.monotonic()
        while not self.stop():
            before = self.progress
            try:
                news = self._step(before)
                if not news and not self.until_idle:
                    quiet.wait(self.log, self.progress.position)  # it asks the store, which may be gone by now
            except RetryableError as error:
                if self.trouble is not None:
                    self.trouble(self.projection, error)
                if self.progress.seen > before.seen:
                    rest, well = _FIRST_PAUSE, time.monotonic()
                elif self.until_idle and time.monotonic() - well > self.patience:
                    raise
                self._sleep(rest)
                rest = min(rest * 2, _LONGEST_PAUSE)
                continue
            if self.until_idle:
                return
            rest, well = _FIRST_PAUSE, time.monotonic()
            if news:
                quiet.reset()

    def _step(self, before: Progress) -> bool:
        """Catch up once; whether there was anything to do."""

        def told(now: Progress) -> None:
            self.progress = Progress(now.position, before.handled + now.handled, before.parked + now.parked)

        reached, end = standing_of(self.log, self.projection)
        if self.may_be_live:
            _answer_to_the_name(self.log, self.projection)
        done = Run(self.log, self.projection, self.codec).through(reached, end, batch=self.batch, told=told, stop=self.stop)
        moved = done.position > before.position
        told(done)
        return moved

    def _sleep(self, seconds: float) -> None:
        """Rest, looking up now and then whether it is over."""
        until = time.monotonic() + seconds
        while not self.stop() and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, self.poll))
