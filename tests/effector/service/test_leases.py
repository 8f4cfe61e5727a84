"""Leases under tools that hold up the whole process, and under a process that is stopped: who is called, and how often."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.effector.service.replicas import Replica, World, eventually

pytestmark = pytest.mark.alone

TOOLS = """
import time
from datetime import timedelta
from intentlog.agents.tools import IntentInfo, ToolSet, tool
from tools import HERE, note

SOON = timedelta(seconds=0.4)

@tool(side_effect=True, timeout=SOON)
async def hold_up(name: str, *, intent: IntentInfo) -> str:
    note("held", intent)
    while not (HERE / "open").exists():
        time.sleep(0.01)
    return name

@tool(side_effect=True, idempotent=True, timeout=SOON)
async def again(name: str, *, intent: IntentInfo) -> str:
    note("begun", intent)
    time.sleep(3)
    return name

def look(intent, name):
    note("asked", intent)
    return None

@tool(side_effect=True, timeout=SOON, reconcile=look)
def pay(name: str, *, intent: IntentInfo) -> str:
    note("begun", intent)
    return name

@tool(side_effect=True, timeout=SOON)
async def pay_async(name: str, *, intent: IntentInfo) -> str:
    note("begun", intent)
    return name

TOOLS = ToolSet([hold_up, again, pay, pay_async])
"""
LEASE = ("--lease-ms", "1200", "--tool-timeout-ms", "400", "--max-concurrent-partitions", "16")
STOPPING = """
import os, signal, sys
from intentlog.effector.replica import serve

def stop(name, stream):
    if name == sys.argv[1]:
        os.kill(os.getpid(), signal.SIGSTOP)

given = dict(zip(sys.argv[2::2], sys.argv[3::2], strict=True))
raise SystemExit(serve(given, boundary=stop))
"""


@pytest.fixture
def shop(local: World) -> World:
    (local.folder / "shop.py").write_text(TOOLS)
    return local


def start(shop: World, *words: str) -> Replica:
    return shop.start(*LEASE, *words, registry="shop:TOOLS")


@pytest.mark.parametrize("paying", ["pay", "pay_async"])
def test_what_waited_behind_a_tool_that_held_up_the_loop_until_its_lease_was_over_is_never_called(shop: World, paying: str):
    """The other replica has said UNKNOWN, for good: a call now would be one that the agent is told was perhaps never made."""
    before = shop.stage("a", "hold_up")
    intents = [shop.stage(f"b{n}", paying, name="x") for n in range(3)]
    first = start(shop)
    eventually(lambda: shop.ledger("held"))
    second = start(shop)
    eventually(lambda: set(shop.statuses(before, *intents)) == {"UNKNOWN"}, 30)
    begun = shop.ledger()
    shop.open_gate()
    eventually(lambda: len(first.lines("lease lost")) >= 1 + len(intents) - len(begun))
    late = shop.stage("c", paying, name="x")
    eventually(lambda: shop.statuses(late) == ["OK"])
    assert [*begun, late] == shop.ledger()
    assert 4 == len(shop.settled()) - 1
    assert (0, 0) == (first.end(), second.end())


def test_a_process_that_was_stopped_between_attempt_and_call_does_not_call_when_it_goes_on(shop: World):
    intent = shop.stage("k", "pay", name="x")
    given = {"registry": "shop:TOOLS", "log": shop.url, "lease_ms": "1200", "tool_timeout_ms": "400", "poll_ms": "50", "owner": "stopped"}
    errors = shop.folder / "stopped.err"
    words = [sys.executable, "-c", STOPPING, "attempt.recorded", *(word for pair in given.items() for word in pair)]
    with errors.open("wb") as file:
        stopped = subprocess.Popen(words, cwd=shop.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=file)
    try:
        eventually(lambda: _is_stopped(stopped.pid))
        start(shop)
        eventually(lambda: shop.statuses(intent) == ["UNKNOWN"])
        stopped.send_signal(signal.SIGCONT)
        eventually(lambda: b"lease lost" in errors.read_bytes())
        stopped.terminate()
        assert 0 == stopped.wait(20)
    finally:
        stopped.kill()
    assert ([], [intent]) == (shop.ledger(), shop.ledger("asked"))


def test_a_tool_that_holds_up_the_loop_for_longer_than_the_lease_is_called_once(shop: World):
    """Of an idempotent tool a second call would be made without a word; here the first is still under way."""
    intents = [shop.stage("a", "again", name="x"), shop.stage("b", "pay", name="x")]
    first = start(shop)
    eventually(shop.ledger)
    second = start(shop)
    eventually(lambda: all(shop.statuses(*intents)))  # what the loop could not hear of in time may have timed out
    assert "UNKNOWN" not in shop.statuses(*intents)
    assert sorted(intents) == sorted(shop.ledger())
    assert [] == [*first.lines("lease lost"), *second.lines("lease lost")]


def test_a_replica_whose_loop_stands_still_for_ever_loses_its_keys(shop: World):
    intents = [shop.stage("a", "hold_up", name="x"), shop.stage("b", "again", name="x")]
    start(shop)
    eventually(lambda: shop.ledger("held"))
    start(shop)
    eventually(lambda: shop.statuses(*intents) == ["UNKNOWN", "OK"], 40)


def _is_stopped(process: int) -> Any:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    except FileNotFoundError:
        return os.waitpid(process, os.WNOHANG)
