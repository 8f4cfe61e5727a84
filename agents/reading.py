"""Running a read-only tool or ``ctx.run`` function for the journal."""

from __future__ import annotations

import asyncio
from typing import Any

from ..eventlog.codec import Codec
from .facts import Failure
from .failures import failure_of
from .requests import NeedRead


async def run_read(need: NeedRead, codec: Codec) -> tuple[Any, Failure | None]:
    """``(plain value, None)``, or ``(None, failure)`` when it raised or ran longer than its own timeout.

    Blocking functions run in a thread. Raises ``Unencodable`` for a value the log cannot hold.
    """
    try:
        async with asyncio.timeout(need.timeout) as timer:
            value = await need.call() if need.is_async else await asyncio.to_thread(need.call)
    except Exception as problem:
        if isinstance(problem, TimeoutError) and timer.expired():
            problem = TimeoutError(f"{need.tool} ran longer than {need.timeout:g} s")
        return None, failure_of(problem)
    return codec.tree(codec.encode_value(value, need.returns if need.returns is not type(None) else Any)), None
