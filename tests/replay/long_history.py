"""A long history in a moment: what ``paying`` leaves behind, written down for as many activations as one likes without running any."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from intentlog.agents import App, ModelRequest, ModelResponse, facts
from intentlog.agents.intents import intent_id_for
from intentlog.eventlog.clock import SECOND
from intentlog.eventlog.events import NewEvent
from intentlog.eventlog.log import EventLog
from intentlog.eventlog.versions import ANY
from tests.replay.world import START, STREAM, RefundAsked, RefundPaid

EACH = 10
"""Events of one activation."""


def record_long(log: EventLog, app: App, events: int, stream: str = STREAM) -> None:
    """Append ``events`` events, a multiple of ten, to ``stream``."""
    staged = [event for seq in range(events // EACH) for event in _encoded(app, stream, seq)]
    for begin in range(0, len(staged), 5_000):
        log.append(stream, staged[begin : begin + 5_000], ANY)


def _encoded(app: App, stream: str, seq: int) -> Iterator[NewEvent]:
    first = input_id = _id(seq, 0)
    for place, event in enumerate(_activation(app, stream, seq)):
        yield app.codec.stage_checked(event, _id(seq, place), first, None if place == 0 else input_id)[0]


def _id(seq: int, place: int) -> bytes:
    return (seq * EACH + place + 1).to_bytes(16, "big")


def _activation(app: App, stream: str, seq: int) -> Iterator[Any]:
    now, order, cents = START + seq * SECOND, f"o-{seq % 100}", seq % 50 + 1
    intent_id, seen = intent_id_for(stream, seq, 1), seq * EACH
    payload = app.codec.encode(RefundAsked(order, cents))
    request = ModelRequest([{"role": "user", "content": f"Refund {cents} for {order}?"}], model="model-x", provider="scripted")
    yield facts.InputReceived(f"in-{seq}", payload[0], payload[1], "msgpack", payload[2])
    yield facts.ModelCallCached(seq, 0, now, b"d" * 32, request, ModelResponse("yes", "model-x"), seen)
    yield RefundAsked(order, cents)
    yield facts.IntentStaged(intent_id, seq, 1, "refund", {"order_id": order, "cents": cents}, b"i" * 32, now + 3600 * SECOND)
    yield facts.Suspended(seq, now, 2, 0, (intent_id,), "all", now + 300 * SECOND, seen=seen)
    yield facts.IntentAttempted(intent_id, 1, "e", 1)
    yield facts.IntentSettled(intent_id, "OK", f"re_{order}", attempts=1, settled_by="e")
    yield RefundPaid(f"re_{order}", cents)
    yield facts.Traced(seq, 2, "paid", {})
    yield facts.Completed(seq, now, 2, 0, f"re_{order}", seen=seen + 6)


def record_backlog(log: EventLog, app: App, inputs: int, stream: str = STREAM) -> None:
    """The same history, but for its inputs: they all came before the first of them was handled."""
    activations = [list(_encoded(app, stream, seq)) for seq in range(inputs)]
    log.append(stream, [events[0] for events in activations], ANY)
    for events in activations:
        log.append(stream, events[1:], ANY)
