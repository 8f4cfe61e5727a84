"""One intent through its phases, each step recorded under the key's fencing token before the next is taken.

Between two intents of a key nothing is held here, but for how often tools were called lately.
"""

from __future__ import annotations

import asyncio
import enum
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

from ..agents.committer import Committer
from ..agents.intents import REJECTED
from ..agents.queues import TURNS
from ..agents.signing import Verifier
from ..agents.tools import Tool, ToolSet
from ..agents.vouching import signed_outcome
from ..eventlog.clock import Clock, Micros
from ..eventlog.codec import Codec
from ..eventlog.errors import EventIdConflict, LeaseLost, LogError, LogUnavailable, StoreSchemaError
from ..eventlog.events import NewEvent
from ..eventlog.log import AppendRequest, Claim, Fence, StreamAppend, Wake
from ..eventlog.versions import ANY
from . import phases
from .keeping import APPENDS, pause
from .leases import Guard, Leases, NotBegun
from .limits import Limits, Place
from .measures import Counts
from .outbox import Pending
from .watching import Watching

T = TypeVar("T")
_MAY_HEAL: Final = (LogUnavailable, StoreSchemaError)
"""What the store says while it cannot take something and may later: it comes back, or somebody gives back a right, a table, some room."""


class End(enum.Enum):
    """Where an intent stands after it was carried out."""

    #: It has its outcome; its key is still held.
    OVER = enum.auto()
    #: The same, and the key was handed back with it.
    HANDED_BACK = enum.auto()
    #: It is to be tried again.
    PUT_OFF = enum.auto()


