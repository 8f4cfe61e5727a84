"""A small app for two processes on one file: counters that are bumped, and a deposit for each bump that must not happen twice.

Agent code and tool leave lines in a file that both processes append to. A line is one write to a file opened for
appending, so their order is the order in which things really happened, whichever process did them.
"""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

from intentlog.agents import ActivationContext, Aggregate, App, Complete, Input, IntentInfo, Suspend, agent, applies, tool
from intentlog.eventlog import event


@event("counter.bump", version=1)
class Bump:
    number: int


@event("counter.bumped", version=1)
class Bumped:
    number: int
    process: int


class Counter(Aggregate):
    numbers: tuple[int, ...] = ()

    @applies(Bumped)
    def _(self, bumped: Bumped) -> Counter:
        return self.evolve(numbers=(*self.numbers, bumped.number))


def note(*words: object) -> None:
    """Append a line to the file that all processes share."""
    line = " ".join(map(str, words)) + "\n"
    file = os.open(os.environ["COUNTERS_FILE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)


@tool(side_effect=True)
def deposit(number: int, *, intent: IntentInfo) -> int:
    """Not idempotent: a second call would be a second line."""
    note("deposit", intent.entity_key, number, os.getpid(), intent.intent_id)
    return number


@agent("counter", state=Counter)
async def counter(ctx: ActivationContext[Counter], bump: Bump) -> Complete | Suspend:
    """Each turn says when it begins and ends, with a wait in between, so that an overlap would show."""
    note("begin", ctx.key, ctx.seq, os.getpid())
    try:
        process = await ctx.run(os.getpid)
        if ctx.is_resume:
            assert ctx.resume_result is not None
            return Complete(ctx.resume_result.value)
        ctx.emit(Bumped(bump.number, process))
        ctx.act(deposit, number=bump.number)
        return Suspend(timeout=timedelta(minutes=5))
    finally:
        note("end", ctx.key, ctx.seq, os.getpid())


def intake(line: dict[str, Any]) -> Input:
    """``{"key": …, "number": …}``; the number is the input's id."""
    return Input("counter", line["key"], Bump(line["number"]), f"bump-{line['number']}")


app = App([counter], intake=intake)
