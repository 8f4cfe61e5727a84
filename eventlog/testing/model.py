"""What a log is, in dicts and lists: the plainest form of the contract, for the state machine to compare a store with.

Judging a request is one function, applying it another; nothing here is fast, shared or durable.
"""

from __future__ import annotations

import attrs

from ..clock import Micros
from ..errors import EventIdConflict, LeaseLost, WrongExpectedVersion
from ..events import NewEvent
from ..log import Appended, AppendRequest, Duplicate, Snapshot
from ..names import category_of
from ..versions import matches


@attrs.define
class Lease:
    """One name in one queue."""

    wake_at: Micros | None = None
    token: int = 0
    owner: str | None = None
    until: Micros = 0

    def live(self, now: Micros) -> bool:
        return self.owner is not None and self.until > now


@attrs.define
class Model:
    """What a log is, without positions: they are learned from the store and only compared afterwards."""

    streams: dict[str, list[NewEvent]] = attrs.field(factory=dict)
    order: list[tuple[str, int]] = attrs.field(factory=list)
    leases: dict[tuple[str, str], Lease] = attrs.field(factory=dict)
    snapshots: dict[str, Snapshot] = attrs.field(factory=dict)
    checkpoints: dict[str, int] = attrs.field(factory=dict)

    def lease(self, queue: str, name: str) -> Lease:
        return self.leases.setdefault((queue, name), Lease())

    def head(self, stream: str) -> int:
        return len(self.streams.get(stream, [])) - 1

    def judge(self, request: AppendRequest) -> type[object]:
        """Which outcome the contract asks for."""
        states = [self._state(part.stream, new) for part in request.parts for new in part.events]
        twice = any(len({new.event_id for new in part.events}) < len(part.events) for part in request.parts)
        if twice or "other" in states or len(set(states)) > 1:
            return EventIdConflict
        if states and states[0] == "same":
            return Duplicate
        if not all(
            self.lease(fence.queue, fence.name).owner is not None and self.lease(fence.queue, fence.name).token == fence.token for fence in request.fences
        ):
            return LeaseLost
        if not all(matches(part.expected, self.head(part.stream)) for part in request.parts):
            return WrongExpectedVersion
        return Appended

    def _state(self, stream: str, new: NewEvent) -> str:
        for old in self.streams.get(stream, []):
            if old.event_id == new.event_id:
                return "same" if (old.type, old.schema, old.data) == (new.type, new.schema, new.data) else "other"
        return "new"

    def apply(self, request: AppendRequest) -> None:
        for fence in request.fences:
            if fence.release:
                self.lease(fence.queue, fence.name).owner = None
        for part in request.parts:
            for new in part.events:
                self.order.append((part.stream, self.head(part.stream) + 1))
                self.streams.setdefault(part.stream, []).append(new)
            for wake in part.wakes:
                lease = self.lease(wake.queue, part.stream)
                if not wake.sooner:
                    lease.wake_at = wake.at
                elif wake.at is not None:
                    lease.wake_at = wake.at if lease.wake_at is None else min(wake.at, lease.wake_at)

    def due(self, queue: str, now: Micros, categories: frozenset[str]) -> dict[str, Micros]:
        return {
            name: lease.wake_at
            for (of, name), lease in self.leases.items()
            if of == queue
            and lease.wake_at is not None
            and lease.wake_at <= now
            and not lease.live(now)
            and (not categories or category_of(name) in categories)
        }

    def next_wake(self, queue: str) -> Micros | None:
        moments = [
            max(lease.wake_at, lease.until if lease.owner is not None else 0)
            for (of, _), lease in self.leases.items()
            if of == queue and lease.wake_at is not None
        ]
        return min(moments, default=None)