class Carrying:
    """Carries out intents of keys whose lease this effector holds."""

    def __init__(
        self,
        codec: Codec,
        tools: ToolSet,
        clock: Clock,
        *,
        owner: str,
        committer: Committer,
        counts: Counts,
        limits: Limits,
        leases: Leases[Claim],
        boundary: Callable[[str, str], None],
        on_error: Callable[[str, BaseException], None],
        watching: Watching,
        is_ours: Callable[[Claim], Awaitable[bool]],
        verifier: Verifier | None = None,
    ) -> None:
        self._verifier, self._is_ours, self._leases = verifier, is_ours, leases
        self._codec, self._tools, self._clock, self._owner, self._committer = codec, tools, clock, owner, committer
        self._counts, self._limits, self._boundary, self._on_error, self._watching = counts, limits, boundary, on_error, watching
        #: Calls of users' code under way: whose, and when its time is up.
        self.calls: dict[Claim, tuple[Pending, float]] = {}
        #: Of these, the ones that have not begun: the store is asked for their lease first, however long it takes.
        self.asking: set[Claim] = set()
        #: Appends under way.
        self.appending = 0
        self._gone: set[Claim] = set()
        #: Claims that are being handed back: that they are found gone is no loss.
        self.parting: set[Claim] = set()

    async def carry_out(self, claim: Claim, pending: Pending, place: Place, *, last: bool = False) -> End:
        """One intent, to its outcome, or put off on record to be tried again. ``last``: the key is handed back with the outcome.

        Crash argument of that: outcome and hand-back are one append. Before it both are open, and whoever takes the key over
        finds the attempt; after it neither is, and nothing of this key runs here any more.
        """
        self._boundary("claimed", claim.name)
        pending.own_attempt = 0
        tool = self._tools.get(pending.intent.tool)
        objection = phases.verify(pending, self._verifier)
        if objection is not None:
            await self._distrust(claim, pending, objection)
            return End.OVER
        outcome = phases.refuse_expired(pending, tool, self._clock())
        if outcome is None:
            fit = phases.refuse_unfit(pending, self._tools, self._codec)
            if isinstance(fit, phases.Outcome):
                outcome = fit
            else:
                found, bound = fit
                if pending.attempts:
                    outcome = await self._call(claim, pending, found, phases.recover(pending, found, bound, self._codec))
                if outcome is None:
                    outcome = await self._try(claim, pending, found, bound, place)
                    again = phases.next_attempt(pending, found, outcome, self._clock())
                    if not isinstance(again, phases.Outcome):
                        await self._postpone(claim, pending, outcome, again)
                        return End.PUT_OFF
                    outcome = again
        settled = await self._settle(claim, pending, outcome, hand_back=last)
        return End.HANDED_BACK if settled and last else End.OVER

    async def _try(self, claim: Claim, pending: Pending, tool: Tool, bound: dict[str, Any], place: Place) -> phases.Outcome:
        await self._attempt(claim, pending)
        late = phases.refuse_expired(pending, tool, self._clock())  # recording may have had to wait for the store (S-6.3)
        if late is not None:
            return late
        self._limits.calling(place)
        begun = time.monotonic()
        outcome = await self._call(claim, pending, tool, phases.execute(pending, tool, bound, self._codec))
        self._watching.called(pending, outcome, time.monotonic() - begun)
        self._boundary("tool.called", claim.name)
        return outcome

    async def _call(self, claim: Claim, pending: Pending, tool: Tool, call: Coroutine[Any, Any, T]) -> T:
        """``call``, a user's code, under the eyes of who watches the lanes; begun only while the lease stands (see ``leases``).

        In a task of its own: a GeneratorExit that comes out of something awaited closes whatever waits in the same task, and
        would end the lane without an outcome. A cancellation of the lane is one of the call. Raises ``LeaseLost``, which is
        counted, when it was not begun; the lane is over then, and nothing is said of the attempt.
        """
        loop, seconds = asyncio.get_running_loop(), tool.timeout.total_seconds()
        guard = Guard(lambda: self._leases.stands(claim))

        def under_way() -> None:
            self.calls[claim] = (pending, loop.time() + seconds)
            self.asking.discard(claim)

        self.calls[claim] = (pending, loop.time() + seconds)
        self.asking.add(claim)
        result: T | None = None
        try:
            result = await asyncio.ensure_future(guard.before(call, lambda: self._is_ours(claim), under_way))
        except NotBegun:
            pass
        finally:
            self.calls.pop(claim, None)
            self.asking.discard(claim)
        if guard.refused:
            self.lose(claim, pending)
            raise LeaseLost(f"{claim.name}: the lease may be over, so {tool.name} was not called.")
        return result  # type: ignore[return-value]

    async def _attempt(self, claim: Claim, pending: Pending) -> None:
        attempt = pending.attempts + 1
        event = phases.attempted_event(self._codec, pending, self._owner, claim.token)
        await self._append(claim, pending, event, (), until=pending.intent.expires_at)
        pending.attempts = pending.own_attempt = attempt  # the tail may have told of it meanwhile
        self._counts.attempts += 1
        self._watching.attempted(pending)
        self._boundary("attempt.recorded", claim.name)

    async def _postpone(self, claim: Claim, pending: Pending, outcome: phases.Outcome, retry_at: int) -> None:
        assert outcome.failure is not None
        event = phases.postponed_event(self._codec, pending, outcome.failure, retry_at, self._owner)
        await self._append(claim, pending, event, ())
        pending.postponed[pending.attempts] = self._codec.decode(event.type, event.schema, event.data)
        self._counts.postponed += 1
        self._watching.postponed(pending, outcome)
        self._boundary("postponed", claim.name)

    async def _distrust(self, claim: Claim, pending: Pending, why: str) -> None:
        await self._append(claim, pending, phases.distrusted_event(self._codec, pending, why, self._owner), ())
        self._counts.distrusted += 1
        self._watching.distrusted(pending, why)
        self._boundary("distrusted", claim.name)

    async def _settle(self, claim: Claim, pending: Pending, outcome: phases.Outcome, *, hand_back: bool) -> bool:
        event = phases.settled_event(self._codec, pending, outcome, self._owner)
        keys = self._verifier.keys if self._verifier is not None else None
        beside = (signed_outcome(self._codec, keys, claim.name, pending.intent.intent_id, event),) if keys is not None else ()
        try:
            await self._append(claim, pending, event, (Wake(TURNS, self._clock(), sooner=True),), hand_back=hand_back, beside=beside)
        except EventIdConflict:  # somebody settled it first: a person, while the key is ours, or whoever has the key now
            await self.hold(claim, pending)
            self.refuse(pending, outcome)
            return False
        self._counts.settled += 1
        self._counts.by_status[outcome.status] = self._counts.by_status.get(outcome.status, 0) + 1
        self._watching.settled(pending, outcome)
        self._boundary("settled", claim.name)
        return True

    async def _append(
        self,
        claim: Claim,
        pending: Pending,
        event: NewEvent,
        wakes: tuple[Wake, ...],
        *,
        hand_back: bool = False,
        beside: tuple[NewEvent, ...] = (),
        until: Micros | None = None,
    ) -> None:
        """Durable when it returns. For as long as the store cannot take it, and before ``until``, it is offered again: an outcome
        that is known is not thrown away, whether the store is down or a right, a table or room is missing.
        """
        request = AppendRequest((StreamAppend(claim.name, (event, *beside), ANY, wakes),), (Fence(claim.queue, claim.name, claim.token, hand_back),))
        failures = 0
        self.appending += 1
        if hand_back:
            self.parting.add(claim)
        try:
            while True:
                try:
                    outcome = await self._committer.commit(request)
                    break
                except _MAY_HEAL as problem:
                    if until is not None and self._clock() >= until:
                        raise
                    self.trouble(pending, f"recording {event.type} on {claim.name}", problem)
                    self._watching.failed(APPENDS, problem)
                    failures += 1
                await asyncio.sleep(pause(failures))
        finally:
            self.appending -= 1
            self.parting.discard(claim)
        self._watching.beat(APPENDS)
        if isinstance(outcome, LeaseLost):
            self.lose(claim, pending)
        if isinstance(outcome, LogError):
            raise outcome

    def trouble(self, pending: Pending, doing: str, problem: BaseException) -> None:
        """``doing`` something for the intent failed."""
        self._watching.hindered(pending, doing, problem)
        self._on_error(doing, problem)

    async def hold(self, claim: Claim, pending: Pending) -> None:
        """Raises ``LeaseLost``, which is counted, when the claim is somebody else's: whoever has it may have written first what we
        were about to, and then the store says no more than that it is there already.
        """
        if not await self._is_ours(claim):
            self.lose(claim, pending)
            raise LeaseLost(f"{claim.name} was taken over by another effector.")

    def refuse(self, pending: Pending, outcome: phases.Outcome | None = None) -> None:
        """What was to be said of ``pending``, or begun, came after its outcome."""
        self._counts.refused += 1
        self._watching.refused(pending, outcome or phases.Outcome(REJECTED))

    def lose(self, claim: Claim, pending: Pending | None) -> None:
        """The claim is somebody else's; an append or the renewal heard of it first, and it counts once."""
        if claim not in self._gone:
            self._gone.add(claim)
            self._counts.stale += 1
            self._watching.lost(claim.name, pending)

    def over(self, claim: Claim) -> None:
        """Nobody serves this claim any more."""
        self._gone.discard(claim)
        self.parting.discard(claim)
