"""How long the store has taken nothing: what tells a hiccup from a full disk, for a run that is to end by itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import attrs

from ..eventlog.errors import LogUnavailable

_FEWEST: Final = 3


@attrs.define(eq=False)
class Outage:
    """Failures since the last commit that went through."""

    #: Seconds after which it is too long.
    bears: float = 20.0
    #: Seconds of silence between two failures that make them two troubles. A turn that could not be appended is tried again
    #: when its lease has run out, so this must be longer than a lease.
    apart: float = 90.0
    _clock: Callable[[], float] = time.monotonic
    _began: float = attrs.field(default=0.0, init=False)
    _latest: float = attrs.field(default=0.0, init=False)
    _failures: int = attrs.field(default=0, init=False)
    _problem: BaseException | None = attrs.field(default=None, init=False)
    #: Where the log was first seen to end since.
    _position: int | None = attrs.field(default=None, init=False)

    def note(self, problem: BaseException) -> None:
        """Something failed; only an unreachable store counts."""
        if not isinstance(problem, LogUnavailable):
            return
        now = self._clock()
        if self._failures == 0 or now - self._latest > self.apart:
            self._began, self._failures, self._position = now, 0, None
        self._latest, self._problem = now, problem
        self._failures += 1

    @property
    def under_way(self) -> bool:
        """Whether something failed, and no commit is known to have gone through since."""
        return self._failures > 0

    def stands(self, position: int) -> None:
        """The log was seen to end at ``position``. When it grows, others' commits go through, and so would ours if there were any."""
        if self._position is not None and position > self._position:
            self.over()
        else:
            self._position = position

    def over(self) -> None:
        """A commit went through."""
        self._failures, self._position = 0, None

    def too_long(self) -> LogUnavailable | None:
        """The error to give up with, when it is time to."""
        lasted = self._latest - self._began
        if self._failures < _FEWEST or lasted < self.bears:
            return None
        given_up = LogUnavailable(
            f"The log has taken nothing for {lasted:.0f} s ({self._failures} failures), so this run gives up: {self._problem}. "
            "What is in the log stays; run again once it can be written. Without --until-idle a run waits for as long as it takes."
        )
        given_up.__cause__ = self._problem
        return given_up
