"""500 keys, each touched once: what an effector holds does not grow with the keys that it has ever seen."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from typing import Any

from intentlog.agents import Retryable
from intentlog.effector import Effector
from intentlog.eventlog.clock import SECOND
from tests.effector.service.test_troubles import serving, stopped, until
from tests.effector.test_effector import Outside
from tests.effector.test_retries import Wobbly

KEYS = 500


def held(root: Any) -> dict[str, int]:
    """The sizes of all that can be reached from an effector within its own room, by where it is held."""
    found: dict[str, int] = {}
    seen: set[int] = set()
    stack: list[tuple[str, Any]] = [(type(root).__name__, root)]
    while stack:
        where, each = stack.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, dict | set | list | tuple | deque):
            found[where] = len(each)
            stack += [(f"{where}[…]", inner) for inner in (each.values() if isinstance(each, dict) else each)]
        elif type(each).__module__.startswith("intentlog.effector"):
            names = {*getattr(each, "__dict__", {}), *(name for kind in type(each).__mro__ for name in getattr(kind, "__slots__", ()))}
            stack += [(f"{where}.{name}", getattr(each, name)) for name in names if hasattr(each, name)]
    return found


def grown(effector: Effector) -> dict[str, int]:
    return {where: size for where, size in held(effector).items() if size >= KEYS // 10}


def test_what_grows_is_found():
    """The walk sees an effector's own tables while they are full."""
    with Outside() as outside:
        for n in range(KEYS):
            outside.stage(f"x{n}", key=f"k{n}", tool="tomorrow")

        async def run() -> dict[str, int]:
            effector, committer = serving(outside, hold_unknown=True)
            running = asyncio.create_task(effector.run())
            await until(lambda: effector.open == KEYS)
            full = grown(effector)
            await stopped(effector, committer, running)
            return full

        assert 3 <= len(asyncio.run(run()))


def test_keys_that_were_touched_once_leave_nothing_behind():
    """Show 3: settled in every way, put off, raised, expired, refused: no lane, no asyncio task, no thread and no entry is left."""
    with Wobbly() as wobbly:
        for n in range(KEYS):
            tool, ttl = (("wobbly", 3600), ("work", 3600), ("work", -1), ("gone", 3600))[n % 4]
            wobbly.fails[f"x{n}"] = [Retryable("once")] if n % 8 == 0 else [ValueError("no")]
            wobbly.stage(f"x{n}", key=f"k{n}", tool=tool, ttl=ttl * SECOND)

        async def run() -> tuple[dict[str, int], int]:
            effector, committer = serving(wobbly, concurrency=64)
            running = asyncio.create_task(effector.run())
            await until(lambda: effector.counts.settled == KEYS and effector.active == 0)
            await until(lambda: not grown(effector))
            left = len(asyncio.all_tasks())
            await stopped(effector, committer, running)
            return effector.counts.by_status, left

        threads = threading.active_count()
        statuses, left = asyncio.run(run())
        assert {"OK": 188, "ERROR": 62, "EXPIRED": 125, "REJECTED": 125} == statuses
        assert (True, set()) == (left <= 12, wobbly.log.schedule.owners())
        assert threading.active_count() <= threads
