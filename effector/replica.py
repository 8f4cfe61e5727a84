"""One replica: ``eventlog effector`` on a log or on a bus, from its configuration to its exit code.

It loads tools and nothing that decides: no worker, no turn, no model client, no bus that it was not told of.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, NoReturn

import attrs
import click

from ..agents.signing import KeyRing, KeysRefused, verifier
from ..agents.tuning import tune_for_serving
from ..eventlog.console import COULD_NOT, INTERRUPTED, OK, CouldNot
from ..eventlog.errors import InvalidUrl, LogError
from ..eventlog.opening import open_log
from ..eventlog.owners import this_process
from .grounds import QUIET, Engine, Ground, Making
from .health import HealthServer
from .logs import LogLines, fault, logger
from .on_log import OnLog
from .pool import Pool
from .rights import refuse_without_rights
from .running import ENDED, EndedFromInside, run
from .settings import Settings, SettingsRefused, named
from .side_parts import SideParts
from .supervision import LOOP, Supervisor, Watchdog
from .tool_registry import Registry, load_registry
from .watching import Everyone, Watching

if TYPE_CHECKING:
    from .bus.opening import MakeBus

_THREADS: Final = 32
_PREFIX: Final = "intentlog-log"
_LAST: Final = 3.0
"""Seconds that threads and futures may take to end at last."""


def prepare(given: Mapping[str, str | int | None], buses: Mapping[str, MakeBus] | None = None) -> tuple[Settings, Registry, Ground]:
    """Everything that may be wrong with a configuration, looked at before anything runs. ``buses``: see ``bus.opening``.

    Raises ``SettingsRefused`` with all of it, and ``LogError`` or ``CouldNot`` when only the log, or the dedup store, cannot be opened now.
    """
    settings, problems = Settings.read(given)
    registry = None
    if settings.registry:
        try:
            registry = load_registry(settings.registry, timedelta(milliseconds=settings.tool_timeout_ms))
            problems += settings.tool_problems({each.name: each.timeout for each in registry.tools})
        except Exception as problem:  # a module of the user's may raise anything
            said = problem.format_message() if isinstance(problem, click.ClickException) else f"{type(problem).__name__}: {problem}"
            problems.append(f"{named('registry')}: {said}")
    problems += _not_there(settings)
    ground = _opened(settings, buses, problems)
    if problems or registry is None or ground is None:
        if ground is not None:
            ground.close()
        raise SettingsRefused(problems)
    return settings, registry, ground


def _opened(settings: Settings, buses: Mapping[str, MakeBus] | None, problems: list[str]) -> Ground | None:
    """What the replica stands on; ``None`` when something is wrong, which is in ``problems``."""
    if settings.from_log:
        if settings.log_url.startswith("memory:"):
            return None
        try:
            log = open_log(settings.log_url, create=False)
            try:
                refuse_without_rights(log, settings.log_url)
            except BaseException:
                log.close()
                raise
            return OnLog(log)
        except InvalidUrl as problem:
            problems.append(f"{named('log')}: {problem}")
        except LogError:
            if not problems:
                raise
        return None
    from .bus.on_bus import open_on_bus
    from .dedup.errors import StoreUnavailable

    try:
        return open_on_bus(settings, buses, problems)
    except StoreUnavailable as problem:
        raise CouldNot(str(problem)) from problem


def _not_there(settings: Settings) -> Iterator[str]:
    """What is asked for and not there."""
    if settings.signing_keys:
        try:
            KeyRing.read(settings.signing_keys)
        except KeysRefused as problem:
            yield f"{named('signing_keys')}: {problem}"
    if settings.traces == "otlp":
        try:
            import opentelemetry.exporter.otlp.proto.http
            import opentelemetry.sdk.trace  # noqa: F401
        except ImportError:
            yield f"{named('traces')}: OpenTelemetry is not installed. pip install 'intentlog[otel]'"


def serve(
    given: Mapping[str, str | int | None],
    *,
    until_idle: bool = False,
    boundary: Callable[[str, str], None] | None = None,
    buses: Mapping[str, MakeBus] | None = None,
) -> int:
    """Serve until a signal, or until every intent has its outcome or is left alone; the exit code.

    ``boundary`` hears of what is reached (``crash``). ``buses``: makers of a ``bus.Bus`` by the scheme of its URLs, beside those that
    are installed.
    """
    settings, registry, ground = prepare(given, buses)
    tune_for_serving()
    replica = Replica(settings, registry, ground, until_idle, boundary or (lambda name, stream: None))
    try:
        with replica.heeding_signals():
            run(replica.serve())
    except EndedFromInside:
        replica.fall()
    finally:
        ground.close()
    return replica.exit_code


@attrs.define(eq=False)
class Replica:
    """What one process serves with. Everything is handed in."""

    settings: Settings
    registry: Registry
    ground: Ground
    until_idle: bool = False
    boundary: Callable[[str, str], None] = lambda name, stream: None
    #: The first signal that asked for the end.
    signal: int = attrs.field(default=0, init=False)
    #: Streams that were left alone, when it was over.
    blocked: int = attrs.field(default=0, init=False)
    #: Users' code ended it.
    fell: bool = attrs.field(default=False, init=False)
    lines: Any = attrs.field(init=False)
    owner: str = attrs.field(init=False)
    _stop: Callable[[], None] | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.owner = this_process(self.settings.owner)
        self.lines = logger(self.settings.log_level, replica=self.settings.owner or str(os.getpid()))

    @property
    def exit_code(self) -> int:
        """What the process ends with; with ``until_idle``, 3 when streams were left alone for an event that cannot be read."""
        if self.fell:
            return COULD_NOT
        if self.signal == signal.SIGINT:
            return INTERRUPTED
        return COULD_NOT if self.until_idle and self.blocked else OK

    def fall(self) -> None:
        """Users' code ended it; told once, whatever is cancelled beside."""
        if not self.fell:
            self.fell = True
            self.lines.error("ended from inside", text=ENDED)

    async def serve(self) -> None:
        """Serve, and leave nothing running that would keep the process from ending."""
        loop = asyncio.get_running_loop()
        pool = Pool(_THREADS, _PREFIX)
        loop.set_default_executor(pool)
        supervisor = Supervisor(self.lines, self._quiet())
        metrics, spans = self._metrics(), self._spans()
        watching: list[Watching] = [
            supervisor,
            log_lines := LogLines(self.lines, self.settings.log_level),
            *(each for each in (metrics, spans and spans[0]) if each),
        ]
        engine = self._engine(Everyone(watching), log_lines, metrics)
        health = HealthServer(lambda: supervisor.report() | engine.report(), on_error=log_lines.trouble)
        if metrics is not None:
            metrics.in_flight.set_function(lambda: engine.active)
            health.metrics = lambda: metrics.exposed(supervisor)
        side = SideParts(engine, supervisor, health)
        url = self._begin_health(health)
        side.address = (self.settings.health_host, int(url.rpartition(":")[2]))
        watchdog = Watchdog(supervisor, loop, self.lines)
        watchdog.start()
        stop = self._stop = functools.partial(self._stopping, loop, supervisor, engine)
        self.lines.info("serving", tools=sorted(each.name for each in self.registry.tools), **self.ground.told(), health=url, owner=self.owner)
        beside = [asyncio.create_task(supervisor.keep(name, part)) for name, part in side.parts().items() if name in supervisor.parts]
        if self.until_idle:
            beside.append(asyncio.create_task(supervisor.keep("idle", functools.partial(side.idle, stop))))
        if self.signal:  # it came before there was anything to stop
            stop()
        try:
            await engine.run(supervisor.keep)
        except asyncio.CancelledError:  # nobody else cancels this task
            self.fall()
        finally:
            supervisor.stop()
            watchdog.stop()
            health.stop()
            self.blocked = engine.report().get("blocked_streams", 0)
            try:
                await self._end(beside, engine, pool, spans and spans[1])
            except asyncio.CancelledError:  # again: there is nothing left to be orderly with
                self.fall()
                self._leave()

    def _engine(self, watching: Watching, log_lines: LogLines, metrics: Any) -> Engine:
        keys = KeyRing.read(self.settings.signing_keys) if self.settings.signing_keys else None
        return self.ground.engine(
            Making(
                settings=self.settings,
                registry=self.registry,
                owner=self.owner,
                watching=watching,
                on_error=log_lines.trouble,
                boundary=self.boundary,
                verifier=verifier(self.settings.verify_intents, keys),
                keys=keys,
                lines=self.lines,
                metrics=metrics,
            )
        )

    async def _end(self, beside: list[asyncio.Task[None]], engine: Engine, pool: ThreadPoolExecutor, provider: Any) -> None:
        """Let everything end; whatever is deaf, or waits for a store that does not answer, ends with the process."""
        loop = asyncio.get_running_loop()
        for each in beside:
            each.cancel()
        current = asyncio.current_task()
        rest = [each for each in asyncio.all_tasks() if each is not current]
        for each in rest:
            each.cancel()
        deaf = (await asyncio.wait(rest, timeout=_LAST))[1] if rest else set()
        ending = threading.Thread(target=_closed, args=(engine, pool, provider), daemon=True)
        ending.start()
        deadline = loop.time() + _LAST
        while ending.is_alive() and loop.time() < deadline:  # noqa: ASYNC110 - threads end without a word
            await asyncio.sleep(0.01)
        self.lines.info("stopped", signal=self.signal, clean=not deaf and not ending.is_alive() and not self.fell)
        if deaf or ending.is_alive():
            self._leave()

    def _leave(self) -> NoReturn:
        """End the process here and now, whatever still runs in it."""
        for each in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):  # nobody takes what is left; ending is what matters
                each.flush()
        os._exit(self.exit_code)

    def _quiet(self) -> dict[str, float]:
        quiet = self.ground.quiet(self.settings) | {"health": 30.0, LOOP: 10.0}
        return quiet | {"idle": QUIET} if self.until_idle else quiet

    def _metrics(self) -> Any:
        try:
            from .metrics import Metrics
        except ImportError as problem:
            self.lines.warning("no metrics", **fault(problem), install="pip install 'intentlog[metrics]'")
            return None
        return Metrics((each.name for each in self.registry.tools), self.ground.clock)

    def _spans(self) -> Any:
        if self.settings.traces == "off":
            return None
        from .tracing import Spans, otlp_provider

        provider = otlp_provider(self.owner)
        return Spans(provider), provider

    def _begin_health(self, health: HealthServer) -> str:
        host, port = self.settings.health_host, self.settings.health_port
        try:
            return health.start(host, port)
        except OSError as problem:
            raise CouldNot(
                f"health cannot be served at {host}:{port}: {problem.strerror or problem}. Give another --health-port, or 0 for any free one."
            ) from problem

    def _stopping(self, loop: asyncio.AbstractEventLoop, supervisor: Supervisor, engine: Engine) -> None:
        """From anywhere, a signal handler included."""

        def stop() -> None:
            self.lines.info("stopping", signal=self.signal, keys_in_flight=engine.active, calls=engine.calling)
            supervisor.stop()
            engine.stop()

        loop.call_soon_threadsafe(stop)

    @contextmanager
    def heeding_signals(self) -> Iterator[None]:
        """SIGTERM and SIGINT end it in an orderly way; a second one at once. Not by the loop: a tool may hold that up."""
        before = {number: signal.signal(number, self._heed) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _heed(self, number: int, _: FrameType | None) -> None:
        if self.signal:
            os._exit(128 + number)
        self.signal = number
        _write_now(number, self.settings.owner or str(os.getpid()))
        if self._stop is not None:
            self._stop()


def _write_now(number: int, replica: str) -> None:
    """A line out of a signal handler: past all buffers, which may be in use right now."""
    line = {"replica": replica, "signal": number, "text": "running tools may end; once more stops at once", "event": "signal", "level": "info"}
    line["timestamp"] = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    try:
        os.write(2, f"{json.dumps(line)}\n".encode())
    except OSError:  # nobody reads it; stopping is what matters
        pass


def _closed(engine: Engine, pool: ThreadPoolExecutor, provider: Any) -> None:
    if provider is not None:
        provider.shutdown()
    engine.close()
    pool.shutdown(wait=True, cancel_futures=True)
