"""What one effector on a bus works with, and by which lengths of time. Everything is handed in."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import attrs

from ...agents.leasing import in_thread
from ...agents.signing import KeyRing, Verifier
from ...agents.tools import ToolSet
from ...eventlog.clock import SECOND, Clock, Micros
from ...eventlog.codec import Codec
from ..dedup.errors import DedupSchemaError, StoreUnavailable, StoreUnfit
from ..dedup.store import DedupStore
from ..keeping import pause
from ..limits import Limits
from ..measures import Counts
from ..watching import Watching
from .holding import Holding
from .outlets import STORE, Outlet
from .window import Entry
from .wire import MOST_BYTES

T = TypeVar("T")
_MAY_HEAL: Final = (StoreUnavailable, DedupSchemaError, StoreUnfit)
"""What the store says while it cannot take something and may later: it comes back, or somebody gives back a right, a table, its settings."""
_DAY: Final = 86_400 * SECOND


@attrs.frozen(kw_only=True)
class BusSettings:
    """How much an effector on a bus does at once, and how long it keeps and waits."""

    #: Partitions in which something is carried out at the same moment.
    concurrency: int = attrs.field(default=8, validator=attrs.validators.ge(1))
    #: Of a claim, in µs; renewed at a third of it while a tool runs (S-6.7).
    lease: Micros = attrs.field(default=300 * SECOND, validator=attrs.validators.ge(SECOND // 10))
    #: How long the dedup store keeps an outcome, in µs.
    result_ttl: Micros = attrs.field(default=_DAY, validator=attrs.validators.ge(SECOND))
    #: Seconds that a poll waits for messages.
    poll: float = attrs.field(default=0.2, validator=attrs.validators.gt(0))
    #: Seconds a tool that is running may still take when the effector stops.
    grace: float = attrs.field(default=10.0, validator=attrs.validators.ge(0))
    #: Leave intents whose tool is not known here to an effector that knows it, until they expire, instead of REJECTED.
    hold_unknown: bool = False
    #: The largest intent that is taken.
    most_bytes: int = attrs.field(default=MOST_BYTES, validator=attrs.validators.ge(1))


@attrs.define
class BusCounts(Counts):
    """What this effector did since it started."""

    #: Messages set aside.
    dead_letters: int = 0
    #: Deliveries of intents that had their outcome already: it was published again, and nothing was carried out.
    repeated: int = 0
    #: Questions that were published.
    asked: int = 0


@attrs.frozen(kw_only=True, eq=False)
class Means:
    """Shared by all lanes of one effector."""

    codec: Codec
    tools: ToolSet
    clock: Clock
    store: DedupStore
    owner: str
    settings: BusSettings
    results: Outlet
    approvals: Outlet
    dead_letters: Outlet
    holding: Holding
    limits: Limits
    counts: BusCounts
    watching: Watching
    on_error: Callable[[str, BaseException], None]
    boundary: Callable[[str, str], None]
    verifier: Verifier | None = None
    #: Signs outcomes.
    keys: KeyRing | None = None
    #: Calls of the store under way, under its part's name.
    under_way: Counter[str] = attrs.field(factory=Counter)

    @property
    def expires_at(self) -> Micros:
        """Until when an outcome of now is kept."""
        return self.clock() + self.settings.result_ttl

    def wait(self, entry: Entry, reason: str, *, longest: float, until: Micros | None = None) -> None:
        """Put ``entry`` off, ever longer for the same reason up to ``longest`` seconds, and at most to ``until``."""
        times, now = entry.times + 1 if reason == entry.waits_for else 1, self.clock()
        moment = now + int(pause(times, longest) * SECOND)
        entry.wait(reason, moment if until is None else min(moment, max(until, now)), now)

    async def ask(self, call: Callable[[], T]) -> T:
        """The store's answer. Raises ``StoreUnavailable``, ``DedupSchemaError`` or ``StoreUnfit``, which health has heard of."""
        self.under_way[STORE] += 1
        try:
            answer = await in_thread(call)
        except _MAY_HEAL as problem:
            self.on_error("asking the dedup store", problem)
            self.watching.failed(STORE, problem)
            raise
        finally:
            self.under_way[STORE] -= 1
        self.watching.beat(STORE)
        return answer

    async def insist(self, call: Callable[[], T]) -> T:
        """The same, asked again for as long as the store cannot take it: what is known now is not thrown away."""
        failures = 0
        self.under_way[STORE] += 1  # in between, too: somebody waits for it
        try:
            while True:
                try:
                    return await self.ask(call)
                except _MAY_HEAL:
                    failures += 1
                await asyncio.sleep(pause(failures))
        finally:
            self.under_way[STORE] -= 1


Take = Callable[[Entry, Callable[[], bool]], Awaitable[bool]]
"""One message through its phases; whether it is over. The second parameter: whether this effector is on its way out."""
