"""Claims that this effector holds, and the heartbeat that keeps them (S-6.7)."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import attrs

from ...agents.leasing import between_beats
from ...eventlog.clock import Clock, Micros
from ..dedup.errors import StoreUnavailable
from ..dedup.store import DedupStore
from ..outbox import Pending
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

    def take(self, pending: Pending, token: int) -> Held:
        """From now on the claim is renewed."""
        held = Held(pending, token)
        self.held.add(held)
        return held

    def let_go(self, held: Held) -> None:
        """It is renewed no more: it is over, handed back, or left to its lease."""
        self.held.discard(held)

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
        while True:
            held = list(self.held)
            told = await asyncio.gather(*(self._renew(each) for each in held), return_exceptions=True)
            for each in told:
                if isinstance(each, BaseException) and not isinstance(each, StoreUnavailable):
                    raise each
            problems = [each for each in told if isinstance(each, StoreUnavailable)]
            if problems:
                self._on_error("renewing leases", problems[0])
                self._watching.failed(RENEWALS, problems[0])
            else:
                self._watching.beat(RENEWALS)
            await asyncio.sleep(between_beats(self._lease))

    async def _renew(self, held: Held) -> None:
        now = self._clock()
        renew = functools.partial(self._store.renew, held.pending.intent.intent_id, held.token, until=now + self._lease, now=now)
        kept = await asyncio.get_running_loop().run_in_executor(self._threads, renew)
        if not kept and held in self.held:
            self.lose(held)
