"""Lists as PostgreSQL's binary arrays. The driver's own would choose a type by the values, and ask about each of them."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Final, cast

from psycopg import pq
from psycopg.abc import AdaptContext
from psycopg.adapt import Dumper
from psycopg.types.numeric import Int8BinaryDumper

_INT8: Final = 20
_BYTEA: Final = 17
_TEXT: Final = 25
_HEADER: Final = struct.Struct(">iiIii")
_LENGTH: Final = struct.Struct(">i")
_NULL: Final = _LENGTH.pack(-1)


class Integers(bytes):
    """A ``bigint[]``, ready to be sent."""


class Blobs(bytes):
    """A ``bytea[]``, ready to be sent."""


class Texts(bytes):
    """A ``text[]``, ready to be sent."""


def integers(values: Sequence[int | None]) -> Integers:
    """``values`` as a ``bigint[]``. Raises ``struct.error`` for a number of more than 64 bits."""
    count = len(values)
    if None in values:
        parts = [_NULL if value is None else struct.pack(">iq", 8, value) for value in values]
        return Integers(_header(_INT8, count, nulls=True) + b"".join(parts))
    flat = [8] * (2 * count)
    flat[1::2] = values  # type: ignore[assignment]
    return Integers(_header(_INT8, count) + struct.pack(">" + "iq" * count, *flat))


def blobs(values: Sequence[bytes | None]) -> Blobs:
    """``values`` as a ``bytea[]``."""
    return Blobs(_joined(_BYTEA, values))


def texts(values: Iterable[str | None]) -> Texts:
    """``values`` as a ``text[]``. Raises ``UnicodeEncodeError`` for text that has no UTF-8 form."""
    return Texts(_joined(_TEXT, [None if value is None else value.encode() for value in values]))


def _joined(element: int, values: Sequence[bytes | None]) -> bytes:
    """Each value behind its length. Ids are all of one length, and some columns are empty: those are the quick ways."""
    count = len(values)
    missing = values.count(None)
    header = _header(element, count, nulls=missing > 0)
    if missing == count:
        return header + _NULL * count
    if missing:
        return header + b"".join([_NULL if value is None else _LENGTH.pack(len(value)) + value for value in values])
    whole = cast("Sequence[bytes]", values)
    lengths = list(map(len, whole))
    if lengths.count(lengths[0]) == count:
        prefix = _LENGTH.pack(lengths[0])
        return header + prefix + prefix.join(whole)
    parts = [b""] * (2 * count)
    parts[0::2] = map(_LENGTH.pack, lengths)
    parts[1::2] = whole
    return header + b"".join(parts)


def _header(element: int, count: int, *, nulls: bool = False) -> bytes:
    return _HEADER.pack(1, nulls, element, count, 1) if count else struct.pack(">iiI", 0, 0, element)


class _Ready(Dumper):
    """Bytes that are the value's wire form already."""

    format = pq.Format.BINARY

    def dump(self, obj: bytes) -> bytes:
        return obj


class _IntegersDumper(_Ready):
    oid = 1016


class _BlobsDumper(_Ready):
    oid = 1001


class _TextsDumper(_Ready):
    oid = 1009


def register(context: AdaptContext) -> None:
    """Teach a connection these lists, and that every ``int`` is a ``bigint``, whatever its value."""
    adapters = context.adapters
    adapters.register_dumper(Integers, _IntegersDumper)
    adapters.register_dumper(Blobs, _BlobsDumper)
    adapters.register_dumper(Texts, _TextsDumper)
    adapters.register_dumper(int, Int8BinaryDumper)
