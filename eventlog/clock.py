"""Time comes in through a parameter, in one unit: microseconds since 1970-01-01 UTC, as an int."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

Micros: TypeAlias = int
Clock: TypeAlias = Callable[[], Micros]

SECOND: Final = 1_000_000
MILLISECOND: Final = 1_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


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
