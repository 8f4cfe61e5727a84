"""What a tool may not be declared with, for it could only fail later: after a crash, or when money has moved.

Each function says what is wrong, or nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final, get_type_hints

_SCALARS: Final = (bool, int, float, str, bytes)


def not_a_function(fn: Any) -> str:
    """Why calling ``fn`` would not run it."""
    called = fn if inspect.isroutine(fn) or not callable(fn) else fn.__call__
    if any(is_one(each) for each in (fn, called) for is_one in (inspect.isgeneratorfunction, inspect.isasyncgenfunction)):
        return "is a generator, of which a call runs nothing: return one value instead of yielding"
    return "" if callable(fn) else f"is no function: {fn!r:.80}"


def not_of_its_type(timeout: Any, **flags: Any) -> str:
    """Which option was given something else than it takes."""
    for name, value in flags.items():
        if type(value) is not bool:
            return f"{name}= is True or False, not {value!r:.80}"
    if not isinstance(timeout, timedelta):
        return f"timeout= takes a timedelta, such as timedelta(seconds=5), not {timeout!r:.80}"
    return "" if timeout > timedelta(0) else f"timeout must be longer than zero, not {timeout}"


def cannot_reconcile(asked: Any, parameters: Mapping[str, Any], intent: type) -> str:
    """Why ``asked`` cannot be called with an ``intent`` and, by their names, arguments for ``parameters`` (name → annotation)."""
    named = "".join(f", {name}: {inspect.formatannotation(hint)}" for name, hint in parameters.items())
    wanted = f"reconcile= takes a function of the intent and of the tool's own parameters, def look(intent: {intent.__name__}{named})"
    if problem := not_a_function(asked):
        return f"{wanted}; what was given {problem}"
    try:
        signature = inspect.signature(asked)
    except (TypeError, ValueError):  # of some built-in functions nobody can tell
        return ""
    try:
        signature.bind(None, **dict.fromkeys(parameters))
    except TypeError as problem:
        return f"{wanted}; {_name(asked)}{signature} cannot be called so: {problem}"
    hint = _hints(asked).get(next(iter(signature.parameters)))
    if isinstance(hint, type) and not issubclass(intent, hint):
        return f"{wanted}; {_name(asked)}{signature} takes a {hint.__name__} first"
    return ""


def cannot_be_given(done: str, undo: str, wanted: Mapping[str, Any], arguments: Mapping[str, Any], result: tuple[str, Any]) -> str:
    """Why the tool ``undo``, whose parameters are ``wanted``, cannot be given what ``done`` was called with, or returned."""
    name, returned = result
    for each, hint in wanted.items():
        if each == name and _differ(hint, returned):
            return f"its compensate= tool {undo} takes {each!r} as {_a(hint)}, and {done} returns {_a(returned)}"
        if each != name and each in arguments and _differ(hint, arguments[each]):
            return f"its compensate= tool {undo} takes {each!r} as {_a(hint)}, and {done} takes it as {_a(arguments[each])}"
    return ""


def _differ(one: Any, other: Any) -> bool:
    """Whether nothing can be both. Of plain values only; of all else it is found out with the values."""
    return one in _SCALARS and other in _SCALARS and one is not other and (one, other) != (float, int)


def _a(hint: Any) -> str:
    return f"{'an' if hint is int else 'a'} {hint.__name__}"


def _name(fn: Callable[..., Any]) -> str:
    return getattr(fn, "__name__", type(fn).__name__)


def _hints(fn: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(fn if inspect.isroutine(fn) else fn.__call__)  # type: ignore[operator]
    except Exception:  # annotations may name what is not there; then they say nothing
        return {}
