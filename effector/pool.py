"""The threads of an event loop that users' functions share: theirs are others than ours.

``asyncio.to_thread`` in an async tool takes a thread of the loop's pool, and keeps it when the tool's timeout is over. In a pool
of one kind a few dozen of those leave none for the store: nothing is read, claimed or settled any more, whoever's tool it was.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

from ..agents.own_tasks import is_inside

_THEIRS: Final = 256
"""Threads for users' functions; they are begun when they are wanted."""


class Pool(ThreadPoolExecutor):
    """A loop's default executor."""

    def __init__(self, threads: int, name: str) -> None:
        super().__init__(threads, thread_name_prefix=name)
        self._theirs = ThreadPoolExecutor(_THEIRS, thread_name_prefix=f"{name}-users")

    def submit(self, fn: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        """In a thread of ours, or of theirs where a user's function, or a task that it began, asks for it."""
        return self._theirs.submit(fn, *args, **named) if is_inside() else super().submit(fn, *args, **named)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ours first: whoever waits for theirs may wait long."""
        super().shutdown(wait, cancel_futures=cancel_futures)
        self._theirs.shutdown(wait, cancel_futures=cancel_futures)
