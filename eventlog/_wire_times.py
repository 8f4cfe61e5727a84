"""Bytes of dates, times and lengths of time: fixed width, big-endian, with the time zone behind as text.

A zone is nothing (naive), ``Z`` (``timezone.utc``), ``F`` with an offset, ``N`` with an offset and a name
(``timezone(offset, name)``), or ``K`` with a key (``ZoneInfo``).
"""

from __future__ import annotations

import struct
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from ._shapes import Refused, shown

_DATE: Final = struct.Struct(">HBB")
_TIME: Final = struct.Struct(">BBBIB")
_DATETIME: Final = struct.Struct(">HBBBBBIB")
_LENGTH: Final = struct.Struct(">iii")


def pack_datetime(value: datetime) -> bytes:
    fixed = _DATETIME.pack(value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond, value.fold)
    return fixed + _pack_zone(value.tzinfo)


def unpack_datetime(blob: bytes) -> datetime:
    year, month, day, hour, minute, second, micros, fold = _DATETIME.unpack(blob[:12])
    return datetime(year, month, day, hour, minute, second, micros, tzinfo=_unpack_zone(blob[12:]), fold=fold)


def pack_date(value: date) -> bytes:
    return _DATE.pack(value.year, value.month, value.day)


def unpack_date(blob: bytes) -> date:
    return date(*_DATE.unpack(blob))


def pack_time(value: time) -> bytes:
    return _TIME.pack(value.hour, value.minute, value.second, value.microsecond, value.fold) + _pack_zone(value.tzinfo)


def unpack_time(blob: bytes) -> time:
    hour, minute, second, micros, fold = _TIME.unpack(blob[:8])
    return time(hour, minute, second, micros, tzinfo=_unpack_zone(blob[8:]), fold=fold)


def pack_timedelta(value: timedelta) -> bytes:
    return _LENGTH.pack(value.days, value.seconds, value.microseconds)


def unpack_timedelta(blob: bytes) -> timedelta:
    days, seconds, micros = _LENGTH.unpack(blob)
    return timedelta(days, seconds, micros)


def _pack_zone(zone: tzinfo | None) -> bytes:
    if zone is None:
        return b""
    if zone is UTC:
        return b"Z"
    if type(zone) is timezone:
        offset, *name = zone.__getinitargs__()  # type: ignore[attr-defined]  # what pickle and copy use; typeshed leaves it out
        packed = _LENGTH.pack(offset.days, offset.seconds, offset.microseconds)
        return b"N" + packed + name[0].encode("utf-8", "surrogatepass") if name else b"F" + packed
    if type(zone) is ZoneInfo and zone.key is not None:
        return b"K" + zone.key.encode()
    kind = f"{type(zone).__module__}.{type(zone).__qualname__}"
    raise Refused(f"the time zone {shown(zone)} ({kind}) would not come back; use datetime.timezone or a ZoneInfo with a key")


def _unpack_zone(blob: bytes) -> tzinfo | None:
    if not blob:
        return None
    kind, rest = blob[:1], blob[1:]
    if kind == b"Z" and not rest:
        return UTC
    if kind == b"K":
        return ZoneInfo(rest.decode())
    offset = unpack_timedelta(rest[:12])
    if kind == b"N":
        return timezone(offset, rest[12:].decode("utf-8", "surrogatepass"))
    if kind == b"F" and len(rest) == 12:
        return timezone(offset)
    raise ValueError(f"no time zone begins with {kind!r}")
