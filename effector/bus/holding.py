"""Claims that this effector holds, and the heartbeat that keeps them (S-6.7)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import attrs

from ...agents.leasing import between_beats
from ...eventlog.clock import Clock, Micros
from ..dedup.errors import DedupError, StoreUnavailable
from ..dedup.store import DedupStore
from ..leases import Leases
from ..outbox import Pending
from ..renewing import Heartbeat
from ..watching import Watching

RENEWALS: Final = "renewals"
_THREADS: Final = 8


@attrs.define(eq=False)
class Held:
    """One claim."""

    pending: Pending
    token: int
    #: The user's code under way, if any.
    call: asyncio.Future[Any] | None = None
    #: When its time is up, by ``time.monotonic``.
    deadline: float = 0.0
    #: An attempt was recorded: from here on it is not handed back but left to its lease.
    invoked: bool = False
    #: Somebody else has it.
    lost: bool = False


class Holding:
    """Belongs to one event loop."""

    def __init__(
        self,
        store: DedupStore,
        clock: Clock,
        lease: Micros,
        *,
        watching: Watching,
        on_error: Callable[[str, BaseException], None],
        on_loss: Callable[[Held], None],
    ) -> None:
        self._store, self._clock, self._lease = store, clock, lease
        self._watching, self._on_error, self._on_loss = watching, on_error, on_loss
        #: Of their own: a sink or a store that hangs keeps threads of the pool, and no renewal may wait for one.
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="intentlog-renewals")
        self.held: set[Held] = set()
        self.leases: Leases[Held] = Leases(lease)
        self._heartbeat = Heartbeat(between_beats(lease), self._beat, self._told)

    def take(self, pending: Pending, token: int, asked: float) -> Held:
        """From now on the claim is renewed; it was asked for at ``asked`` (``leases.now``)."""
        held = Held(pending, token)
        self.leases.taken([held], asked)
        self.held.add(held)
        return held

    def let_go(self, held: Held) -> None:
        """It is renewed no more: it is over, handed back, or left to its lease."""
        self.held.discard(held)
        self.leases.over(held)

    def lose(self, held: Held) -> None:
        """Somebody else has it; whoever hears of it first, it counts once, and the user's code under it is ended."""
        if held.lost:
            return
        held.lost = True
        self._on_loss(held)
        if held.call is not None:
            held.call.cancel()

    def close(self) -> None:
        """Let the threads end."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    @property
    def calls(self) -> list[Held]:
        """Those with user's code under way."""
        return [each for each in self.held if each.call is not None]

    async def renew(self) -> None:
        """For ever, a third of the lease apart, all at once: one that is slow costs no other its lease."""
        await self._heartbeat.run()

    async def renew_now(self, held: Held) -> None:
        """One, before something begins under it; ``leases`` knows what came of it."""
        try:
            kept = await asyncio.get_running_loop().run_in_executor(self._threads, self._renew, held)
        except DedupError:  # then it is not certain, and nothing begins
            return
        self._found(held, kept)

    def _beat(self) -> tuple[Sequence[tuple[Held, bool]], StoreUnavailable | None]:
        """In the heartbeat's thread: what was kept, and why others may not be. A set is copied in one step."""
        held = self.held.copy()
        deadlines = {each: each.deadline for each in held if each.call is not None}
        asked = [(each, self._threads.submit(self._renew, each)) for each in self._heartbeat.due(held, deadlines)]
        told, away = [], None
        for each, asking in asked:
            try:
                told.append((each, asking.result()))
            except StoreUnavailable as problem:
                away = problem
        return told, away

    def _told(self, beat: tuple[Sequence[tuple[Held, bool]], StoreUnavailable | None]) -> None:
        told, away = beat
        for held, kept in told:
            self._found(held, kept)
        if away is not None:
            self._on_error("renewing leases", away)
            self._watching.failed(RENEWALS, away)
        else:
            self._watching.beat(RENEWALS)

    def _found(self, held: Held, kept: bool) -> None:
        if not kept and held in self.held:
            self.lose(held)

    def _renew(self, held: Held) -> bool:
        asked, now = self.leases.now(), self._clock()
        kept = self._store.renew(held.pending.intent.intent_id, held.token, until=now + self._lease, now=now)
        if kept:
            self.leases.renewed([held], asked)
        return kept
