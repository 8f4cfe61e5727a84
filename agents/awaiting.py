"""Steps that were made and never awaited: nothing of them happened, and nobody would know."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S")


def step(method: Callable[Concatenate[S, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """Note every coroutine the method makes, so that the turn's end can ask whether it was awaited."""

    @functools.wraps(method)
    def made(self: S, /, *args: P.args, **named: P.kwargs) -> Coroutine[Any, Any, T]:
        coroutine = method(self, *args, **named)
        self.steps_made.append(coroutine)  # type: ignore[attr-defined]
        return coroutine

    return made


def never_awaited(made: list[Coroutine[Any, Any, Any]]) -> str:
    """The name of the first step that was made and never awaited, or nothing; such steps are closed."""
    forgotten = [coroutine for coroutine in made if inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED]
    for coroutine in forgotten:
        coroutine.close()
    return str(getattr(forgotten[0], "__name__", "step")) if forgotten else ""
