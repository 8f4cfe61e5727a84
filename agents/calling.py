"""A user's function, called under its timer in a task of its own.

The task is the function's alone: what it cancels as ``asyncio.current_task()`` is itself and nothing that comes after it,
and whoever waits can tell that, and a CancelledError that it raised, from the cancellation of its own task.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Any

import attrs

from .failures import failure_of
from .own_tasks import Exited, guard_tasks


@attrs.frozen
class Called:
    """How a call ended. Without ``problem`` it returned ``value``."""

    value: Any = None
    #: What it raised; a CancelledError when it was told to stop and did, or cancelled itself.
    problem: BaseException | None = None
    #: It ran out of its time: the timer told it to stop, or it ended by itself and later.
    late: bool = False
    #: Whoever waits was cancelled, the function was told to stop, and returned a value nevertheless.
    cancelled: bool = False


async def called(call: Callable[[], Awaitable[Any]], seconds: float | None) -> Called:
    """Await ``call()``, which after ``seconds`` (``None``: never) is told to stop by a cancellation, and waited for until it has ended.

    When the waiting task is cancelled the function is told to stop too, and whatever it raises then is that cancellation. A
    value is passed on, for what is known is known.
    """
    ended: list[Called] = []

    async def run() -> None:
        guard_tasks(loop)
        try:
            value = await call()
        except Exited as exited:  # of a task that it waited for
            ended.append(Called(problem=exited.__cause__, late=loop.time() >= until))
        except BaseException as problem:  # as a value: SystemExit in a task would end the loop, GeneratorExit close who waits
            ended.append(Called(problem=problem, late=loop.time() >= until))
        else:
            ended.append(Called(value, late=loop.time() >= until))

    loop = asyncio.get_running_loop()
    until, patient = loop.time() + (math.inf if seconds is None else seconds), seconds is not None
    cancelled: asyncio.CancelledError | None = None
    late = False
    task = loop.create_task(run())
    try:
        while not task.done():
            try:
                await asyncio.wait({task}, timeout=max(0.0, until - loop.time()) if patient else None)
            except asyncio.CancelledError as told:
                cancelled, patient = told, False
                task.cancel()
                continue
            if patient and not task.done():
                late, patient = True, False
                task.cancel()
    finally:
        if not task.done() and not loop.is_closed():  # whoever waited was closed
            task.cancel()
    found = ended[0] if ended else Called(problem=asyncio.CancelledError())  # told to stop before it had begun
    if cancelled is not None and found.problem is not None:
        raise cancelled
    return attrs.evolve(found, late=late or found.late, cancelled=cancelled is not None)


def raised(problem: BaseException | None) -> str:
    """What a function that is out of its time raised, in words; nothing when it just stopped, or returned."""
    if problem is None or isinstance(problem, asyncio.CancelledError):
        return ""
    failure = failure_of(problem)
    return f"it raised {failure.type}: {failure.message}"
