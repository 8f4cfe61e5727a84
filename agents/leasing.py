"""What whoever serves a log has in common: the store is asked in a thread, and leases are kept by a heartbeat."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from ..eventlog.clock import SECOND, Micros
from ..eventlog.log import Claim, EventLog

T = TypeVar("T")


def in_thread(call: Callable[[], T]) -> Awaitable[T]:
    """``call()`` in a thread of the loop's pool."""
    return asyncio.get_running_loop().run_in_executor(None, call)


def between_beats(lease: Micros) -> float:
    """Seconds from one heartbeat to the next: one or two may be missed."""
    return lease / SECOND / 3


async def beat(log: EventLog, claims: Sequence[Claim], lease: Micros) -> Sequence[Claim]:
    """Renew ``claims`` for another ``lease``; those that are somebody else's now. Raises ``LogUnavailable``."""
    if not claims:
        return []
    until = log.clock() + lease
    return await in_thread(lambda: log.schedule.renew(claims, until=until))
