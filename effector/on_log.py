"""A replica on a log: the tail brings intents, leases and event ids decide, outcomes go to the streams."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs

from ..agents.committer import Committer
from ..eventlog.clock import MILLISECOND, SECOND, Clock
from ..eventlog.console import masked
from ..eventlog.log import EventLog
from .effector import Effector
from .grounds import QUIET, Making
from .keeping import APPENDS, PARTS, Keep, Part
from .measures import EffectorSettings
from .neighbours import evict_dead, is_local
from .settings import Settings

if TYPE_CHECKING:
    from .approvals.publishing import Publisher

_WAIT: Final = 0.5
"""Seconds that the log is asked for news at once."""


@attrs.frozen(eq=False)
class OnLog:
    """A log that is open."""

    log: EventLog

    @property
    def clock(self) -> Clock:
        return self.log.clock

    def told(self) -> dict[str, Any]:
        return {"log": masked(self.log.url)}

    def quiet(self, settings: Settings) -> dict[str, float]:
        quiet = dict.fromkeys((*PARTS, APPENDS, "news", "horizon"), QUIET + settings.poll_ms / 1000)
        quiet["renewals"] = QUIET + settings.lease_ms / 3000
        if is_local(self.log):
            quiet["neighbours"] = QUIET
        if not hasattr(self.log, "horizon"):
            del quiet["horizon"]
        return quiet | {"approvals": QUIET} if settings.to_webhook else quiet

    def engine(self, making: Making) -> LogEngine:
        committer = Committer(self.log)
        s = making.settings
        effector = Effector(
            making.registry.codec,
            making.registry.tools,
            self.log,
            owner=making.owner,
            committer=committer,
            categories=making.registry.categories,
            settings=EffectorSettings(
                concurrency=s.max_concurrent_partitions,
                lease=s.lease_ms * MILLISECOND,
                poll=s.poll_ms / 1000,
                grace=s.grace_ms / 1000,
                hold_unknown=s.unknown_tools == "hold",
            ),
            boundary=making.boundary,
            on_error=making.on_error,
            watching=making.watching,
            verifier=making.verifier,
        )
        return LogEngine(self.log, effector, committer, making, _publisher(self.log, making))

    def close(self) -> None:
        self.log.close()


@attrs.define(eq=False)
class LogEngine:
    """An effector on a log, and what runs beside it. Every part beside it is endless; the supervisor begins it again when it fails."""

    log: EventLog
    effector: Effector
    committer: Committer
    making: Making
    #: Brings questions to a surface, if there is one.
    publisher: Publisher | None = None
    #: Who holds the log back, from when that is told until it is over (``eventlog.postgres.watchdog.HorizonHeld``).
    _held: Any = attrs.field(default=None, init=False)
    #: Kept while its part is begun again: what was told before the server went away is to be taken back when it is there again.
    _watchdog: Any = attrs.field(default=None, init=False)

    @property
    def active(self) -> int:
        return self.effector.active

    @property
    def calling(self) -> int:
        return self.effector.calling

    def report(self) -> dict[str, Any]:
        """What health says of the intents, and of the store: who holds the log back, ``None`` while nobody is known to."""
        held = self._held
        published = self.publisher.report() if self.publisher is not None else {}
        return self.effector.report() | published | {"held_back_by": None if held is None else _holder(held) | {"text": masked(str(held))}}

    def beside(self) -> Mapping[str, Part]:
        parts = {"news": self.news, "neighbours": self.neighbours, "horizon": self.horizon}
        return parts | {"approvals": self.publisher.run} if self.publisher is not None else parts

    async def run(self, keep: Keep) -> None:
        await self.effector.run(keep)

    def stop(self) -> None:
        self.effector.stop()

    async def idle(self) -> bool:
        return await self.effector.idle() and (self.publisher is None or await self.publisher.idle())

    def close(self) -> None:
        self.committer.close()

    async def news(self) -> None:
        """Wake the effector when something is appended, by whomever."""
        in_thread = asyncio.get_running_loop().run_in_executor
        after = await in_thread(None, self.log.last_position)
        while True:
            if await in_thread(None, self.log.wait, after, _WAIT):
                after = await in_thread(None, self.log.last_position)
                self.effector.wake()
            self.making.watching.beat("news")

    async def neighbours(self) -> None:
        """End the leases of processes that died on this machine."""
        await self._every(1.0, "neighbours", functools.partial(evict_dead, self.log))

    async def horizon(self) -> None:
        """Who keeps new events from being shown, and for how long."""
        await self._every(1.0, "horizon", self._ask_horizon)

    def _ask_horizon(self) -> None:
        held = self._horizon_watchdog().look()
        if self._held is not None:
            self._held = held
        if self.making.metrics is not None:
            self.making.metrics.horizon(0.0 if held is None else max(0.0, (self.log.clock() - held.since) / SECOND))

    def _horizon_watchdog(self) -> Any:
        if self._watchdog is None:
            from ..eventlog.postgres.watchdog import Watchdog  # only a log on PostgreSQL has a horizon, and its driver installed

            self._watchdog = Watchdog(self.log.horizon, self._tell_held, self._tell_freed)  # type: ignore[attr-defined]
        return self._watchdog

    def _tell_held(self, held: Any) -> None:
        self._held = held
        self.making.lines.warning("log held back", **_holder(held), text=str(held))

    def _tell_freed(self, held: Any) -> None:
        self._held = None
        self.making.lines.info("log no longer held back", **_holder(held))

    async def _every(self, seconds: float, name: str, call: Callable[[], None]) -> None:
        while True:
            await asyncio.get_running_loop().run_in_executor(None, call)
            self.making.watching.beat(name)
            await asyncio.sleep(seconds)


def _publisher(log: EventLog, making: Making) -> Publisher | None:
    if not making.settings.to_webhook or making.keys is None:
        return None
    from .approvals.opening import open_sink
    from .approvals.publishing import Publisher

    sink = open_sink(making.settings.approvals_to, making.keys, log.clock)
    return Publisher(
        log,
        making.registry.codec,
        sink,
        owner=making.owner,
        categories=making.registry.categories,
        watching=making.watching,
        lines=making.lines,
        boundary=making.boundary,
        poll=making.settings.poll_ms / 1000,
    )


def _holder(held: Any) -> dict[str, Any]:
    """Who it is, as a line and health hold it; what is not known is left out."""
    said = {name: getattr(held, name) for name in ("pid", "user", "application", "database", "state", "query", "prepared", "events")}
    return {name: masked(value) if isinstance(value, str) else value for name, value in said.items() if value not in (None, "")}
