"""The hands: follows the log's tail, claims keys, carries out their intents in order, records what came of it.

One lane a key: within it intents are strictly one after the other, and a slow or poisoned one never blocks another key
(S-6.6). The lease on a key is what makes two effectors on one log share the work; its token fences every append.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, Final

from ..agents.committer import Committer
from ..agents.leasing import beat, in_thread
from ..agents.queues import CHECKPOINT, EFFECTS
from ..agents.signing import Verifier
from ..agents.tools import ToolSet
from ..eventlog.clock import SECOND
from ..eventlog.codec import Codec
from ..eventlog.errors import EventIdConflict, LeaseLost, LogError, LogUnavailable, Undecodable
from ..eventlog.log import Claim, EventLog
from .carrying import Carrying, End
from .choosing import Choosing
from .following import Following
from .keeping import APPENDS, PARTS, Keep, patiently, pause, side_by_side, within
from .lanes import Lanes
from .leases import Leases
from .limits import MOST_OVERDUE, THREADS, Limits, Place
from .measures import Counts, EffectorSettings
from .outbox import Outbox, Pending
from .watching import Watching

_BUSY: Final = 1.0
"""Seconds until a key that somebody else holds is looked at again, at most; or two polls, if they are longer."""
_MOST_NAMED: Final = 20
"""Streams left alone that health names."""
_LAST: Final = 5.0
"""Seconds that the last checkpoint may take when the effector stops."""


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
        watching: Watching | None = None,
        verifier: Verifier | None = None,
    ) -> None:
        self.settings = settings or EffectorSettings()
        self.counts = Counts()
        self._codec, self._log, self._owner, self._committer = codec, log, owner, committer
        self._boundary, self._on_error, self._watching = boundary, on_error, watching or Watching()
        self._limits = Limits()
        self._leases: Leases[Claim] = Leases(self.settings.lease)
        self._choosing = Choosing(tools, log.clock, self._limits, codec, hold_unknown=self.settings.hold_unknown, verifier=verifier)
        self._carrying = Carrying(
            codec,
            tools,
            log.clock,
            owner=owner,
            committer=committer,
            counts=self.counts,
            limits=self._limits,
            leases=self._leases,
            boundary=boundary,
            on_error=on_error,
            watching=self._watching,
            is_ours=self._is_ours,
            verifier=verifier,
        )
        # Apps may share a log; each carries out its own agents' intents, and remembers how far it came with those.
        self._categories = tuple(sorted(set(categories)))
        self._following = Following(codec, log, self._categories, ":".join((CHECKPOINT, *self._categories)))
        self._lanes = Lanes(log, self.settings.lease, self._leases, self._choosing, self._carrying, self._watching)
        #: Keys that wait, by what keeps them, as of about a second ago.
        self.waiting: Mapping[str, int] = {}
        self._busy_until: dict[str, int] = {}
        self._busy: dict[str, int] = {}
        self._failures: dict[str, int] = {}
        self._told = float("-inf")
        #: When the checkpoint was last saved, by the loop's clock; a run begins as if it had just been, for no lane is late yet.
        self._saved_at = 0.0
        self._told_left_alone = 0
        self._wakeup, self._looked, self._stopped = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._stopping = False

    @property
    def active(self) -> int:
        """Keys in flight now."""
        return len(self._lanes.running)

    @property
    def calling(self) -> int:
        """Calls of users' code under way."""
        return len(self._carrying.calls)

    @property
    def open(self) -> int:
        """Intents without an outcome, as far as the tail was read."""
        return len(self._following.outbox or ())

    @property
    def left_alone(self) -> Mapping[str, str]:
        """Streams whose intents are left alone because of an event that this code cannot read, and why."""
        return self._following.outbox.blocked if self._following.outbox is not None else {}

    def report(self) -> dict[str, Any]:
        """What health says of the intents; from any thread. Of streams that are left alone it names the first."""
        left = self.left_alone
        told = {"blocked_streams": len(left), "blocked": dict(islice(list(left.items()), _MOST_NAMED))}
        return {"open_intents": self.open, "keys_in_flight": self.active, "keys_waiting": dict(self.waiting)} | told

    def wake(self) -> None:
        """Look at the tail now instead of at the next poll."""
        self._wakeup.set()

    def stop(self) -> None:
        """Take no more intents; ``run`` returns when the tools under way have ended or their grace is over."""
        self._stopping = True
        self._wakeup.set()
        self._stopped.set()

    async def run(self, keep: Keep | None = None) -> None:
        """Serve until ``stop``.

        ``keep`` says what becomes of a part that fails; without one, a part that cannot reach the store tries again with
        back-off, each failure told to ``on_error``, and any other failure ends the run.
        """
        keep = keep or functools.partial(patiently, on_error=self._on_error, stopped=self._stopped)
        self._saved_at = asyncio.get_running_loop().time()
        parts = dict(zip(PARTS, (self._follow, self._lanes.renew, self._save, self._lanes.watch), strict=True))
        await side_by_side(parts, keep, self._stopped, self._finish, lambda: [task for _, task in self._lanes.running.values()])

    async def _follow(self) -> None:
        while not self._stopping:
            await self._round()
            self._watching.beat("tail")

    async def _round(self) -> None:
        outbox = await self._following.drain()
        self._watching.looked(outbox)
        self._tell_left_alone()
        self._tell_waiting(outbox)
        began = await self._begin(outbox)
        self._looked.set()
        if not began:
            await within(self.settings.poll, self._wakeup)

    def _tell_left_alone(self) -> None:
        """Each once."""
        for stream, why in list(self.left_alone.items())[self._told_left_alone :]:
            self._told_left_alone += 1
            doing, problem = f"carrying out intents of {stream}, which stands still", Undecodable(why, stream)
            self._watching.left_alone(stream, doing, problem)
            self._on_error(doing, problem)

    def _tell_waiting(self, outbox: Outbox) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._told < 1.0:
            return
        self._told = now
        for remembered in (self._busy, self._busy_until, self._failures):
            for stream in [each for each in remembered if outbox.first(each) is None and each not in self._lanes.running]:
                del remembered[stream]
        self.waiting = self._choosing.waiting(outbox, self._lanes.running)
        self._watching.waiting(self.waiting)
        if THREADS in self.waiting:
            text = f"{MOST_OVERDUE} of its threads were left behind by its timeout; until one of them ends, {self.waiting[THREADS]} keys wait"
            self._on_error("calling a blocking tool", TimeoutError(text))

    async def _begin(self, outbox: Outbox) -> bool:
        """Claim keys that have intents, look again at what their last owners did, and start their lanes."""
        asked, now = self._leases.now(), self._log.clock()
        running, held = self._lanes.running, self._lanes.fresh
        ready = (each for each in outbox.in_line() if each not in running and each not in held and self._busy_until.get(each, 0) <= now)
        wanted, met_busy = self._choosing.chosen(outbox, ready, self.settings.concurrency - len(running)), False
        left_over, unseen = list(held), None
        if wanted:
            try:
                tokens, unseen = await self._following.acquire(wanted, self._owner, now, now + self.settings.lease)
            except BaseException:
                self._choosing.give_back(wanted)
                raise
            taken = {stream: Claim(EFFECTS, stream, token, None) for stream, token in tokens.items()}
            self._leases.taken(taken.values(), asked)
            self._lanes.fresh |= taken
            for stream in wanted:
                if stream in tokens:
                    self._busy.pop(stream, None)
                    self._busy_until.pop(stream, None)
                else:  # waited for, never skipped (S-6.6): it stays in the outbox until its outcome is on the tail
                    met_busy = True
                    self._wait_for_other(stream, now)
        if not self._lanes.fresh:
            return met_busy  # then the keys behind those are looked at without a pause: nobody's waiting may hide them
        # The last owner may have attempted or settled something between our reading and its letting go. Until that is
        # read no lane begins; when it cannot be, the keys stay claimed for the next round.
        if unseen is not None:
            raise unseen
        if left_over:
            await self._following.look_ahead(left_over)
        fresh, self._lanes.fresh = self._lanes.fresh, {}
        for stream, claim in fresh.items():
            task = asyncio.create_task(self._lane(outbox, claim))
            running[stream] = (claim, task)
            # By the loop, and not at the lane's end: a cancellation may meet the lane anywhere, in its last await too.
            task.add_done_callback(functools.partial(self._left, claim))
        return True

    def _wait_for_other(self, stream: str, now: int) -> None:
        """Somebody else holds the key: look again later, and ever later up to a second or so."""
        times = self._busy[stream] = self._busy.get(stream, 0) + 1
        self._busy_until[stream] = now + int(max(2 * self.settings.poll, min(self.settings.poll * 2**times, _BUSY)) * SECOND)
        self.counts.busy += 1
        self._watching.busy(stream)
        self._choosing.give_back([stream])

    def _next(self, outbox: Outbox, stream: str, held: tuple[Pending, Place] | None) -> tuple[Pending, Place] | None:
        """What to carry out next and its place: the one ``held``, unless the log has told meanwhile that another intent is next."""
        if held is not None and not self._stopping and outbox.first(stream) is held[0] and not self._choosing.postponed(held[0]):
            return held
        if held is not None:
            self._limits.leave(held[1])
        return None if self._stopping else self._choosing.choose(outbox, stream)

    async def _lane(self, outbox: Outbox, claim: Claim) -> None:
        held, handed_back = self._choosing.places.pop(claim.name, None), True
        pending: Pending | None = None
        try:
            while (chosen := self._next(outbox, claim.name, held)) is not None:
                (pending, place), held, handed_back = chosen, None, False
                try:
                    end = await self._carrying.carry_out(claim, pending, place, last=outbox.is_last(pending))
                except EventIdConflict:  # withdrawn, or settled by an operator, at this very moment: the tail will say
                    await self._carrying.hold(claim, pending)
                    await self._following.look_ahead([claim.name])
                    if outbox.first(claim.name) is pending:
                        if not await self._following.over_before(pending):
                            raise
                        self._carrying.refuse(pending)
                    handed_back = True
                    continue
                finally:
                    self._limits.leave(place)
                if end is End.PUT_OFF:
                    handed_back = True
                    break
                outbox.settled(claim.name, pending.intent.intent_id)
                if end is End.HANDED_BACK:  # what came meanwhile is for the next round
                    self._watching.handed_back(claim.name)
                    break
                handed_back = True
        except (LeaseLost, EventIdConflict):
            handed_back = False  # it is somebody else's now
        except Exception as problem:  # this key is begun again after a pause; other keys go on
            doing = f"carrying out intents of {claim.name}"
            if pending is not None:
                self._carrying.trouble(pending, doing, problem)
            else:
                self._on_error(doing, problem)
            self._watching.failed(f"lane {claim.name}", problem)
            failures = self._failures[claim.name] = self._failures.get(claim.name, 0) + 1
            self._busy_until[claim.name] = self._log.clock() + int(pause(failures, 60.0) * SECOND)
            handed_back = True  # nothing of it runs any more
        else:
            self._failures.pop(claim.name, None)
        finally:
            if handed_back:
                self._carrying.parting.add(claim)
                await self._hand_back([claim])

    async def _hand_back(self, claims: list[Claim]) -> None:
        try:
            await in_thread(lambda: self._log.schedule.release(claims))
        except LogError as problem:  # then the leases run out by themselves
            self._on_error(f"handing back {', '.join(claim.name for claim in claims[:3])}", problem)
            self._watching.failed(APPENDS, problem)
            return
        for claim in claims:
            self._leases.over(claim)
            self._watching.handed_back(claim.name)

    def _left(self, claim: Claim, task: asyncio.Task[None]) -> None:
        """The lane of this claim is over, in whatever way."""
        entry = self._lanes.running.get(claim.name)
        if entry is not None and entry[1] is task:
            del self._lanes.running[claim.name]
            self._choosing.give_back([claim.name])  # of a lane that was cancelled before it began
        self._carrying.over(claim)
        self._leases.over(claim)
        if not task.cancelled() and (problem := task.exception()) is not None:
            self._on_error(f"carrying out intents of {claim.name}", problem)
        self._wakeup.set()

    async def _checkpoint(self, outbox: Outbox) -> None:
        position = outbox.low_water
        now = asyncio.get_running_loop().time()
        if position > self._following.saved and (now - self._saved_at >= 1.0 or not self._lanes.running):
            self._saved_at = now
            await self._following.save(position)
            self._boundary("checkpointed", "")

    async def _save(self) -> None:
        while True:
            if (outbox := self._following.outbox) is not None:
                await self._checkpoint(outbox)
            self._watching.beat("checkpoint")
            await within(1.0, self._looked)

    async def _is_ours(self, claim: Claim) -> bool:
        """Whether nobody took the key over, in which case its lease is renewed; while the store cannot be asked, the next renewal will tell."""
        asked = self._leases.now()
        try:
            lost = await beat(self._log, [claim], self.settings.lease)
        except LogError:
            return True
        if not lost:
            self._leases.renewed([claim], asked)
        return not lost

    async def _finish(self, tail: asyncio.Future[None]) -> None:
        """Hand back what was not begun; let the tools that are running end. What is not over within the grace is left to its lease (S-6.7)."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.settings.grace
        await asyncio.wait([tail], timeout=self.settings.grace)  # it may be claiming keys at this moment
        fresh, self._lanes.fresh = list(self._lanes.fresh.values()), {}
        if fresh:
            await self._hand_back(fresh)
        running = [task for _, task in self._lanes.running.values()]
        if running:
            await asyncio.wait(running, timeout=max(0.0, deadline - loop.time()))
        for pending, _ in self._carrying.calls.values():
            self._watching.left(pending)
        try:
            async with asyncio.timeout(_LAST):
                if self._following.outbox is not None:
                    await self._checkpoint(await self._following.drain())
        except (LogUnavailable, TimeoutError) as problem:  # the next one reads from the last checkpoint on
            self._on_error("saving the checkpoint", problem)

    async def idle(self) -> bool:
        """Whether every intent on the log has its outcome, but for those of streams that are left alone."""
        if self._lanes.running:
            return False
        outbox = await self._following.drain()
        self._tell_left_alone()
        # The tail may not show yet what this very process has committed.
        return not self._lanes.running and not outbox.streams() and outbox.cursor >= self._committer.reached
