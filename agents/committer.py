"""Group commit: what many turns append at the same time shares one durable commit.

While one commit is being made durable, requests gather; then they go together. Each request is still all-or-nothing on
its own, and its caller hears of it only after the commit: a crash before that loses all of them, a crash after it none,
and in both cases nobody was told otherwise (S-3.2).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from ..eventlog.errors import LogUnavailable
from ..eventlog.log import AppendRequest, EventLog, Outcome

_MOST: Final = 256
"""Requests in one commit."""
_TRIES: Final = 6


class Committer:
    """Belongs to one event loop; one commit at a time."""

    def __init__(self, log: EventLog, *, after_commit: Callable[[list[AppendRequest]], None] | None = None) -> None:
        self._log = log
        self._waiting: list[tuple[AppendRequest, asyncio.Future[Outcome]]] = []
        self._busy = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="commit")
        self._after_commit = after_commit

    async def commit(self, request: AppendRequest) -> Outcome:
        """The request's outcome, once it is durable. Raises ``LogUnavailable`` after the last try."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Outcome] = loop.create_future()
        self._waiting.append((request, future))
        if not self._busy:
            self._busy = True
            loop.call_soon(self._next, loop)
        return await asyncio.shield(future)

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        batch, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
        if not batch:
            self._busy = False
            return
        self._send(loop, batch, 1)

    def _send(self, loop: asyncio.AbstractEventLoop, batch: list[tuple[AppendRequest, asyncio.Future[Outcome]]], attempt: int) -> None:
        requests = [request for request, _ in batch]

        def work() -> None:
            try:
                outcomes: list[Outcome] | Exception = self._log.append_batch(requests)
            except Exception as problem:  # the waiting turns must hear of it, whatever it is
                outcomes = problem
            loop.call_soon_threadsafe(self._done, loop, batch, outcomes, attempt)

        self._thread.submit(work)

    def _done(self, loop: asyncio.AbstractEventLoop, batch: list[tuple[AppendRequest, asyncio.Future[Outcome]]], outcomes: list[Outcome] | Exception, attempt: int) -> None:
        if isinstance(outcomes, LogUnavailable) and attempt < _TRIES:
            # The fate of the commit is unknown; the same ids again are duplicates, never a second append.
            loop.call_later(0.05 * 2**attempt, self._send, loop, batch, attempt + 1)
            return
        if isinstance(outcomes, Exception):
            for _, future in batch:
                if not future.done():
                    future.set_exception(outcomes)
        else:
            for (_, future), outcome in zip(batch, outcomes, strict=True):
                if not future.done():
                    future.set_result(outcome)
            if self._after_commit is not None:
                self._after_commit([request for request, _ in batch])
        self._next(loop)

    def close(self) -> None:
        """Wait for the commit under way and stop the thread."""
        self._thread.shutdown(wait=True)
