"""The hands on a message bus: polls, gives each partition to its lane, acknowledges what is done with, keeps claims.

The order of one intent, which is the crash argument::

    verify → refuse expired → claim → attempt → execute → complete → publish → acknowledge

Acknowledged last: a crash before it has the message delivered again, and the dedup store makes the same outcome of it.
"""

from __future__ import annotations

import asyncio
import functools
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from ...agents.signing import KeyRing, Verifier
from ...agents.tools import ToolSet
from ...eventlog.clock import Clock
from ...eventlog.codec import Codec
from ..dedup.errors import RetryableDedupError
from ..dedup.store import DedupStore
from ..keeping import Keep, Part, pause, side_by_side
from ..limits import Limits
from ..watching import Watching
from .errors import BusUnavailable, RetryableBusError
from .holding import RENEWALS, Held, Holding
from .lane import Lane
from .means import BusCounts, BusSettings, Means
from .outlets import APPROVALS, DEAD_LETTERS, RESULTS, SOURCE, STORE, Outlet
from .protocol import Polled, Sink, Source
from .taking import Taking

T = TypeVar("T")
LANES: Final = "lanes"
PARTS: Final = (SOURCE, RENEWALS, LANES)
"""What runs side by side."""
PASSIVE: Final = (STORE, RESULTS, APPROVALS, DEAD_LETTERS)
"""What does not run by itself: it makes progress when a call of it ends, or none is wanted."""
_MOST: Final = 256
"""Messages a poll."""
_LOOK: Final = 0.5
_LAST: Final = 5.0
"""Seconds that the last acknowledgement may take."""


