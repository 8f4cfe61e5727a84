"""Async tools that hand work to threads, as asyncio offers it, and leave those behind."""

from __future__ import annotations

import signal

import pytest

from tests.effector.service.replicas import World, eventually

TOOLS = """
import asyncio, time
from datetime import timedelta
from intentlog.agents.tools import IntentInfo, ToolSet, tool
from tools import note, work

@tool(side_effect=True, timeout=timedelta(seconds=2))
async def hands_over(name: str, *, intent: IntentInfo) -> str:
    note("begun", intent)
    await asyncio.gather(*(asyncio.to_thread(time.sleep, 3600) for _ in range(8)))
    return name

TOOLS = ToolSet([work, hands_over])
"""


@pytest.fixture
def shop(local: World) -> World:
    (local.folder / "shop.py").write_text(TOOLS)
    return local


def test_threads_that_tools_leave_behind_are_none_that_the_log_needs(shop: World):
    left = [shop.stage(f"left{n}", "hands_over", name="x") for n in range(8)]
    replica = shop.start(registry="shop:TOOLS")
    eventually(lambda: shop.statuses(*left) == ["ERROR"] * 8)
    behind = [shop.stage(f"behind{n}") for n in range(8)]
    eventually(lambda: shop.statuses(*behind) == ["OK"] * 8)
    assert 200 == replica.get("/readyz")[0]
    assert 0 == replica.end(signal.SIGTERM)
