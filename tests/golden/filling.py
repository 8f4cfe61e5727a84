"""An instance of an event class with every field filled, made from its annotations alone; the same one every time."""

from __future__ import annotations

import enum
import types
import typing
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Literal
from uuid import UUID

import attrs

#: Variant → what each leaf holds. ``plain`` is what is usual, ``rich`` what is hard to write.
LEAVES: dict[str, dict[Any, Any]] = {
    "plain": {
        str: "text", int: 7, float: 1.5, bool: True, bytes: b"\x00\xff", Any: {"a": [1, None, True]}, object: 1, Decimal: Decimal("1.50"),
        UUID: UUID(int=7), date: date(2026, 1, 31), time: time(9, 14), timedelta: timedelta(seconds=1.5), datetime: datetime(2026, 1, 31, 9, 14, tzinfo=UTC),
    },
    "rich": {
        str: 'žluť 😀\n"', int: -(2**80), float: float("-inf"), bool: False, bytes: bytes(range(64)), Decimal: Decimal("-0E-7"), object: "x",
        Any: {"é": (1, 2.0, Decimal("1.10")), "": b"x", "deep": [{"n": -(2**63)}]},
        UUID: UUID(int=2**127), date: date(1, 1, 1), time: time(23, 59, 59, 999999), timedelta: timedelta(days=-1, microseconds=1),
        datetime: datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    },
}  # fmt: skip


def filled(kind: Any, variant: str) -> Any:
    """A value of ``kind``."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if kind in LEAVES[variant]:
        return LEAVES[variant][kind]
    if kind is type(None):
        return None
    if isinstance(kind, type) and attrs.has(kind):
        hints = typing.get_type_hints(kind)
        return kind(**{field.alias: filled(hints[field.name], variant) for field in attrs.fields(kind) if field.init})
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return list(kind)[0 if variant == "plain" else -1]
    if origin in (typing.Union, types.UnionType):
        return filled(args[0], variant)
    if origin is Literal:
        return args[0 if variant == "plain" else -1]
    if origin is tuple and (len(args) != 2 or args[1] is not Ellipsis):
        return tuple(filled(each, variant) for each in args)
    if origin in (list, tuple, set, frozenset):
        return origin([filled(args[0], variant)] * (1 if variant == "plain" else 2))
    if origin is dict:
        return {filled(args[0], variant): filled(args[1], variant)}
    raise TypeError(f"say in {__file__} how a {kind} is filled")


def least(kind: type[Any]) -> Any:
    """An instance in which what has a default keeps it."""
    hints = typing.get_type_hints(kind)
    return kind(**{field.alias: filled(hints[field.name], "plain") for field in attrs.fields(kind) if field.init and field.default is attrs.NOTHING})
