"""The shell around one stream's plan: does what the plan yields, sends it what came of it.

No task per stream: between its actions a lane is an object in a dict, and what wakes it is the commit it waits for. Only
waiting for a provider or a tool takes a task, so that many keys commit together at little cost each.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine
from types import CoroutineType
from typing import Any

from ..eventlog.log import Claim, EventLog
from .committer import Committer
from .errors import Superseded, TurnTimedOut
from .plans import Ask, Commit, Fetch, Load, Plan
from .streams import Folder


class Lane:
    """One claimed stream under way."""

    __slots__ = ("_asking", "_committer", "_deadline", "_folder", "_log", "_loop", "_on_end", "_overdue", "_plan", "_seconds", "_task", "claim", "lost")

    def __init__(
        self,
        claim: Claim,
        plan: Plan,
        log: EventLog,
        committer: Committer,
        folder: Folder,
        seconds: float,
        on_end: Callable[[Lane, int, BaseException | None], None],
    ) -> None:
        self.claim = claim
        #: The lease went to somebody else: the next thing that comes back ends the plan.
        self.lost = False
        self._plan, self._log, self._committer, self._folder, self._on_end = plan, log, committer, folder, on_end
        self._loop = asyncio.get_running_loop()
        self._seconds = seconds
        self._deadline = self._loop.time() + seconds
        self._overdue = False
        #: It waits for a provider or a tool, not for the store.
        self._asking = False
        self._task: asyncio.Task[None] | None = None

    def advance(self, value: Any = None, error: BaseException | None = None) -> None:
        """Send the plan what came of its last action, and do the next, until it has to wait."""
        plan = self._plan
        try:
            while True:
                if self.lost:
                    raise Superseded(f"the lease on {self.claim.name} was lost")
                action = plan.send(value) if error is None else plan.throw(error)
                if isinstance(action, Commit):
                    self._committer.submit(action.request, self.advance)
                    if action.ends_turn:
                        self._deadline = self._loop.time() + self._seconds
                    return
                value, error = None, None
                if isinstance(action, Ask):
                    try:
                        value = action.start()
                    except Exception as problem:
                        error = problem
                        continue
                    if type(value) is not CoroutineType and not isinstance(value, Awaitable):
                        continue
                self._task = _start(self._loop, self._wait(action, value))
                return
        except StopIteration as stop:
            self._on_end(self, stop.value, None)
        except Superseded:
            self._end(None)
        except Exception as problem:
            self._end(problem)

    async def _wait(self, action: Any, awaited: Any) -> None:
        value: Any = None
        error: Exception | None = None
        self._asking = isinstance(action, Ask)
        try:
            if isinstance(action, Ask):
                value = await awaited
            elif isinstance(action, Load):
                value = await self._loop.run_in_executor(None, self._load, action.stream)
            elif isinstance(action, Fetch):
                value = await self._loop.run_in_executor(None, action.need.read, self._log, action.need.version, action.snapshot_every)
            else:
                await self._loop.run_in_executor(None, self._log.snapshots.save, action.stream, action.snapshot)
        except asyncio.CancelledError:
            if not self._overdue:
                self._end(None)
                raise
            error = TurnTimedOut(f"the turn ran longer than {self._seconds:g} s, its agent's turn_timeout")
        except Exception as problem:
            error = problem
        self._task = None
        self.advance(value, error)

    def sweep(self, now: float) -> None:
        """End what the plan waits for when the turn's time is over; ``now`` is the loop's time."""
        if now >= self._deadline and self._task is not None and self._asking and not self._overdue:
            self._overdue = True
            self._task.cancel()

    def _load(self, stream: str) -> Any:
        state = self._folder.restore(stream, self._log.snapshots.load([stream]).get(stream))
        return self._folder.fold_next(state, self._log.rows_of({stream: state.version}).get(stream, []))

    def cancel(self) -> None:
        """End the plan at once if it waits for a provider or a tool, else when its commit is back."""
        self.lost = True
        if self._task is not None:
            self._task.cancel()

    def close(self) -> None:
        """Nobody serves this lane any more: close the agent's code now, and not when it is collected."""
        self.lost = True
        self._plan.close()

    def _end(self, problem: BaseException | None) -> None:
        self._plan.close()
        self._on_end(self, 0, problem)


def _start(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    if sys.version_info >= (3, 12):  # runs up to its first real wait at once, instead of in the loop's next round
        return asyncio.Task(coroutine, loop=loop, eager_start=True)
    if loop.get_task_factory() is None:
        return asyncio.Task(coroutine, loop=loop)  # what the loop does, without what it does around it
    return loop.create_task(coroutine)
