"""Time comes in through a parameter, in one unit: microseconds since 1970-01-01 UTC, as an int."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

Micros: TypeAlias = int
Clock: TypeAlias = Callable[[], Micros]

SECOND: Final = 1_000_000
MILLISECOND: Final = 1_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY: Final = 24 * 3600 * SECOND
_WRITTEN: Final = re.compile(r"\d{4}-?(?:W\d\d(?P<weekday>-?\d)?|\d\d-?\d\d)(?:.(?P<time>\d\d(?::?\d\d(?::?\d\d(?:[.,](?P<fraction>\d+))?)?)?)(?:Z|[-+].*)?)?")
_UNITS: Final = {2: 3600 * SECOND, 4: 60 * SECOND, 6: SECOND}


def system_clock() -> Micros:
    """The machine's wall clock."""
    return time.time_ns() // 1_000


def to_datetime(micros: Micros) -> datetime:
    """An aware UTC datetime, exact to the microsecond.

    >>> to_datetime(1_000_001).isoformat()
    '1970-01-01T00:00:01.000001+00:00'
    """
    return _EPOCH + timedelta(microseconds=micros)


def from_datetime(moment: datetime) -> Micros:
    """Microseconds of an aware datetime; a naive one raises ``ValueError``."""
    if moment.tzinfo is None:
        raise ValueError(f"{moment!r} has no time zone; give an aware datetime")
    return (moment - _EPOCH) // timedelta(microseconds=1)


def from_timedelta(length: timedelta) -> Micros:
    """Microseconds of a length of time."""
    return length // timedelta(microseconds=1)


def span_of(text: str) -> tuple[Micros, Micros]:
    """The first and the last microsecond of what an ISO 8601 moment names (UTC unless it says otherwise); raises ``ValueError``.

    A moment that is written less precisely than the clock counts stands for all of its millisecond, second, minute or day.

    >>> span_of("1970-01-01T00:00:01.5"), span_of("1970-01-01T00:00:01.000001"), span_of("1970-01-01")
    ((1500000, 1599999), (1000001, 1000001), (0, 86399999999))
    """
    moment = datetime.fromisoformat(text)
    first = from_datetime(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    written = _WRITTEN.fullmatch(text)
    if written is None:
        return first, first
    if written["time"] is None:
        whole_week = "W" in text and written["weekday"] is None
        return first, first + (7 if whole_week else 1) * _DAY - 1
    if written["fraction"] is not None:
        return first, first + max(10 ** (6 - len(written["fraction"])), 1) - 1
    return first, first + _UNITS[len(written["time"].replace(":", ""))] - 1
