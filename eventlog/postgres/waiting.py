"""Waiting for news: at once for this object's own appends, by hints and by looking for those of other processes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from .address import Address
from .hints import Courier

#: Seconds between two looks at the log, at first and after nothing came for a while.
EAGER: Final = 0.005
IDLE: Final = 0.2
_GROWTH: Final = 1.5
#: Seconds between two looks when there is news that an older transaction still hides.
_HIDDEN: Final = 0.005


class Signal:
    """The commits of this object, the hints of others, and the threads that wait for one of them.

    Nothing depends on a hint: every wait also looks by itself, often at first and then four or five times a second.
    """

    def __init__(self, address: Address, *, read_only: bool = False) -> None:
        self._changed = threading.Condition()
        #: Grows with every commit and every hint.
        self._news = 0
        #: Where the last vain wait stood, and how far its pauses had grown: the next one there goes on like that.
        self._quiet = (-1, EAGER)
        self._looking = threading.Lock()
        #: The last look: when it began, what was known before it, and what it saw.
        self._looked = (float("-inf"), -1, 0)
        self._courier = Courier(address, self._heard, sends=not read_only)

    def reached(self, position: int) -> None:
        """Wake everybody who waits for an append of this object, and soon those in other processes."""
        self._heard()
        self._courier.send()

    def wait(self, after: int, timeout: float, look: Callable[[], int]) -> bool:
        """Until the log is past ``after`` or ``timeout`` seconds are over; ``look`` asks the server where it is."""
        self._courier.listen()
        deadline = time.monotonic() + timeout
        pause = self._quiet[1] if self._quiet[0] == after else EAGER
        while True:
            news = self._news
            if self._look(look, news, pause / 4) > after:
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                self._quiet = (after, pause)
                return False
            if not self._told(news, min(left, pause)):
                pause = min(pause * _GROWTH, IDLE)
                continue
            pause = EAGER
            if self._look(look, self._news, 0.0) > after:
                return True
            # News may come as fast as appends do; looks must not.
            time.sleep(min(_HIDDEN, max(deadline - time.monotonic(), 0.0)))

    def close(self) -> None:
        """Hang up, and wake everybody for the last time."""
        self._courier.close()
        self._heard()

    def _heard(self) -> None:
        with self._changed:
            self._news += 1
            self._changed.notify_all()

    def _told(self, news: int, timeout: float) -> bool:
        """Whether there is more news than that, within ``timeout`` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self._news != news, timeout)

    def _look(self, look: Callable[[], int], news: int, age: float) -> int:
        """Where the log is: a look that began ``age`` seconds ago will do for all threads that wait, unless there was news since."""
        asked = time.monotonic()
        with self._looking:
            began, known, seen = self._looked
            if known < news or began < asked - age:
                began, known = time.monotonic(), self._news
                seen = look()
                self._looked = (began, known, seen)
            return seen
