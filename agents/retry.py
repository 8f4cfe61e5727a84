"""When to try a failed turn again: a pure policy."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import attrs

from ..eventlog.clock import Micros, from_timedelta
from ..eventlog.errors import TerminalError
from .errors import DefinitionError, TerminalAgentError


def _refused(field: attrs.Attribute[Any], takes: str, value: object) -> DefinitionError:
    return DefinitionError(f"RetryPolicy({field.name}=…) takes {takes}, not {value!r:.80}")


def _whole(_: object, field: attrs.Attribute[Any], value: object) -> None:
    if type(value) is not int:
        raise _refused(field, "a whole number from 1", value)


def _length(_: object, field: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, timedelta) or value < timedelta(0):
        raise _refused(field, "a timedelta of zero or more, such as timedelta(seconds=5)", value)


def _times(_: object, field: attrs.Attribute[Any], value: object) -> None:
    if type(value) not in (int, float) or not 0 < value < math.inf:  # type: ignore[operator]
        raise _refused(field, "a number above zero, such as 2", value)


@attrs.frozen
class RetryPolicy:
    """Exponential back-off up to a limit, then the input is parked (S-3.3). Raises ``DefinitionError`` for what could only fail later."""

    max_attempts: int = attrs.field(default=5, validator=[_whole, attrs.validators.ge(1)])
    first: timedelta = attrs.field(default=timedelta(seconds=1), validator=_length)
    factor: float = attrs.field(default=2.0, validator=_times)
    longest: timedelta = attrs.field(default=timedelta(minutes=5), validator=_length)

    def delay(self, attempt: int) -> timedelta:
        """How long to wait after attempt number ``attempt`` (from 1).

        >>> [RetryPolicy().delay(n).total_seconds() for n in (1, 2, 3)]
        [1.0, 2.0, 4.0]
        """
        delay = self.first
        for _ in range(attempt - 1):
            if delay >= self.longest or self.factor == 1:
                break
            if delay and self.factor > self.longest / delay:  # looked at before: the product may be more than a timedelta holds
                return self.longest
            delay *= self.factor
        return min(delay, self.longest)

    def retry_at(self, attempt: int, error: BaseException, now: Micros) -> Micros | None:
        """The moment of the next attempt, or ``None`` to park: the error cannot heal, or it was the last attempt."""
        if isinstance(error, TerminalAgentError | TerminalError) or attempt >= self.max_attempts:
            return None
        return now + from_timedelta(self.delay(attempt))
