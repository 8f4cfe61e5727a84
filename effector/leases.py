"""Up to which moment a lease is known to stand, asked right before users' code is called under it.

Race argument. A lease was asked for at some moment, and ends its length after that moment at the earliest: it is the moment
*before* the statement was sent that counts, so neither a slow store nor a slow way to it makes it look longer. From then on
somebody else may hold the key and have said, for good, that the end of our attempt was never seen. So nothing is called unless

* the length since that moment is not over, by a clock that nobody sets and that goes on while the machine sleeps, and
* a tenth of it is left: for clocks that do not agree to the last millisecond, and for what lies between asking and calling.

Asked is in the very thread that calls, as the last thing before the call: an event loop that another tool held up, a process
that was stopped, a thread that did not get its turn, all lie before it. When it no longer stands, the store is asked once more:
a renewal that succeeds says that nobody has had the key meanwhile, for the token is the same. Otherwise the call is not begun
and nothing is said of it: it is a lost lease, and a crash before the call would have left the same behind.

What no program can do is make asking and calling one: stopped between the two, for longer than that tenth, a call is late.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterable
from typing import Any, Final, Generic, TypeVar

from ..eventlog.clock import SECOND, Micros
from .threads import BEFORE

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
_LEFT: Final = 0.1
"""The part of a lease that must be left for a call to begin."""


def moment() -> float:
    """Seconds by a clock that is never set and, where there is one, counts the machine's sleep."""
    return time.clock_gettime(_CLOCK) if _CLOCK is not None else time.monotonic()


_CLOCK: Final[int | None] = getattr(time, "CLOCK_BOOTTIME", None)


class Leases(Generic[K]):
    """What is held, and until when that is certain. From any thread; ``lease``: their length in µs."""

    def __init__(self, lease: Micros, clock: Callable[[], float] = moment) -> None:
        self._length, self._clock = lease / SECOND, clock
        self._until: dict[K, float] = {}
        self._lock = threading.Lock()

    def now(self) -> float:
        """To be taken before a lease is asked for, or renewed, and given with what came of it."""
        return self._clock()

    def taken(self, keys: Iterable[K], asked: float) -> None:
        """These are held; they were asked for at ``asked``."""
        with self._lock:
            for each in keys:
                self._until[each] = asked + self._length

    def renewed(self, keys: Iterable[K], asked: float) -> None:
        """The same of those that are still held."""
        with self._lock:
            for each in keys:
                if each in self._until:
                    self._until[each] = max(self._until[each], asked + self._length)

    def stands(self, key: K) -> bool:
        """Whether it is certain that nobody else has it, for long enough to begin something."""
        until = self._until.get(key)
        return until is not None and self._clock() < until - _LEFT * self._length

    def over(self, key: K) -> None:
        """It is held no more."""
        with self._lock:
            self._until.pop(key, None)


class NotBegun(Exception):
    """Users' code was not called, because its lease may be over."""


class Guard:
    """Stands before one call of users' code."""

    def __init__(self, stands: Callable[[], bool]) -> None:
        self._stands = stands
        #: Set when the call was not begun, whatever came of it otherwise.
        self.refused = False

    def ask(self) -> None:
        """Raises ``NotBegun`` unless the lease stands now."""
        if not self._stands():
            self.refused = True
            raise NotBegun

    async def before(self, call: Coroutine[Any, Any, T], renew: Callable[[], Awaitable[object]], began: Callable[[], object]) -> T:
        """``call``, if the lease stands when it begins, after one renewal if need be. Raises ``NotBegun``.

        A blocking function is called in another thread, which asks again (``threads.BEFORE``). What ``call`` makes of
        that is worth nothing, so whoever called looks at ``refused``. To be run in a task of its own.
        """
        try:
            if not self._stands():
                await renew()
            self.ask()
            BEFORE.set(self.ask)
            began()
        except BaseException:
            call.close()
            raise
        return await call
