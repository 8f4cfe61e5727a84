"""The keys that an effector holds, and looking after them while their lanes run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from ..agents.leasing import between_beats
from ..eventlog.clock import Micros
from ..eventlog.log import Claim, EventLog
from .carrying import Carrying
from .choosing import Choosing
from .keeping import APPENDS
from .leases import Leases
from .renewing import DEAF, Heartbeat
from .watching import Watching

_DEAF: Final = DEAF
_OVERSLEPT: Final = 2.0
"""Seconds between two looks at the lanes, half a second apart, from which on it is this process that stood still."""


class Lanes:
    """Those of one effector. Belongs to its event loop; ``lease`` in µs."""

    def __init__(self, log: EventLog, lease: Micros, leases: Leases[Claim], choosing: Choosing, carrying: Carrying, watching: Watching) -> None:
        self._log, self._lease, self._leases = log, lease, leases
        self._choosing, self._carrying, self._watching = choosing, carrying, watching
        self._heartbeat = Heartbeat(between_beats(lease), self._beat, self._told)
        #: By key: the claim and its lane.
        self.running: dict[str, tuple[Claim, asyncio.Task[None]]] = {}
        #: Claims whose lanes have not begun.
        self.fresh: dict[str, Claim] = {}

    async def renew(self) -> None:
        """The part that keeps the leases; a lane whose lease somebody else has is ended."""
        await self._heartbeat.run()

    def _beat(self) -> Sequence[Claim]:
        """Renew what is held, in the heartbeat's thread: those that are somebody else's now. A dict is copied in one step."""
        claims = [*self.fresh.copy().values(), *(claim for claim, _ in self.running.copy().values())]
        deadlines = {claim: deadline for claim, (_, deadline) in self._carrying.calls.copy().items()}
        claims = self._heartbeat.due(claims, deadlines, _DEAF)
        if not claims:
            return ()
        asked = self._leases.now()
        lost = self._log.schedule.renew(claims, until=self._log.clock() + self._lease)
        gone = set(lost)
        self._leases.renewed((claim for claim in claims if claim not in gone), asked)
        return lost

    def _told(self, lost: Sequence[Claim]) -> None:
        for claim in lost:
            if self.fresh.get(claim.name) == claim:
                del self.fresh[claim.name]
                self._leases.over(claim)
                self._choosing.give_back([claim.name])
            entry = self.running.get(claim.name)
            if entry is not None and entry[0].token == claim.token and claim not in self._carrying.parting:
                self._carrying.lose(claim, self._carrying.calls[claim][0] if claim in self._carrying.calls else None)
                entry[1].cancel()
        self._watching.beat("renewals")

    async def watch(self) -> None:
        """Leave keys whose tool ignores its timeout to their leases: renewed for ever, nobody would ever hear of them again."""
        looked, patient = asyncio.get_running_loop().time(), 0.0
        while True:
            now = asyncio.get_running_loop().time()
            if now > looked + _OVERSLEPT:  # this process itself stood still, and no tool could hear of its timeout meanwhile
                patient = now + _DEAF
            looked = now
            for claim, (pending, deadline) in list(self._carrying.calls.items()):
                if claim in self._carrying.asking:
                    continue
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
