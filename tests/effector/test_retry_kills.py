"""A process killed with SIGKILL around a failed attempt: what its record is worth. And that a replay is not disturbed by it."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from intentlog.agents import IntentInfo, Retryable, RetryPolicy, tool
from tests.agents.world import Ctx
from tests.cli.conftest import child
from tests.linear.common import linear

APP = """
from datetime import timedelta
from pathlib import Path

from intentlog.agents import App, IntentInfo, Retryable, RetryPolicy, agent, tool


@tool(side_effect=True, retry=RetryPolicy(first=timedelta(milliseconds=100)))
def charge(*, intent: IntentInfo) -> str:
    with open("calls.txt", "a") as calls:
        calls.write(f"{intent.attempt}\\n")
    if len(Path("calls.txt").read_text().split()) == 1:
        raise Retryable("the first time")
    return "charged"


@agent("a")
async def code(ctx, given: int):
    paid = await ctx.outcome_of(ctx.act(charge))
    return [paid.status, paid.attempts]


app = App(agents=[code], tools=[charge])
"""


@pytest.mark.parametrize(
    "boundary, calls, output",
    [
        ("postponed", ["1", "2"], ["OK", 2]),
        ("tool.called", ["1"], ["UNKNOWN", 1]),
        ("attempt.recorded:2", ["1"], ["UNKNOWN", 2]),
        ("tool.called:2", ["1", "2"], ["UNKNOWN", 2]),
        ("settled", ["1", "2"], ["OK", 2]),
    ],
)
def test_a_tool_that_is_not_idempotent_is_called_again_only_when_its_failure_is_on_record(boundary, calls, output, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("till.py").write_text(APP, "utf-8")
    assert 0 == child("init").returncode
    assert 0 == child("send", "a", "k", "1", "--app", "till:app", "--id", "one").returncode
    killed = child("run", "till:app", "--until-idle", EVENTLOG_CRASH_AT=boundary)
    assert -9 == killed.returncode, killed.stderr
    again = child("run", "till:app", "--until-idle")
    assert 0 == again.returncode, again.stderr
    told = [json.loads(line) for line in child("tail", "--json", "--type", "activation.completed").stdout.splitlines()]
    assert calls == Path("calls.txt").read_text("utf-8").split()
    assert [output] == [each["fields"]["output"] for each in told]


def test_a_run_with_failed_attempts_replays_the_same():
    left = [Retryable("1"), ConnectionError("2")]

    @tool(side_effect=True, retry=RetryPolicy(first=timedelta(0)), retry_on=ConnectionError)
    def flaky(*, intent: IntentInfo) -> int:
        if left:
            raise left.pop()
        return intent.attempt

    async def code(ctx: Ctx, given: Any) -> Any:
        return await ctx.gather(ctx.perform("push", text="a"), ctx.perform(flaky), ctx.sleep(timedelta(seconds=0)))

    with linear(code, tools=[flaky]) as world:
        world.send()
        world.run()
        assert [["A", 3, None]] == world.outputs()
        assert 2 == world.types().count("intent.postponed")
