"""The hands: follows the log's tail, claims keys, carries out their intents in order, records what came of it.

One lane a key: within it intents are strictly one after the other, and a slow or poisoned one never blocks another key
(S-6.6). The lease on a key is what makes two effectors on one log share the work; its token fences every append.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, TypeVar

import attrs

from ..agents.appends import CHECKPOINT, EFFECTS, TURNS
from ..agents.committer import Committer
from ..agents.tools import ToolSet
from ..eventlog.clock import SECOND
from ..eventlog.codec import Codec
from ..eventlog.errors import EventIdConflict, LeaseLost, LogError, LogUnavailable
from ..eventlog.events import NewEvent, StoredEvent
from ..eventlog.log import AppendRequest, Claim, EventLog, Fence, StreamAppend, Wake
from ..eventlog.versions import ANY
from . import phases
from .outbox import TYPES, Outbox, Pending

T = TypeVar("T")
_HELPING: Final = 1000
"""Events read from the tail at once."""


@attrs.frozen
class EffectorSettings:
    """How much an effector does at once."""

    #: Keys in flight.
    concurrency: int = attrs.field(default=32, validator=attrs.validators.ge(1))
    #: Lease length in µs; renewed at a third of it while a tool runs (S-6.7).
    lease: int = attrs.field(default=30 * SECOND, validator=attrs.validators.ge(SECOND // 10))
    #: Seconds between looks at the tail when nothing wakes the effector.
    poll: float = attrs.field(default=0.05, validator=attrs.validators.gt(0))
    #: Seconds a tool that is running may still take when the effector stops.
    grace: float = attrs.field(default=10.0, validator=attrs.validators.ge(0))


@attrs.define
class Counts:
    """What this effector did since it started."""

    attempts: int = 0
    settled: int = 0
    by_status: dict[str, int] = attrs.field(factory=dict)
    #: Settlements that came second and were refused (S-6.2).
    refused: int = 0
    #: Appends refused because the lease had gone to somebody else (S-6.4).
    stale: int = 0
    busy: int = 0


class Effector:
    """Carries out the intents staged on one log, by agents of ``categories`` (all when empty), with the tools it knows."""

    def __init__(
        self,
        codec: Codec,
        tools: ToolSet,
        log: EventLog,
        *,
        owner: str,
        committer: Committer,
        categories: Iterable[str] = (),
        settings: EffectorSettings | None = None,
        boundary: Callable[[str, str], None] = lambda name, stream: None,
        on_error: Callable[[str, BaseException], None] = lambda doing, problem: None,
    ) -> None:
        self.settings = settings or EffectorSettings()
        self.counts = Counts()
        self._codec, self._tools, self._log, self._owner, self._committer = codec, tools, log, owner, committer
        self._boundary, self._on_error = boundary, on_error
        # Apps may share a log; each carries out its own agents' intents, and remembers how far it came with those.
        self._categories = tuple(sorted(set(categories)))
        self._checkpoint_name = ":".join((CHECKPOINT, *self._categories))
        self._outbox: Outbox | None = None
        self._draining = asyncio.Lock()
        self._lanes: dict[str, tuple[Claim, asyncio.Task[None]]] = {}
        self._busy_until: dict[str, int] = {}
        self._saved = 0
        self._wakeup = asyncio.Event()
        self._stopping = False

    @property
    def active(self) -> int:
        """Keys in flight now."""
        return len(self._lanes)

    @property
    def open(self) -> int:
        """Intents without an outcome, as far as the tail was read."""
        return len(self._outbox) if self._outbox is not None else 0

    def wake(self) -> None:
        """Look at the tail now instead of at the next poll."""
        self._wakeup.set()

    def stop(self) -> None:
        """Take no more intents; ``run`` returns when the tools under way have ended or their grace is over."""
        self._stopping = True
        self._wakeup.set()

    async def run(self) -> None:
        """Serve until ``stop``. While the store cannot be reached it waits with back-off and reports to ``on_error``."""
        renewing = asyncio.create_task(self._renew())
        failures = 0
        try:
            while not self._stopping:
                try:
                    await self._round()
                    failures = 0
                except LogUnavailable as problem:
                    self._on_error("following the tail", problem)
                    failures += 1
                    await asyncio.sleep(min(0.1 * 2**failures, 5.0))
            await self._finish()
        finally:
            renewing.cancel()
            for _, task in self._lanes.values():
                task.cancel()
            await asyncio.gather(renewing, *(task for _, task in self._lanes.values()), return_exceptions=True)

    async def _round(self) -> None:
        outbox = await self._drain()
        began = await self._begin(outbox)
        await self._checkpoint(outbox)
        if not began:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.settings.poll):  # not wait_for, which before 3.12 may swallow a cancellation
                    await self._wakeup.wait()
            self._wakeup.clear()

    async def _drain(self) -> Outbox:
        """Take in everything the log has now."""
        async with self._draining:
            if self._outbox is None:
                after = await _in_thread(lambda: self._log.checkpoints.load(self._checkpoint_name))
                self._outbox, self._saved = Outbox(self._codec, after), after
            outbox = self._outbox

            def read() -> tuple[int, list[tuple[StoredEvent, Any]]]:
                last = self._log.last_position()
                return last, [
                    (event, outbox.read(event))
                    for event in self._log.read_all(after=outbox.cursor, upto=last, types=TYPES, categories=self._categories, limit=_HELPING)
                ]

            while True:
                last, events = await _in_thread(read)
                for event, fact in events:
                    outbox.take(event, fact)
                if len(events) < _HELPING:
                    break
            outbox.cursor = max(outbox.cursor, last)
            return outbox

    async def _begin(self, outbox: Outbox) -> bool:
        """Claim keys that have intents, look again at what their last owners did, and start their lanes."""
        now = self._log.clock()
        free = self.settings.concurrency - len(self._lanes)
        wanted = [stream for stream in outbox.streams() if stream not in self._lanes and self._busy_until.get(stream, 0) <= now][: max(free, 0)]
        if not wanted:
            return False
        until = now + self.settings.lease
        tokens = await _in_thread(lambda: self._log.schedule.acquire(EFFECTS, wanted, self._owner, now=now, until=until))
        for stream in wanted:
            if stream in tokens:
                self._busy_until.pop(stream, None)
            else:  # waited for, never skipped (S-6.6): it stays in the outbox until its outcome is on the tail
                self._busy_until[stream] = now + int(self.settings.poll * 2 * SECOND)
                self.counts.busy += 1
        if tokens:
            # The last owner may have attempted or settled something between our reading and its letting go.
            await self._drain()
        for stream, token in tokens.items():
            claim = Claim(EFFECTS, stream, token, None)
            task = asyncio.create_task(self._lane(outbox, claim))
            self._lanes[stream] = (claim, task)
            # By the loop, and not at the lane's end: a cancellation may meet the lane anywhere, in its last await too.
            task.add_done_callback(functools.partial(self._left, stream))
        return bool(tokens)

    async def _lane(self, outbox: Outbox, claim: Claim) -> None:
        handed_back = True
        try:
            while not self._stopping and (pending := outbox.first(claim.name)) is not None:
                handed_back = False
                try:
                    await self._carry_out(claim, pending)
                except EventIdConflict:  # withdrawn, or settled by an operator, at this very moment: the tail will say
                    await self._drain()
                    if outbox.first(claim.name) is pending:
                        raise
                    handed_back = True
                    continue
                outbox.settled(pending.intent.intent_id)
                handed_back = True
        except (LeaseLost, EventIdConflict):
            handed_back = False  # it is somebody else's now
        except Exception as problem:  # this key waits for its lease to run out; other keys go on
            self._on_error(f"carrying out intents of {claim.name}", problem)
            self._busy_until[claim.name] = self._log.clock() + self.settings.lease
        finally:
            if handed_back:
                with contextlib.suppress(LogError):
                    await _in_thread(lambda: self._log.schedule.release([claim]))

    def _left(self, stream: str, task: asyncio.Task[None]) -> None:
        """The lane of ``stream`` is over, in whatever way."""
        self._lanes.pop(stream, None)
        self._wakeup.set()

    async def _carry_out(self, claim: Claim, pending: Pending) -> None:
        """One intent through its phases."""
        tool = self._tools.get(pending.intent.tool)
        outcome = phases.verify(pending) or phases.refuse_expired(pending, tool, self._log.clock())
        if outcome is None:
            fit = phases.refuse_unfit(pending, self._tools, self._codec)
            if isinstance(fit, phases.Outcome):
                outcome = fit
            else:
                found, bound = fit
                outcome = await phases.recover(pending, found, bound, self._codec)
                if outcome is None:
                    await self._attempt(claim, pending)
                    outcome = await phases.execute(pending, found, bound, self._codec)
                    self._boundary("tool.called", claim.name)
        await self._settle(claim, pending, outcome)

    async def _attempt(self, claim: Claim, pending: Pending) -> None:
        attempt = pending.attempts + 1
        event = phases.attempted_event(self._codec, pending, self._owner, claim.token)
        await self._append(claim, event, ())
        pending.attempts = attempt  # the tail may have told of it meanwhile
        self.counts.attempts += 1
        self._boundary("attempt.recorded", claim.name)

    async def _settle(self, claim: Claim, pending: Pending, outcome: phases.Outcome) -> None:
        event = phases.settled_event(self._codec, pending, outcome, self._owner)
        try:
            await self._append(claim, event, (Wake(TURNS, self._log.clock(), sooner=True),))
        except EventIdConflict:  # somebody else, a person perhaps, settled it first; the key is still ours
            self.counts.refused += 1
            return
        self.counts.settled += 1
        self.counts.by_status[outcome.status] = self.counts.by_status.get(outcome.status, 0) + 1
        self._boundary("settled", claim.name)

    async def _append(self, claim: Claim, event: NewEvent, wakes: tuple[Wake, ...]) -> None:
        request = AppendRequest((StreamAppend(claim.name, (event,), ANY, wakes),), (Fence(claim.queue, claim.name, claim.token),))
        outcome = await self._committer.commit(request)
        if isinstance(outcome, LeaseLost):
            self.counts.stale += 1
        if isinstance(outcome, LogError):
            raise outcome

    async def _checkpoint(self, outbox: Outbox) -> None:
        position = outbox.low_water
        if position > self._saved and (position - self._saved > 500 or not self._lanes):
            await _in_thread(lambda: self._log.checkpoints.save(self._checkpoint_name, position))
            self._saved = position
            self._boundary("checkpointed", "")

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self.settings.lease / SECOND / 3)
            claims = [claim for claim, _ in self._lanes.values()]
            if not claims:
                continue
            try:
                lost = await _in_thread(functools.partial(self._log.schedule.renew, claims, until=self._log.clock() + self.settings.lease))
            except LogUnavailable as problem:
                self._on_error("renewing leases", problem)
                continue
            for claim in lost:
                entry = self._lanes.get(claim.name)
                if entry is not None and entry[0].token == claim.token:
                    self.counts.stale += 1
                    entry[1].cancel()

    async def _finish(self) -> None:
        """Let the tools that are running end; what is not over within the grace is left to its lease (S-6.7)."""
        running = [task for _, task in self._lanes.values()]
        if running:
            await asyncio.wait(running, timeout=self.settings.grace)
        if self._outbox is not None:
            await self._checkpoint(await self._drain())

    async def idle(self) -> bool:
        """Whether every intent on the log has its outcome."""
        outbox = await self._drain()
        return not self._lanes and not outbox.streams()


def _in_thread(call: Callable[[], T]) -> Awaitable[T]:
    return asyncio.get_running_loop().run_in_executor(None, call)
