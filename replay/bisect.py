"""The first event after which a condition holds, or stops holding.

Every version is looked at, and it is said how often the condition changes. When it is known to change only once in the history
(to be *monotone*), a few states are enough: those that the walk keeps are halved, and what lies between two of them is folded.
"""

from __future__ import annotations

from math import isqrt
from typing import Final

import attrs

from ..agents.app import App
from ..agents.errors import AgentError
from ..eventlog.errors import LogError
from ..eventlog.log import EventLog
from .expressions import parse_expression
from .fold import At, state_at
from .trees import EventTree, tree_of
from .walking import Condition, Walk

_MOST: Final = 1_000
"""Changes of a condition that are remembered."""


@attrs.frozen
class Found:
    """What a search came to."""

    stream: str
    #: The last version looked at.
    upto: int
    #: First version at which the condition is not what it was before the first event; ``None``: there is none.
    version: int | None
    type: str
    #: It holds from there on; ``False``: it stops holding there.
    holds: bool
    #: Every version at which it changes, as far as that was looked at (the first 1,000).
    changes: tuple[int, ...]
    #: It was looked at everywhere.
    scanned: bool
    #: States it was evaluated on beside the scan.
    looks: int

    @property
    def monotone(self) -> bool | None:
        """Whether it changes at most once; ``None``: nobody has looked."""
        return len(self.changes) <= 1 if self.scanned else None


def bisect(log: EventLog, app: App, stream: str, condition: Condition, upto: At | int | None = None, *, trusted: bool = False) -> Found:
    """The first event of ``stream`` after which ``condition`` holds; for one that holds before the first event, after which it stops.

    ``trusted``: it is known to change only once, so do not look everywhere. Raises ``BadExpression`` and what ``Walk`` raises.
    """
    walk = Walk(log, app, stream, upto)
    if walk.broken is not None:
        raise walk.broken
    return bisect_here(walk, condition, trusted=trusted)


def bisect_here(walk: Walk, condition: Condition, *, trusted: bool = False) -> Found:
    """``bisect`` for a walk that is there already, wherever it stands."""
    begin, looks = walk.holds_at(condition, -1), 1
    if trusted:
        version, looks = _only_change(walk, condition, begin)
        changes: tuple[int, ...] = (version,) if version is not None else ()
    else:
        changes = _changes(walk, condition, begin)
    version = changes[0] if changes else None
    kind = walk.row(version)[1] if version is not None else ""
    return Found(walk.stream, walk.last, version, kind, not begin, changes, not trusted, looks)


def _only_change(walk: Walk, condition: Condition, begin: bool) -> tuple[int | None, int]:
    """Where a condition that changes once does so, and on how many states it was evaluated for that."""
    low, high, looks = -1, walk.last, 2  # it is `begin` at low and not at high
    if walk.holds_at(condition, high) is begin:
        return None, looks
    while (middle := walk.kept_between(low, high)) is not None:
        looks += 1
        low, high = (middle, high) if walk.holds_at(condition, middle) is begin else (low, middle)
    for step in (max(isqrt(high - low), 1), 1):  # what lies between two kept states: first a few of them, then all between two of those
        for row, state in walk.each(low + 1, high - 1):
            if (row[0] - low) % step == 0:
                looks += 1
                if walk.holds(condition, state, row) is not begin:
                    high = row[0]
                    break
        low = high - 1 - (high - 1 - low) % step
    return high, looks


def _changes(walk: Walk, condition: Condition, begin: bool) -> tuple[int, ...]:
    found: list[int] = []
    before = begin
    for row, state in walk.each():
        now = walk.holds(condition, state, row)
        if now is not before:
            found.append(row[0])
            before = now
            if len(found) == _MOST:
                break
    return tuple(found)


def holding(log: EventLog, app: App, stream: str, text: str) -> dict[str, object]:
    """Whether the condition ``text`` holds at the end of ``stream``, or why that cannot be said, as a tree for another process."""
    try:
        state = state_at(log, app, stream)
        row = next((row for rows in log.rows(stream, after=state.version - 1) for row in rows), None)
        event = EventTree(row, app.codec) if row is not None else None
        return {"stream": stream, "holds": parse_expression(text).holds(tree_of(state), event), "problem": ""}
    except (LogError, AgentError) as problem:
        return {"stream": stream, "holds": False, "problem": str(problem)}
