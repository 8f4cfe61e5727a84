"""Waiting for news: at once for this object's own appends, by looking at the file for those of other processes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

#: Seconds between two looks at the file, at first and after nothing came for a while.
_EAGER: Final = 0.01
_IDLE: Final = 0.05
_GROWTH: Final = 1.1


class Signal:
    """The last position that this object committed, and the threads that wait for a later one."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._position = 0

    def reached(self, position: int) -> None:
        """Wake everybody who waits for something up to ``position``."""
        with self._changed:
            self._position = max(position, self._position)
            self._changed.notify_all()

    def wait(self, after: int, timeout: float, look: Callable[[], int]) -> bool:
        """Until the log is past ``after`` or ``timeout`` seconds are over; ``look`` asks the file where it is."""
        deadline = time.monotonic() + timeout
        pause = _EAGER
        while look() <= after:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            with self._changed:
                if self._position <= after:
                    self._changed.wait(min(left, pause))
            pause = min(pause * _GROWTH, _IDLE)
        return True
