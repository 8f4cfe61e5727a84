"""Leases are renewed by a thread of its own: a tool that holds up the event loop costs no key its lease (S-6.7).

That must not keep a dead effector's keys for ever, so nothing is renewed past patience: a key whose call is under way, until the
call is so long overdue that it counts as deaf; any other key, as long as the loop turns or some call that may be what holds it
up is not overdue like that. After that the leases run out, and others go on.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Final, Generic, TypeVar

from .keeping import pause

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
DEAF: Final = 5.0
"""Seconds past its timeout after which a tool counts as deaf to its cancellation."""
_LOOK: Final = 0.5
"""Seconds between two looks at the loop."""
_OVERSLEPT: Final = 2.0
"""Seconds late from which on it is this process that stood still."""


class Heartbeat(Generic[T]):
    """Calls ``beat`` in its thread, ``every`` so many seconds, and in the loop ``told`` with what came of it."""

    def __init__(self, every: float, beat: Callable[[], T], told: Callable[[T], None]) -> None:
        self._every, self._beat, self._told = every, beat, told
        self._alive = self._patient = float("-inf")
        self._asked = False

    def due(self, keys: Iterable[K], deadlines: Mapping[K, float], deaf: float = DEAF) -> list[K]:
        """Those of ``keys`` to renew now. ``deadlines``: of those whose call is under way, when its time is up (``time.monotonic``)."""
        now = time.monotonic()
        longest = max(self._alive, *deadlines.values()) if deadlines else self._alive
        return [each for each in keys if now <= max(deadlines.get(each, longest), self._patient) + deaf]

    async def run(self) -> None:
        """For ever. What ``beat`` raises is raised here; the thread goes on meanwhile if the loop cannot hear of it."""
        loop, stop = asyncio.get_running_loop(), threading.Event()
        news: asyncio.Queue[tuple[T | None, Exception | None]] = asyncio.Queue()
        self._alive, self._asked = time.monotonic(), False

        def tell(told: T | None, problem: Exception | None) -> None:
            loop.call_soon_threadsafe(news.put_nowait, (told, problem))

        threading.Thread(target=self._run, args=(loop, tell, stop), name="intentlog-renewals", daemon=True).start()
        try:
            while True:
                told, problem = await news.get()
                if problem is not None:
                    raise problem
                self._told(told)  # type: ignore[arg-type]
        finally:
            stop.set()

    def _run(self, loop: asyncio.AbstractEventLoop, tell: Callable[[T | None, Exception | None], None], stop: threading.Event) -> None:
        due, failures = time.monotonic(), 0
        while not stop.is_set():
            try:
                self._look_at(loop)
                if time.monotonic() >= due:
                    due = time.monotonic() + self._every
                    try:
                        told = self._beat()
                    except Exception as problem:  # the loop hears of it, when it can
                        failures += 1
                        due = time.monotonic() + min(self._every, pause(failures))
                        tell(None, problem)
                    else:
                        failures = 0
                        tell(told, None)
            except RuntimeError:  # the loop is closed, so nothing is held any more
                return
            slept, wanted = time.monotonic(), min(_LOOK, max(0.0, due - time.monotonic()))
            stop.wait(wanted)
            if time.monotonic() - slept > wanted + _OVERSLEPT:  # this process stood still, and no tool could hear of its timeout
                self._patient = time.monotonic()

    def _look_at(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._asked:
            self._asked = True
            loop.call_soon_threadsafe(self._turns)

    def _turns(self) -> None:
        self._alive, self._asked = time.monotonic(), False
