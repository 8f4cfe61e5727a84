"""A small shop, run once by the commands over a log in PostgreSQL: what people look at with psql, and as which roles."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from intentlog.eventlog.cli import group

SHOP = """
from datetime import timedelta
from intentlog.agents import App, Complete, IntentInfo, RetryPolicy, Suspend, agent, tool

@tool(side_effect=True, idempotent=True)
async def ship(order_id: str, *, intent: IntentInfo) -> dict:
    if order_id == "heavy":
        raise ValueError("too heavy")
    return {"parcel": order_id}

@agent("orders", retry=RetryPolicy(max_attempts=2, first=timedelta(milliseconds=1)))
async def orders(ctx, order_id: str):
    if ctx.is_resume:
        return Complete("done")
    if order_id == "angry":
        raise ValueError("angry")
    ctx.act(ship, order_id=order_id)
    return Suspend()

@agent("desk")
async def desk(ctx, question: str):
    verdict = await ctx.approval(question, channel="support", timeout=timedelta(hours=4))
    return [verdict.approved, await ctx.signal("customer.reply")]

app = App(agents=[orders, desk])
"""


def make_shop(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """``shop.py`` in ``folder``, which becomes the current one."""
    (folder / "shop.py").write_text(SHOP)
    patch.chdir(folder)
    patch.syspath_prepend(str(folder))
    patch.delitem(sys.modules, "shop", raising=False)


def call(*words: str) -> Result:
    """The command in this process."""
    return CliRunner().invoke(group, list(words), prog_name="eventlog")


def done(*words: str) -> str:
    """What a command that must succeed prints."""
    result = call(*words)
    assert 0 == result.exit_code, result.output
    return result.stdout


def told(*words: str) -> list[dict[str, Any]]:
    """What a command prints as JSON, a line an item."""
    return [json.loads(line) for line in done(*words, "--json").splitlines()]


def send(url: str, agent: str, key: str, text: str) -> None:
    """An input for a key, with an id of its own."""
    done("send", agent, key, "-", json.dumps(text), "--id", f"{agent} {key} {text[:20]}", "--log", url)


def approve(url: str, stream: str) -> None:
    """Say yes to what the stream asks."""
    (asked,) = told("approvals", "show", stream, "--log", url)
    done("approvals", "approve", stream, asked["id"], "--digest", asked["digest"], "--by", "ada", "--log", url)


def run_shop(url: str) -> None:
    """A day in it: orders that went well, failed and were given up for now, some again; questions open, answered, half answered."""
    done("init", "--log", url)
    for key, text in (("ann", "book"), ("bob", "heavy"), ("cid", "angry"), ("dan", "angry")):
        send(url, "orders", key, text)
    for key in ("open", "answered", "late"):
        send(url, "desk", key, f"Pay {key}?")
    done("run", "shop:app", "--until-idle", "--log", url)
    done("dead-letters", "redrive", "orders-dan", "--log", url)
    approve(url, "desk-answered")
    done("run", "shop:app", "--until-idle", "--log", url)
    send(url, "orders", "ann", "pen")
    done("worker", "shop:app", "--until-idle", "--log", url)
    done("approvals", "deny", "desk-late", "approval-0-0", "--by", "ada", "--log", url)
    send(url, "orders", "eve", "cup")
