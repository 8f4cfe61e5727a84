"""The turn that emitted what stands in an aggregate's stream: that stream has nothing of it but events, and what led to them is the turn's.

An agent's stream says of each turn what it emitted elsewhere (``aggregate.saved``), in the very append that wrote both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..agents import facts
from ..agents.errors import AgentError
from ..eventlog.errors import LogError
from ..eventlog.events import StoredEvent
from .causes import Cause, causes_of
from .errors import ReplayError
from .walking import Walk

_AROUND: Final = 4_096
"""Positions before and behind an event in which the rest of its append is looked for first."""


def causes_elsewhere(walk: Walk, version: int) -> tuple[Walk, tuple[Cause, ...]] | None:
    """A walk over the stream of the turn that emitted the event at ``version``, and what led to that there, the turn first.

    ``None`` when no turn did, or none that this log and this app know.
    """
    emitted = walk.event(version).stored
    if emitted.correlation is None:
        return None
    try:
        for saved, fact in _saved(walk, emitted):
            if fact.stream == emitted.stream and fact.version <= version < fact.version + len(fact.types) and saved.correlation == emitted.correlation:
                turn = Walk(walk.log, walk.app, saved.stream, saved.version)
                begin = Cause(saved.version, saved.type, "the turn that emitted it", fact, saved.recorded_at)
                return turn, (begin, *causes_of(turn, saved.version))
    except (LogError, AgentError, ReplayError):  # the turn's stream cannot be looked into, which is no fault of this one
        return None
    return None


def _saved(walk: Walk, emitted: StoredEvent) -> Iterator[tuple[StoredEvent, facts.AggregateSaved]]:
    """What turns say that they have emitted: around the event, and then in the whole log, for a copy's appends may be apart."""
    for after, upto in ((max(emitted.position - _AROUND, 0), emitted.position + _AROUND), (0, None)):
        for saved in walk.log.read_all(after=after, upto=upto, types=("aggregate.saved",)):
            try:
                yield saved, walk.codec.decode_stored(saved)
            except LogError:
                continue
