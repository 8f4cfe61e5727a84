"""The bytes: MessagePack through msgspec, and the extension types for values it cannot hold by itself.

Everything here is self-describing: ``read`` turns bytes into a tree without knowing any class. Equal representations
give equal bytes: keys are sorted, sets are sorted by the bytes of their elements, and each value has one form.
The numbers of the extension types are part of the log for ever; they are listed in ``docs/event-types.md``.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final

import msgspec

from . import _wire_times as times
from ._shapes import MAX_DEPTH, Refused, mismatch, shown

Ext = msgspec.msgpack.Ext


class Code:
    """Numbers of the extension types; plain ints, because msgspec takes nothing else."""

    WIDE_STR: Final = 1
    BIG_INT: Final = 2
    DECIMAL: Final = 3
    DATETIME: Final = 4
    DATE: Final = 5
    TIME: Final = 6
    TIMEDELTA: Final = 7
    UUID: Final = 8
    TUPLE: Final = 9
    SET: Final = 10
    FROZENSET: Final = 11
    DICT: Final = 12


write: Final[Callable[[Any], bytes]] = msgspec.msgpack.Encoder(order="sorted").encode
"""From a tree whose special values are ``Ext`` already to bytes."""


def pack_str(value: str) -> Any:
    """A string as itself, or as an extension when it holds a lone surrogate, which has no UTF-8 form."""
    if value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return Ext(Code.WIDE_STR, value.encode("utf-8", "surrogatepass"))
    return value


def pack_int(value: int) -> Any:
    """An int as itself, or as an extension when 64 bits do not hold it."""
    if -(1 << 63) <= value < 1 << 64:
        return value
    return Ext(Code.BIG_INT, value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True))


def _pack_decimal(value: Decimal) -> Any:
    # str() follows the context's ``capitals``; the log must not.
    return Ext(Code.DECIMAL, str(value).replace("e", "E").encode())


def pack_pairs(pairs: Iterable[tuple[Any, Any]]) -> Any:
    """A dict with keys that a MessagePack map may not have, as pairs sorted by the bytes of their keys."""
    return Ext(Code.DICT, write([[key, value] for _, key, value in sorted(((write(key), key, value) for key, value in pairs), key=lambda row: row[0])]))


def in_order(trees: list[Any]) -> list[Any]:
    """A set's elements, sorted by their bytes."""
    return [tree for _, tree in sorted(((write(tree), tree) for tree in trees), key=lambda row: row[0])]


SCALARS: Final[dict[type, Callable[[Any], Any]]] = {
    str: pack_str,
    int: pack_int,
    Decimal: _pack_decimal,
    datetime: lambda value: Ext(Code.DATETIME, times.pack_datetime(value)),
    date: lambda value: Ext(Code.DATE, times.pack_date(value)),
    time: lambda value: Ext(Code.TIME, times.pack_time(value)),
    timedelta: lambda value: Ext(Code.TIMEDELTA, times.pack_timedelta(value)),
    uuid.UUID: lambda value: Ext(Code.UUID, value.bytes),
}
PLAIN: Final = frozenset({type(None), bool, float, bytes})
SELF_DESCRIBING: Final = frozenset({*SCALARS, *PLAIN, list, tuple, set, frozenset, dict})
_ADVICE: Final = "an untyped field holds only None, bool, int, float, str, bytes, Decimal, dates and times, UUID, list, tuple, set, frozenset, dict"


def describe(value: Any, depth: int = 0) -> Any:
    """The tree of a value that nothing but itself gives a type; raises ``Refused`` with the path of what does not fit."""
    kind = type(value)
    if kind in PLAIN:
        return value
    pack = SCALARS.get(kind)
    if pack is not None:
        return pack(value)
    if depth >= MAX_DEPTH:
        raise Refused(f"nested deeper than {MAX_DEPTH} levels; keep such a value as text or bytes, or flatten it")
    if kind is dict:
        return _describe_dict(value, depth + 1)
    if kind is list:
        return _describe_all(value, depth + 1)
    if kind is tuple:
        return Ext(Code.TUPLE, write(_describe_all(value, depth + 1)))
    if kind is set or kind is frozenset:
        trees = in_order([_describe_in(element, "{…}", depth + 1) for element in value])
        return Ext(Code.SET if kind is set else Code.FROZENSET, write(trees))
    raise Refused(f"{kind.__qualname__} {shown(value)} would not come back; {_ADVICE}. Give the field its exact type instead")


def _describe_in(value: Any, step: str, depth: int) -> Any:
    try:
        return describe(value, depth)
    except Refused as fault:
        raise fault.inside(step) from None


def _describe_all(values: Iterable[Any], depth: int) -> list[Any]:
    trees: list[Any] = []
    try:
        for value in values:
            trees.append(describe(value, depth))
    except Refused as fault:
        raise fault.inside(f"[{len(trees)}]") from None
    return trees


def _describe_dict(value: dict[Any, Any], depth: int) -> Any:
    pairs: list[tuple[Any, Any]] = []
    plain, step = True, ""
    key: Any = None
    try:
        for key, inner in value.items():
            if type(key) is str and key.isascii():
                packed: Any = key
            else:
                step = "key "
                packed = describe(key, depth)
                plain, step = plain and type(packed) is str, ""
            pairs.append((packed, inner if type(inner) in PLAIN else describe(inner, depth)))
    except Refused as fault:
        raise fault.inside(f"[{step}{shown(key)}]") from None
    return dict(pairs) if plain else pack_pairs(pairs)


_UNPACKERS: Final[dict[int, Callable[[bytes], Any]]] = {
    Code.WIDE_STR: lambda blob: blob.decode("utf-8", "surrogatepass"),
    Code.BIG_INT: lambda blob: int.from_bytes(blob, "big", signed=True),
    Code.DECIMAL: lambda blob: Decimal(blob.decode("ascii")),
    Code.DATETIME: times.unpack_datetime,
    Code.DATE: times.unpack_date,
    Code.TIME: times.unpack_time,
    Code.TIMEDELTA: times.unpack_timedelta,
    Code.UUID: lambda blob: uuid.UUID(bytes=blob),
    Code.TUPLE: lambda blob: tuple(_read_list(blob)),
    Code.SET: lambda blob: set(_read_list(blob)),
    Code.FROZENSET: lambda blob: frozenset(_read_list(blob)),
    Code.DICT: lambda blob: dict(_read_list(blob)),
}


def read_extension(code: int, blob: memoryview) -> Any:
    """The value of an extension type; msgspec calls it while it reads."""
    unpack = _UNPACKERS.get(code)
    if unpack is None:
        raise Refused(f"extension type {code} is not one this release knows")
    try:
        return unpack(bytes(blob))
    except (ValueError, ArithmeticError, LookupError, TypeError, OSError, struct.error, msgspec.MsgspecError) as fault:
        raise Refused(f"extension type {code} holds bytes that are no value of it ({fault})") from fault


_read: Final[Callable[[bytes], Any]] = msgspec.msgpack.Decoder(ext_hook=read_extension).decode


def _read_list(blob: bytes) -> list[Any]:
    tree = _read(blob)
    if type(tree) is not list:
        raise mismatch(tree, "an array")
    return tree


def read(blob: bytes) -> Any:
    """The tree of MessagePack bytes; raises ``Refused`` when they are not exactly one value."""
    try:
        return _read(blob)
    except (msgspec.MsgspecError, TypeError, ValueError) as fault:
        raise Refused(f"not one MessagePack value: {fault}") from fault
    except RecursionError:
        raise Refused("the bytes are nested too deep to be read") from None
