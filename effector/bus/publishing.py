"""Outcomes that are stored, on their way out: the same bytes for every delivery, whoever found them."""

from __future__ import annotations

from typing import Final

from ..dedup.store import Done
from ..outbox import Pending
from . import wire
from .errors import BadMessage, BusUnavailable, MessageTooLarge
from .means import Means
from .outlets import DEAD_LETTERS, RESULTS, set_aside
from .window import Entry

CONFLICT: Final = "IntentConflict"
_LONGEST: Final = 5.0


class Publishing:
    """Publishes results and dead letters. Belongs to one event loop."""

    def __init__(self, means: Means) -> None:
        self._means = means

    async def repeat(self, entry: Entry, pending: Pending, done: Done, *, ours: bool = False) -> bool:
        """Publish the stored outcome; whether it is over. Nothing is carried out, however often the intent is delivered.

        An outcome of another intent under the same id is nobody's answer here: the message is a dead letter.
        """
        m = self._means
        if why := "" if ours else self._strange(pending, done):
            return await self.set_aside(entry, CONFLICT, why)
        if not entry.told:
            entry.told = True
            m.counts.repeated += 1
            m.watching.repeated(pending, done.status)
        return await self._publish(entry, pending.stream, done.result)

    def _strange(self, pending: Pending, done: Done) -> str:
        """Why the outcome is none of this intent, or nothing."""
        try:
            envelope, _ = wire.decode_result(self._means.codec, done.result)
        except BadMessage as problem:
            return f"what is stored under its id cannot be read: {problem}"
        if envelope.stream != pending.stream or envelope.answers != wire.intent_digest(pending):
            return f"the outcome under its id is that of another intent, on {envelope.stream}"
        return ""

    async def _publish(self, entry: Entry, stream: str, value: bytes) -> bool:
        """At least once. A crash behind it has the intent delivered again, and the same published again."""
        m = self._means
        try:
            try:
                await m.results.publish(wire.result_message(m.codec, stream, value))
            except MessageTooLarge:
                told = wire.too_large_result(m.codec, value, await m.results.most_bytes(), m.keys)
                await m.results.publish(wire.result_message(m.codec, stream, told))
        except BusUnavailable:
            m.wait(entry, RESULTS, longest=_LONGEST)
            return False
        except MessageTooLarge as problem:  # not even that: it is told where somebody looks, and its key goes on
            return await self.set_aside(entry, type(problem).__name__, str(problem))
        m.boundary("published", stream)
        return True

    async def set_aside(self, entry: Entry, kind: str, why: str) -> bool:
        """Make a dead letter of it; whether it is over. While its sink is down it waits, and nothing is acknowledged."""
        m = self._means
        try:
            await set_aside(m.dead_letters, entry.message, kind, why, m.clock())
        except BusUnavailable:
            m.wait(entry, DEAD_LETTERS, longest=_LONGEST)
            return False
        m.counts.dead_letters += 1
        m.watching.set_aside(entry.message.partition, entry.message.offset, kind, why)
        m.boundary("dead_lettered", entry.message.key or "")
        return True
