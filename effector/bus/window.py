"""The messages of one partition that are in hand: which is next, and up to where everything is done with. Pure; no clock, no bus.

They are taken in order. One that has to wait (somebody else holds its intent, a back-off, a sink that is down) keeps those of its
own key behind it and lets the others pass, so that no key waits for another (S-6.6).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

import attrs

from ...agents import facts
from ...eventlog.clock import Micros
from ..outbox import Pending
from .protocol import Message

MOST: Final = 256
"""Messages in hand; with as many, the partition is paused."""
MOST_BYTES: Final = 32 << 20
"""Bytes of them."""


@attrs.define(eq=False)
class Entry:
    """A message on its way."""

    message: Message
    #: When it is to be taken up again; 0 for now.
    not_before: Micros = 0
    #: When that was said: a clock that goes back behind this moment makes nobody wait.
    put_off_at: Micros = 0
    #: What it waits for.
    waits_for: str = ""
    #: Times in a row that it had to wait for the same.
    times: int = 0
    #: When it was staged, once that is known.
    staged_at: Micros = 0
    #: Attempts of its intent that are known to have ended in an error that may heal.
    postponed: dict[int, facts.IntentPostponed] = attrs.field(factory=dict)
    #: What it was read as when it was last taken up.
    pending: Pending | None = None
    #: Its settlement has been told of.
    told: bool = False

    def wait(self, reason: str, until: Micros, now: Micros) -> None:
        """Take it up again at ``until``."""
        self.times = self.times + 1 if reason == self.waits_for else 1
        self.waits_for, self.not_before, self.put_off_at = reason, until, now

    def due(self, now: Micros) -> bool:
        """Whether it may be taken up."""
        return self.not_before <= now or now < self.put_off_at


class Window:
    """Belongs to one lane."""

    def __init__(self) -> None:
        self._entries: dict[int, Entry] = {}
        #: Offsets delivered and not yet below ``done``, in order, and those of them that are over.
        self._delivered: dict[int, bool] = {}
        self._bytes = 0
        #: Everything up to this offset is done with; -1: nothing was yet.
        self.done = -1

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def entries(self) -> Iterable[Entry]:
        """In order."""
        return self._entries.values()

    @property
    def full(self) -> bool:
        """No more are wanted for now."""
        return len(self._entries) >= MOST or self._bytes >= MOST_BYTES

    @property
    def roomy(self) -> bool:
        """There is room for many more."""
        return len(self._entries) <= MOST // 2 and self._bytes <= MOST_BYTES // 2

    def add(self, message: Message) -> None:
        """The next message of the partition; one that was delivered before changes nothing."""
        if message.offset <= self.done or message.offset in self._delivered:
            return
        self._entries[message.offset] = Entry(message)
        self._delivered[message.offset] = False
        self._bytes += len(message.value)

    def over(self, entry: Entry) -> None:
        """Nothing more is to be done about it."""
        offset = entry.message.offset
        del self._entries[offset]
        self._delivered[offset] = True
        self._bytes -= len(entry.message.value)
        while self._delivered and self._delivered[first := next(iter(self._delivered))]:
            del self._delivered[first]
            self.done = first

    def next(self, now: Micros) -> Entry | Micros | None:
        """The one to take up, or the moment from which there is one, or ``None`` when there is nothing to wait for."""
        kept: set[str] = set()
        soonest: Micros | None = None
        for entry in self._entries.values():
            key = entry.message.key
            if key is not None and key in kept:
                continue
            if entry.due(now):
                return entry
            if key is not None:
                kept.add(key)
            soonest = entry.not_before if soonest is None else min(soonest, entry.not_before)
        return soonest

    def waiting(self) -> Counter[str]:
        """Keys that wait, by what for; those behind them are not counted."""
        return Counter(each.waits_for for each in list(self._entries.values()) if each.waits_for)

    @property
    def oldest(self) -> Micros | None:
        """When the first of those was staged of which that is known."""
        return min((each.staged_at for each in list(self._entries.values()) if each.staged_at), default=None)
