"""Spans (the extra ``otel``): one for each attempt, in the trace of the activation that staged the intent.

Nothing of a trace is recorded with an intent. Its id is the correlation of the run: the 16 bytes of the event id of the input that
began it; the span that it hangs under is made of the activation that staged it, its stream and seq. Whoever traces agents by the same
two functions lands in the same trace, and so does every replica, before and after a crash.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

from .outbox import Pending
from .phases import Outcome
from .watching import Watching

_NAME: Final = "intentlog.effector"


def trace_id_of(pending: Pending) -> int:
    """128 bits: the correlation of the run that staged the intent, or its own event id where it has none."""
    return int.from_bytes((pending.correlation or pending.event_id)[:16].ljust(16, b"\0"), "big") or 1


def activation_span_id(stream: str, seq: int) -> int:
    """64 bits for the activation ``seq`` of ``stream``."""
    return int.from_bytes(hashlib.sha256(f"activation|{stream}|{seq}".encode()).digest()[:8], "big") or 1


class Spans(Watching):
    """A span an attempt; the tool runs inside it, so that what it calls is a part of it. ``provider`` is a TracerProvider."""

    def __init__(self, provider: Any) -> None:
        from opentelemetry import context, trace

        self._context, self._trace = context, trace
        self._tracer = provider.get_tracer(_NAME)
        self._open: dict[str, tuple[Any, Any]] = {}

    def _begin(self, pending: Pending) -> Any:
        trace = self._trace
        flags = trace.TraceFlags(trace.TraceFlags.SAMPLED)
        activation = trace.SpanContext(trace_id_of(pending), activation_span_id(pending.stream, pending.intent.seq), is_remote=True, trace_flags=flags)
        within = trace.set_span_in_context(trace.NonRecordingSpan(activation))
        attributes = {
            "intentlog.intent_id": pending.intent.intent_id,
            "intentlog.stream": pending.stream,
            "intentlog.tool": pending.intent.tool,
            "intentlog.attempt": pending.attempts,
        }
        kind, link = trace.SpanKind.CONSUMER, trace.Link(activation)
        return self._tracer.start_span(f"carry out {pending.intent.tool}", within, kind=kind, attributes=attributes, links=[link])

    def attempted(self, pending: Pending) -> None:
        span = self._begin(pending)
        self._open[pending.intent.intent_id] = span, self._context.attach(self._trace.set_span_in_context(span))

    def called(self, pending: Pending, outcome: Outcome, seconds: float) -> None:
        if entry := self._open.get(pending.intent.intent_id):
            self._context.detach(entry[1])
            entry[0].add_event("called", {"intentlog.status": outcome.status})

    def settled(self, pending: Pending, outcome: Outcome) -> None:
        self._end(pending, outcome, outcome.status)

    def refused(self, pending: Pending, outcome: Outcome) -> None:
        self._end(pending, outcome, "refused")

    def lost(self, stream: str, pending: Pending | None) -> None:
        if pending is not None:
            self._end(pending, None, "lease lost")

    def abandoned(self, pending: Pending, seconds: float) -> None:
        self._end(pending, None, "abandoned")

    def left(self, pending: Pending) -> None:
        self._end(pending, None, "left to its lease")

    def _end(self, pending: Pending, outcome: Outcome | None, said: str) -> None:
        entry = self._open.pop(pending.intent.intent_id, None)
        span = entry[0] if entry is not None else self._begin(pending)
        span.set_attribute("intentlog.status", said)
        if outcome is None or outcome.failure is not None:
            what = outcome.failure.type if outcome is not None and outcome.failure is not None else said
            span.set_attribute("error.type", what)
            span.set_status(self._trace.StatusCode.ERROR, what)
        span.end()


def otlp_provider(replica: str) -> Any:
    """A TracerProvider that sends to where the ``OTEL_…`` variables say. Raises ``ImportError`` without the extra."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(shutdown_on_exit=False, resource=Resource.create({"service.name": "intentlog-effector", "service.instance.id": replica}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider
