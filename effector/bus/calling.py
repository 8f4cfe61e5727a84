"""Users' code under a claim: for as long as it may take, and the claim is ours."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from ...agents.tools import Tool
from .holding import Held
from .means import Means

T = TypeVar("T")
_DEAF: Final = 5.0
"""Seconds past its timeout after which a tool counts as deaf to its cancellation."""
_OVERSLEPT: Final = 2.0
"""Seconds late from which on it is this process that stood still."""


class Lost(Exception):
    """The claim is somebody else's; what becomes of the intent will be seen by claiming it again."""


class Deaf(Exception):
    """The tool goes on past its timeout, whatever it is told; its claim is left to its lease."""


class Calling:
    """Belongs to one event loop."""

    def __init__(self, means: Means) -> None:
        self._means = means
        #: Calls that were left behind, until they end.
        self.deaf: set[asyncio.Future[Any]] = set()

    async def call(self, held: Held, tool: Tool, coroutine: Coroutine[Any, Any, T]) -> T:
        """``coroutine``, a user's code, for as long as it may take and the claim is ours."""
        call = held.call = asyncio.ensure_future(coroutine)
        try:
            until = asyncio.get_running_loop().time() + tool.timeout.total_seconds() + _DEAF
            done, _ = await asyncio.wait({call}, timeout=tool.timeout.total_seconds() + _DEAF)
            if not done and asyncio.get_running_loop().time() > until + _OVERSLEPT:  # this process stood still: the tool has not heard of its timeout yet
                done, _ = await asyncio.wait({call}, timeout=_DEAF)
        except asyncio.CancelledError:
            self._leave_behind(call)
            raise
        finally:
            held.call = None
        if held.lost:
            self._leave_behind(call)
            raise Lost
        if not done:
            self._leave_behind(call)
            self._means.watching.abandoned(held.pending, _DEAF)
            doing, problem = f"carrying out intents of {held.pending.stream}", TimeoutError(f"{tool.name} is deaf to its cancellation")
            self._means.watching.hindered(held.pending, doing, problem)
            self._means.on_error(doing, problem)
            raise Deaf
        result: T = call.result()
        return result

    def _leave_behind(self, call: asyncio.Future[Any]) -> None:
        if not call.done():
            call.cancel()
            self.deaf.add(call)
            call.add_done_callback(self._ended)

    def _ended(self, call: asyncio.Future[Any]) -> None:
        self.deaf.discard(call)
        if not call.cancelled():
            call.exception()  # nobody waits for it any more
