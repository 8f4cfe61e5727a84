"""What an effector counts, for Prometheus (the extra ``metrics``). Label values are few: tools it knows, statuses, parts.

Names begin with ``intentlog_effector_``. A tool that is not known here is counted as ``(unknown)``: its name comes from the log,
and whoever writes there must not choose how many series there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from ..eventlog.clock import SECOND, Micros
from .choosing import REASONS
from .outbox import Outbox, Pending
from .phases import Outcome
from .supervision import Supervisor
from .threads import running
from .watching import Watching

_PREFIX: Final = "intentlog_effector_"
_UNKNOWN: Final = "(unknown)"
_SECONDS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3600)


class Metrics(Watching):
    """One replica's numbers, in a registry of their own."""

    def __init__(self, tools: Iterable[str], clock: Callable[[], Micros]) -> None:
        self.registry = CollectorRegistry()
        self._tools, self._clock = frozenset(tools), clock
        self._oldest: int | None = None
        counter, gauge, histogram = self._counter, self._gauge, self._histogram
        self._open = gauge("open_intents", "Intents without an outcome, as far as the tail was read")
        self._age = gauge("oldest_intent_seconds", "Age of the intent that has waited longest for its outcome")
        self._age.set_function(self._age_of_oldest)
        self._position = gauge("tail_position", "Position up to which the log was read")
        self._blocked = gauge("blocked_streams", "Streams left alone because of an event that this code cannot read")
        self.in_flight = gauge("keys_in_flight", "Keys whose intents are being carried out")
        self._threads = gauge("tool_threads", "Threads of blocking tools, those past their timeout included")
        self._threads.set_function(running)
        self._attempts = counter("attempts", "Attempts recorded", "tool")
        self._postponed = counter("postponed", "Attempts that failed in a way that may heal and are made again", "tool")
        self._waiting = gauge("keys_waiting", "Keys kept by an unknown tool that is held, a back-off or a limit of the tool", "reason")
        self._outcomes = counter("outcomes", "Outcomes recorded", "tool", "status")
        self._calls = histogram("tool_seconds", "From the call of a tool to its end", "tool")
        self._waits = histogram("settle_seconds", "From an intent's staging to its outcome", "tool")
        self._lost = counter("leases_lost", "Keys that went to another replica while this one still held them for its own")
        self._refused = counter("settlements_refused", "Outcomes refused: the intent had one, or the lease was lost", "reason")
        self._distrusted = counter("intents_distrusted", "Intents that were not authentic: nothing was done about them")
        self._busy = counter("busy", "Times that a key was found held by another replica")
        self._handed_back = counter("handed_back", "Keys handed back")
        self._abandoned = counter("tools_abandoned", "Calls left alone because the tool was deaf to its timeout", "tool")
        self._failures = counter("failures", "Failures of parts and lanes", "part")
        self._restarts = gauge("part_restarts", "Times a part was begun again", "part")
        self._up = gauge("part_up", "1 while the part does its work", "part")
        self._held = gauge("horizon_held_seconds", "How long the oldest open transaction has kept the log's newest events from being shown (PostgreSQL)")

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(_PREFIX + name, text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(_PREFIX + name, text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, *labels: str) -> Histogram:
        return Histogram(_PREFIX + name, text, labels, registry=self.registry, buckets=_SECONDS)

    def _tool(self, pending: Pending) -> str:
        return pending.intent.tool if pending.intent.tool in self._tools else _UNKNOWN

    def _age_of_oldest(self) -> float:
        oldest = self._oldest
        return max(0.0, (self._clock() - oldest) / SECOND) if oldest is not None else 0.0

    def looked(self, outbox: Outbox) -> None:
        oldest = outbox.oldest
        self._oldest = oldest.staged_at if oldest is not None else None
        self._open.set(len(outbox))
        self._position.set(outbox.cursor)
        self._blocked.set(len(outbox.blocked))

    def failed(self, part: str, problem: BaseException) -> None:
        self._failures.labels(part.partition(" ")[0]).inc()

    def attempted(self, pending: Pending) -> None:
        self._attempts.labels(self._tool(pending)).inc()

    def called(self, pending: Pending, outcome: Outcome, seconds: float) -> None:
        self._calls.labels(self._tool(pending)).observe(seconds)

    def settled(self, pending: Pending, outcome: Outcome) -> None:
        tool = self._tool(pending)
        self._outcomes.labels(tool, outcome.status).inc()
        self._waits.labels(tool).observe(max(0.0, (self._clock() - pending.staged_at) / SECOND))

    def distrusted(self, pending: Pending, why: str) -> None:
        self._distrusted.inc()

    def postponed(self, pending: Pending, outcome: Outcome) -> None:
        self._postponed.labels(self._tool(pending)).inc()

    def waiting(self, reasons: Mapping[str, int]) -> None:
        for reason in REASONS:
            self._waiting.labels(reason).set(reasons.get(reason, 0))

    def refused(self, pending: Pending, outcome: Outcome) -> None:
        self._refused.labels("settled before").inc()

    def lost(self, stream: str, pending: Pending | None) -> None:
        self._lost.inc()
        if pending is not None:
            self._refused.labels("lease lost").inc()

    def busy(self, stream: str) -> None:
        self._busy.inc()

    def handed_back(self, stream: str) -> None:
        self._handed_back.inc()

    def abandoned(self, pending: Pending, seconds: float) -> None:
        self._abandoned.labels(self._tool(pending)).inc()

    def horizon(self, seconds: float) -> None:
        """How long the log's horizon has been held."""
        self._held.set(seconds)

    def exposed(self, supervisor: Supervisor) -> tuple[bytes, str]:
        """The numbers as Prometheus reads them, and their content type."""
        for name, part in supervisor.report()["parts"].items():
            self._restarts.labels(name).set(part["restarts"])
            self._up.labels(name).set(part["state"] == "running")
        return generate_latest(self.registry), CONTENT_TYPE_LATEST
