"""A store that takes its time over the renewal before a call takes nothing of the tool's: no tool is deaf before it was called."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import timedelta
from typing import Any

import pytest

from intentlog.agents import ToolSet, tool
from intentlog.effector import lanes
from intentlog.effector.bus import calling
from tests.effector.bus.scene import Scene
from tests.effector.service.test_troubles import Heard, serving, stopped, until
from tests.effector.test_effector import Outside


@tool(side_effect=True, timeout=timedelta(seconds=0.6))
async def unhurried(name: str) -> str:
    await asyncio.sleep(0.4)
    return name


def renews_late(renewing: Any, leases: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No lease stands until it has been renewed once, which takes longer than the call may."""
    renew, stands, renewed = renewing.renew, leases.stands, threading.Event()

    def late(*given: Any, **named: Any) -> Any:
        time.sleep(1.8)
        found = renew(*given, **named)
        renewed.set()
        return found

    monkeypatch.setattr(renewing, "renew", late)
    monkeypatch.setattr(leases, "stands", lambda key: renewed.is_set() and stands(key))


def test_on_a_bus(monkeypatch):
    monkeypatch.setattr(calling, "_DEAF", 0.1)
    scene = Scene()
    scene.stage("k", "unhurried", name="x")
    effector = scene.effector(tools=ToolSet([*scene.tools, unhurried]))
    renews_late(scene.store, effector._holding.leases, monkeypatch)
    scene.serve(effector)
    assert (["OK"], []) == (list(scene.statuses().values()), [each for each in scene.heard.told if each[0] == "abandoned"])


def test_on_a_log(monkeypatch):
    monkeypatch.setattr(lanes, "_DEAF", 0.1)
    with Outside() as outside:
        heard = Heard()
        outside.stage("x", tool="unhurried")
        effector, committer = serving(outside, heard, tools=ToolSet([*outside.tools, unhurried]))
        renews_late(outside.log.schedule, effector._leases, monkeypatch)

        async def run() -> None:
            running = asyncio.create_task(effector.run())
            await until(lambda: outside.statuses() == ["OK"])
            await stopped(effector, committer, running)

        asyncio.run(run())
        assert [] == heard.abandoned_of
