"""Logs that can tell of trouble in their store by themselves, beside the protocol that every log keeps."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol, runtime_checkable

from .log import EventLog


@runtime_checkable
class Watched(Protocol):
    """A log whose store has troubles that no call of its user meets: it works, and yet something is held back."""

    def watch(self, on_trouble: Callable[[str], None]) -> AbstractContextManager[None]:
        """Look after the store, in a thread, while the block lasts; ``on_trouble`` gets a sentence when something is wrong, and when it is over."""
        ...


def watching(log: EventLog, on_trouble: Callable[[str], None]) -> AbstractContextManager[None]:
    """``log.watch(on_trouble)``; nothing for a log that has no such troubles."""
    return log.watch(on_trouble) if isinstance(log, Watched) else nullcontext()
