"""What runs beside an engine in a process of its own, whatever it stands on: who sees that health is served and that the loop turns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import attrs

from .grounds import Engine
from .health import HealthServer
from .keeping import Part
from .supervision import LOOP, Supervisor


@attrs.define(eq=False)
class SideParts:
    """Every part is endless; the supervisor begins it again when it fails."""

    engine: Engine
    supervisor: Supervisor
    health: HealthServer
    #: Where health is served.
    address: tuple[str, int] = ("127.0.0.1", 0)

    def parts(self) -> dict[str, Part]:
        """By the names they have in health."""
        return {**self.engine.beside(), "health": self.serve_health, LOOP: self.loop}

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
        """Stop when nothing is left to do."""
        while not await self.engine.idle():
            self.supervisor.beat("idle")
            await asyncio.sleep(0.02)
        stop()
