"""When to try a failed turn again: a pure policy."""

from __future__ import annotations

from datetime import timedelta

import attrs

from ..eventlog.clock import Micros, from_timedelta
from ..eventlog.errors import TerminalError
from .errors import TerminalAgentError


@attrs.frozen
class RetryPolicy:
    """Exponential back-off up to a limit, then the input is parked (S-3.3)."""

    max_attempts: int = attrs.field(default=5, validator=attrs.validators.ge(1))
    first: timedelta = timedelta(seconds=1)
    factor: float = 2.0
    longest: timedelta = timedelta(minutes=5)

    def delay(self, attempt: int) -> timedelta:
        """How long to wait after attempt number ``attempt`` (from 1).

        >>> [RetryPolicy().delay(n).total_seconds() for n in (1, 2, 3)]
        [1.0, 2.0, 4.0]
        """
        delay = self.first
        for _ in range(attempt - 1):
            if delay >= self.longest or self.factor == 1:  # looked at on the way: the power alone may be more than a timedelta holds
                break
            delay *= self.factor
        return min(delay, self.longest)

    def retry_at(self, attempt: int, error: BaseException, now: Micros) -> Micros | None:
        """The moment of the next attempt, or ``None`` to park: the error cannot heal, or it was the last attempt."""
        if isinstance(error, TerminalAgentError | TerminalError) or attempt >= self.max_attempts:
            return None
        return now + from_timedelta(self.delay(attempt))
