"""A log in figures: how much there is of each agent, how things stand, and which histories have grown long.

Told from the ends of the streams, one stream at a time: memory grows with the number of agents, not with that of streams.
"""

from __future__ import annotations

import heapq
from typing import Final

import attrs

from ..eventlog.log import EventLog
from ..eventlog.names import category_of
from .listing import listed

WARN_HISTORY: Final = 10_000
"""Events of one activation from which on it is marked; what ``WorkerSettings.warn_history`` begins with."""
_ENDS: Final = frozenset({"activation.completed", "activation.continued"})
_OPEN: Final = ("queued", "running", "suspended", "due", "retrying")


@attrs.define
class AgentStats:
    """What there is of one agent."""

    agent: str
    streams: int = 0
    events: int = 0
    #: Streams by how they stand (the words of ``eventlog streams``).
    states: dict[str, int] = attrs.field(factory=dict)

    @property
    def open(self) -> int:
        """Streams with an activation that is neither over nor parked."""
        return sum(self.states.get(state, 0) for state in _OPEN)

    @property
    def suspended(self) -> int:
        """Those of them that wait."""
        return self.states.get("suspended", 0)

    @property
    def parked(self) -> int:
        """Streams that end with a dead letter."""
        return self.states.get("parked", 0)

    @property
    def blocked(self) -> int:
        """Streams with an event that their code cannot read."""
        return self.states.get("blocked", 0)


@attrs.frozen
class LongHistory:
    """One of the longest streams."""

    stream: str
    events: int
    #: Events since the last activation ended, while one is open; 0 when none is.
    history: int
    #: ``history`` has passed the size from which on it should go on afresh.
    warned: bool


@attrs.define
class Stats:
    """The figures of a log."""

    streams: int = 0
    events: int = 0
    agents: dict[str, AgentStats] = attrs.field(factory=dict)
    longest: list[LongHistory] = attrs.field(factory=list)
    #: Streams by length: n → how many have 10ⁿ events or more, and fewer than ten times that; -1 → how many have none.
    lengths: dict[int, int] = attrs.field(factory=dict)


def stats(log: EventLog, prefix: str = "", *, warn_history: int = WARN_HISTORY, longest: int = 5) -> Stats:
    """Count the streams whose names begin with ``prefix``; every one that is marked is among the longest, whatever their number."""
    found = Stats()
    top: list[tuple[int, int, str, bool]] = []
    for each in listed(log, prefix):
        agent = found.agents.setdefault(category_of(each.stream), AgentStats(category_of(each.stream)))
        found.streams, found.events = found.streams + 1, found.events + each.events
        agent.streams, agent.events = agent.streams + 1, agent.events + each.events
        agent.states[each.state] = agent.states.get(each.state, 0) + 1
        power = len(str(each.events)) - 1 if each.events else -1
        found.lengths[power] = found.lengths.get(power, 0) + 1
        open_now = each.state in _OPEN
        if open_now and each.events >= warn_history and (history := open_history(log, each.stream)) >= warn_history:
            found.longest.append(LongHistory(each.stream, each.events, history, True))
            continue
        entry = (each.events, -found.streams, each.stream, open_now)  # of equals the first
        if len(top) < longest:
            heapq.heappush(top, entry)
        else:
            heapq.heappushpop(top, entry)
    found.agents = dict(sorted(found.agents.items()))
    found.longest.sort(key=lambda each: -each.history)
    rest = sorted(top, reverse=True)[: max(0, longest - len(found.longest))]
    found.longest += [LongHistory(stream, events, open_history(log, stream) if open_now else 0, False) for events, _, stream, open_now in rest]
    return found


def open_history(log: EventLog, stream: str) -> int:
    """Events since the last activation ended, without the inputs that came meanwhile."""
    count = 0
    for event in log.read(stream, backwards=True):
        if event.type in _ENDS:
            break
        count += event.type != "input.received"
    return count
