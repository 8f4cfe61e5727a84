"""What an effector counts, for Prometheus (the extra ``metrics``). Label values are few: tools it knows, statuses, parts.

Names begin with ``intentlog_effector_``. A tool that is not known here is counted as ``(unknown)``: its name comes from the log,
and whoever writes there must not choose how many series there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

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
        self._children: dict[tuple[Any, ...], Any] = {}
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
        self._repeated = counter("repeated", "Deliveries by a bus of intents that had their outcome: it was published again")
        self._dead_letters = counter("dead_letters", "Messages of a bus that were set aside", "kind")
        self._published = counter("approvals_published", "Questions to people that a surface has taken")
        self._undelivered = counter("approvals_undelivered", "Questions to people that a surface refused until they were given up")
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

    def _of(self, what: Counter | Histogram, pending: Pending, *more: str) -> Any:
        """What is counted for the intent's tool; finding it by its labels costs more than counting."""
        labels = (what, pending.intent.tool, *more)
        child = self._children.get(labels)
        if child is None:
            child = what.labels(self._tool(pending), *more)
            if pending.intent.tool in self._tools:
                self._children[labels] = child
        return child

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
        self._of(self._attempts, pending).inc()

    def called(self, pending: Pending, outcome: Outcome, seconds: float) -> None:
        self._of(self._calls, pending).observe(seconds)

    def settled(self, pending: Pending, outcome: Outcome) -> None:
        self._of(self._outcomes, pending, outcome.status).inc()
        self._of(self._waits, pending).observe(max(0.0, (self._clock() - pending.staged_at) / SECOND))

    def distrusted(self, pending: Pending, why: str) -> None:
        self._distrusted.inc()

    def approval_published(self, stream: str) -> None:
        self._published.inc()

    def approval_undelivered(self, stream: str) -> None:
        self._undelivered.inc()

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

    def repeated(self, pending: Pending, status: str) -> None:
        self._repeated.inc()

    def set_aside(self, partition: int, offset: int, kind: str, why: str) -> None:
        self._dead_letters.labels(kind).inc()

    def in_hand(self, count: int, oldest: Micros | None) -> None:
        self._open.set(count)
        self._oldest = oldest

    def exposed(self, supervisor: Supervisor) -> tuple[bytes, str]:
        """The numbers as Prometheus reads them, and their content type."""
        for name, part in supervisor.report()["parts"].items():
            self._restarts.labels(name).set(part["restarts"])
            self._up.labels(name).set(part["state"] == "running")
        return generate_latest(self.registry), CONTENT_TYPE_LATEST
