"""Streams at a glance: how long, when last, and how things stand, told from the end of each without reading it whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from ..eventlog.codec import Codec
from ..eventlog.errors import Undecodable
from ..eventlog.events import StoredEvent
from ..eventlog.log import EventLog
from .app import runtime_codec

_LOOKED_AT: Final = 64
_TURNING: Final = frozenset({"model_call.cached", "tool_call.cached", "timer.fired", "intent.staged", "timer.armed", "traced"})
_OUTCOMES: Final = frozenset({"intent.settled", "approval.decided", "reply.received", "cancel.requested"})


@attrs.frozen
class Listed:
    """One stream."""

    stream: str
    events: int
    #: Empty, as the moment is 0, for a stream whose events were deleted behind the log's back.
    last_type: str
    last_at: int
    #: queued, running, suspended, due, completed, retrying, parked, blocked; empty for a stream without runtime events.
    state: str


def listed(log: EventLog, prefix: str = "") -> Iterator[Listed]:
    """The streams whose names begin with ``prefix``, in order of their names."""
    codec = runtime_codec()
    for stream in log.streams(prefix):
        last = next(iter(log.read(stream, backwards=True, limit=1)), None)
        if last is None:
            yield Listed(stream, 0, "", 0, "")
            continue
        if last.type == "activation.suspended":
            state = "suspended"  # the most common end of a long list, and one look tells it
        else:
            state = standing(codec, list(log.read(stream, backwards=True, limit=_LOOKED_AT)))
        yield Listed(stream, last.version + 1, last.type, last.recorded_at, state)


def standing(codec: Codec, latest: Sequence[StoredEvent]) -> str:
    """How things stand after ``latest``, newest first. The last fact that opens or closes a turn decides.

    Exact where the events reach back to the beginning of the stream; where they do not, inputs older than all of them are
    not seen, and a stream that still has such inputs in line may read ``completed``.
    """
    settled = inputs = 0
    signals: list[StoredEvent] = []
    for event in latest:
        if event.type == "input.received":
            inputs += 1
        elif event.type in _OUTCOMES:
            settled += 1
        elif event.type == "signal.received":
            signals.append(event)
        elif event.type == "input.redriven":
            return "queued"
        elif event.type == "activation.completed":
            return "queued" if inputs or _more_in_line(codec, event, latest) else "completed"
        elif event.type == "activation.suspended":
            return _suspended(codec, event, settled, signals)
        elif event.type == "activation.continued":
            return "queued"
        elif event.type == "activation.failed":
            return _failed(codec, event, inputs)
        elif event.type == "stream.blocked":
            return "blocked"
        elif event.type in _TURNING:
            return "running"
    return "queued" if inputs else ""


def _suspended(codec: Codec, event: StoredEvent, settled: int, signals: Sequence[StoredEvent]) -> str:
    try:
        fact = codec.decode_stored(event)
        names = {codec.decode_stored(signal).name for signal in signals}
    except Undecodable:
        return "suspended"
    settled += sum(wait.startswith("signal-") and wait.split("-", 3)[3] in names for wait in fact.waits)
    needed = len(fact.waits) if fact.mode == "all" else 1
    return "due" if settled and settled >= needed else "suspended"


def _failed(codec: Codec, event: StoredEvent, inputs: int) -> str:
    try:
        fact = codec.decode_stored(event)
    except Undecodable:
        return "failed"
    if fact.retry_at is not None:
        return "retrying"
    return "queued" if inputs and not fact.holds else "parked"


def _more_in_line(codec: Codec, completed: StoredEvent, latest: Sequence[StoredEvent]) -> bool:
    """Whether an input was recorded before this completion that is not handled yet; known only from the whole stream."""
    if latest[-1].version > 0:
        return False
    recorded = sum(event.type == "input.received" for event in latest)
    try:
        return recorded > int(codec.decode_stored(completed).seq) + 1
    except Undecodable:
        return False
