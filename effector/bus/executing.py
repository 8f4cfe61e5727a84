"""A tool's intent from its claim to its published outcome, each phase small enough to say what a crash in it means.

::

    claim → attempt → execute → complete (or postpone) → publish

Whatever cannot go on now puts its message off, with its claim handed back, and is begun again from the claim: there is one way in.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final

from ...agents import facts
from ...agents.intents import ERROR
from ...agents.tools import Tool
from .. import phases
from ..choosing import POSTPONED, UNKNOWN_TOOL
from ..dedup.checking import MOST_BYTES as MOST_STORED
from ..dedup.errors import AlreadyDone, ResultTooLarge, StaleToken, StoreUnavailable
from ..dedup.store import Busy, Claimed, Done
from ..limits import Place
from ..outbox import Pending
from ..phases import Outcome
from . import postponing, wire
from .calling import Calling, Deaf, Lost
from .errors import BusUnavailable
from .holding import Held
from .means import Means
from .outlets import STORE
from .publishing import Publishing
from .window import Entry

BUSY: Final = "busy"
LOST: Final = "lease lost"
DEAF: Final = "deaf tool"
LEAVING: Final = "leaving"
TOO_LARGE: Final = "ResultTooLarge"
_BUSY: Final = 1.0
"""Seconds between looks at an intent that somebody else holds, at most."""
_HELD: Final = 1.0
_LONGEST: Final = 5.0


class _Leaving(Exception):
    """This effector stops, or the partition is gone, before the tool was called."""


class Executing:
    """Carries out intents of tools. Belongs to one event loop."""

    def __init__(self, means: Means, publishing: Publishing) -> None:
        self._means, self._publishing, self.calling = means, publishing, Calling(means)

    async def carry_out(self, entry: Entry, pending: Pending, leaving: Callable[[], bool]) -> bool:
        """Whether it is over. Expiry is decided here, before the store is asked (S-6.8); what is reported for it, after (S-6.3)."""
        m = self._means
        now, tool = m.clock(), m.tools.get(pending.intent.tool)
        expired = now >= pending.intent.expires_at
        place = m.limits.take(None if expired else tool)
        if place is None:
            assert tool is not None
            m.wait(entry, m.limits.obstacle(tool), longest=m.settings.poll)
            return False
        try:
            if not expired and m.settings.hold_unknown and phases.is_unfit(pending, m.tools, m.codec):
                return await self._hold(entry, pending)
            return await self._claim(entry, pending, tool, place, leaving, now)
        except StoreUnavailable:
            m.wait(entry, STORE, longest=_LONGEST)
            return False
        finally:
            m.limits.leave(place)

    async def _hold(self, entry: Entry, pending: Pending) -> bool:
        """Left to an effector whose tool takes these arguments; if one has carried it out already, what came of it is published."""
        m = self._means
        found = await m.ask(lambda: m.store.look(pending.intent.intent_id, now=m.clock()))
        if isinstance(found, Done):
            return await self._publishing.repeat(entry, pending, found)
        m.wait(entry, UNKNOWN_TOOL, longest=_HELD, until=pending.intent.expires_at)
        return False

    async def _claim(self, entry: Entry, pending: Pending, tool: Tool | None, place: Place, leaving: Callable[[], bool], now: int) -> bool:
        """One owner at a time (S-6.6). A crash behind it leaves a lease that runs out, and no attempt: whoever comes next begins afresh."""
        m = self._means
        asked = m.holding.leases.now()
        found = await self._claimed(pending.intent.intent_id)
        if isinstance(found, Busy):
            m.counts.busy += 1
            m.watching.busy(pending.stream)
            m.wait(entry, BUSY, longest=_BUSY, until=found.until)
            return False
        if isinstance(found, Done):
            return await self._publishing.repeat(entry, pending, found)
        held = m.holding.take(pending, found.token, asked)
        m.boundary("claimed", pending.stream)
        free = True
        try:
            pending.attempts = found.attempts
            ended = await self._decide(entry, held, tool, place, leaving, now)
            if isinstance(ended, int):
                entry.wait(POSTPONED, ended, m.clock())
                return False
            free = False
            stored, ours = await self._complete(held, ended, entry)
        except Lost:
            free = False
            entry.wait(LOST, 0, 0)
            return False
        except Deaf:
            free = False
            m.wait(entry, DEAF, longest=_BUSY)
            return False
        except _Leaving:
            m.wait(entry, LEAVING, longest=_BUSY)
            return False
        finally:
            m.holding.let_go(held)
            if free and (not held.invoked or pending.last_postponed is not None):
                await self._hand_back(held)
        return await self._publishing.repeat(entry, pending, stored, ours=ours)

    async def _claimed(self, intent_id: str) -> Claimed | Busy | Done:
        """What a claim found. One that is cancelled meanwhile is handed back: nobody shall wait for a lease that protects nothing."""
        m, moment = self._means, self._means.clock()
        asking = asyncio.ensure_future(m.ask(lambda: m.store.claim(intent_id, m.owner, now=moment, until=moment + m.settings.lease)))
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            try:
                found = await asking
                if isinstance(found, Claimed):
                    await m.ask(lambda: m.store.release(intent_id, found.token))
            except StoreUnavailable:  # then its lease runs out, if there is one
                pass
            raise

    async def _decide(self, entry: Entry, held: Held, tool: Tool | None, place: Place, leaving: Callable[[], bool], now: int) -> Outcome | int:
        """The outcome, or the moment of the next attempt. Nothing is recorded here but attempts."""
        m, pending = self._means, held.pending
        if pending.attempts:
            await m.ask(lambda: postponing.recall(m.store, m.codec, pending, m.clock()))
            pending.postponed |= entry.postponed
        outcome = phases.refuse_expired(pending, tool, max(now, m.clock()))
        if outcome is not None:
            return outcome
        if m.clock() < pending.not_before:
            return pending.not_before
        fit = phases.refuse_unfit(pending, m.tools, m.codec)
        if isinstance(fit, Outcome):
            return fit
        found, bound = fit
        if pending.attempts:
            recovered: Outcome | None = await self.calling.call(held, found, phases.recover(pending, found, bound, m.codec))
            if recovered is not None:
                return recovered
        if leaving():
            raise _Leaving
        outcome = await self._execute(held, found, bound, place)
        again = phases.next_attempt(pending, found, outcome, m.clock())
        return again if isinstance(again, Outcome) else await self._postpone(entry, held, outcome, again)

    async def _attempt(self, held: Held) -> None:
        """Durable before the call (S-6.4). A crash from here on is seen by whoever comes next as an attempt without an end."""
        m, pending = self._means, held.pending
        try:
            attempt = await m.insist(lambda: m.store.attempt(pending.intent.intent_id, held.token, now=m.clock()))
        except StaleToken as problem:
            m.holding.lose(held)
            raise Lost from problem
        held.invoked = True
        pending.attempts = attempt
        m.counts.attempts += 1
        m.watching.attempted(pending)
        m.boundary("attempt.recorded", pending.stream)

    async def _execute(self, held: Held, tool: Tool, bound: dict[str, Any], place: Place) -> Outcome:
        """Call the tool. A crash in here, or behind it, cannot be told from one before: UNKNOWN, or another call of an idempotent tool (S-6.5)."""
        m, pending = self._means, held.pending
        await self._attempt(held)
        late = phases.refuse_expired(pending, tool, m.clock())  # recording may have had to wait for the store (S-6.3)
        if late is not None:
            return late
        m.limits.calling(place)
        begun = time.monotonic()
        outcome: Outcome = await self.calling.call(held, tool, phases.execute(pending, tool, bound, m.codec))
        m.watching.called(pending, outcome, time.monotonic() - begun)
        m.boundary("tool.called", pending.stream)
        return outcome

    async def _postpone(self, entry: Entry, held: Held, outcome: Outcome, retry_at: int) -> int:
        """That the attempt is over, and when the next is due, is durable before the claim is handed back: no crash makes UNKNOWN of it."""
        m, pending = self._means, held.pending
        assert outcome.failure is not None
        said = facts.IntentPostponed(pending.intent.intent_id, pending.attempts, outcome.failure, retry_at, m.owner)
        now = m.clock()
        kept_until = max(retry_at, now) + m.settings.result_ttl
        await m.insist(lambda: postponing.keep(m.store, m.codec, said, m.owner, now=now, until=now + m.settings.lease, expires_at=kept_until))
        pending.postponed[pending.attempts] = entry.postponed[pending.attempts] = said
        m.counts.postponed += 1
        m.watching.postponed(pending, outcome)
        m.boundary("postponed", pending.stream)
        return retry_at

    async def _complete(self, held: Held, outcome: Outcome, entry: Entry) -> tuple[Done, bool]:
        """The outcome, durable before anybody hears of it; the first is final (S-6.2), and a stale owner's is refused (S-6.4).

        A crash behind it publishes again and executes nothing. For as long as the store is down it is offered again.
        """
        m, pending = self._means, held.pending
        outcome, value = self._encoded(pending, outcome, await self._most())
        try:
            try:
                await self._store(held, outcome.status, value)
            except ResultTooLarge:
                outcome, value = self._encoded(pending, outcome, 0)
                await self._store(held, outcome.status, value)
        except AlreadyDone as problem:
            m.holding.lose(held)  # only who holds it can have said so: it was taken over
            entry.told = True
            return problem.done, False
        except StaleToken as problem:
            m.holding.lose(held)
            raise Lost from problem
        m.counts.settled += 1
        m.counts.by_status[outcome.status] = m.counts.by_status.get(outcome.status, 0) + 1
        entry.told = True
        m.watching.settled(pending, outcome)
        m.boundary("completed", pending.stream)
        return Done(outcome.status, value), True

    async def _store(self, held: Held, status: str, value: bytes) -> None:
        m, intent_id = self._means, held.pending.intent.intent_id
        await m.insist(lambda: m.store.complete(intent_id, held.token, value, status=status, now=m.clock(), expires_at=m.expires_at))

    async def _most(self) -> int:
        try:
            return min(MOST_STORED, await self._means.results.most_bytes())
        except BusUnavailable:
            return MOST_STORED

    def _encoded(self, pending: Pending, outcome: Outcome, most: int) -> tuple[Outcome, bytes]:
        """The outcome as it is stored; one of more bytes than are taken is an ERROR that says so."""
        m = self._means
        value = wire.encode_result(m.codec, pending, outcome, m.owner, m.clock(), m.keys)
        if len(value) <= most or (outcome.failure is not None and outcome.failure.type == TOO_LARGE):
            return outcome, value
        text = f"{pending.intent.tool} ran, but its outcome of {len(value):,} bytes is more than store and sink take. Keep it elsewhere and return where it is."
        told = Outcome(ERROR, failure=facts.Failure(TOO_LARGE, text))
        return told, wire.encode_result(m.codec, pending, told, m.owner, m.clock(), m.keys)

    async def _hand_back(self, held: Held) -> None:
        m = self._means
        try:
            await m.ask(lambda: m.store.release(held.pending.intent.intent_id, held.token))
        except StoreUnavailable:  # then its lease runs out
            return
        m.watching.handed_back(held.pending.stream)
