"""What stands beside the events and must fit them: categories, wake-ups, checkpoints.

A log whose events are perfect does not work when an effector's checkpoint lies ahead of an intent, for it is never
looked at again, or when nobody will be woken for an input. Everything here is asked of the log's own protocol.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ..agents.appends import CHECKPOINT, TURNS
from ..agents.run import RunState, next_attention
from ..eventlog.clock import SECOND
from ..eventlog.events import StoredEvent
from ..eventlog.log import EventLog
from ..eventlog.names import category_of

_SLACK: Final = 24 * 3600 * SECOND
"""Clocks of different machines disagree; a wake-up is not called late for that."""


def wrong_category(log: EventLog, stream: str, first: StoredEvent) -> str:
    """Why readers of the stream's category do not find ``first``, its first event; empty when they do, or will once it is shown.

    What lies above the tail nobody finds, in whatever category. The tail may pass the event between the two questions, so
    one that is not found is looked for once more.
    """
    category, place = category_of(stream), first.position
    for _ in range(2):
        if any(True for _ in log.read_all(after=place - 1, upto=place, categories=(category,))) or place > log.last_position():
            return ""
    return f"it is not listed under its category {category!r:.80}, so tails and effectors of that category never see it"


def no_wake(log: EventLog, stream: str, run: RunState, version: int, last_at: int) -> str:
    """Why nobody will run the turn that ``run`` needs; empty when it needs none, or somebody will."""
    if run.blocked:
        return ""
    needed = next_attention(run)
    if needed is None:
        return ""
    at = log.schedule.wakes(TURNS, (stream,)).get(stream)
    if log.head(stream) != version:  # somebody is at work on it: what was read is over
        return ""
    way = "Any input, signal or cancel request for this stream sets a new wake-up."
    if at is None:
        return f"activation {_seq(run)} needs a turn, and nobody will be woken for it: the queue {TURNS!r} has no wake-up for the stream. {way}"
    if at > max(needed, last_at) + _SLACK:
        return f"activation {_seq(run)} needs a turn, and the queue {TURNS!r} has its wake-up at {at}, more than a day late. {way}"
    return ""


def _seq(run: RunState) -> int:
    return run.current.seq if run.current is not None else -1


def covering(checkpoints: Mapping[str, int], stream: str, position: int) -> str:
    """The effector's checkpoint that lies ahead of an intent at ``position`` without an outcome; empty when none does."""
    category = category_of(stream)
    for name, saved in checkpoints.items():
        prefix, *categories = name.split(":")
        if prefix == CHECKPOINT and (not categories or category in categories) and saved >= position:
            return name
    return ""


def ahead_of_the_log(checkpoints: Mapping[str, int], last: int) -> Iterator[str]:
    """Checkpoints at positions that the log does not have."""
    for name, saved in sorted(checkpoints.items()):
        if saved > last or saved < 0:
            side = "ahead of the last event" if saved > last else "before the first event"
            yield (
                f"checkpoint {name!r:.80} at position {saved} is {side} (the log ends at {last}): what is appended next would be passed over. "
                f"Delete the row, or set it back with: log.checkpoints.reset({name!r:.80})"
            )
