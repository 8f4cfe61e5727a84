"""Schedules under SIGKILL: whatever process dies between a moment and the next, each moment is delivered once."""

from __future__ import annotations

import contextlib
import signal
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from intentlog.agents.app import runtime_codec
from intentlog.eventlog.opening import open_log
from tests.cli.conftest import begin, eventually

BEATS = """
from datetime import timedelta
from intentlog.agents import App, agent, every

@agent("beats", schedules=[every(timedelta(seconds=1), key="k", input="beat", catch_up="all")])
async def beats(ctx, what: str):
    return ctx.input_id

app = App(agents=[beats])
"""


def moments(url: str) -> list[str]:
    with contextlib.closing(open_log(url, create=False)) as log:
        return [runtime_codec().decode_stored(stored).output for stored in log.read_all(types=["activation.completed"])]


@pytest.mark.parametrize("boundary", ["schedule.due", "schedule.fired", "schedule.fired:2"])
def test_a_schedule_goes_on_after_a_kill_without_a_hole_or_a_double(shop: Path, elsewhere: str, boundary: str) -> None:
    (shop / "beats.py").write_text(BEATS)
    killed = begin("run", "beats:app", "--lease-ms", "500", EVENTLOG_CRASH_AT=boundary)
    killed.communicate(timeout=20)
    assert -signal.SIGKILL == killed.returncode
    racing = [begin("run", "beats:app"), begin("run", "beats:app")]
    try:
        eventually(lambda: len(moments(elsewhere)) >= 4)
    finally:
        for child in racing:
            child.kill()
            child.communicate(timeout=20)
    found = sorted(moments(elsewhere))
    assert len(set(found)) == len(found)
    times = [datetime.fromisoformat(each.removeprefix("cron:beats:k:")) for each in found]
    assert {timedelta(seconds=1)} == {later - earlier for earlier, later in pairwise(times)}
