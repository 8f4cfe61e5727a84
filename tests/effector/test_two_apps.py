"""Two apps on one log: each serves its own agents, and neither waits for, refuses or loses the other's."""

from __future__ import annotations

import asyncio

from intentlog.agents import ActivationContext, App, Complete, Input, Suspend, agent, send, tool
from intentlog.effector import Process
from intentlog.eventlog.opening import open_log


def shop(name: str) -> tuple[App, list[str]]:
    done: list[str] = []

    @tool(name=f"{name}.ship", side_effect=True)
    async def ship(what: str) -> str:
        done.append(what)
        return f"shipped {what}"

    @agent(name)
    async def orders(ctx: ActivationContext, what: str) -> Complete | Suspend:
        if not ctx.is_resume:
            ctx.act(ship, what=what)
            return Suspend(timeout_ms=60_000)
        assert ctx.resume_result is not None
        return Complete(ctx.resume_result.value)

    return App([orders], tools=[ship]), done


def test_two_apps_share_a_log(log_url: str):
    """An app's run ends when its own work is done, with the other's still due; then the other's is done in full."""
    log = open_log(log_url)
    (books, read), (toys, played) = shop("books"), shop("toys")
    send(toys, log, Input("toys", "k", "ball", "i"))
    send(books, log, Input("books", "k", "atlas", "i"))
    asyncio.run(asyncio.wait_for(Process(books, log, "books").run(until_idle=True), 10))
    assert (["atlas"], []) == (read, played)
    assert ["input.received"] == [event.type for event in log.read("toys-k")]
    asyncio.run(asyncio.wait_for(Process(toys, log, "toys").run(until_idle=True), 10))
    assert (["atlas"], ["ball"]) == (read, played)
    assert {"effector:books", "effector:toys"} == {name for name in log.checkpoints.all() if name.startswith("effector")}
    assert ["activation.completed"] * 2 == [list(log.read(stream))[-1].type for stream in ("books-k", "toys-k")]
    log.close()
