"""One message from its bytes to its end. What is decided before any store is asked, is decided here (S-6.8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...agents.intents import EXPIRED
from .. import phases
from ..dedup.errors import StaleToken, StoreUnavailable
from ..dedup.store import Busy, Done
from ..outbox import Pending
from . import wire
from .damage import damage
from .errors import BadMessage, BusUnavailable, MessageTooLarge
from .executing import BUSY, Executing
from .means import Means
from .outlets import APPROVALS, STORE
from .publishing import Publishing
from .window import Entry
from .wire import Question

DISTRUSTED: Final = "Distrusted"
ASKED: Final = "ASKED"
"""The status of a question that was published."""
_LONGEST: Final = 5.0


class Taking:
    """Takes messages. Belongs to one event loop."""

    def __init__(self, means: Means) -> None:
        self._means = means
        self._publishing = Publishing(means)
        self.executing = Executing(means, self._publishing)

    async def take(self, entry: Entry, leaving: Callable[[], bool]) -> bool:
        """Whether the message is over; if not, the entry says when to go on. Acknowledged is it by whoever asked, last of all."""
        m = self._means
        try:
            found = wire.decode_intent(m.codec, entry.message, m.settings.most_bytes)
        except BadMessage as problem:
            return await self._publishing.set_aside(entry, type(problem).__name__, str(problem))
        entry.pending = found if isinstance(found, Pending) else None
        entry.staged_at = found.staged_at if isinstance(found, Pending) else found.envelope.recorded_at
        objection = self._verify(found)
        if objection is not None:
            return await self._distrust(entry, found, objection)
        damaged = damage(m.codec, entry.message, found)
        if damaged is not None:  # like one that cannot be read, it drives nothing: what it was will be delivered, or is published again
            return await self._publishing.set_aside(entry, BadMessage.__name__, f"it is damaged: {damaged}. Publish it again from where it came")
        if isinstance(found, Question):
            return await self._ask(entry, found)
        return await self._executing(entry, found, leaving)

    async def _executing(self, entry: Entry, pending: Pending, leaving: Callable[[], bool]) -> bool:
        return await self.executing.carry_out(entry, pending, leaving)

    def _verify(self, found: Pending | Question) -> str | None:
        """Why nothing may be done about it. A crash in here or before it has left nothing behind, anywhere."""
        verifier = self._means.verifier
        if isinstance(found, Pending):
            return phases.verify(found, verifier)
        if verifier is None:
            return None
        return verifier.objection(wire.signature_of(found.envelope), found.stream, found.envelope.schema, found.envelope.payload)

    async def _distrust(self, entry: Entry, found: Pending | Question, why: str) -> bool:
        """It drives nothing at all: no claim, no attempt, no outcome, not even EXPIRED. It is a dead letter, with its raw bytes."""
        over = await self._publishing.set_aside(entry, DISTRUSTED, why)
        if over and isinstance(found, Pending):
            self._means.counts.distrusted += 1
            self._means.watching.distrusted(found, why)
        return over

    async def _ask(self, entry: Entry, question: Question) -> bool:
        """Publish a question to people as it came, once: then it is done for the store, and a redelivery asks nobody twice.

        A crash between the two asks again: rather twice than never. It has no outcome here, for the answer comes to the agent itself.
        Past its deadline nobody is asked; the agent's own deadline makes that a denial (S-7.3).
        """
        m, asked, name = self._means, question.asked, wire.question_name(question)
        now = m.clock()
        expired = now >= asked.expires_at
        try:
            found = await m.ask(lambda: m.store.claim(name, m.owner, now=now, until=now + m.settings.lease))
            if isinstance(found, Busy):
                m.counts.busy += 1
                m.watching.busy(question.stream)
                m.wait(entry, BUSY, longest=_LONGEST, until=found.until)
                return False
            if isinstance(found, Done):
                return True
            token = found.token
            if not expired and not await self._published(entry, question):
                await m.ask(lambda: m.store.release(name, token))
                return False
            try:
                status = EXPIRED if expired else ASKED
                await m.insist(lambda: m.store.complete(name, token, b"asked", status=status, now=m.clock(), expires_at=m.expires_at))
            except StaleToken:  # somebody else took it up meanwhile, and asks
                pass
        except StoreUnavailable:
            m.wait(entry, STORE, longest=_LONGEST)
            return False
        m.counts.asked += not expired
        m.boundary("completed", question.stream)
        return True

    async def _published(self, entry: Entry, question: Question) -> bool:
        m, message = self._means, question.message
        try:
            await m.approvals.publish(wire.as_it_came(message))
        except BusUnavailable:
            m.wait(entry, APPROVALS, longest=_LONGEST)
            return False
        except MessageTooLarge as problem:
            return await self._publishing.set_aside(entry, type(problem).__name__, str(problem))
        m.boundary("published", question.stream)
        return True
