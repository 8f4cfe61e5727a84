"""Group commit: what many turns append at the same time shares one durable commit.

While one commit is being made durable, requests gather; then they go together. Each request is still all-or-nothing on
its own, and its caller hears of it only after the commit: a crash before that loses all of them, a crash after it none,
and in both cases nobody was told otherwise (S-3.2).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, Final, TypeAlias

from ..eventlog.errors import LogUnavailable
from ..eventlog.log import Appended, AppendRequest, EventLog, Outcome

_MOST: Final = 256
"""Requests in one commit."""
_TRIES: Final = 6
_COHORT: Final = 24
"""Requests that are enough for a commit of their own while others are still to come, where a server does the writing.

Keys that are told of one commit together ask for the next together, too: with all of them in one commit, the server would
rest while the turns run and the turns while the server writes. With cohorts the two take turns with each other.
"""

Done: TypeAlias = Callable[[Outcome | None, Exception | None], None]
"""Called with the outcome, or with why the commit could not be made."""


class Committer:
    """Belongs to one event loop; one commit at a time."""

    def __init__(self, log: EventLog, *, after_commit: Callable[[list[AppendRequest]], None] | None = None, thread: Executor | None = None) -> None:
        self._log = log
        self._requests: list[AppendRequest] = []
        self._waiting: list[Done] = []
        self._busy = False
        self._called = False
        #: The highest position this committer has been told of.
        self.reached = 0
        self._cohort = _COHORT if log.served else _MOST
        #: Where commits are made: a thread of its own unless given, so that one commit waits for no other work.
        self._thread = thread or ThreadPoolExecutor(1, thread_name_prefix="commit")
        self._after_commit = after_commit
        self._loop: asyncio.AbstractEventLoop | None = None

    def submit(self, request: AppendRequest, done: Done) -> None:
        """Append with the next commit; ``done`` is called in the event loop once it is durable, or cannot be."""
        self._requests.append(request)
        self._waiting.append(done)
        if self._busy:
            return
        if len(self._requests) >= self._cohort:
            self._next()
        elif not self._called:
            self._called = True
            self._loop = asyncio.get_running_loop()
            self._loop.call_soon(self._begin)

    async def commit(self, request: AppendRequest) -> Outcome:
        """The request's outcome, once it is durable. Raises ``LogUnavailable`` after the last try.

        Cancelling the wait does not take the request back.
        """
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

        def done(outcome: Outcome | None, problem: Exception | None) -> None:
            if future.done():
                return
            if problem is not None:
                future.set_exception(problem)
            else:
                assert outcome is not None
                future.set_result(outcome)

        self.submit(request, done)
        return await future

    def _begin(self) -> None:
        self._called = False
        if not self._busy:
            self._next()

    def _next(self) -> None:
        requests, self._requests = self._requests[:_MOST], self._requests[_MOST:]
        waiting, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
        self._busy = bool(requests)
        if requests:
            self._send(requests, waiting, 1)

    def _send(self, requests: list[AppendRequest], waiting: list[Done], attempt: int) -> None:
        loop = self._loop
        assert loop is not None

        def work() -> None:
            outcomes: list[Outcome] = []
            problem: Exception | None = None
            try:
                outcomes = self._log.append_batch(requests)
            except Exception as raised:  # the waiting turns must hear of it, whatever it is
                problem = raised
            loop.call_soon_threadsafe(self._done, requests, waiting, outcomes, problem, attempt)

        self._thread.submit(work)

    def _done(self, requests: list[AppendRequest], waiting: list[Done], outcomes: list[Any], problem: Exception | None, attempt: int) -> None:
        assert self._loop is not None
        if isinstance(problem, LogUnavailable) and attempt < _TRIES:
            # The fate of the commit is unknown; the same ids again are duplicates, never a second append.
            self._loop.call_later(0.05 * 2**attempt, self._send, requests, waiting, attempt + 1)
            return
        # The next commit goes out before anybody is told of this one, so that the disk and the turns work at once.
        self._next()
        if problem is not None:
            for done in waiting:
                done(None, problem)
            return
        for outcome in outcomes:
            if isinstance(outcome, Appended):
                self.reached = max(self.reached, *(positions[-1] for positions in outcome.positions if positions), 0)
        for done, outcome in zip(waiting, outcomes, strict=True):
            done(outcome, None)
        if self._after_commit is not None:
            self._after_commit(requests)

    def close(self) -> None:
        """Wait for the commit under way and stop the thread."""
        self._thread.shutdown(wait=True)
