"""What the events of a range come to: by type, by agent, in bytes, in model calls; and what suspended runs wait for.

Every event of the range is read once; memory grows with the number of types, agents and models, not with that of events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

import attrs

from ..eventlog.clock import Micros
from ..eventlog.errors import LogError
from ..eventlog.log import EventLog
from ..eventlog.names import category_of
from .app import runtime_codec
from .listing import listed

_LOOKED_AT: Final = 64
_KINDS: Final = ("timer", "signal", "approval", "child")
_MODEL: Final = "model_call.cached"
_SUSPENDED: Final = "activation.suspended"


@attrs.define
class Amount:
    """Events and the bytes of their payloads."""

    events: int = 0
    bytes: int = 0
    largest: int = 0

    def add(self, size: int) -> None:
        """One more event."""
        self.events += 1
        self.bytes += size
        self.largest = max(self.largest, size)


@attrs.define
class ModelCalls:
    """Answers of one model, as they were recorded."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    #: In 10⁻¹² of the prices' currency.
    picos: int = 0


@attrs.define
class EventStats:
    """The figures of a range."""

    total: Amount = attrs.field(factory=Amount)
    #: Moments of the first and the last event by the log's order, µs since 1970-01-01 UTC; 0 when there is none.
    first_at: Micros = 0
    last_at: Micros = 0
    types: dict[str, Amount] = attrs.field(factory=dict)
    agents: dict[str, Amount] = attrs.field(factory=dict)
    models: dict[str, ModelCalls] = attrs.field(factory=dict)


def event_stats(log: EventLog, prefix: str = "", *, after: int = 0, upto: int | None = None, moment: Micros = 0, until: Micros | None = None) -> EventStats:
    """Count the events behind position ``after`` that were recorded from ``moment`` to ``until``, in streams that begin with ``prefix``."""
    found, codec = EventStats(), runtime_codec()
    categories = (category_of(prefix),) if "-" in prefix else ()
    for event in log.read_all(after=after, upto=upto, categories=categories):
        if event.recorded_at < moment or (until is not None and event.recorded_at > until) or not event.stream.startswith(prefix):
            continue
        size = len(event.data)
        found.first_at, found.last_at = found.first_at or event.recorded_at, event.recorded_at
        for amount in (
            found.total,
            found.types.setdefault(event.type, Amount()),
            found.agents.setdefault(category_of(event.stream), Amount()),
        ):
            amount.add(size)
        if event.type == _MODEL:
            try:
                answer = codec.decode_stored(event)
            except LogError:  # verify's affair
                continue
            calls = found.models.setdefault(answer.response.model or answer.request.model, ModelCalls())
            calls.calls += 1
            calls.input_tokens += answer.response.usage.input_tokens
            calls.output_tokens += answer.response.usage.output_tokens
            calls.picos += answer.cost
    return found


def waiting(log: EventLog, prefix: str = "") -> Counter[str]:
    """What suspended runs wait for: how many of each kind (``intent``, ``timer``, ``approval``, ``signal``, ``child``)."""
    found: Counter[str] = Counter()
    for each in listed(log, prefix):
        if each.state == "suspended":
            found.update(_waits(log, each.stream))
    return found


def _waits(log: EventLog, stream: str) -> Iterator[str]:
    for event in log.read(stream, backwards=True, limit=_LOOKED_AT):
        if event.type == _SUSPENDED:
            try:
                waits = runtime_codec().decode_stored(event).waits
            except LogError:
                return
            yield from (kind if (kind := wait.partition("-")[0]) in _KINDS else "intent" for wait in waits)
            return
