"""The worker: leases due streams, runs many keys at once and one key serially, and commits through the group-commit batcher.

The shell around the pure core. It reads the clock, asks providers, appends, and decides nothing: what a turn does is in
``activation``, what it appends in ``appends``, whether it is tried again in ``retry``.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Callable, Sequence

import attrs

from ..eventlog.clock import SECOND
from ..eventlog.errors import LogUnavailable
from ..eventlog.events import Row
from ..eventlog.ids import IdMaker, id_maker
from ..eventlog.log import Claim, EventLog
from .app import App
from .appends import RETRIES, TURNS, Appends
from .committer import Committer
from .errors import HistoryWarning
from .firing import Schedules
from .lanes import Lane
from .leasing import beat, between_beats, in_thread
from .signing import KeyRing
from .streams import Folder, StreamState
from .turns import Boundary, Turns, no_boundary
from .vouching import OutcomeVerifier

_SWEEP = 0.1
"""Seconds between looks at turns that may have run too long."""
_MOST_WARNED = 100_000
_AT_ONCE = 512
"""Rows of one stream that a visit reads together with those of others: what a snapshot leaves, at most, with the usual settings."""


@attrs.frozen
class WorkerSettings:
    """How much a worker does at once, and how long it may be silent."""

    #: Keys in flight.
    concurrency: int = attrs.field(default=64, validator=attrs.validators.ge(1))
    #: Lease length in µs; renewed at a third of it.
    lease: int = attrs.field(default=30 * SECOND, validator=attrs.validators.ge(SECOND // 10))
    #: Seconds between looks at the schedule when nothing wakes the worker.
    poll: float = attrs.field(default=0.05, validator=attrs.validators.gt(0))
    #: Events between snapshots of a stream; 0 for none.
    snapshot_every: int = attrs.field(default=500, validator=attrs.validators.ge(0))
    #: Events of one activation from which on its stream is warned of, once; 0 for never.
    warn_history: int = attrs.field(default=10_000, validator=attrs.validators.ge(0))


class Worker:
    """Runs an app's agents on one log. ``owner`` names this process in leases."""

    def __init__(
        self,
        app: App,
        log: EventLog,
        *,
        owner: str,
        committer: Committer,
        settings: WorkerSettings | None = None,
        new_id: IdMaker | None = None,
        keys: KeyRing | None = None,
        outcomes: OutcomeVerifier | None = None,
        boundary: Boundary = no_boundary,
        on_error: Callable[[str, BaseException], None] = lambda doing, problem: None,
    ) -> None:
        self.settings = settings or WorkerSettings()
        self._app, self._log, self._owner = app, log, owner
        self._folders = {name: Folder(each) for name, each in app.definitions.items()}
        appends = Appends(app.codec, new_id or id_maker(log.clock), keys)
        self._turns = Turns(app, log.clock, appends, self._folders, boundary, self.settings.snapshot_every, self.settings.warn_history, self._grown)
        if outcomes is not None:
            self._turns.outcomes = lambda state: in_thread(lambda: outcomes.objection(log, state.stream, state.run))
        self._committer = committer
        self._seconds = {name: each.turn_timeout.total_seconds() for name, each in app.agents.items()}
        self._active: dict[str, Lane] = {}
        self._wakeup = asyncio.Event()
        self._stopping = False
        self._on_error = on_error
        self._schedules = Schedules(app, log, owner, lease=self.settings.lease, boundary=boundary)
        self._warned: set[str] = set()
        self.turns_run = 0

    @property
    def active(self) -> int:
        """Keys in flight now."""
        return len(self._active)

    def wake(self) -> None:
        """Look at the schedule now instead of at the next poll."""
        self._wakeup.set()

    def stop(self) -> None:
        """Take no more streams; ``run`` returns when the turns under way have ended."""
        self._stopping = self._turns.draining = True
        self._wakeup.set()

    async def run(self) -> None:
        """Serve until ``stop``. While the store cannot be reached it waits with back-off and reports to ``on_error``."""
        beside = [asyncio.create_task(self._renew())]
        if self._schedules:
            beside.append(asyncio.create_task(self._schedules.keep(self._on_error, self.wake)))
        failures = 0
        try:
            while not self._stopping:
                try:
                    claimed = await self._claim()
                    if claimed:
                        self._begin(claimed)
                    else:
                        await self._pause()
                    failures = 0
                except LogUnavailable as problem:
                    self._on_error("claiming due streams", problem)
                    failures += 1
                    await asyncio.sleep(min(0.1 * 2**failures, 5.0))
            while self._active:
                self._wakeup.clear()
                await self._wakeup.wait()
        finally:
            for each in beside:
                each.cancel()
            for lane in self._active.values():
                lane.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            for lane in self._active.values():
                lane.close()

    async def _claim(self) -> list[tuple[Claim, StreamState | Exception]]:
        """Lease due streams and load every one of them, in one visit to the store."""
        free = self.settings.concurrency - len(self._active)
        # In small helpings every claim would be a visit of its own; a quarter free is soon enough.
        if free <= 0 or (self._active and free < self.settings.concurrency // 4):
            return []
        return await in_thread(functools.partial(self._visit, free))

    def _visit(self, free: int) -> list[tuple[Claim, StreamState | Exception]]:
        log, now = self._log, self._log.clock()
        claims = log.schedule.claim_due(TURNS, self._owner, now=now, until=now + self.settings.lease, limit=free, categories=self._app.agents)
        # A turn's append hands its lease back before its lane hears of it, so the stream may be claimed again too soon.
        early = [claim for claim in claims if claim.name in self._active]
        if early:
            log.schedule.release(early)
            claims = [claim for claim in claims if claim not in early]
        if not claims:
            return []
        names = [claim.name for claim in claims]
        snapshots = log.snapshots.load(names) if self.settings.snapshot_every else {}
        states = {name: self._folders[name.split("-", 1)[0]].restore(name, snapshots.get(name)) for name in names}
        rows = log.rows_of({name: state.version for name, state in states.items()}, most=_AT_ONCE)
        return [(claim, self._loaded(states[claim.name], rows.get(claim.name, []))) for claim in claims]

    def _loaded(self, state: StreamState, first: Sequence[Row]) -> StreamState | Exception:
        """``state`` with the ``first`` rows behind it taken in, and those that follow them: chunk after chunk, so that no long history is held whole."""
        folded = self._turns.folded(state, first)
        if len(first) == _AT_ONCE:
            for rows in self._log.rows(state.stream, after=first[-1][0]):
                if isinstance(folded, Exception):
                    break
                folded = self._turns.folded(folded, rows)
        return folded

    def _begin(self, claimed: Sequence[tuple[Claim, StreamState | Exception]]) -> None:
        for claim, state in claimed:
            agent = claim.name.split("-", 1)[0]
            lane = Lane(claim, self._turns.serve(claim, state), self._log, self._committer, self._folders[agent], self._seconds[agent], self._ended)
            self._active[claim.name] = lane
            lane.advance()

    def _ended(self, lane: Lane, committed: int, problem: BaseException | None) -> None:
        """A lane is over; after a problem the stream stays due and its lease runs out, while other keys go on."""
        self._active.pop(lane.claim.name, None)
        self.turns_run += committed
        if problem is not None:
            self._on_error(f"serving {lane.claim.name}", problem)
        self._wakeup.set()

    def _grown(self, stream: str, seq: int, events: int) -> None:
        if stream not in self._warned:
            if len(self._warned) >= _MOST_WARNED:
                self._warned.clear()
            self._warned.add(stream)
            self._on_error(f"serving {stream}", HistoryWarning(stream, seq, events))

    async def _pause(self) -> None:
        wait = self.settings.poll
        if not self._active:
            wake_at = await in_thread(lambda: self._log.schedule.next_wake(TURNS, categories=self._app.agents))
            if wake_at is not None:
                wait = min(wait, max(0.0, (wake_at - self._log.clock()) / SECOND))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(wait, 0.001)):  # not wait_for, which before 3.12 may swallow a cancellation
                await self._wakeup.wait()
        self._wakeup.clear()

    async def _renew(self) -> None:
        """Heartbeat; a lease that was lost ends its turn, which could not commit any more anyway. Turns that run too long end too."""
        loop = asyncio.get_running_loop()
        renewed = loop.time()
        while True:
            await asyncio.sleep(min(between_beats(self.settings.lease), _SWEEP))
            now = loop.time()
            for lane in list(self._active.values()):
                lane.sweep(now)
            if now - renewed < between_beats(self.settings.lease):
                continue
            renewed = now
            try:
                lost = await beat(self._log, [lane.claim for lane in self._active.values()], self.settings.lease)
            except LogUnavailable as problem:
                self._on_error("renewing leases", problem)
                continue
            for claim in lost:
                held = self._active.get(claim.name)
                if held is not None and held.claim.token == claim.token:
                    held.cancel()

    async def idle(self, *, retries: bool = True) -> bool:
        """Whether nothing is in flight, nothing is due, and (with ``retries``) no failed turn is to be tried again."""

        def nothing() -> bool:
            schedule = self._log.schedule
            mine = self._app.agents
            due = schedule.due(TURNS, now=self._log.clock(), categories=mine)
            return due == 0 and (not retries or schedule.next_wake(RETRIES, categories=mine) is None)

        return not self._active and self._schedules.calm and await in_thread(nothing)
