"""The words of an expression: which functions, methods and operators there are, and of what. Nothing else can be said.

``ABSENT`` is the third truth value, for what is not there: see ``expressions``.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from .paths import ABSENT

MOST_STEPS: Final = 250_000
LARGEST: Final = 10_000
"""Bits of a whole number, characters of a text, elements of a list that arithmetic may come to."""


def any_of(values: Iterable[Any]) -> Any:
    """``any``; ``ABSENT`` when nothing is true and something is not there."""
    unknown = False
    for value in values:
        if value is ABSENT:
            unknown = True
        elif value:
            return True
    return ABSENT if unknown else False


def all_of(values: Iterable[Any]) -> Any:
    """``all``; ``ABSENT`` when nothing is false and something is not there."""
    unknown = False
    for value in values:
        if value is ABSENT:
            unknown = True
        elif not value:
            return False
    return ABSENT if unknown else True


def _known(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` over a whole collection, or ``ABSENT`` when one of its elements is."""

    def over(*given: Any) -> Any:
        values = list(given[0]) if len(given) == 1 else list(given)
        if any(value is ABSENT for value in values) or (not values and function in (min, max)):
            return ABSENT
        return function(values)

    return over


def _len(value: Any) -> Any:
    values = list(value) if isinstance(value, Iterator) else value
    return len(values)


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "len": _len,
    "any": any_of,
    "all": all_of,
    "min": _known(min),
    "max": _known(max),
    "sum": _known(sum),
    "sorted": _known(sorted),
    "abs": abs,
    "str": lambda value: str(value)[:LARGEST],
    "int": lambda value: int(value[:LARGEST] if isinstance(value, str) else value),
}
"""What an expression may call."""
METHODS: Final[dict[str, tuple[tuple[type, ...], Callable[..., Any]]]] = {
    "keys": ((Mapping,), list),
    "values": ((Mapping,), lambda value: [value[key] for key in value]),
    "items": ((Mapping,), lambda value: [(key, value[key]) for key in value]),
    "get": ((Mapping,), lambda value, key, default=None: value.get(key, default)),
    "startswith": ((str,), lambda value, start: value.startswith(start)),
    "endswith": ((str,), lambda value, end: value.endswith(end)),
    "lower": ((str,), lambda value: value.lower()),
    "upper": ((str,), lambda value: value.upper()),
}
"""Methods by name: of what, and what they come to."""

_NUMBERS: Final = (int, float, Decimal)
_ADDED: Final = (*_NUMBERS, str, list, tuple, timedelta, datetime, date)
_SETS: Final = (set, frozenset)
OPERATORS: Final[dict[type[ast.operator], tuple[Callable[[Any, Any], Any], tuple[type, ...]]]] = {
    ast.Add: (operator.add, _ADDED),
    ast.Sub: (operator.sub, (*_NUMBERS, timedelta, datetime, date, *_SETS)),
    ast.Mult: (operator.mul, (*_NUMBERS, timedelta)),
    ast.Div: (operator.truediv, (*_NUMBERS, timedelta)),
    ast.FloorDiv: (operator.floordiv, (*_NUMBERS, timedelta)),
    ast.Mod: (operator.mod, (*_NUMBERS, timedelta)),
    ast.BitAnd: (operator.and_, _SETS),
    ast.BitOr: (operator.or_, _SETS),
}
COMPARISONS: Final[dict[type[ast.cmpop], Callable[[Any, Any], Any]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}
UNARY: Final[dict[type[ast.unaryop], Callable[[Any], Any]]] = {ast.Not: operator.not_, ast.USub: operator.neg, ast.UAdd: operator.pos}
