"""The parts of an effector, and how each is kept running. Without a supervisor: as ``patiently`` says."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from ..eventlog.errors import LogUnavailable

Part: TypeAlias = Callable[[], Awaitable[None]]
Keep: TypeAlias = Callable[[str, Part], Awaitable[None]]
"""Runs the part of that name, again when it fails, until it ends by itself."""

PARTS: Final = {"tail": "following the tail", "renewals": "renewing leases", "checkpoint": "saving the checkpoint", "lanes": "watching the lanes"}
"""What an effector runs side by side, and what it is doing there."""
APPENDS: Final = "appends"
"""Not run by itself: what lanes append. It makes progress when an append ends, or none is under way."""
_LONGEST: Final = 5.0


def pause(failures: int, longest: float = _LONGEST) -> float:
    """Seconds to wait after that many failures in a row."""
    return float(min(0.1 * 2 ** min(failures, 20), longest))


async def patiently(name: str, part: Part, on_error: Callable[[str, BaseException], None], stopped: asyncio.Event) -> None:
    """Run ``part`` until it ends; again, with back-off, while the store cannot be reached. Any other failure is raised."""
    failures, loop = 0, asyncio.get_running_loop()
    while not stopped.is_set():
        begun = loop.time()
        try:
            await part()
            break
        except LogUnavailable as problem:
            on_error(PARTS[name], problem)
            failures = 1 if loop.time() - begun > _LONGEST else failures + 1
            await asyncio.sleep(pause(failures))


async def side_by_side(
    parts: Mapping[str, Part],
    keep: Keep,
    stopped: asyncio.Event,
    finish: Callable[[asyncio.Future[None]], Awaitable[None]],
    others: Callable[[], Iterable[asyncio.Future[Any]]],
) -> None:
    """Run ``parts`` until ``stopped`` is set, then ``finish``, which is given the first of them; a part that fails is raised instead.

    However it ends, the parts are ended, and so is what ``others`` says runs beside them then.
    """
    running = [asyncio.ensure_future(keep(name, body)) for name, body in parts.items()]
    told = asyncio.create_task(stopped.wait())
    try:
        await asyncio.wait([told, *running], return_when=asyncio.FIRST_COMPLETED)
        for each in running:
            if each.done():
                each.result()
        await finish(running[0])
    finally:
        await ended([told, *running, *others()])


async def within(seconds: float, event: asyncio.Event) -> None:
    """Until ``event`` is set, or ``seconds`` are over; it is cleared then."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):  # not wait_for, which before 3.12 may swallow a cancellation
            await event.wait()
    event.clear()


async def ended(running: Iterable[asyncio.Future[Any]]) -> None:
    """Cancel what still runs and wait a moment for it; whoever is deaf to that is not waited for."""
    futures = list(running)
    for each in futures:
        each.cancel()
    done, _ = await asyncio.wait(futures, timeout=1.0)
    for each in done:
        if not each.cancelled():
            each.exception()  # it was told of, or is on its way out of ``run``
