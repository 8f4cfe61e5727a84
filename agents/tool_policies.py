"""What a tool says about its own errors and limits: which may heal, how often it may be called, how many calls at once.

Plain values; the effector obeys them. Importing this brings no runtime with it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import attrs

from ..eventlog.clock import Micros, from_timedelta
from .errors import DefinitionError
from .retry import RetryPolicy

_ZERO: Final = timedelta(0)
_MOST_CALLS: Final = 100_000
DEFAULT_RETRY: Final = RetryPolicy()
"""For tools that mark errors as retryable and say no more."""


class Retryable(Exception):
    """``raise Retryable("busy") from problem``: this attempt changed nothing, or doing it again does no harm; try later.

    ``after`` is how long to wait at least, where the other side has said so. Anything but a timedelta raises TypeError: a
    number could be seconds or milliseconds, and a wait that is not kept is found out by the other side.
    """

    _after: timedelta = _ZERO

    def __init__(self, message: str = "", *, after: timedelta = _ZERO) -> None:
        super().__init__(message)
        self.after = after

    @property
    def after(self) -> timedelta:
        """How long to wait at least."""
        return self._after

    @after.setter
    def after(self, value: timedelta) -> None:
        if not isinstance(value, timedelta):
            raise TypeError(f"Retryable(after=…) takes a timedelta, such as timedelta(seconds=5), not {value!r:.80}")
        self._after = value


@attrs.frozen
class Rate:
    """At most ``calls`` calls begin within any span of ``per``.

    >>> Rate(10, per=timedelta(seconds=1)).calls
    10
    """

    calls: int
    per: timedelta = timedelta(seconds=1)

    def __attrs_post_init__(self) -> None:
        if type(self.calls) is not int or not isinstance(self.per, timedelta):
            raise DefinitionError(
                f"Rate({self.calls!r:.80}, per={self.per!r:.80}): give a whole number and a timedelta, for example Rate(10, per=timedelta(seconds=1))"
            )
        if not 1 <= self.calls <= _MOST_CALLS or self.per <= _ZERO:
            raise DefinitionError(f"Rate({self.calls}, per={self.per}): give 1 to {_MOST_CALLS:,} calls in a span longer than zero, for example Rate(10)")


@attrs.frozen
class ToolPolicies:
    """How one tool is to be called."""

    retry: RetryPolicy | None = None
    #: Errors that may heal, beside ``Retryable``.
    retry_on: tuple[type[Exception], ...] = ()
    rate: Rate | None = None
    #: Calls at once in one effector process.
    concurrency: int | None = None

    def problem(self) -> str:
        """What is wrong with them, or nothing."""
        for each in self.retry_on:
            if not (isinstance(each, type) and issubclass(each, Exception)):
                return f"retry_on= takes classes of exceptions, not {each!r:.80}"
        if self.retry is not None and not isinstance(self.retry, RetryPolicy):
            return f"retry= takes a RetryPolicy, such as RetryPolicy(max_attempts=5), not {self.retry!r:.80}"
        if self.rate is not None and not isinstance(self.rate, Rate):
            return f"rate= takes a Rate, such as Rate(10, per=timedelta(seconds=1)), not {self.rate!r:.80}"
        if self.concurrency is not None and (type(self.concurrency) is not int or self.concurrency < 1):
            return f"concurrency= must be a whole number from 1, not {self.concurrency!r:.80}"
        return ""

    def waits(self, problem: BaseException) -> timedelta | None:
        """How long to wait at least after ``problem``; ``None`` when it is not one that may heal."""
        if isinstance(problem, Retryable):
            return max(problem.after, _ZERO) if isinstance(problem.after, timedelta) else _ZERO
        return _ZERO if isinstance(problem, self.retry_on) else None

    def next_attempt(self, attempts: int, at_least: timedelta, now: Micros, deadline: Micros) -> Micros | str:
        """The moment of the attempt after number ``attempts``, or why there is none. Never at or past ``deadline``."""
        policy = self.retry or DEFAULT_RETRY
        if attempts >= policy.max_attempts:
            return f"given up after {attempts} of {policy.max_attempts} attempts"
        delay = from_timedelta(max(policy.delay(attempts), at_least))
        if now + delay >= deadline:
            return f"given up after attempt {attempts}: the next one would be past the intent's deadline"
        return now + delay
