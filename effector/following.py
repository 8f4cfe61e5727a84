"""The outbox of one log, kept up with: by the log's tail, and by the streams themselves where the tail may not show yet what was done."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Final

from ..agents.leasing import in_thread
from ..agents.queues import EFFECTS
from ..eventlog.clock import Micros
from ..eventlog.codec import Codec
from ..eventlog.errors import LogError, Undecodable
from ..eventlog.events import StoredEvent
from ..eventlog.log import EventLog
from .ahead import Ahead, ahead_of_tail
from .outbox import TYPES, Outbox, Pending
from .tailing import take_in

_HELPING: Final = 1000
"""Events read from the tail at once."""


class Following:
    """Reads; belongs to one event loop. ``checkpoint``: the name under which is remembered how far everything is settled."""

    def __init__(self, codec: Codec, log: EventLog, categories: tuple[str, ...], checkpoint: str) -> None:
        self._codec, self._log, self._categories, self._name = codec, log, categories, checkpoint
        self._draining = asyncio.Lock()
        #: ``None`` until the tail was first read.
        self.outbox: Outbox | None = None
        #: The checkpoint as it is stored.
        self.saved = 0

    async def drain(self) -> Outbox:
        """Take in everything the log has now."""
        async with self._draining:
            if self.outbox is None:
                after = await in_thread(lambda: self._log.checkpoints.load(self._name))
                self.outbox, self.saved = Outbox(self._codec, after), after
            await take_in(self._log, self.outbox, self.outbox.read, TYPES, self._categories, _HELPING)
            return self.outbox

    async def look_ahead(self, streams: Iterable[str]) -> None:
        """What was done to the intents of these streams that the tail may not show yet (see ``Outbox.learn``), in one visit."""
        outbox = self.outbox
        assert outbox is not None
        after = outbox.seen(streams)
        self._learn(outbox, await in_thread(lambda: ahead_of_tail(self._log, outbox, after)))

    async def over_before(self, pending: Pending) -> bool:
        """Whether the stream holds an outcome of this intent although it was staged after that: somebody has written its staging again.

        It is taken as settled then, and nothing is recorded of it (S-6.2). Asked when an attempt was refused, which is rare.
        """

        def find() -> bool:
            told = (self._fact(each) for each in self._log.read(pending.stream) if each.type == "intent.settled")
            return any(fact is not None and fact.intent_id == pending.intent.intent_id for fact in told)

        if not await in_thread(find):
            return False
        if self.outbox is not None:
            self.outbox.settled(pending.stream, pending.intent.intent_id)
        return True

    def _fact(self, event: StoredEvent) -> Any:
        """What the event says, or ``None`` when it cannot be read: whoever tells of its stream says so."""
        try:
            return self._codec.decode_stored(event)
        except Undecodable:
            return None

    async def acquire(self, streams: Sequence[str], owner: str, now: Micros, until: Micros) -> tuple[dict[str, int], LogError | None]:
        """Lease these streams, and look ahead on those that were free, in one visit: their tokens by name.

        A lease that was taken stands even when looking failed then; why it failed is given, and what the last owner did is
        not known. A stream tells all that was done to its intents, whatever the tail shows, so the tail need not be read again.
        """
        outbox = self.outbox
        assert outbox is not None
        after = outbox.seen(streams)

        def visit() -> tuple[dict[str, int], Ahead, LogError | None]:
            tokens = self._log.schedule.acquire(EFFECTS, streams, owner, now=now, until=until)
            try:
                return tokens, ahead_of_tail(self._log, outbox, {stream: seen for stream, seen in after.items() if stream in tokens}), None
            except LogError as problem:
                return tokens, {}, problem

        tokens, told, problem = await in_thread(visit)
        self._learn(outbox, told)
        return tokens, problem

    async def save(self, position: int) -> None:
        """Remember that everything up to ``position`` is settled."""
        await in_thread(lambda: self._log.checkpoints.save(self._name, position))
        self.saved = position

    @staticmethod
    def _learn(outbox: Outbox, told: Ahead) -> None:
        for stream, events in told.items():
            outbox.learn(stream, events)
