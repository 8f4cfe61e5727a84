"""How many calls of a tool are under way, and how often it was called lately: what ``rate=`` and ``concurrency=`` promise.

Of one process, and forgotten with it. A key that must wait for a place waits without one of the effector's, so other tools'
keys go on.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from typing import Final

import attrs

from ..agents.tools import Tool
from .threads import overdue

THREADS: Final = "threads"
CONCURRENCY: Final = "concurrency"
RATE: Final = "rate"
MOST_OVERDUE: Final = 100
"""Threads of one blocking tool that may be left behind by its timeout; until one of them ends it is not called again."""


@attrs.define(eq=False)
class Place:
    """Leave to call ``tool`` once. With ``None``: nothing will be called."""

    tool: Tool | None
    called: bool = False
    #: When it was given, in seconds of the limits' clock.
    since: float = 0.0


class Limits:
    """Gives places while there are any. Belongs to one event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._held: Counter[str] = Counter()
        self._lately: defaultdict[str, deque[Place]] = defaultdict(deque)

    def obstacle(self, tool: Tool) -> str:
        """Why ``tool`` may not be called now: ``threads``, ``concurrency``, ``rate``, or nothing."""
        policies, left_behind = tool.policies, overdue(tool.name)
        if left_behind >= MOST_OVERDUE:
            return THREADS
        if policies.concurrency is not None and self._held[tool.name] + left_behind >= policies.concurrency:
            return CONCURRENCY
        if policies.rate is not None:
            lately, begin = self._lately[tool.name], self._clock() - policies.rate.per.total_seconds()
            while lately and lately[0].called and lately[0].since <= begin:
                lately.popleft()
            if len(lately) >= policies.rate.calls:
                return RATE
        return ""

    def take(self, tool: Tool | None) -> Place | None:
        """A place, or ``None`` while there is none. It counts as a call that begins now until it is given back unused."""
        if tool is None:
            return Place(None)
        if self.obstacle(tool):
            return None
        place = Place(tool, since=self._clock())
        self._held[tool.name] += 1
        if tool.policies.rate is not None:
            self._lately[tool.name].append(place)
        return place

    def calling(self, place: Place) -> None:
        """The tool is called now."""
        place.called, place.since = True, self._clock()
        if place.tool is not None and place.tool.policies.rate is not None:
            lately = self._lately[place.tool.name]
            lately.remove(place)
            lately.append(place)

    def leave(self, place: Place) -> None:
        """Give the place back. A call that was made goes on counting for the rate."""
        if place.tool is None:
            return
        name = place.tool.name
        self._held[name] -= 1
        if not place.called and place.tool.policies.rate is not None:
            self._lately[name].remove(place)
