"""The keys that an effector holds, and looking after them while their lanes run."""

from __future__ import annotations

import asyncio
from typing import Final

from ..agents.leasing import beat, between_beats
from ..eventlog.clock import Micros
from ..eventlog.log import Claim, EventLog
from .carrying import Carrying
from .choosing import Choosing
from .keeping import APPENDS
from .watching import Watching

_DEAF: Final = 5.0
"""Seconds past its timeout after which a tool counts as deaf to its cancellation."""
_OVERSLEPT: Final = 2.0
"""Seconds between two looks at the lanes, half a second apart, from which on it is this process that stood still."""


class Lanes:
    """Those of one effector. Belongs to its event loop; ``lease`` in µs."""

    def __init__(self, log: EventLog, lease: Micros, choosing: Choosing, carrying: Carrying, watching: Watching) -> None:
        self._log, self._lease, self._choosing, self._carrying, self._watching = log, lease, choosing, carrying, watching
        #: By key: the claim and its lane.
        self.running: dict[str, tuple[Claim, asyncio.Task[None]]] = {}
        #: Claims whose lanes have not begun.
        self.fresh: dict[str, Claim] = {}

    async def renew(self) -> None:
        """The part that keeps the leases; a lane whose lease somebody else has is ended."""
        while True:
            claims = [*self.fresh.values(), *(claim for claim, _ in self.running.values())]
            for claim in await beat(self._log, claims, self._lease):
                if self.fresh.get(claim.name) == claim:
                    del self.fresh[claim.name]
                    self._choosing.give_back([claim.name])
                entry = self.running.get(claim.name)
                if entry is not None and entry[0].token == claim.token and claim not in self._carrying.parting:
                    self._carrying.lose(claim, self._carrying.calls[claim][0] if claim in self._carrying.calls else None)
                    entry[1].cancel()
            self._watching.beat("renewals")
            await asyncio.sleep(between_beats(self._lease))

    async def watch(self) -> None:
        """Leave keys whose tool ignores its timeout to their leases: renewed for ever, nobody would ever hear of them again."""
        looked, patient = asyncio.get_running_loop().time(), 0.0
        while True:
            now = asyncio.get_running_loop().time()
            if now > looked + _OVERSLEPT:  # this process itself stood still, and no tool could hear of its timeout meanwhile
                patient = now + _DEAF
            looked = now
            for claim, (pending, deadline) in list(self._carrying.calls.items()):
                entry = self.running.get(claim.name)
                if now > max(deadline + _DEAF, patient) and entry is not None and entry[0] == claim:
                    del self.running[claim.name]
                    entry[1].cancel()
                    self._watching.abandoned(pending, now - deadline)
                    text = f"{pending.intent.tool} is deaf to its cancellation"
                    self._carrying.trouble(pending, f"carrying out intents of {claim.name}", TimeoutError(text))
            if not self._carrying.appending:
                self._watching.beat(APPENDS)
            self._watching.beat("lanes")
            await asyncio.sleep(0.5)
