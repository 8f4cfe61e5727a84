"""One process of a run: the real worker and the real effector in an event loop of their own, until all is quiet or it dies.

To die is to lose everything but the log: from the boundary on, this life's connection refuses every read and write,
whatever thread it comes from; what it held in memory is dropped with its loop, and its leases are given up.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any, Final, NoReturn

import attrs

from ...eventlog.errors import LogUnavailable
from ...eventlog.log import AppendRequest, EventLog
from ..app import App
from ..appends import TURNS
from ..committer import Committer
from ..errors import HistoryWarning
from ..firing import CRON, Schedules
from ..requests import NeedRead
from ..turns import Turns
from ..worker import Worker, WorkerSettings
from .clock import VirtualClock
from .hands import Hands
from .turning import without_waiting

_LOOK: Final = 0.001
"""Seconds between looks at whether all is quiet."""
_FACETS: Final = frozenset({"snapshots", "checkpoints", "schedule", "views"})


class Died(BaseException):
    """Raised at the boundary at which a life ends."""


class Connection:
    """The log as one life sees it: cut off for good when the life ends."""

    def __init__(self, target: Any, life: Life) -> None:
        self._target, self._life = target, life

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, name)
        if name in _FACETS:
            return Connection(value, self._life)
        if name in {"clock", "url"} or not callable(value):
            return value

        def call(*args: Any, **named: Any) -> Any:
            if self._life.dead:
                raise LogUnavailable("the process has died; its connection is gone")
            return value(*args, **named)

        return call


class _Reads(Turns):
    """Turns whose read-only tools have stand-ins, and whose reads are tried again at once."""

    stand_ins: Mapping[str, Callable[..., Any]]

    def _read(self, claim: Any, state: Any, ctx: Any, need: NeedRead) -> Any:
        stand_in = self.stand_ins.get(need.tool)
        if stand_in is not None:
            call: Any = need.call
            need = attrs.evolve(need, call=lambda: stand_in(**call.keywords), is_async=False)
        return (yield from super()._read(claim, state, ctx, without_waiting(need)))


@attrs.define(eq=False)
class Life:
    """One worker and one effector."""

    app: App
    log: EventLog
    clock: VirtualClock
    hands: Hands
    #: Called at every boundary; ``True``: die here.
    fatal: Callable[[str], bool]
    owner: str
    #: Seconds of real time that may pass without anything becoming quiet.
    patience: float
    dead: bool = False
    problems: list[tuple[str, BaseException]] = attrs.field(factory=list)
    warned: list[str] = attrs.field(factory=list)
    _worker: Worker = attrs.field(init=False)
    _effector: Any = attrs.field(init=False)
    _schedules: Schedules = attrs.field(init=False)

    def live(self, next_moment: Callable[[], int | None]) -> bool:
        """Serve; whenever all is quiet, let the clock jump to ``next_moment()``, until that is ``None``. Whether it died.

        Raises ``AssertionError`` when it does not come to rest, and for what worker or effector could not do.
        """
        try:
            with asyncio.Runner() as runner:
                runner.run(self._serve(next_moment))
        finally:
            # As on one machine, where a supervisor knows that the old process is gone: nobody waits for its leases.
            self.log.schedule.evict(self.owner)
        for warning in self.warned:
            warnings.warn(warning, stacklevel=4)
        if self.problems and not self.dead:
            doing, problem = self.problems[0]
            raise AssertionError(f"{doing}: {type(problem).__name__}: {problem}") from problem
        return self.dead

    def reached(self, name: str, stream: str) -> None:
        """A boundary."""
        if self.dead or self.fatal(name):
            self._die(name)

    def _die(self, name: str) -> NoReturn:
        self.dead = True
        raise Died(name)

    async def _serve(self, next_moment: Callable[[], int | None]) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._unhandled)
        loop.set_default_executor(ThreadPoolExecutor(16, thread_name_prefix=self.owner))
        connection: Any = Connection(self.log, self)
        committer = Committer(connection, after_commit=self._committed)
        self._worker = self._make_worker(connection, committer)
        self._effector = self._make_effector(connection, committer)
        self._schedules = Schedules(self.app, connection, self.owner, boundary=self.reached)
        if self._schedules:
            await loop.run_in_executor(None, self._schedules.plan)
        running = [asyncio.create_task(self._worker.run()), asyncio.create_task(self._effector.run())]
        rested = False
        try:
            while rested := await self._quiet(running):
                moment = next_moment()
                if moment is None:
                    break
                self.clock.jump(moment)
                if self._schedules:  # the worker's own look at them is up to a second of real time away
                    while await loop.run_in_executor(None, self._schedules.fire, self._failed):
                        pass
                self._worker.wake()
        finally:
            if rested:
                self._worker.stop()
                self._effector.stop()
                await asyncio.wait(running, timeout=self.patience)
            while left := [each for each in running if not each.done()]:
                for each in left:  # again and again: a wait that ends at the same moment swallows a cancellation
                    each.cancel()
                await asyncio.wait(left, timeout=0.05)
            ended = await asyncio.gather(*running, return_exceptions=True)
            committer.close()
            self.problems += [("serving", each) for each in ended if isinstance(each, Exception)]

    def _make_worker(self, connection: Any, committer: Committer) -> Worker:
        settings = WorkerSettings(poll=0.01)
        worker = Worker(self.app, connection, owner=self.owner, committer=committer, settings=settings, boundary=self.reached, on_error=self._failed)
        made = worker._turns
        worker._turns = turns = _Reads(**{field.name: getattr(made, field.name) for field in attrs.fields(Turns)})
        turns.stand_ins = self.hands.reads
        return worker

    def _make_effector(self, connection: Any, committer: Committer) -> Any:
        # By name and not before it is asked for, as in `replaying`: a test kit stands outside of the arrows between the rooms.
        room: Any = import_module("...effector", __package__)
        settings = room.EffectorSettings(poll=0.01, grace=self.patience)
        return room.Effector(
            self.app.codec, self.hands.tools, connection, owner=self.owner, committer=committer, settings=settings, boundary=self.reached, on_error=self._failed
        )

    async def _quiet(self, running: Sequence[asyncio.Task[None]]) -> bool:
        """Wait until nothing is due, in flight or without an outcome at the clock's moment; ``False`` when it died or failed meanwhile."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self.patience
        calm = 0
        while calm < 2:  # twice in a row, because an outcome wakes a turn and a turn may stage the next effect
            await asyncio.sleep(_LOOK)
            if self.dead or self.problems or any(each.done() for each in running):
                return False
            if loop.time() > until:
                raise AssertionError(self._restless())
            try:
                due = sum(self.log.schedule.due(queue, now=self.clock()) for queue in (TURNS, CRON))
                rests = self._worker.active == 0 and due == 0 and await self._effector.idle()
            except LogUnavailable:  # it died while we looked
                return False
            calm = calm + 1 if rests else 0
        return not self.dead

    def _restless(self) -> str:
        due = self.log.schedule.due(TURNS, now=self.clock())
        return (
            f"not at rest after {self.patience:g} s of real time (the virtual clock shows {self.clock.now.isoformat()}): "
            f"{self._worker.active} turns under way, {due} keys due, {self._effector.open} effects without an outcome. "
            "Does a tool wait for real, or was something sent to an agent that this app does not have?"
        )

    def _committed(self, requests: Sequence[AppendRequest]) -> None:
        for request in requests:
            for part in request.parts:
                if any(wake.queue == TURNS and wake.at is not None for wake in part.wakes):
                    self._worker.wake()
                if any(event.type == "intent.staged" for event in part.events):
                    self._effector.wake()

    def _failed(self, doing: str, problem: BaseException) -> None:
        if isinstance(problem, HistoryWarning):
            self.warned.append(str(problem))
        elif not self.dead:
            self.problems.append((doing, problem))

    def _unhandled(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        problem = context.get("exception")
        if not self.dead and not isinstance(problem, Died):
            self.problems.append((str(context.get("message", "in the event loop")), problem or RuntimeError(str(context))))
