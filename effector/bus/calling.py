"""Users' code under a claim: for as long as it may take, and the claim is ours."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from ...agents.tools import Tool
from ..leases import Guard, NotBegun
from ..renewing import DEAF
from .holding import Held
from .means import Means

T = TypeVar("T")
_DEAF: Final = DEAF
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
        """``coroutine``, a user's code, for as long as it may take and the claim is ours; begun only while its lease stands (see ``leases``).

        Raises ``Lost`` when it was not begun, or is somebody else's, and ``Deaf``.
        """
        holding, loop, seconds = self._means.holding, asyncio.get_running_loop(), tool.timeout.total_seconds()
        guard, begun = Guard(lambda: holding.leases.stands(held)), asyncio.Event()

        def under_way() -> None:
            held.deadline = loop.time() + seconds
            begun.set()

        held.deadline = loop.time() + seconds
        call = held.call = asyncio.ensure_future(guard.before(coroutine, lambda: holding.renew_now(held), under_way))
        call.add_done_callback(lambda _: begun.set())
        try:
            await begun.wait()  # a store that takes its time over the renewal takes none of the tool's
            until = loop.time() + seconds + _DEAF
            done, _ = await asyncio.wait({call}, timeout=seconds + _DEAF)
            if not done and loop.time() > until + _OVERSLEPT:  # this process stood still: the tool has not heard of its timeout yet
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
        try:
            result: T = call.result()
        except NotBegun:
            raise self._lost(held) from None
        if guard.refused:
            raise self._lost(held)
        return result

    def _lost(self, held: Held) -> Lost:
        self._means.holding.lose(held)
        return Lost(f"{held.pending.stream}: the lease may be over, so nothing was called")

    def _leave_behind(self, call: asyncio.Future[Any]) -> None:
        if not call.done():
            call.cancel()
            self.deaf.add(call)
            call.add_done_callback(self._ended)

    def _ended(self, call: asyncio.Future[Any]) -> None:
        self.deaf.discard(call)
        if not call.cancelled():
            call.exception()  # nobody waits for it any more
