"""Time for tests: it stands still until somebody moves it, and then it jumps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from ...eventlog.clock import Micros, from_datetime, from_timedelta, to_datetime

START: Final = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
"""When a test begins unless it says otherwise: a Monday morning."""


class VirtualClock:
    """A clock to hand to a log. Never goes back.

    >>> clock = VirtualClock()
    >>> clock.advance(timedelta(days=2))
    >>> clock.now.isoformat()
    '2026-01-07T09:00:00+00:00'
    """

    def __init__(self, start: datetime = START) -> None:
        self._now = from_datetime(start)

    def __call__(self) -> Micros:
        return self._now

    def __repr__(self) -> str:
        return f"VirtualClock({self.now.isoformat()})"

    @property
    def now(self) -> datetime:
        """The moment it shows."""
        return to_datetime(self._now)

    def advance(self, length: timedelta) -> None:
        """Let ``length`` pass; raises ``ValueError`` for a negative one."""
        self.jump(self._now + from_timedelta(length))

    def set(self, moment: datetime) -> None:
        """Go on to ``moment`` (an aware datetime); raises ``ValueError`` when it lies in the past."""
        self.jump(from_datetime(moment))

    def jump(self, micros: Micros) -> None:
        """``set``, in microseconds since 1970-01-01 UTC."""
        if micros < self._now:
            raise ValueError(f"a clock does not go back: it is {self.now.isoformat()}, and {to_datetime(micros).isoformat()} has passed")
        self._now = micros
