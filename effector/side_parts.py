"""What runs beside an effector in a process of its own: who wakes it, who looks after the dead, who sees that health is served."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Any, Final

import attrs

from ..eventlog.clock import SECOND
from ..eventlog.console import masked
from ..eventlog.log import EventLog
from .effector import Effector
from .health import HealthServer
from .keeping import Part
from .neighbours import evict_dead
from .supervision import LOOP, Supervisor

_WAIT: Final = 0.5
"""Seconds that the log is asked for news at once."""


@attrs.define(eq=False)
class SideParts:
    """Every part is endless; the supervisor begins it again when it fails."""

    log: EventLog
    effector: Effector
    supervisor: Supervisor
    health: HealthServer
    metrics: Any = None
    #: Where health is served.
    address: tuple[str, int] = ("127.0.0.1", 0)
    #: Where troubles of the store are told.
    lines: Any = None
    #: Who holds the log back, from when that is told until it is over (``eventlog.postgres.watchdog.HorizonHeld``).
    _held: Any = attrs.field(default=None, init=False)
    #: Kept while its part is begun again: what was told before the server went away is to be taken back when it is there again.
    _watchdog: Any = attrs.field(default=None, init=False)

    def parts(self) -> dict[str, Part]:
        """By the names they have in health."""
        return {"news": self.news, "neighbours": self.neighbours, "health": self.serve_health, "horizon": self.horizon, LOOP: self.loop}

    async def news(self) -> None:
        """Wake the effector when something is appended, by whomever."""
        in_thread = asyncio.get_running_loop().run_in_executor
        after = await in_thread(None, self.log.last_position)
        while True:
            if await in_thread(None, self.log.wait, after, _WAIT):
                after = await in_thread(None, self.log.last_position)
                self.effector.wake()
            self.supervisor.beat("news")

    async def neighbours(self) -> None:
        """End the leases of processes that died on this machine."""
        await self._every(1.0, "neighbours", functools.partial(evict_dead, self.log))

    async def horizon(self) -> None:
        """Who keeps new events from being shown, and for how long."""
        await self._every(1.0, "horizon", self._ask_horizon)

    def _ask_horizon(self) -> None:
        held = self._horizon_watchdog().look()
        if self._held is not None:
            self._held = held
        if self.metrics is not None:
            self.metrics.horizon(0.0 if held is None else max(0.0, (self.log.clock() - held.since) / SECOND))

    def _horizon_watchdog(self) -> Any:
        if self._watchdog is None:
            from ..eventlog.postgres.watchdog import Watchdog  # only a log on PostgreSQL has a horizon, and its driver installed

            self._watchdog = Watchdog(self.log.horizon, self._tell_held, self._tell_freed)  # type: ignore[attr-defined]
        return self._watchdog

    def _tell_held(self, held: Any) -> None:
        self._held = held
        self.lines.warning("log held back", **_holder(held), text=str(held))

    def _tell_freed(self, held: Any) -> None:
        self._held = None
        self.lines.info("log no longer held back", **_holder(held))

    def report(self) -> dict[str, Any]:
        """What health says of the store: who holds the log back, ``None`` while nobody is known to."""
        held = self._held
        return {"held_back_by": None if held is None else _holder(held) | {"text": masked(str(held))}}

    async def serve_health(self) -> None:
        """Begin the server again when its thread has ended."""
        while True:
            if not self.health.alive:
                self.health.start(*self.address)
            self.supervisor.beat("health")
            await asyncio.sleep(1.0)

    async def loop(self) -> None:
        """That the event loop turns."""
        while True:
            self.supervisor.beat(LOOP)
            await asyncio.sleep(0.5)

    async def idle(self, stop: Callable[[], None]) -> None:
        """Stop when every intent has its outcome."""
        while not await self.effector.idle():
            self.supervisor.beat("idle")
            await asyncio.sleep(0.02)
        stop()

    async def _every(self, seconds: float, name: str, call: Callable[[], None]) -> None:
        while True:
            await asyncio.get_running_loop().run_in_executor(None, call)
            self.supervisor.beat(name)
            await asyncio.sleep(seconds)


def _holder(held: Any) -> dict[str, Any]:
    """Who it is, as a line and health hold it; what is not known is left out."""
    said = {name: getattr(held, name) for name in ("pid", "user", "application", "database", "state", "query", "prepared", "events")}
    return {name: masked(value) if isinstance(value, str) else value for name, value in said.items() if value not in (None, "")}
