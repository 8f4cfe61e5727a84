"""Async tools that hand work to threads, as asyncio offers it, and leave those behind."""

from __future__ import annotations

import signal

import pytest

from tests.effector.service.replicas import World, eventually

TOOLS = """
import asyncio, concurrent.futures, threading, time
from datetime import timedelta
from intentlog.agents.tools import IntentInfo, ToolSet, tool
from tools import note, work

@tool(side_effect=True, timeout=timedelta(seconds=2))
async def hands_over(name: str, *, intent: IntentInfo) -> str:
    note("begun", intent)
    await asyncio.gather(*(asyncio.to_thread(time.sleep, 3600) for _ in range(8)))
    return name

POOL = concurrent.futures.ThreadPoolExecutor(4)

@tool(side_effect=True)
async def leaves(seconds: float, *, intent: IntentInfo) -> str:
    note("begun", intent)
    threading.Thread(target=time.sleep, args=(seconds,), name="a tool's own").start()
    return POOL.submit(str, seconds).result()

TOOLS = ToolSet([work, hands_over, leaves])
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


@pytest.mark.parametrize("seconds", [3600, 0.0])
def test_a_thread_that_a_tool_began_and_left_does_not_keep_the_process(shop: World, seconds: float):
    one = shop.stage("a", "leaves", seconds=seconds)
    replica = shop.start(registry="shop:TOOLS")
    eventually(lambda: shop.statuses(one) == ["OK"])
    assert 0 == replica.end(signal.SIGTERM)
    assert [] + [["a tool's own"]] * (seconds > 0) == [line["threads"] for line in replica.lines("threads left")]
