"""Schedules under SIGKILL: whatever process dies between a moment and the next, each moment is delivered once."""

from __future__ import annotations

import contextlib
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

from intentlog.agents.app import runtime_codec
from intentlog.eventlog.opening import open_log
from tests.acceptance import forking
from tests.acceptance.forking import Forked
from tests.cli.conftest import eventually
from tests.stores import Store

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


BOUNDARIES = ("schedule.due", "schedule.fired", "schedule.fired:2")


def started(folder: Path, url: str, *words: str, **environment: str) -> Forked:
    return Forked("tests.house.command", ["run", "beats:app", *words], {**os.environ, "EVENTLOG_URL": url, **environment}, folder, strict=True)


def outlived(folder: Path, url: str, boundary: str) -> list[str]:
    """The moments that were delivered by one that is killed at the boundary, and two that race for what it left."""
    assert 0 == forking.eventlog(["init"], {**os.environ, "EVENTLOG_URL": url}, folder).returncode
    killed = started(folder, url, "--lease-ms", "500", EVENTLOG_CRASH_AT=boundary)
    try:
        assert -signal.SIGKILL == killed.wait(20)
    finally:
        killed.close()
    racing = [started(folder, url), started(folder, url)]
    try:
        eventually(lambda: len(moments(url)) >= 4)
    finally:
        for child in racing:
            child.close()
    return sorted(moments(url))


def test_a_schedule_goes_on_after_a_kill_without_a_hole_or_a_double(tmp_path: Path, shared_store: Store) -> None:
    """Killed at each boundary in turn, on a log for each; at the same time, for what takes time is the seconds between the moments."""
    (tmp_path / "beats.py").write_text(BEATS)
    folders = [tmp_path / f"log-{number}" for number in range(len(BOUNDARIES))]
    urls = [shared_store.url(folder) for folder in folders]
    with ThreadPoolExecutor(len(BOUNDARIES)) as pool:
        delivered = list(pool.map(lambda url, boundary: outlived(tmp_path, url, boundary), urls, BOUNDARIES))
    for boundary, found in zip(BOUNDARIES, delivered, strict=True):
        assert len(set(found)) == len(found), boundary
        times = [datetime.fromisoformat(each.removeprefix("cron:beats:k:")) for each in found]
        assert {timedelta(seconds=1)} == {later - earlier for earlier, later in pairwise(times)}, boundary
    for folder in folders:
        shared_store.over(folder)
