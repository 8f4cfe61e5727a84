"""Running a read-only tool or ``ctx.run`` function for the journal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..eventlog.codec import Codec
from .facts import Failure
from .failures import failure_of

if TYPE_CHECKING:
    from .requests import NeedRead


async def run_read(need: NeedRead, codec: Codec) -> tuple[Any, Failure | None]:
    """``(plain value, None)``, or ``(None, failure)`` when it raised or ran longer than its own timeout, on its last attempt.

    Blocking functions run in a thread. Raises ``Unencodable`` for a value the log cannot hold. Whatever the function raises
    is a failure of the read, SystemExit included; only the cancellation of this very call is passed on.
    """
    attempt = 1
    while True:
        value, problem = await _attempt(need)
        if problem is None:
            break
        # Only what is an Exception heals by itself; the policy knows those of the errors that do not.
        if need.retry is None or not isinstance(problem, Exception) or need.retry.retry_at(attempt, problem, 0) is None:
            return None, failure_of(problem)
        await asyncio.sleep(need.retry.delay(attempt).total_seconds())
        attempt += 1
    return codec.tree(codec.encode_value(value, need.returns if need.returns is not type(None) else Any)), None


async def _attempt(need: NeedRead) -> tuple[Any, BaseException | None]:
    try:
        async with asyncio.timeout(need.timeout) as timer:
            return await need.call() if need.is_async else await in_thread(need.call), None
    except (GeneratorExit, KeyboardInterrupt):
        raise
    except BaseException as problem:
        if isinstance(problem, asyncio.CancelledError) and is_cancelled():
            raise
        if isinstance(problem, TimeoutError) and timer.expired():
            return None, TimeoutError(f"{need.tool} ran longer than {need.timeout:g} s")
        return None, problem


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
