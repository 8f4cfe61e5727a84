"""Copies of a state that share nothing with it which could change: what is kept must not move with what is folded on.

Codes that fold are pure by contract, and a kept state must be right even when one is not. What cannot change (text,
numbers, frozen sets, tuples of such) is shared, so that a copy costs what its containers cost.
"""

from __future__ import annotations

import copy
import enum
import uuid
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple

import attrs

_FIXED: Final = frozenset({type(None), bool, int, float, str, bytes, Decimal, datetime, date, time, timedelta, uuid.UUID, frozenset, type, enum.EnumMeta})

_HOLDERS: Final = frozenset({dict, list, set})


class _Shape(NamedTuple):
    """What a class's objects are copied by, looked up once."""

    names: tuple[str, ...]
    frozen: bool


class Copier:
    """Copies of several values that belong together: what they share, their copies share. ``weight`` counts the values looked at."""

    def __init__(self) -> None:
        self.weight = 0
        #: id → (the value, kept so that its id stays its own; its copy)
        self._done: dict[int, tuple[Any, Any]] = {}
        self._shapes: dict[type, _Shape] = {}

    def copy(self, value: Any) -> Any:
        """``value``, independent of it."""
        kind = type(value)
        self.weight += 1
        if kind in _FIXED or isinstance(value, enum.Enum):
            return value
        known = self._done.get(id(value))
        if known is not None:
            return known[1]
        twin = kind() if not value and kind in _HOLDERS else self._fresh(kind, value)
        self._done[id(value)] = (value, twin)
        return twin

    def _fresh(self, kind: type, value: Any) -> Any:
        copied = self.copy
        if kind is dict:
            return {key: copied(each) for key, each in value.items()}
        if kind is list:
            return [copied(each) for each in value]
        if kind is tuple:
            twins = tuple([copied(each) for each in value])
            return value if all(twin is each for twin, each in zip(twins, value, strict=True)) else twins
        if kind is set:
            self.weight += len(value)
            return set(value)
        if attrs.has(kind):
            return self._object(kind, value)
        inside: dict[int, Any] = {}
        twin = copy.deepcopy(value, inside)
        self.weight += len(inside)
        return twin

    def _object(self, kind: type, value: Any) -> Any:
        shape = self._shapes.get(kind)
        if shape is None:
            shape = self._shapes[kind] = _Shape(tuple(field.name for field in attrs.fields(kind)), is_frozen(kind))
        changed = {}
        for name in shape.names:
            each = getattr(value, name)
            if type(each) in _FIXED:  # most of them are: they need no call
                self.weight += 1
            elif (twin := self.copy(each)) is not each:
                changed[name] = twin
        return with_fields(value, changed) if changed or not shape.frozen else value


def copied(value: Any) -> Any:
    """``value``, independent of it."""
    return Copier().copy(value)


def with_fields(value: Any, changed: dict[str, Any]) -> Any:
    """A copy of an attrs object with these fields replaced: nothing is validated or converted, for they come from another of its kind."""
    twin = copy.copy(value)
    for name, each in changed.items():
        object.__setattr__(twin, name, each)
    return twin


def is_frozen(kind: type) -> bool:
    """Whether attrs refuses assignments to the class's fields."""
    return getattr(kind.__setattr__, "__name__", "") == "_frozen_setattrs"
