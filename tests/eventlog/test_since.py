"""Moments as people name them, and the position behind which everything of a moment stands."""

from __future__ import annotations

import click
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intentlog.eventlog.clock import SECOND
from intentlog.eventlog.events import NewEvent
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.since import SLACK, parse_moment, position_before
from intentlog.eventlog.versions import ANY

NOW = 1_800_000_000 * SECOND


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@17", (0, 17)),
        ("90s", (NOW - 90 * SECOND, 0)),
        ("36h", (NOW - 36 * 3600 * SECOND, 0)),
        ("2w", (NOW - 14 * 86_400 * SECOND, 0)),
        ("1970-01-01T00:00:01", (SECOND, 0)),
        ("1970-01-01T01:00:01+01:00", (SECOND, 0)),
    ],
)
def test_a_moment_a_length_and_a_position_are_read(text, expected):
    assert expected == parse_moment(text, NOW)


def test_an_end_is_the_last_microsecond_of_what_is_written():
    found = [parse_moment(text, NOW, ends=True) for text in ("1970-01-01T00:00:01", "1970-01-01T00:00:01.250", "1970-01-01", "90s", "@17")]
    assert [(2 * SECOND - 1, 0), (SECOND + 250_999, 0), (86_400 * SECOND - 1, 0), (NOW - 90 * SECOND, 0), (0, 17)] == found


@pytest.mark.parametrize("text", ["", "yesterday", "7", "7x", "-3h", "@", "@x", f"@{2**63}"])
def test_anything_else_is_refused_with_the_ways(text):
    with pytest.raises(click.UsageError, match="36h"):
        parse_moment(text, NOW)


@settings(max_examples=60, deadline=None)
@given(steps=st.lists(st.integers(-SLACK // 3, SLACK), max_size=30), wanted=st.integers(0, 30 * SLACK))
def test_nothing_of_the_moment_stands_before_the_position(steps, wanted):
    """Clocks may go back, by less than a day."""
    moments, now, latest = [], 0, 0
    for step in steps:
        now = max(now + step, latest - SLACK // 2, 0)
        latest = max(latest, now)
        moments.append(now)
    ticking = iter(moments)
    log = open_log("memory://", clock=lambda: next(ticking))
    for number in range(len(moments)):
        log.append("x-1", [NewEvent(number.to_bytes(16, "big"), "x", 1, b"\xc0")], ANY)
    after = position_before(log, wanted)
    assert all(event.position > after for event in log.read_all() if event.recorded_at >= wanted)
    log.close()
