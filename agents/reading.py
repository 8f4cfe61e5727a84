"""Running a read-only tool or ``ctx.run`` function for the journal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from ..eventlog.codec import Codec
from .facts import Failure
from .failures import failure_of
from .requests import NeedRead


async def run_read(need: NeedRead, codec: Codec) -> tuple[Any, Failure | None]:
    """``(plain value, None)``, or ``(None, failure)`` when it raised or ran longer than its own timeout.

    Blocking functions run in a thread. Raises ``Unencodable`` for a value the log cannot hold. Whatever the function raises
    is a failure of the read, SystemExit included; only the cancellation of this very call is passed on.
    """
    try:
        async with asyncio.timeout(need.timeout) as timer:
            value = await need.call() if need.is_async else await in_thread(need.call)
    except (GeneratorExit, KeyboardInterrupt):
        raise
    except BaseException as problem:
        if isinstance(problem, asyncio.CancelledError) and is_cancelled():
            raise
        if isinstance(problem, TimeoutError) and timer.expired():
            problem = TimeoutError(f"{need.tool} ran longer than {need.timeout:g} s")
        return None, failure_of(problem)
    return codec.tree(codec.encode_value(value, need.returns if need.returns is not type(None) else Any)), None


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
