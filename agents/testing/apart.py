"""Running an event loop from a test that may be a coroutine itself."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def apart(call: Callable[[], T]) -> T:
    """What ``call`` returns; run in a thread of its own when an event loop is running in this one, because ``call`` begins one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return call()
    ended: list[tuple[T | None, BaseException | None]] = []

    def work() -> None:
        try:
            ended.append((call(), None))
        except BaseException as problem:  # handed to the caller, whatever it is
            ended.append((None, problem))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    value, problem = ended[0]
    if problem is not None:
        raise problem
    return value  # type: ignore[return-value]
