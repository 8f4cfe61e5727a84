"""The buses that the suite runs over."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from intentlog.effector.bus import MemoryBroker, MemoryBus
from intentlog.effector.testing import BusMaker
from tests.services.bus import BusServer, TcpBus

SESSION = 60.0
BAD = (
    "memory://",
    "memory://name",
    "memory://name/",
    "memory://me:hunter2@name/topic",
    "memory://name/topic?partitions=0",
    "memory://name/topic?partitions=hunter",
    "memory://name/topic?password=hunter2",
    "tcp://me:hunter2@127.0.0.1:1/topic",
    "hunter",
)


class Ticking:
    """A clock of seconds that moves only when told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(params=["memory", "tcp"], scope="session")
def maker(request: pytest.FixtureRequest) -> Iterator[BusMaker]:
    """Each bus in turn."""
    clock = Ticking()
    broker = MemoryBroker(clock=clock, session=SESSION, most_bytes=1 << 20)

    def die(source: object) -> None:
        clock.now += SESSION + 1

    if request.param == "memory":
        yield BusMaker("memory", lambda: MemoryBus({"kit": broker}), lambda topic, partitions: f"memory://kit/{topic}?partitions={partitions}", BAD, die)
        return
    with BusServer(broker) as server:
        yield BusMaker("tcp", TcpBus, server.url, BAD, lambda source: source.close())
