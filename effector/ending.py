"""The end of a command that served: threads that tools began and left, and that are no daemons, keep no process from ending."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

_LAST: Final = 3.0
"""Seconds that such threads may take when everything else is over."""


@contextmanager
def ending_without_threads(code: Callable[[], int], tell: Callable[[list[str]], None]) -> Iterator[None]:
    """Threads that begin in here are waited for a moment when the process is at its end, which is then ``code``. ``tell`` hears their names.

    Python itself waits for every thread that is no daemon, and so for ever for one that a tool's library keeps. Pools end
    their idle threads by themselves at that moment, so it is not looked before.
    """
    before = set(threading.enumerate())

    def left() -> list[str]:
        return [each.name for each in threading.enumerate() if not each.daemon and each not in before]

    def end() -> None:
        threading.main_thread().join()
        deadline = time.monotonic() + _LAST
        while left() and time.monotonic() < deadline:
            time.sleep(0.05)
        if names := left():
            tell(names)
            os._exit(code())

    try:
        yield
    finally:
        if left():
            threading.Thread(target=end, name="intentlog-ending", daemon=True).start()
