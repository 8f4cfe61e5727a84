"""The gate in one process, for a dedup store that ends with it: effectors are cancelled where others are killed, and the next one goes on."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable

import attrs
import pytest

from intentlog.agents import IntentInfo, ToolSet, tool
from intentlog.effector.bus.engine import BusEffector
from tests.effector.bus.scene import Scene, staged, until
from tests.effector.gate.plans import ANY_MOMENT, EACH, KEYS, SEEDS

WHERE = ("claimed", "attempt.recorded", "tool.called", "completed", "published", "acknowledged", ANY_MOMENT)
LEASE = 0.4


class Trap(list[str]):
    """The boundaries that an effector has met; at one of them it snaps."""

    def __init__(self, where: str, nth: int, snap: Callable[[], object]) -> None:
        super().__init__()
        self._where, self._nth, self._snap = where, nth, snap

    def append(self, name: str) -> None:
        super().append(name)
        if name == self._where and self.count(name) == self._nth:
            self._snap()


@attrs.define(eq=False)
class World:
    """One seed."""

    random: random.Random
    scene: Scene = attrs.field(factory=Scene)
    #: Names of intents whose tool was called, in order: ``KEY.PLACE``.
    called: list[str] = attrs.field(factory=list)
    tools: dict[str, str] = attrs.field(factory=dict)
    names: dict[str, str] = attrs.field(factory=dict)
    cancelled: int = 0

    def stage(self) -> None:
        """All of the intents."""
        for place in range(EACH):
            for key in range(KEYS):
                name, kind = f"{key}.{place}", self.random.choice(("once", "again"))
                intent_id, message = staged(f"k{key}", kind, name=name)
                self.tools[name], self.names[intent_id] = kind, name
                self.scene.publish(message)

    def registry(self) -> ToolSet:
        """Tools that take a moment, in which they may be cancelled."""

        async def call(name: str) -> str:
            self.called.append(name)
            await asyncio.sleep(0.002)
            return name

        async def once(name: str) -> str:
            return await call(name)

        async def again(name: str, *, intent: IntentInfo) -> str:
            return await call(name)

        return ToolSet([tool(side_effect=True)(once), tool(side_effect=True, idempotent=True)(again)])

    async def live(self, effector: BusEffector, where: str, nth: int) -> None:
        """One life, to the moment at which it is cancelled, or until everything is done."""
        loop = asyncio.get_running_loop()
        running = asyncio.create_task(effector.run())
        self.scene.boundaries = Trap(where, nth, lambda: loop.call_soon_threadsafe(running.cancel))
        if where == ANY_MOMENT:
            loop.call_later(nth * 0.02, running.cancel)
        await until(lambda: running.done() or self.scene.done())
        effector.stop()
        self.cancelled += (await asyncio.gather(running, return_exceptions=True))[0] is not None
        effector.close()

    def faults(self) -> list[str]:
        """What is wrong when all is over."""
        found = []
        statuses = {self.names[intent_id]: status for intent_id, status in self.scene.statuses().items()}
        calls = Counter(self.called)
        for name, kind in self.tools.items():
            if statuses.get(name) not in (("OK",) if kind == "again" else ("OK", "UNKNOWN")):
                found.append(f"{name} ({kind}) ended {statuses.get(name)}")
            if calls[name] > (1 + self.cancelled if kind == "again" else 1) or (statuses.get(name) == "OK" and not calls[name]):
                found.append(f"{name} ({kind}) was called {calls[name]} times, with {self.cancelled} effectors cancelled")
        for key in range(KEYS):
            mine = [int(name.partition(".")[2]) for name in self.called if name.startswith(f"{key}.")]
            if mine != sorted(mine):
                found.append(f"key {key} was carried out in the order {mine}")
        return found


@pytest.mark.parametrize("share", range(2))
def test_whoever_is_cancelled_every_intent_has_one_outcome_and_nothing_happens_twice(share: int):
    """Show 1, for ``memory://``: one process, and no kill that its store could outlive."""
    wrong, cancelled = {}, 0
    for seed in list(SEEDS)[share::2]:
        world = World(random.Random(f"cancelled {seed}"))
        world.stage()

        async def lives(world: World = world, seed: int = seed) -> None:
            for n in range(4):
                where = WHERE[(4 * seed + n) % len(WHERE)] if n < 3 else ""
                await world.live(world.scene.effector(tools=world.registry(), lease=LEASE, concurrency=4), where, world.random.randint(1, 3))

        asyncio.run(lives())
        cancelled += world.cancelled
        if found := world.faults():
            wrong[seed] = found
    assert {} == wrong
    assert cancelled >= 20