class BusEffector:
    """Carries out the intents of one topic as a member of a consumer group, with the tools it knows."""

    def __init__(
        self,
        codec: Codec,
        tools: ToolSet,
        store: DedupStore,
        open_source: Callable[[], Source],
        *,
        results: Callable[[], Sink],
        approvals: Callable[[], Sink],
        dead_letters: Callable[[], Sink],
        owner: str,
        clock: Clock,
        settings: BusSettings | None = None,
        boundary: Callable[[str, str], None] = lambda name, stream: None,
        on_error: Callable[[str, BaseException], None] = lambda doing, problem: None,
        watching: Watching | None = None,
        verifier: Verifier | None = None,
        keys: KeyRing | None = None,
    ) -> None:
        self.settings = settings or BusSettings()
        self.counts = BusCounts()
        watching = watching or Watching()
        self._watching, self._on_error, self._boundary, self._clock = watching, on_error, boundary, clock
        self._open_source = open_source
        self._holding = Holding(store, clock, self.settings.lease, watching=watching, on_error=on_error, on_loss=self._lost)
        outlets = {part: Outlet(part, sink, watching, on_error) for part, sink in ((RESULTS, results), (APPROVALS, approvals), (DEAD_LETTERS, dead_letters))}
        self._outlets = tuple(outlets.values())
        self._means = Means(
            codec=codec,
            tools=tools,
            clock=clock,
            store=store,
            owner=owner,
            settings=self.settings,
            results=outlets[RESULTS],
            approvals=outlets[APPROVALS],
            dead_letters=outlets[DEAD_LETTERS],
            holding=self._holding,
            limits=Limits(),
            counts=self.counts,
            watching=watching,
            on_error=on_error,
            boundary=boundary,
            verifier=verifier,
            keys=keys,
        )
        self._taking = Taking(self._means)
        self._slots = asyncio.Semaphore(self.settings.concurrency)
        self._lanes: dict[int, Lane] = {}
        #: Lanes of partitions that are somebody else's now, until what they have under way is over.
        self._parting: set[Lane] = set()
        self._source: Source | None = None
        self._thread: ThreadPoolExecutor | None = None
        #: Polls in a row that brought nothing.
        self._quiet = 0
        self._stopping = False
        self._stopped = asyncio.Event()

    @property
    def active(self) -> int:
        """Messages under way now."""
        return sum(each.under_way is not None for each in (*self._lanes.values(), *self._parting))

    @property
    def calling(self) -> int:
        """Calls of users' code under way."""
        return len(self._holding.calls)

    @property
    def open(self) -> int:
        """Messages in hand that are not done with."""
        return sum(len(each.window) for each in self._lanes.values())

    @property
    def waiting(self) -> Mapping[str, int]:
        """Keys that wait, by what for."""
        return sum((each.window.waiting() for each in list(self._lanes.values())), Counter[str]())

    def report(self) -> dict[str, Any]:
        """What health says of the intents; from any thread."""
        return {"open_intents": self.open, "keys_in_flight": self.active, "keys_waiting": dict(self.waiting), "partitions": sorted(self._lanes)}

    def stop(self) -> None:
        """Take no more messages; ``run`` returns when the tools under way have ended or their grace is over."""
        self._stopping = True
        self._stopped.set()
        for each in self._lanes.values():
            each.close()

    async def run(self, keep: Keep | None = None) -> None:
        """Serve until ``stop``. ``keep`` says what becomes of a part that fails; without one it is begun again when that may help."""
        keep = keep or functools.partial(_patiently, on_error=self._on_error, stopped=self._stopped)
        parts = dict(zip(PARTS, (self._follow, self._holding.renew, self._look), strict=True))
        await side_by_side(parts, keep, self._stopped, self._finish, lambda: [*self._running(), *self._taking.executing.calling.deaf])

    def close(self) -> None:
        """Leave the group and let go of the sinks. Blocking; the store is whose who made it."""
        if self._source is not None:
            self._source.close()
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)
        self._holding.close()
        for each in self._outlets:
            each.close()

    async def idle(self) -> bool:
        """Whether everything that was delivered is done with, and nothing more comes."""
        return self._quiet > 1 and not self._parting and all(not len(each.window) and each.acknowledged == each.window.done for each in self._lanes.values())

    async def _follow(self) -> None:
        """Poll and acknowledge, all in one thread. A source that failed is left, and the group joined again."""
        if self._stopping:
            return
        self._quiet = 0
        await self._leave()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="intentlog-source")
        source = self._source = await self._in_thread(self._open_source)
        while not self._stopping:
            self._take_in(await self._in_thread(functools.partial(self._round, source, self._plan())))
            self._watching.beat(SOURCE)

    async def _leave(self) -> None:
        """Leave the group as the member that was; its partitions are delivered again to whoever gets them."""
        self._revoke(list(self._lanes))
        source, self._source = self._source, None
        if self._thread is not None:
            if source is not None:
                self._thread.submit(source.close)
            self._thread.shutdown(wait=False)
            self._thread = None

    async def _in_thread(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    def _plan(self) -> dict[int, tuple[int, bool | None]]:
        """By partition: the offset to acknowledge, and whether to pause (``None``: as it is)."""
        plan: dict[int, tuple[int, bool | None]] = {}
        for number, lane in self._lanes.items():
            pausing = True if lane.window.full and not lane.paused else False if lane.paused and lane.window.roomy else None
            if lane.window.done != lane.acknowledged or pausing is not None:
                plan[number] = (lane.window.done if lane.window.done != lane.acknowledged else -1, pausing)
        return plan

    def _round(self, source: Source, plan: dict[int, tuple[int, bool | None]]) -> tuple[dict[int, tuple[int, bool | None]], Polled]:
        for number, (offset, pausing) in plan.items():
            if offset >= 0:
                source.acknowledge(number, offset)
                self._boundary("acknowledged", "")
            if pausing is not None:
                (source.pause if pausing else source.resume)(number)
        return plan, source.poll(_MOST, self.settings.poll)

    def _take_in(self, told: tuple[dict[int, tuple[int, bool | None]], Polled]) -> None:
        plan, polled = told
        for number, (offset, pausing) in plan.items():
            lane = self._lanes[number]
            lane.acknowledged = max(lane.acknowledged, offset)
            lane.paused = lane.paused if pausing is None else pausing
        self._revoke(polled.revoked)
        for number in polled.assigned:
            make = functools.partial(Lane, number, self._taking.take, self._slots, self._clock, watching=self._watching, on_error=self._on_error)
            self._lanes[number] = make()
        for number, lane in self._lanes.items():
            new = [each for each in polled.messages if each.partition == number]
            if new:
                lane.add(new)
        self._quiet = self._quiet + 1 if polled == Polled() and self._lanes else 0
        if self._stopping:
            self.stop()

    def _revoke(self, partitions: Any) -> None:
        for number in partitions:
            lane = self._lanes.pop(number, None)
            if lane is not None:
                lane.close()
                self._parting.add(lane)
                lane.running.add_done_callback(functools.partial(self._parted, lane))

    def _parted(self, lane: Lane, running: asyncio.Task[None]) -> None:
        self._parting.discard(lane)
        if not running.cancelled() and (problem := running.exception()) is not None:
            self._on_error(f"leaving partition {lane.partition}", problem)

    async def _look(self) -> None:
        """Show how much is in hand and what it waits for; parts that nobody waits for are well."""
        while True:
            waiting = self.waiting
            self._watching.waiting(waiting)
            oldest = min((each.window.oldest or 0 for each in self._lanes.values() if each.window.oldest), default=None)
            self._watching.in_hand(self.open, oldest)
            calling = {each.part for each in self._outlets if each.under_way}
            for part in PASSIVE:
                if part not in waiting and part not in calling and not self._means.under_way[part]:
                    self._watching.beat(part)
            self._watching.beat(LANES)
            await asyncio.sleep(_LOOK)

    async def _finish(self, follow: asyncio.Future[None]) -> None:
        """Let what is under way end, acknowledge it, leave. What is not over within the grace is left to its lease (S-6.7)."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.settings.grace
        await asyncio.wait([follow], timeout=self.settings.grace)  # it may be polling at this moment
        self.stop()
        running = self._running()
        if running:
            await asyncio.wait(running, timeout=max(0.0, deadline - loop.time()))
        for held in self._holding.held:
            if held.invoked:
                self._watching.left(held.pending)
        for each in running:
            each.cancel()
        if running:
            await asyncio.wait(running, timeout=1.0)
        try:
            async with asyncio.timeout(_LAST):
                await self._say_goodbye()
        except (BusUnavailable, TimeoutError) as problem:  # the next one gets those messages again
            self._on_error("acknowledging what is done with", problem)

    def _running(self) -> list[asyncio.Task[None]]:
        return [each.running for each in (*self._lanes.values(), *self._parting)]

    async def _say_goodbye(self) -> None:
        source, lanes = self._source, list(self._lanes.values())
        if source is None or self._thread is None:
            return

        def say() -> None:
            for lane in lanes:
                if lane.window.done > lane.acknowledged:
                    source.acknowledge(lane.partition, lane.window.done)
                    self._boundary("acknowledged", "")
            source.close()

        await self._in_thread(say)

    def _lost(self, held: Held) -> None:
        self.counts.stale += 1
        self._watching.lost(held.pending.stream, held.pending)


async def _patiently(name: str, part: Part, on_error: Callable[[str, BaseException], None], stopped: asyncio.Event) -> None:
    failures = 0
    while not stopped.is_set():
        try:
            await part()
            break
        except (RetryableBusError, RetryableDedupError) as problem:
            on_error(f"serving the part {name}", problem)
            failures += 1
            await asyncio.sleep(pause(failures))
