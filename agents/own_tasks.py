"""Tasks that a user's function begins: a SystemExit or KeyboardInterrupt in one of them ends that task, and neither the loop nor the process.

asyncio lets these two out of whatever task raises them and so ends the loop, with every call, lease and turn on it. A function
that exits is a function that failed, whether it exits itself or in a task of its own. Nobody's ^C is lost by that: whoever serves
heeds it himself, and ``asyncio.run`` remembers it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextvars import ContextVar
from typing import Any, Final, TypeVar

from .failures import text_of

T = TypeVar("T")
_INSIDE: Final[ContextVar[bool]] = ContextVar("a user's function", default=False)


class Exited(Exception):
    """Stands for the SystemExit or KeyboardInterrupt that is its cause, where a task raised it."""


_ENDS: Final = (SystemExit, KeyboardInterrupt)


class _Guarded(Coroutine[Any, Any, T]):
    """A coroutine that is another one, but for what ends a loop."""

    def __init__(self, own: Coroutine[Any, Any, T]) -> None:
        self._own = own

    def send(self, value: Any) -> Any:
        try:
            return self._own.send(value)
        except _ENDS as problem:
            raise _exited(problem) from problem

    def throw(self, *raised: Any) -> Any:
        try:
            return self._own.throw(*raised)
        except _ENDS as problem:
            raise _exited(problem) from problem

    def close(self) -> None:
        self._own.close()

    def __await__(self) -> Any:
        return self._own.__await__()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)  # what asyncio tells of a task: its name, its frame, where it waits


def _exited(problem: BaseException) -> Exited:
    return Exited(f"{type(problem).__name__}: {text_of(problem)}")


class _Begins:
    """Makes the tasks of a loop as they were made before, those begun by a user's function guarded."""

    def __init__(self, before: Any) -> None:
        self._before = before

    def __call__(self, loop: asyncio.AbstractEventLoop, own: Any, **named: Any) -> Any:
        given = _Guarded(own) if _INSIDE.get() and asyncio.iscoroutine(own) else own
        return asyncio.Task(given, loop=loop, **named) if self._before is None else self._before(loop, given, **named)


def is_inside() -> bool:
    """Whether a user's function runs here, or a task or callback that one began."""
    return _INSIDE.get()


def guard_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """From now on in this context, tasks that are begun are a user's function's own."""
    before = loop.get_task_factory()
    if not isinstance(before, _Begins):
        loop.set_task_factory(_Begins(before))
    _INSIDE.set(True)
