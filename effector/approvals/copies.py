"""Copies of histories (``eventlog fork``): what they ask has been asked already, of the same people.

A copy keeps the name of its source, and its effects are off: the lease of its key is held for ever, under a name of its own, before
its first event is written, and the record beside it follows behind its last. A fork that goes on for real has another name,
asks anew, and says so in its record.
"""

from __future__ import annotations

import enum
from typing import Any, Final

from ...agents.queues import EFFECTS
from ...eventlog.clock import SECOND
from ...eventlog.codec import Codec
from ...eventlog.errors import Undecodable
from ...eventlog.log import Claim, EventLog
from ...eventlog.names import split_stream

_OFF: Final = "fork: effects are off"
"""Who holds the leases of copies."""
_SUFFIX: Final = ".fork"
"""Behind an agent's name: the category of the records."""


class Whose(enum.Enum):
    """What is known of a stream's questions."""

    #: They are its own.
    OWN = enum.auto()
    #: They are those of its source.
    COPIED = enum.auto()
    #: A copy of it may be being written at this moment.
    UNSURE = enum.auto()


def whose(log: EventLog, codec: Codec, stream: str, owner: str) -> Whose:
    """Whether the questions of ``stream`` are its own. Blocking; of interest only on a log that has copies."""
    if _OFF not in log.schedule.owners():
        return Whose.OWN
    live = _record(log, codec, stream)
    if live is not None:
        return Whose.OWN if live else Whose.COPIED
    now = log.clock()
    tokens = log.schedule.acquire(EFFECTS, [stream], owner, now=now, until=now + SECOND)
    if stream not in tokens:  # an effector is at work on it, or it is a copy whose record is still to come
        return Whose.UNSURE
    log.schedule.release([Claim(EFFECTS, stream, tokens[stream], None)])
    return Whose.OWN


def _record(log: EventLog, codec: Codec, stream: str) -> bool | None:
    """Whether the fork goes on for real; ``None`` when there is no record of one."""
    agent, key = split_stream(stream)
    for event in log.read(f"{agent}{_SUFFIX}-{key}", limit=1):
        try:
            told: Any = codec.tree(event.data)
        except Undecodable:
            return None
        return bool(told.get("live")) if isinstance(told, dict) and event.type == "fork.begun" else None
    return None
