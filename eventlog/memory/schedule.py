"""Leases, fencing tokens and wake-ups in memory.

A queue keeps its names in a dict and, beside it, a list of (wake-up, name) in order, so that claiming what is due
looks at nothing that is not due.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence

import attrs

from ..clock import Micros
from ..log import Claim, Fence, Wake
from ..names import category_of
from .gate import Gate


@attrs.define(slots=True)
class _Entry:
    wake_at: Micros | None = None
    #: Grows with every new lease, for ever; 0 before the first.
    token: int = 0
    #: None: nobody holds it. An owner stays after the lease's end, until it is handed back or taken over.
    owner: str | None = None
    lease_until: Micros = 0

    def live(self, now: Micros) -> bool:
        return self.owner is not None and self.lease_until > now


@attrs.define(slots=True)
class _Queue:
    entries: dict[str, _Entry] = attrs.field(factory=dict)
    #: (wake_at, name) of every entry that has a wake-up, in order.
    order: list[tuple[Micros, str]] = attrs.field(factory=list)

    def entry(self, name: str) -> _Entry:
        return self.entries.setdefault(name, _Entry())

    def set_wake(self, name: str, at: Micros | None) -> None:
        entry = self.entry(name)
        if entry.wake_at is not None:
            del self.order[bisect_left(self.order, (entry.wake_at, name))]
        if at is not None:
            insort(self.order, (at, name))
        entry.wake_at = at

    def bring_forward(self, name: str, at: Micros) -> None:
        current = self.entry(name).wake_at
        if current is None or at < current:
            self.set_wake(name, at)


class MemorySchedule:
    """Who needs attention, when, and who is giving it."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._queues: dict[str, _Queue] = {}

    # Called by the log, inside its commit

    def holds(self, fence: Fence) -> bool:
        """Whether the claim still stands. An expired lease does, until somebody takes the name over."""
        return self._held(fence.queue, fence.name, fence.token) is not None

    def hand_back(self, fence: Fence) -> None:
        entry = self._held(fence.queue, fence.name, fence.token)
        if entry is not None:
            entry.owner = None

    def apply(self, name: str, wake: Wake) -> None:
        queue = self._queue(wake.queue)
        if not wake.sooner:
            queue.set_wake(name, wake.at)
        elif wake.at is not None:
            queue.bring_forward(name, wake.at)

    # The protocol

    def claim_due(self, queue: str, owner: str, *, now: Micros, until: Micros, limit: int, categories: Iterable[str] = ()) -> list[Claim]:
        wanted = frozenset(categories)
        claims: list[Claim] = []
        with self._gate:
            found = self._queue(queue)
            for wake_at, name in found.order:
                if wake_at > now or len(claims) >= limit:
                    break
                if wanted and category_of(name) not in wanted:
                    continue
                entry = found.entries[name]
                if not entry.live(now) and (not wanted or category_of(name) in wanted):
                    claims.append(Claim(queue, name, _lease(entry, owner, until), wake_at))
        return claims

    def acquire(self, queue: str, names: Sequence[str], owner: str, *, now: Micros, until: Micros) -> dict[str, int]:
        with self._gate:
            found = self._queue(queue)
            free = [(name, entry) for name in dict.fromkeys(names) if not (entry := found.entry(name)).live(now)]
            return {name: _lease(entry, owner, until) for name, entry in free}

    def renew(self, claims: Sequence[Claim], *, until: Micros) -> list[Claim]:
        lost = []
        with self._gate:
            for claim in claims:
                entry = self._held(claim.queue, claim.name, claim.token)
                if entry is None:
                    lost.append(claim)
                else:
                    entry.lease_until = until
        return lost

    def release(self, claims: Sequence[Claim], wake_at: Micros | None = None, *, keep_wake: bool = True) -> None:
        with self._gate:
            for claim in claims:
                entry = self._held(claim.queue, claim.name, claim.token)
                if entry is None:
                    continue
                entry.owner = None
                if not keep_wake:
                    self._queue(claim.queue).set_wake(claim.name, wake_at)

    def wake(self, queue: str, name: str, at: Micros) -> None:
        with self._gate:
            self._queue(queue).bring_forward(name, at)

    def next_wake(self, queue: str, *, categories: Iterable[str] = ()) -> Micros | None:
        earliest: Micros | None = None
        wanted = frozenset(categories)
        with self._gate:
            found = self._queue(queue)
            for wake_at, name in found.order:
                if earliest is not None and wake_at >= earliest:
                    break
                if wanted and category_of(name) not in wanted:
                    continue
                entry = found.entries[name]
                moment = wake_at if entry.owner is None else max(wake_at, entry.lease_until)
                earliest = moment if earliest is None else min(earliest, moment)
        return earliest

    def wakes(self, queue: str, names: Sequence[str]) -> dict[str, Micros | None]:
        with self._gate:
            entries = self._queue(queue).entries
            return {name: entries[name].wake_at for name in names if name in entries}

    def due(self, queue: str, *, now: Micros, categories: Iterable[str] = ()) -> int:
        wanted = frozenset(categories)
        with self._gate:
            entries = self._queue(queue).entries.items()
            return sum(
                entry.live(now) or (entry.wake_at is not None and entry.wake_at <= now) for name, entry in entries if not wanted or category_of(name) in wanted
            )

    def owners(self) -> set[str]:
        with self._gate:
            return {entry.owner for queue in self._queues.values() for entry in queue.entries.values() if entry.owner is not None}

    def evict(self, owner: str) -> int:
        with self._gate:
            held = [entry for queue in self._queues.values() for entry in queue.entries.values() if entry.owner == owner]
            for entry in held:
                entry.owner = None
        return len(held)

    def _queue(self, name: str) -> _Queue:
        found = self._queues.get(name)
        return self._queues.setdefault(name, _Queue()) if found is None else found

    def _held(self, queue: str, name: str, token: int) -> _Entry | None:
        entry = self._queue(queue).entries.get(name)
        return entry if entry is not None and entry.owner is not None and entry.token == token else None


def _lease(entry: _Entry, owner: str, until: Micros) -> int:
    entry.owner, entry.lease_until, entry.token = owner, until, entry.token + 1
    return entry.token
