"""An app whose one step waits until the test opens a gate: for processes that are stopped in the middle of a turn."""

from __future__ import annotations

import os
import time
from pathlib import Path

from intentlog.agents import ActivationContext, App, agent


def pass_the_gate() -> int:
    """Say that somebody stands at the gate of this process, wait until it is open, and tell which process it was."""
    folder, name = Path(os.environ["GATES"]), os.environ["GATE"]
    (folder / f"{name}-reached").touch()
    while not (folder / f"{name}-open").exists():
        time.sleep(0.01)
    return os.getpid()


@agent("notes")
async def notes(ctx: ActivationContext[None], text: str) -> int:
    """The process that took the step."""
    process: int = await ctx.run(pass_the_gate)
    return process


app = App(agents=[notes])
