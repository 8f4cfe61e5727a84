"""Keeps every part running and knows which one does not: a part that fails is begun again with back-off, a part that makes no
progress is found out by a watchdog in a thread of its own, so that not even an event loop that stands still hangs silently.

Live means that nothing is stuck: what a restart of the whole might heal. Ready means that all parts do their work now.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from ..agents.reading import is_cancelled
from ..eventlog.console import masked
from .keeping import Part, pause
from .logs import fault
from .watching import Watching

LOOP: Final = "loop"
"""The event loop itself."""
_LONGEST: Final = 30.0


@attrs.define(eq=False)
class Kept:
    """One part."""

    name: str
    #: Seconds without a sign of life after which it counts as stuck.
    quiet: float
    #: When it last gave one, by the supervisor's clock.
    last: float
    restarts: int = 0
    #: What it last failed with, until it makes progress again.
    failing: str = ""
    ended: bool = False
    stuck: bool = False
    running: asyncio.Future[None] | None = None


class Supervisor(Watching):
    """The parts of one process. ``keep`` and the listeners belong to the event loop; ``check`` and ``report`` to any thread."""

    def __init__(self, log: Any, quiet: Mapping[str, float], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._log, self._clock = log, clock
        self.parts = {name: Kept(name, seconds, clock()) for name, seconds in quiet.items()}
        self._stopping = asyncio.Event()
        #: Lanes that failed, and the last failure.
        self.lanes_failed, self.last_lane = 0, ""

    def beat(self, part: str) -> None:
        kept = self.parts.get(part)
        if kept is not None:
            if kept.stuck and part == LOOP:  # nobody has to begin it again
                self._log.warning("loop goes on", part=part, stood_seconds=round(self._clock() - kept.last, 3))
            kept.last, kept.failing, kept.stuck = self._clock(), "", False

    def failed(self, part: str, problem: BaseException) -> None:
        if part not in self.parts:  # a lane: it begins again by itself
            self.lanes_failed += 1
            self.last_lane = f"{part}: {type(problem).__name__}"
            return
        kept = self.parts[part]
        kept.last, kept.failing, kept.stuck = self._clock(), ": ".join(fault(problem).values()), False

    async def keep(self, name: str, part: Part) -> None:
        """Run ``part`` until it ends by itself or the supervisor stops; begin it again whenever it fails or is found stuck."""
        kept, failures = self.parts[name], 0
        while True:
            begun = kept.last = self._clock()
            kept.running = asyncio.ensure_future(part())
            try:
                await kept.running
            except asyncio.CancelledError:
                if is_cancelled():
                    kept.running.cancel()
                    raise
                problem: BaseException = TimeoutError(f"{name} made no progress for {kept.quiet:g} s")
            except Exception as raised:  # whatever it is, the part is needed
                problem = raised
            else:
                kept.ended = True
                return
            failures = 1 if self._clock() - begun > _LONGEST else failures + 1
            self.failed(name, problem)
            if self._stopping.is_set():
                kept.ended = True
                return
            kept.restarts += 1
            self._log.warning("part restarted", part=name, restarts=kept.restarts, in_seconds=pause(failures, _LONGEST), **fault(problem))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause(failures, _LONGEST)):
                    await self._stopping.wait()

    def stop(self) -> None:
        """Begin nothing again from now on."""
        self._stopping.set()

    def stuck(self) -> list[Kept]:
        """Parts that gave no sign of life for too long."""
        now = self._clock()
        return [each for each in self.parts.values() if not each.ended and now - each.last > each.quiet]

    def forgive(self) -> None:
        """The whole process stood still (it was stopped, or the machine slept), which is nobody's fault here."""
        for each in self.parts.values():
            each.last = self._clock()

    def report(self) -> dict[str, Any]:
        """What health says of the parts."""
        now, stuck = self._clock(), self.stuck()
        parts = {}
        for each in self.parts.values():
            state = "ended" if each.ended else "stuck" if each in stuck else "failing" if each.failing else "running"
            parts[each.name] = {"state": state, "restarts": each.restarts, "silent_seconds": round(now - each.last, 3)}
            if each.failing:
                parts[each.name]["error"] = masked(each.failing[:500])
        ready = not self._stopping.is_set() and all(each["state"] == "running" for each in parts.values())
        return {"live": not stuck, "ready": ready, "stopping": self._stopping.is_set(), "parts": parts}


class Watchdog(threading.Thread):
    """Looks at the parts every so often, from outside the event loop."""

    def __init__(self, supervisor: Supervisor, loop: asyncio.AbstractEventLoop, log: Any, *, every: float = 0.5) -> None:
        super().__init__(name="intentlog-watchdog", daemon=True)
        self._supervisor, self._loop, self._log, self._every = supervisor, loop, log, every
        self._main = threading.get_ident()
        self._stopped = threading.Event()

    def run(self) -> None:
        looked = time.monotonic()
        while not self._stopped.wait(self._every):
            now = time.monotonic()
            if now - looked > self._every + 2.0:
                self._supervisor.forgive()
            looked = now
            self.look()

    def look(self) -> None:
        """Tell of every part that has just become stuck, and have it begun again; not the loop, which goes on when whatever holds it up ends."""
        for kept in self._supervisor.stuck():
            if kept.stuck:
                continue
            kept.stuck = True
            where = {"where": _where(self._main)} if kept.name == LOOP else {}
            self._log.error("part stuck", part=kept.name, quiet_seconds=kept.quiet, **where)
            if kept.running is not None and kept.name != LOOP:
                self._loop.call_soon_threadsafe(kept.running.cancel)

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()


def _where(thread: int) -> list[str]:
    """Where a thread is: functions and lines, no values."""
    frame = sys._current_frames().get(thread)
    return [f"{each.name}:{each.lineno}" for each in traceback.extract_stack(frame)[-5:]] if frame is not None else []
