"""A suspended run is rows in the log and nothing else: no task, no thread, no memory (S-7.1)."""

from __future__ import annotations

import asyncio
import gc
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

from intentlog.agents import Input, WorkerSettings, send
from intentlog.agents.committer import Committer
from intentlog.agents.worker import Worker
from tests.agents.world import Ctx, World

RUNS = 10_000
PART = 2_000
POOL = 2


async def code(ctx: Ctx, given: Any) -> Any:
    try:
        await ctx.gather(ctx.signal("never"), ctx.timeout(ctx.signal("go"), timedelta(days=1)))
    finally:
        ctx.trace("put away")


def test_ten_thousand_suspended_runs_hold_no_task_no_thread_and_no_memory():
    held: list[tuple[int, int, int]] = []

    async def suspend_all(world: World) -> None:
        # The loop's own pool begins a thread whenever all of them are busy, up to a number that depends on the machine.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(POOL))
        committer = Committer(world.log)
        worker = Worker(world.app, world.log, owner="w", committer=committer, settings=WorkerSettings(poll=0.01))
        serving = asyncio.create_task(worker.run())
        try:
            for part in range(0, RUNS, PART):
                send(world.app, world.log, *(Input("a", f"k{number}", 1, f"in-{number}") for number in range(part, part + PART)))
                worker.wake()
                while not (worker.turns_run == part + PART and await worker.idle()):  # noqa: ASYNC110 - idle is a question to the store
                    await asyncio.sleep(0.01)
                held.append((len(asyncio.all_tasks()), threading.active_count(), in_code()))
        finally:
            worker.stop()
            await serving
            committer.close()

    before, threads_before = in_code(), threading.active_count()  # what earlier tests left
    with World(code) as world:
        asyncio.run(suspend_all(world))
        assert RUNS == sum(event.type == "activation.suspended" for event in world.log.read_all())
    tasks, threads, alive = zip(*held, strict=True)
    assert tasks[0] == tasks[-1] <= 5
    assert max(threads) <= threads_before + POOL + 1  # the committer's
    assert all(coroutines <= before for coroutines in alive)


def in_code() -> int:
    """Coroutines of agents that are alive."""
    gc.collect()
    return sum(getattr(each, "__name__", "") in ("code", "signal", "timeout") and hasattr(each, "cr_frame") for each in gc.get_objects())


async def held_now() -> int:
    """Bytes that are held a moment later: what a look at the schedule takes for as long as it lasts comes and goes."""
    await asyncio.sleep(0.02)
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def test_the_memory_of_a_worker_does_not_grow_with_the_runs_it_suspended(tmp_path: Any):
    sizes: list[int] = []

    async def serve(world: World) -> None:
        committer = Committer(world.log)
        worker = Worker(world.app, world.log, owner="w", committer=committer, settings=WorkerSettings(poll=0.01))
        serving = asyncio.create_task(worker.run())
        try:
            for part in range(4):
                send(world.app, world.log, *(Input("a", f"k{part}-{number}", 1, f"in-{part}-{number}") for number in range(500)))
                worker.wake()
                while not (worker.turns_run == 500 * (part + 1) and await worker.idle()):  # noqa: ASYNC110 - idle is a question to the store
                    await asyncio.sleep(0.01)
                sizes.append(min([await held_now() for _ in range(5)]))
        finally:
            worker.stop()
            await serving
            committer.close()

    with World(code, url=f"sqlite:///{tmp_path}/log.db") as world:
        tracemalloc.start()
        try:
            asyncio.run(serve(world))
        finally:
            tracemalloc.stop()
    assert sizes[-1] - sizes[0] < 1500 * 200, sizes  # bytes a run; one coroutine alone would be more
