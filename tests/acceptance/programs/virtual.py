"""Time that costs nothing and threads that are none: a life of a process, the same for the same seed.

The event loop's time is the log's clock. When nothing is ready, it jumps to the next moment at which something is; what would
run in a thread runs at once. So days pass in milliseconds, and a run that failed can be had again.
"""

from __future__ import annotations

import asyncio
import math
import selectors
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import attrs

from intentlog.eventlog.clock import SECOND
from intentlog.eventlog.errors import LogUnavailable

START = 1_764_407_640_000_000  # 2025-11-29 09:14:00 UTC


@attrs.define
class Moment:
    """The clock; goes on only when the loop has nothing to do."""

    now: int = START

    def __call__(self) -> int:
        return self.now


class _Jumping(selectors.DefaultSelector):
    def __init__(self, moment: Moment) -> None:
        super().__init__()
        self._moment = moment

    def select(self, timeout: float | None = None) -> Any:
        found = super().select(0)
        if found or timeout == 0:
            return found
        if timeout is None:
            raise RuntimeError("nothing is ready and nothing is planned: this would wait for ever")
        self._moment.now += max(1, math.ceil(timeout * SECOND))
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is ``moment``."""

    def __init__(self, moment: Moment) -> None:
        super().__init__(_Jumping(moment))
        self._moment = moment
        self.set_default_executor(Inline())

    def time(self) -> float:
        return (self._moment.now - START) / SECOND

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """There are no threads to wait for."""


class Inline(ThreadPoolExecutor):
    """Runs what it is given at once, in the caller's thread."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as problem:
            future.set_exception(problem)
        return future


class Mortal:
    """A log in the hands of a process that may die: from then on nothing it does reaches the log.

    ``at(name)`` is called before and after every commit, and may end the life; a commit after which it ends is durable, but
    nobody is told.
    """

    def __init__(self, log: Any, life: Life) -> None:
        self._log, self._life = log, life
        self.url, self.clock = log.url, log.clock

    @property
    def schedule(self) -> Any:
        return _Facet(self._log.schedule, self._life)

    @property
    def snapshots(self) -> Any:
        return _Facet(self._log.snapshots, self._life)

    @property
    def checkpoints(self) -> Any:
        return _Facet(self._log.checkpoints, self._life)

    def append_batch(self, requests: Any) -> Any:
        self._life.at("commit.before")
        self._life.breathe()
        outcomes = self._log.append_batch(requests)
        self._life.at("commit.after")
        self._life.breathe()
        return outcomes

    def __getattr__(self, name: str) -> Any:
        self._life.breathe()
        return getattr(self._log, name)


class _Facet:
    def __init__(self, facet: Any, life: Life) -> None:
        self._facet, self._life = facet, life

    def __getattr__(self, name: str) -> Any:
        self._life.breathe()
        return getattr(self._facet, name)


@attrs.define(eq=False)
class Life:
    """How far a process gets: ``left`` boundaries (commits, model calls, attempts, …), then it is dead; ``None``: to its end."""

    left: int | None = None
    over: asyncio.Event = attrs.field(factory=asyncio.Event)
    #: Where it died.
    died_at: str = ""

    def at(self, name: str, stream: str = "") -> None:
        """A boundary is reached."""
        if self.left is not None and not self.over.is_set():
            self.left -= 1
            if self.left <= 0:
                self.died_at = name
                self.over.set()
        if self.over.is_set():
            raise LogUnavailable(f"dead since {self.died_at}")

    def breathe(self) -> None:
        """Raises when it is dead."""
        if self.over.is_set():
            raise LogUnavailable(f"dead since {self.died_at}")
