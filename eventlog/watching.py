"""Logs that can tell of trouble in their store by themselves, beside the protocol that every log keeps."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Final, Protocol, runtime_checkable

from .console import masked
from .log import EventLog
from .printing import note, one_line

_WIDTH: Final = 2_000


@runtime_checkable
class Watched(Protocol):
    """A log whose store has troubles that no call of its user meets: it works, and yet something is held back."""

    def watch(self, on_trouble: Callable[[str], None]) -> AbstractContextManager[None]:
        """Look after the store, in a thread, while the block lasts; ``on_trouble`` gets a sentence when something is wrong, and when it is over."""
        ...


def watching(log: EventLog, on_trouble: Callable[[str], None]) -> AbstractContextManager[None]:
    """``log.watch(on_trouble)``; nothing for a log that has no such troubles."""
    return log.watch(on_trouble) if isinstance(log, Watched) else nullcontext()


def telling(log: EventLog) -> AbstractContextManager[None]:
    """The same, said on stderr: for a command that goes on for as long as it is left alone."""
    return watching(log, lambda text: note(masked(one_line(text, _WIDTH))))
