"""Which key can go on now, and what keeps the others: an unknown tool, a back-off, a limit of the tool.

What waits here holds neither a lease nor a place among the keys at once. Past its deadline nothing waits: it is settled
without a call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable
from itertools import islice
from typing import Final
from weakref import WeakKeyDictionary

from ..agents.signing import Verifier
from ..agents.tools import ToolSet
from ..eventlog.clock import Clock
from ..eventlog.codec import Codec
from .limits import CONCURRENCY, RATE, THREADS, Limits, Place
from .outbox import Outbox, Pending
from .phases import is_unfit, verify

UNKNOWN_TOOL: Final = "unknown tool"
"""Here; or, under this name, another version of one."""
POSTPONED: Final = "postponed"
REASONS: Final = (UNKNOWN_TOOL, POSTPONED, THREADS, CONCURRENCY, RATE)
"""Everything that can keep a key."""
_MOST_COUNTED: Final = 10_000


class Choosing:
    """Looks at the first intent of a key; ``hold_unknown`` leaves those that fit no tool known here to an effector that knows one."""

    def __init__(self, tools: ToolSet, clock: Clock, limits: Limits, codec: Codec, *, hold_unknown: bool, verifier: Verifier | None = None) -> None:
        self._tools, self._clock, self._limits, self._codec = tools, clock, limits, codec
        self._hold_unknown, self._verifier = hold_unknown, verifier
        #: Whether an intent fits none, as found when it was first looked at: it stays as it is, and so do the tools.
        self._unfit: WeakKeyDictionary[Pending, bool] = WeakKeyDictionary()
        #: Of the keys that were chosen, until their lanes begin.
        self.places: dict[str, tuple[Pending, Place]] = {}

    def obstacle(self, pending: Pending) -> str:
        """What keeps it now: one of ``REASONS``, or nothing."""
        now = self._clock()
        if now >= pending.intent.expires_at:
            return ""
        if self._hold_unknown and self._is_unfit(pending):
            # One that is not authentic is nobody's to wait for: it is distrusted at once.
            return UNKNOWN_TOOL if verify(pending, self._verifier) is None else ""
        tool = self._tools.get(pending.intent.tool)
        if tool is None:
            return ""
        if self.postponed(pending):
            return POSTPONED
        return self._limits.obstacle(tool)

    def _is_unfit(self, pending: Pending) -> bool:
        if (known := self._unfit.get(pending)) is None:
            known = self._unfit[pending] = is_unfit(pending, self._tools, self._codec)
        return known

    def postponed(self, pending: Pending) -> bool:
        """Whether the moment of its next attempt is still to come."""
        return self._clock() < pending.not_before

    def choose(self, outbox: Outbox, stream: str) -> tuple[Pending, Place] | None:
        """The intent to carry out next on ``stream`` and the place for its call; ``None`` while something keeps it."""
        pending = outbox.first(stream)
        if pending is None or self.obstacle(pending):
            return None
        expired = self._clock() >= pending.intent.expires_at
        place = self._limits.take(None if expired else self._tools.get(pending.intent.tool))
        return (pending, place) if place is not None else None

    def chosen(self, outbox: Outbox, streams: Iterable[str], most: int) -> list[str]:
        """The first of ``streams`` that can go on now, each with a place for its tool in ``places``."""
        chosen: list[str] = []
        for stream in streams:
            if len(chosen) >= most:
                break
            found = self.choose(outbox, stream)
            if found is not None:
                self.places[stream] = found
                chosen.append(stream)
        return chosen

    def give_back(self, streams: Iterable[str]) -> None:
        """Nothing of these keys begins now."""
        for stream in streams:
            if (held := self.places.pop(stream, None)) is not None:
                self._limits.leave(held[1])

    def waiting(self, outbox: Outbox, served: Container[str]) -> dict[str, int]:
        """Keys that wait, by what keeps them, of the 10 000 that have waited longest; those in ``served`` do not."""
        firsts = (outbox.first(stream) for stream in islice(outbox.in_line(), _MOST_COUNTED) if stream not in served)
        reasons = Counter(self.obstacle(pending) for pending in firsts if pending is not None)
        return {reason: count for reason, count in sorted(reasons.items()) if reason}
