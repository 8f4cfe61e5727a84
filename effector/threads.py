"""Blocking tools, each in a thread of its own.

Not in the loop's pool: a tool that ignores its timeout keeps its thread for ever, and a pool that such tools have filled
would hold up the renewal of every lease without a word. Threads of tools end with the process; they never keep it alive.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final

_NAME: Final = "intentlog-tool"
BEFORE: Final[ContextVar[Callable[[], None]]] = ContextVar("before")
"""Called in the thread of a function, as the last thing before the function; what it raises is raised in the function's place."""
_overdue: Final[Counter[str]] = Counter()
_lock: Final = threading.Lock()


async def in_own_thread(call: Callable[[], Any], name: str = "") -> Any:
    """What ``call``, of the tool ``name``, returns or raises. A StopIteration, which no coroutine can raise, becomes a RuntimeError."""
    loop = asyncio.get_running_loop()
    ended = left = False
    # What was raised is told as a value: a future that raised GeneratorExit would close every coroutine that waits for it.
    future: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
    context = contextvars.copy_context()
    before = BEFORE.get(_nothing)

    def tell(value: Any, problem: BaseException | None) -> None:
        if not future.done():  # else the caller's patience was over before
            future.set_result((value, problem))

    def run() -> None:
        nonlocal ended
        value: Any = None
        problem: BaseException | None = None
        try:
            before()
            value = context.run(call)
        except StopIteration as raised:
            problem = RuntimeError(f"the function raised StopIteration: {raised}")
            problem.__cause__ = raised
        except BaseException as raised:  # whatever it is, it is the caller's
            problem = raised
        with _lock:
            ended = True
            if left:
                _overdue[name] -= 1
        try:
            loop.call_soon_threadsafe(tell, value, problem)
        except RuntimeError:  # the loop is closed, so nobody waits for it any more
            pass

    threading.Thread(target=run, name=_NAME, daemon=True).start()
    try:
        value, problem = await future
    except asyncio.CancelledError:
        with _lock:
            if not ended:
                left = True
                _overdue[name] += 1
        raise
    if problem is not None:
        raise problem
    return value


def _nothing() -> None:
    """Stands before a function that nothing stands before."""


def ask_before() -> None:
    """The same for a function that is called here; what stands before it (``BEFORE``) may raise."""
    BEFORE.get(_nothing)()


def overdue(name: str) -> int:
    """Threads of the tool ``name`` whose call was given up and that have not ended."""
    return _overdue[name]


def running() -> int:
    """Threads of blocking tools that have not ended, those whose timeout is over included."""
    return sum(each.name == _NAME for each in threading.enumerate())
