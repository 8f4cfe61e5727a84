"""Users' code shares the event loop, and may end it: then the process says so and ends, and its intents are as after a crash."""

from __future__ import annotations

import subprocess

import pytest

from tests.acceptance.forking import PROGRAM
from tests.effector.service.replicas import World, eventually

TOOLS = """
import asyncio
from intentlog.agents import App, Suspend, agent
from intentlog.agents.tools import IntentInfo, ToolSet, tool
from tools import gated, note, work

@tool(side_effect=True)
async def cancels(name: str, *, intent: IntentInfo) -> str:
    note("begun", intent)
    for each in asyncio.all_tasks():
        each.cancel()
    await asyncio.sleep(0)
    return name

@tool(side_effect=True)
async def swallows(name: str, *, intent: IntentInfo) -> str:
    note("begun", intent)
    for _ in range(3):
        for each in asyncio.all_tasks():
            each.cancel()
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            pass
    return name

@tool(side_effect=True)
async def stops(name: str, *, intent: IntentInfo) -> str:
    note("begun", intent)
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0.1)
    return name

def leaves(problem):
    def leave():
        raise problem
    asyncio.get_running_loop().call_soon(leave)

@tool(side_effect=True)
async def exits(name: str, *, intent: IntentInfo) -> str:
    note("begun", intent)
    leaves(SystemExit(0))
    await asyncio.sleep(0.1)
    return name

@tool(side_effect=True)
async def interrupts(name: str, *, intent: IntentInfo) -> str:
    note("begun", intent)
    leaves(KeyboardInterrupt())
    await asyncio.sleep(0.1)
    return name

ALL = [gated, work, cancels, swallows, stops, exits, interrupts]
TOOLS = ToolSet(ALL)

@agent("a")
async def nothing(ctx, n: int):
    return Suspend()

app = App(agents=[nothing], tools=ALL)
"""
ENDINGS = ("cancels", "swallows", "stops", "exits", "interrupts")


@pytest.fixture
def shop(local: World) -> World:
    (local.folder / "shop.py").write_text(TOOLS)
    return local


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_tool_that_ends_the_loop_ends_the_replica_with_a_word_and_what_was_under_way_is_unknown(shop: World, ending: str):
    under_way = shop.stage("a", "gated", name="x")
    first = shop.start(registry="shop:TOOLS")
    eventually(shop.ledger)
    bad = shop.stage("b", ending, name="x")
    assert 3 == first.process.wait(30)
    assert len(first.errors.read_text().splitlines()) == len(first.lines())  # nothing but lines of JSON: no traceback
    (line,) = [each for each in first.lines() if each["level"] == "error"]
    assert ("ended from inside", True) == (line["event"], "tool" in line["text"])
    assert [] == [each for each in first.lines("stopped") if each["clean"]]
    begun, behind = shop.ledger(), shop.stage("c")
    shop.start(registry="shop:TOOLS")
    eventually(lambda: shop.statuses(under_way, bad, behind) == ["UNKNOWN", "UNKNOWN", "OK"])
    assert [*begun, behind] == shop.ledger()


@pytest.mark.parametrize("ending", ENDINGS)
def test_under_eventlog_run_it_ends_with_one_line_as_well(shop: World, ending: str):
    bad = shop.stage("b", ending, name="x")
    words = [*PROGRAM, "run", "shop:app", "--log", shop.url]
    ended = subprocess.run(words, cwd=shop.folder, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False)
    assert 3 == ended.returncode, ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stderr.splitlines()[-1].startswith("eventlog: ")
    assert [bad] == shop.ledger()
