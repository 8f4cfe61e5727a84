"""Ranges of a log as people name them: since yesterday, since a position, the last two hours."""

from __future__ import annotations

import re
from typing import Final

import click

from .clock import SECOND, Micros, span_of
from .console import MOST
from .log import EventLog

_DAY: Final = 24 * 3600 * SECOND
_UNITS: Final = {"s": SECOND, "m": 60 * SECOND, "h": 3600 * SECOND, "d": _DAY, "w": 7 * _DAY}
SLACK: Final = _DAY
"""Clocks of several writers disagree; by more than a day they do not."""


def parse_moment(text: str, now: Micros, *, ends: bool = False) -> tuple[Micros, int]:
    """``(moment, position)`` of ``@1234`` (a position), ``36h`` (so long ago: s, m, h, d, w) or an ISO 8601 moment, UTC unless it says otherwise.

    One of the two is 0. A moment written without all of its digits begins with its first microsecond, and with ``ends``
    it ends with its last: ``--until 21:41:27`` has what was recorded within that second. Raises a usage error for what is
    none of them.

    >>> parse_moment("@1234", 0), parse_moment("2m", 130_000_000)
    ((0, 1234), (10000000, 0))
    """
    said = text.strip()
    if re.fullmatch(r"@[0-9]{1,19}", said) and int(said[1:]) <= MOST:
        return 0, int(said[1:])
    if ago := re.fullmatch(r"([0-9]{1,9})([smhdw])", said):
        return now - int(ago[1]) * _UNITS[ago[2]], 0
    try:
        return span_of(said)[ends], 0
    except ValueError:
        raise click.UsageError(
            f"{text!r:.80} is no place in a log: give a moment (2026-01-31T09:14:02), how long ago (36h, 7d) or a position (@1234)."
        ) from None


def position_before(log: EventLog, moment: Micros) -> int:
    """A position behind which every event recorded at ``moment`` or later stands, found by halving.

    Positions grow with time but for the clocks of several writers, so it lies up to a day of recording too early: look
    at each event's own moment behind it.
    """
    low, high = 0, log.last_position()
    while low < high:
        middle = (low + high) // 2
        event = next(iter(log.read_all(after=middle, upto=high, limit=1, payloads=False)), None)
        if event is None:
            high = middle
        elif event.recorded_at < moment - SLACK:
            low = event.position
        else:
            high = middle
    return low
