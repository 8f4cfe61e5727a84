"""From an annotation to its shape: one table of shapes, filled as types are asked for."""

from __future__ import annotations

import collections.abc
import enum
import threading
import types
import typing
from typing import Annotated, Any, Final, Literal, NewType, Union

import attrs

from . import wire
from ._hooks_classes import class_shape
from ._hooks_containers import dict_shape, fixed_tuple_shape, list_shape, set_shape, uniform_tuple_shape
from ._hooks_scalars import ANYTHING, SCALARS, enum_shape, literal_shape
from ._hooks_unions import union_shape
from ._shapes import MAX_DEPTH, Encode, Refused, Shape, label_of, located, mismatch

_ADVICE: Final[dict[Any, str]] = {
    collections.abc.Sequence: "tuple[…, ...] or list[…]",
    collections.abc.MutableSequence: "list[…]",
    collections.abc.Iterable: "tuple[…, ...] or list[…]",
    collections.abc.Collection: "tuple[…, ...] or list[…]",
    collections.abc.Mapping: "dict[…, …]",
    collections.abc.MutableMapping: "dict[…, …]",
    collections.abc.Set: "frozenset[…]",
    collections.abc.MutableSet: "set[…]",
    bytearray: "bytes",
    memoryview: "bytes",
    complex: "a tuple[float, float]",
}
_BARE: Final[dict[Any, Any]] = {list: list[Any], tuple: tuple[Any, ...], set: set[Any], frozenset: frozenset[Any]}


class Shapes:
    """Shapes by type. Thread-safe; each type is compiled once. What ``base`` has compiled is taken as it is."""

    def __init__(self, base: Shapes | None = None) -> None:
        self._done: dict[Any, Shape] = dict(base._done) if base is not None else {}
        self._open: set[Any] = set()
        self._lock = threading.RLock()
        self._depth = threading.local()

    def of(self, kind: Any) -> Shape:
        """The shape of an annotation; raises ``Refused`` with advice for one that is not supported."""
        kind = _unwrapped(kind)  # first of all: what stands in Annotated need not be hashable
        done = self._done.get(kind)
        if done is not None:
            return done
        with self._lock:
            if kind in self._open:
                return self._late(kind)
            before = len(self._done)
            self._open.add(kind)
            try:
                shape = self._compile(kind)
            except Refused:
                # What was compiled on the way may hold the late shape of the class that failed.
                for each in list(self._done)[before:]:
                    del self._done[each]
                raise
            finally:
                self._open.discard(kind)
            self._done[kind] = shape
            return shape

    def _compile(self, kind: Any) -> Shape:
        if kind in SCALARS:
            return SCALARS[kind]
        if kind is Any or kind is object:
            return ANYTHING
        if kind is dict:
            return _ANY_DICT
        if kind in _BARE:
            kind = _BARE[kind]
        origin, args = typing.get_origin(kind), typing.get_args(kind)
        if origin is Union or origin is types.UnionType:
            return self._union(args)
        if origin is Literal:
            return literal_shape(kind)
        if origin in (list, set, frozenset, dict, tuple):
            return self._container(origin, args)
        if isinstance(kind, type) and origin is None:
            if issubclass(kind, enum.Enum):
                return enum_shape(kind)
            if attrs.has(kind):
                return class_shape(kind, self.of)
        raise Refused(_why_not(kind, origin))

    def _container(self, origin: Any, args: tuple[Any, ...]) -> Shape:
        if origin is dict:
            return dict_shape(self.of(args[0]), self.of(args[1]))
        if origin is tuple:
            if len(args) == 2 and args[1] is Ellipsis:
                return uniform_tuple_shape(self.of(args[0]))
            return fixed_tuple_shape([self.of(each) for each in args])
        inner = self.of(args[0])
        return list_shape(inner) if origin is list else set_shape(origin, inner)

    def _union(self, args: tuple[Any, ...]) -> Shape:
        members = [self.of(each) for each in args]
        if ANYTHING in members:
            if all(member.wire <= wire.PLAIN or member is ANYTHING for member in members):
                return ANYTHING
            raise Refused(f"{' | '.join(member.label for member in members)} is ambiguous: Any takes every value; leave the others out")
        flat: list[Shape] = []
        for member in members:
            if member not in flat:
                flat.append(member)
        return union_shape(flat) if len(flat) > 1 else flat[0]

    def _late(self, kind: Any) -> Shape:
        """The shape of a class inside itself, found when it is used; the depth of the nest is counted here."""
        if not (isinstance(kind, type) and attrs.has(kind)):
            raise Refused(f"{label_of(kind)} contains itself; only an attrs class may")
        depth = self._depth
        hooks: list[Encode] = []

        def deeper(hook: Any, value: Any) -> Any:
            level = getattr(depth, "level", 0)
            if level >= MAX_DEPTH:
                raise Refused(f"nested deeper than {MAX_DEPTH} levels; flatten it")
            depth.level = level + 1
            try:
                return hook(value)
            finally:
                depth.level = level

        def encode(value: Any) -> Any:
            if not hooks:
                hooks.append(self._done[kind].encoder(""))
            return deeper(hooks[0], value)

        def decode(tree: Any, _: Any = None, /) -> Any:
            return deeper(self._done[kind].decode, tree)

        only = frozenset({kind})
        tag = kind.__dict__.get("__tag__", kind.__dict__.get("__event_type__", kind.__name__))
        return Shape(label_of(kind), located(encode), decode, only, frozenset({dict}), hashable=kind.__hash__ is not None, cls=kind, tag=tag)


def _unwrapped(kind: Any) -> Any:
    while True:
        if kind is None:
            return type(None)
        if typing.get_origin(kind) is Annotated:
            kind = typing.get_args(kind)[0]
        elif isinstance(kind, NewType):
            kind = kind.__supertype__
        elif type(kind).__name__ == "TypeAliasType":  # ``type X = …`` of Python 3.12
            kind = kind.__value__
        else:
            return kind


def _why_not(kind: Any, origin: Any) -> str:
    label = label_of(kind)
    base = origin if origin is not None else kind
    if base in _ADVICE:
        return f"{label} does not say what comes back; write {_ADVICE[base]}"
    if isinstance(base, type) and attrs.has(base):
        return f"{label} is generic; write one attrs class for each type it is used with"
    if isinstance(base, type) and issubclass(base, tuple | dict) and base not in (tuple, dict):
        return f"{label} is not supported; make it an attrs class"
    if isinstance(base, type) and hasattr(base, "__dataclass_fields__"):
        return f"{label} is a dataclass; put @attrs.frozen on it instead"
    return f"{label} is not a supported type; see docs/event-types.md, or make it an attrs class of supported fields"


def _encode_any_dict(value: Any) -> Any:
    if type(value) is not dict:
        raise mismatch(value, "dict")
    return wire.describe(value)


def _decode_any_dict(tree: Any, _: Any = None, /) -> Any:
    if type(tree) is not dict:
        raise mismatch(tree, "dict")
    return tree


_ANY_DICT: Final = Shape("dict", located(_encode_any_dict), _decode_any_dict, frozenset({dict}), frozenset({dict}), native=True, hashable=False)
