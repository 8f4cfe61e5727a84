"""Running a read-only tool or ``ctx.run`` function for the journal."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs

from ..eventlog.codec import Codec
from .calling import called, raised
from .facts import Failure
from .failures import failure_of

if TYPE_CHECKING:
    from .requests import NeedRead


async def run_read(need: NeedRead, codec: Codec) -> tuple[Any, Failure | None]:
    """``(plain value, None)``, or ``(None, failure)`` when it raised or ran longer than its own timeout, on its last attempt.

    Blocking functions run in a thread. Raises ``Unencodable`` for a value the log cannot hold. Whatever the function raises
    is a failure of the read, SystemExit and its own cancellation included; only a cancellation of who waits for it, and
    Ctrl-C, are passed on. Out of its time it is a TimeoutError whatever it raised, but what it returned is what was read.
    """
    attempt = 1
    while True:
        value, problem, detail = await _attempt(need)
        if problem is None:
            break
        # Only what is an Exception heals by itself; the policy knows those of the errors that do not.
        if need.retry is None or not isinstance(problem, Exception) or need.retry.retry_at(attempt, problem, 0) is None:
            failure = failure_of(problem)
            return None, attrs.evolve(failure, detail=detail) if detail else failure
        await asyncio.sleep(need.retry.delay(attempt).total_seconds())
        attempt += 1
    return codec.tree(codec.encode_value(value, need.returns if need.returns is not type(None) else Any)), None


async def _attempt(need: NeedRead) -> tuple[Any, BaseException | None, str]:
    call = need.call if need.is_async else functools.partial(in_thread, need.call)
    found = await called(call, need.timeout)
    if found.cancelled:  # nothing is lost by reading again, and the turn has ended
        raise asyncio.CancelledError
    if isinstance(found.problem, KeyboardInterrupt):
        raise found.problem
    if found.problem is not None and found.late:
        return None, TimeoutError(f"{need.tool} ran longer than {need.timeout:g} s"), raised(found.problem)
    return found.value, found.problem, ""


async def in_thread(call: Callable[[], Any]) -> Any:
    """What ``call`` returns, run in a thread. A StopIteration, which no future can carry, becomes a RuntimeError."""

    def guarded() -> Any:
        try:
            return call()
        except StopIteration as problem:
            raise RuntimeError(f"the function raised StopIteration: {problem}") from problem

    return await asyncio.to_thread(guarded)


def is_cancelled() -> bool:
    """Whether the running task itself is being cancelled; if not, a CancelledError is just what some function raised."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
