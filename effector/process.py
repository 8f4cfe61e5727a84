"""Worker and effector in one process on one log: what ``eventlog run`` runs.

They share the batcher, so a turn's append, an attempt and a settlement may ride in one commit, and each is woken by the
commits it cares about. Everything is handed in; nothing here reads flags or the environment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from ..agents.app import App
from ..agents.appends import TURNS
from ..agents.committer import Committer
from ..agents.errors import InputRefused
from ..agents.sending import Receipt, deliver
from ..agents.signing import KeyRing, Verifier
from ..agents.vouching import OutcomeVerifier
from ..agents.worker import Worker, WorkerSettings
from ..eventlog.errors import LogUnavailable
from ..eventlog.events import NewEvent
from ..eventlog.log import AppendRequest, EventLog
from .effector import Effector
from .keeping import pause
from .measures import EffectorSettings
from .neighbours import evict_dead
from .outage import Outage
from .pool import Pool

_LOOK: Final = 1.0
"""Seconds between two looks at what others do: who died, and whether the log takes what they append."""


@attrs.frozen
class Intake:
    """One input on its way in: where it goes, the staged event, its id."""

    stream: str
    event: NewEvent
    input_id: str


@attrs.define
class Progress:
    """What a run has done so far."""

    offered: int = 0
    accepted: int = 0
    duplicates: int = 0
    refused: list[str] = attrs.field(factory=list)
    turns: int = 0
    settled: int = 0
    open_intents: int = 0
    active: int = 0


@attrs.define(eq=False)
class Process:
    """One process serving one log; ``worker`` or ``effector`` may be left out."""

    app: App
    log: EventLog
    owner: str
    worker_settings: WorkerSettings = attrs.field(factory=WorkerSettings)
    effector_settings: EffectorSettings = attrs.field(factory=EffectorSettings)
    boundary: Callable[[str, str], None] = lambda name, stream: None
    on_error: Callable[[str, BaseException], None] = lambda doing, problem: None
    with_worker: bool = True
    with_effector: bool = True
    outage: Outage = attrs.field(factory=Outage)
    #: Signs what the worker stages.
    keys: KeyRing | None = None
    verifier: Verifier | None = None
    #: How the worker looks at outcomes.
    outcomes: OutcomeVerifier | None = None
    progress: Progress = attrs.field(factory=Progress)
    _stop: asyncio.Event | None = None
    _worker: Worker = attrs.field(init=False)
    _effector: Effector = attrs.field(init=False)

    @property
    def left_alone(self) -> Mapping[str, str]:
        """Streams whose intents were left alone because of an event that cannot be read, and why."""
        return self._effector.left_alone if self.with_effector else {}

    def stop(self) -> None:
        """End the run in an orderly way; call it from the event loop."""
        if self._stop is not None:
            self._stop.set()

    async def run(
        self, intake: Callable[[], list[Intake]] | None = None, *, until_idle: bool = False, every: Callable[[Progress], Any] | None = None
    ) -> Progress:
        """Serve until ``stop``, or until the intake is empty and nothing is due, in flight or without outcome.

        ``intake()`` gives the next inputs, none when there are no more; each helping is durable before the next is asked
        for (S-2.1). ``every`` is called about ten times a second. With ``until_idle`` it raises ``LogUnavailable`` when the
        store has taken nothing for longer than ``outage`` bears; without, it waits for as long as it takes.
        """
        self._stop = asyncio.Event()
        # A thread for everything that may block at once: a dozen slow tools must not hold up the renewal of leases (S-6.7).
        threads = self.worker_settings.concurrency + self.effector_settings.concurrency + 8
        asyncio.get_running_loop().set_default_executor(Pool(threads, "eventlog"))
        evict_dead(self.log)
        committer = Committer(self.log, after_commit=self._committed)
        self._worker = Worker(
            self.app,
            self.log,
            owner=self.owner,
            committer=committer,
            settings=self.worker_settings,
            keys=self.keys,
            outcomes=self.outcomes,
            boundary=self.boundary,
            on_error=self._trouble,
        )
        self._effector = Effector(
            self.app.codec,
            self.app.tools,
            self.log,
            owner=self.owner,
            committer=committer,
            categories=self.app.agents,
            settings=self.effector_settings,
            boundary=self.boundary,
            on_error=self._trouble,
            verifier=self.verifier,
        )
        parts = [asyncio.create_task(part.run()) for part, wanted in ((self._worker, self.with_worker), (self._effector, self.with_effector)) if wanted]
        stopping = asyncio.create_task(self._stop.wait())
        feeding = asyncio.create_task(self._feed(intake)) if intake is not None else None
        try:
            await self._until(parts, stopping, feeding, until_idle, every)
        finally:
            self._worker.stop()
            self._effector.stop()
            stopping.cancel()
            if feeding is not None:
                feeding.cancel()
            await asyncio.gather(*parts, stopping, *([feeding] if feeding else []), return_exceptions=True)
            committer.close()
            self._note()
        for part in [*parts, *([feeding] if feeding else [])]:
            if part.done() and not part.cancelled() and (problem := part.exception()) is not None:
                raise problem
        return self.progress

    async def _until(
        self,
        parts: list[asyncio.Task[None]],
        stopping: asyncio.Task[bool],
        feeding: asyncio.Task[None] | None,
        until_idle: bool,
        every: Callable[[Progress], Any] | None,
    ) -> None:
        loop = asyncio.get_running_loop()
        looked = loop.time()
        while True:
            if loop.time() - looked > _LOOK:
                looked = loop.time()
                try:
                    await loop.run_in_executor(None, evict_dead, self.log)
                    if until_idle and self.outage.under_way:
                        self.outage.stands(await loop.run_in_executor(None, self.log.last_position))
                except LogUnavailable as problem:
                    self._trouble("looking after others", problem)
            waited = [*parts, stopping, *([feeding] if feeding and not feeding.done() else [])]
            await asyncio.wait(waited, timeout=0.1 if not until_idle else 0.02, return_when=asyncio.FIRST_COMPLETED)
            self._note()
            if every is not None:
                every(self.progress)
            if stopping.done() or any(part.done() for part in parts):
                return
            if feeding is not None and feeding.done() and feeding.exception() is not None:
                return
            if until_idle and (given_up := self.outage.too_long()) is not None:
                raise given_up
            if until_idle and (feeding is None or feeding.done()) and await self._idle():
                return

    def _trouble(self, doing: str, problem: BaseException) -> None:
        self.outage.note(problem)
        self.on_error(doing, problem)

    async def _idle(self) -> bool:
        """Twice in a row, because an outcome wakes a turn and a turn may stage the next intent."""
        try:
            for _ in range(2):
                if self.with_worker and not await self._worker.idle():
                    return False
                if self.with_effector and not await self._effector.idle():
                    return False
        except LogUnavailable as problem:
            self._trouble("looking whether all is done", problem)
            return False
        return True

    async def _feed(self, intake: Callable[[], list[Intake]]) -> None:
        loop = asyncio.get_running_loop()
        while batch := await loop.run_in_executor(None, intake):
            self.progress.offered += len(batch)
            self.boundary("input.offered", batch[0].stream)
            for receipt in await self._delivered(batch):
                if not isinstance(receipt, Receipt):
                    self.progress.refused.append(str(receipt))
                elif receipt.duplicate:
                    self.progress.duplicates += 1
                else:
                    self.progress.accepted += 1
            self.boundary("input.recorded", batch[0].stream)
            self._worker.wake()

    async def _delivered(self, batch: list[Intake]) -> list[Receipt | InputRefused]:
        """Receipts, once the log has taken the inputs. While it cannot be reached they are sent again, under the same ids."""
        pairs, ids = [(each.stream, each.event) for each in batch], [each.input_id for each in batch]
        failures = 0
        while True:
            try:
                receipts = await asyncio.get_running_loop().run_in_executor(None, deliver, self.log, pairs, ids)
            except LogUnavailable as problem:
                self._trouble("taking inputs in", problem)
                failures += 1
                await asyncio.sleep(pause(failures))
            else:
                self.outage.over()
                return receipts

    def _committed(self, requests: list[AppendRequest]) -> None:
        self.outage.over()
        for request in requests:
            for part in request.parts:
                if any(wake.queue == TURNS and wake.at is not None for wake in part.wakes):
                    self._worker.wake()
                if any(event.type == "intent.staged" for event in part.events):
                    self._effector.wake()

    def _note(self) -> None:
        self.progress.turns = self._worker.turns_run
        self.progress.settled = self._effector.counts.settled
        self.progress.open_intents = self._effector.open
        self.progress.active = self._worker.active + self._effector.active
