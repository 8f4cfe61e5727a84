"""Microseconds in, microseconds out, exactly."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intentlog.eventlog.clock import SECOND, from_datetime, from_timedelta, system_clock, to_datetime

LAST = from_datetime(datetime.max.replace(tzinfo=UTC))
FIRST = from_datetime(datetime.min.replace(tzinfo=UTC))


@given(st.integers(FIRST, LAST))
def test_every_microsecond_comes_back(micros):
    assert micros == from_datetime(to_datetime(micros))
    assert timedelta(0) == to_datetime(micros).utcoffset()


@given(st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)), st.integers(-1_439, 1_439))  # noqa: DTZ001
def test_every_zone_names_the_same_moment(naive, minutes):
    moment = naive.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    assert moment == to_datetime(from_datetime(moment))


def test_a_naive_datetime_is_refused_and_shown():
    with pytest.raises(ValueError, match=r"datetime\.datetime\(2024, 5, 1, 0, 0\).*time zone"):
        from_datetime(datetime(2024, 5, 1))  # noqa: DTZ001


@given(st.timedeltas())
def test_a_length_of_time_comes_back(length):
    assert length == timedelta(microseconds=from_timedelta(length))


def test_the_system_clock_is_the_wall_clock():
    before = time.time_ns() // 1_000
    now = system_clock()
    assert before <= now <= time.time_ns() // 1_000
    assert abs(to_datetime(now) - datetime.now(UTC)) < timedelta(seconds=5)
    assert timedelta(seconds=1) == to_datetime(SECOND) - to_datetime(0)
