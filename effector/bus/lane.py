"""One partition: its messages one after the other, with at most one of them under way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from ...eventlog.clock import SECOND, Clock
from ..keeping import pause, within
from ..watching import Watching
from .means import Take
from .protocol import Message
from .window import Entry, Window

FAILED: Final = "failure"
_LONGEST: Final = 60.0
"""Seconds until a message whose taking failed is taken up again, at most."""
_NAP: Final = 60.0


class Lane:
    """Takes up what is next as long as the partition is ours. Belongs to one event loop."""

    def __init__(
        self,
        partition: int,
        take: Take,
        slots: asyncio.Semaphore,
        clock: Clock,
        *,
        watching: Watching,
        on_error: Callable[[str, BaseException], None],
    ) -> None:
        self.partition, self.window = partition, Window()
        self._take, self._slots, self._clock, self._watching, self._on_error = take, slots, clock, watching, on_error
        self._news = asyncio.Event()
        self._closing = False
        #: What is being taken now.
        self.under_way: Entry | None = None
        #: The partition is paused at the source.
        self.paused = False
        #: The last offset that the source was told of.
        self.acknowledged = -1
        self.running = asyncio.create_task(self._run())

    def add(self, messages: list[Message]) -> None:
        """More of the partition, in order."""
        for each in messages:
            self.window.add(each)
        self._news.set()

    def close(self) -> None:
        """Begin nothing more; what is under way may come to its end, and a claim without a call is handed back."""
        self._closing = True
        self._news.set()

    def leaving(self) -> bool:
        """Whether it is on its way out."""
        return self._closing

    async def _run(self) -> None:
        while not self._closing:
            now = self._clock()
            found = self.window.next(now)
            if not isinstance(found, Entry):
                await within(_NAP if found is None else min(_NAP, (found - now) / SECOND), self._news)
                continue
            async with self._slots:
                if not self._closing:
                    await self._one(found)

    async def _one(self, entry: Entry) -> None:
        self.under_way = entry
        try:
            over = await self._take(entry, self.leaving)
        except Exception as problem:  # this message is taken up again after a pause; other keys go on
            name = f"lane {self.partition}"
            doing = f"taking a message of partition {self.partition}"
            if entry.pending is not None:
                self._watching.hindered(entry.pending, doing, problem)
            self._on_error(doing, problem)
            self._watching.failed(name, problem)
            times = entry.times + 1 if entry.waits_for == FAILED else 1
            now = self._clock()
            entry.wait(FAILED, now + int(pause(times, _LONGEST) * SECOND), now)
            return
        finally:
            self.under_way = None
        if over:
            self.window.over(entry)
