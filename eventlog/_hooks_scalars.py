"""Shapes of values that hold no other values: numbers, text, times, Enum, Literal, and ``Any``."""

from __future__ import annotations

import enum
import uuid
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, get_args

from . import wire
from ._shapes import Decode, Encode, Refused, Shape, label_of, mismatch, shown

_FLOAT: Final = frozenset({float})
_INT: Final = frozenset({int})


def _strict(kind: type, pack: Callable[[Any], Any] | None) -> Callable[[str], Encode]:
    """Hooks that take exactly ``kind``: a subclass, and a bool for an int, would come back as something else."""
    name = "None" if kind is type(None) else kind.__name__

    def encoder(where: str) -> Encode:
        def keep(value: Any) -> Any:
            if type(value) is not kind:
                raise mismatch(value, name, where)
            return value

        def packed(value: Any) -> Any:
            if type(value) is not kind:
                raise mismatch(value, name, where)
            try:
                return pack(value)  # type: ignore[misc]
            except Refused as fault:
                raise fault.inside(where) from None

        def text(value: Any) -> Any:
            if type(value) is not str:
                raise mismatch(value, name, where)
            return value if value.isascii() else wire.pack_str(value)

        def number(value: Any) -> Any:
            if type(value) is not int:
                raise mismatch(value, name, where)
            return value if -(1 << 63) <= value < 1 << 64 else wire.pack_int(value)

        if kind is str:
            return text
        if kind is int:
            return number
        return keep if pack is None else packed

    return encoder


def _exactly(kind: type) -> Decode:
    name = "None" if kind is type(None) else kind.__name__

    def decode(tree: Any, _: Any = None, /) -> Any:
        if type(tree) is not kind:
            raise mismatch(tree, name)
        return tree

    return decode


def _decode_float(tree: Any, _: Any = None, /) -> float:
    if type(tree) is float:
        return tree
    if type(tree) is int:  # msgspec takes it on the quick path; both paths must agree
        try:
            return float(tree)
        except OverflowError:
            pass
    raise mismatch(tree, "float")


def _scalar(kind: type, *, native: bool = False, key: bool = False) -> Shape:
    only = frozenset({kind})
    return Shape(
        label="None" if kind is type(None) else kind.__name__,
        encoder=_strict(kind, wire.SCALARS.get(kind)),
        decode=_decode_float if kind is float else _exactly(kind),
        python=only,
        wire=only,
        lenient=_INT if kind is float else frozenset(),
        native=native,
        key=key,
    )


SCALARS: Final[dict[Any, Shape]] = {
    kind: _scalar(kind, native=kind in {str, int, float, bool, bytes, type(None)}, key=kind in {str, int, bytes, uuid.UUID, date})
    for kind in (str, int, float, bool, bytes, type(None), Decimal, datetime, date, time, timedelta, uuid.UUID)
}


def _describe_at(where: str) -> Encode:
    def encode(value: Any) -> Any:
        try:
            return wire.describe(value)
        except Refused as fault:
            raise fault.inside(where) from None

    return encode


def _as_it_is(tree: Any, _: Any = None, /) -> Any:
    return tree


ANYTHING: Final = Shape(label="Any", encoder=_describe_at, decode=_as_it_is, python=wire.SELF_DESCRIBING, wire=wire.SELF_DESCRIBING, native=True)


def enum_shape(cls: type[enum.Enum]) -> Shape:
    """Members travel as their values, which must be plain str or int."""
    if issubclass(cls, enum.Flag):
        raise Refused(f"{label_of(cls)} is a Flag, whose combinations are no members; declare the field as int or as a frozenset of an Enum")
    members = list(cls)
    odd = [member for member in members if type(member._value_) not in (str, int)]
    if odd or not members:
        what = f"{odd[0]!r} has a {type(odd[0]._value_).__name__} value" if odd else "it has no member"
        raise Refused(f"the Enum {label_of(cls)} may only have str or int values, but {what}")
    table = {member._value_: member for member in members}
    kinds = frozenset(type(value) for value in table)
    name = cls.__name__
    plain = all(value is wire.SCALARS[type(value)](value) for value in table)

    def encoder(where: str) -> Encode:
        def encode(value: Any) -> Any:
            if type(value) is not cls:
                raise mismatch(value, name, where)
            held = value._value_
            return held if plain else wire.SCALARS[type(held)](held)

        return encode

    def decode(tree: Any, _: Any = None, /) -> Any:
        if type(tree) not in kinds or tree not in table:
            raise Refused(f"{shown(tree)} is no value of {name} ({', '.join(map(shown, table))})")
        return table[tree]

    lenient_lookup = any("_missing_" in base.__dict__ for base in cls.__mro__ if base not in (enum.Enum, enum.IntEnum, enum.StrEnum))
    return Shape(name, encoder, decode, frozenset({cls}), kinds, native=plain and not lenient_lookup, key=True)


def literal_shape(kind: Any) -> Shape:
    """One of the values written in the annotation."""
    values = get_args(kind)
    odd = [value for value in values if type(value) not in (str, int, bool, bytes, type(None))]
    if odd:
        raise Refused(f"{label_of(kind)} holds {shown(odd[0])}; a Literal may hold str, int, bool, bytes and None. For members of an Enum, name the Enum")
    allowed = {(type(value), value) for value in values}
    kinds = frozenset(type(value) for value in values)
    label = label_of(kind)

    def check(value: Any, where: str = "") -> None:
        if type(value) not in kinds or (type(value), value) not in allowed:
            raise mismatch(value, label, where)

    def encoder(where: str) -> Encode:
        def encode(value: Any) -> Any:
            check(value, where)
            pack = wire.SCALARS.get(type(value))
            return value if pack is None else pack(value)

        return encode

    def decode(tree: Any, _: Any = None, /) -> Any:
        check(tree)
        return tree

    return Shape(label, encoder, decode, kinds, kinds, native=kinds <= {str, int}, key=kinds <= {str, int})
