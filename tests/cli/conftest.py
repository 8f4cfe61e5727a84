"""A folder with a small app in it, and the command as a test calls it: in this process, or as a child."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from intentlog.eventlog.cli import group
from tests.acceptance import forking
from tests.acceptance.forking import PROGRAM

SHOP = """
import asyncio, os, pathlib
from datetime import timedelta
from intentlog.agents import App, Complete, IntentInfo, RetryPolicy, Suspend, agent, tool
from intentlog.eventlog.registry import event

@event("order.placed", version=1)
class OrderPlaced:
    order_id: str
    mood: str = ""

@tool(side_effect=True, idempotent=True)
async def ship(order_id: str, pause: float, *, intent: IntentInfo) -> str:
    with pathlib.Path("ledger.txt").open("a") as ledger:
        ledger.write(f"{intent.intent_id} {order_id}\\n")
    await asyncio.sleep(pause)
    return f"shipped {order_id}"

@agent("orders", retry=RetryPolicy(max_attempts=2, first=timedelta(milliseconds=1)))
async def orders(ctx, placed: OrderPlaced):
    if placed.mood == "angry" and not os.environ.get("CALM"):
        raise ValueError(f"{placed.order_id} is angry")
    if placed.mood == "quick":
        return Complete(placed.order_id)
    if ctx.is_resume:
        return Complete(ctx.resume_result.value)
    ctx.act(ship, order_id=placed.order_id, pause={"slow": 5.0, "brief": 2.0}.get(placed.mood, 0.0))
    return Suspend()

@agent("notes")
async def notes(ctx, text: str):
    return Complete(text.upper())

app = App(agents=[orders, notes])
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with ``shop.py`` and an empty log, and the current one."""
    (tmp_path / "shop.py").write_text(SHOP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "shop", raising=False)
    call("init")
    return tmp_path


@pytest.fixture
def elsewhere(shop: Path, shared_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same with its log on each store in turn; its URL."""
    monkeypatch.setenv("EVENTLOG_URL", shared_url)
    call("init")
    return shared_url


def call(*words: str, stdin: str | bytes | None = None) -> Result:
    """The command in this process: exit_code, stdout, stderr."""
    return CliRunner().invoke(group, list(words), input=stdin, prog_name="eventlog")


def child(*words: str, timeout: float = 60, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command as a process of its own, forked from one that is warm."""
    return forking.eventlog(words, {**os.environ, **environment}, Path.cwd(), timeout)


def begin(*words: str, **environment: str) -> subprocess.Popen[str]:
    """The command, left running."""
    settings = {**os.environ, "PYTHONUNBUFFERED": "1", **environment}
    return subprocess.Popen([*PROGRAM, *words], env=settings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def eventually(holds: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait until ``holds()``; fail when it never does."""
    import time

    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it never came to hold"
        time.sleep(0.02)
