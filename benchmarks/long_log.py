"""Long histories that are true: one activation is run for real, and its six events are repeated under the names and ordinals of the next ones."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Final

import attrs

from intentlog.agents import App, facts
from intentlog.agents.intents import input_event_id, intent_id_for
from intentlog.eventlog import ANY, AppendRequest, EventLog, NewEvent, StreamAppend, open_log

from .p4_growth import serve

AGENT: Final = "brief"
EVENTS: Final = 6
"""Of one activation: received, cached, staged, completed, attempted, settled."""
_AT_ONCE: Final = 12_000


def write(app: App, log: EventLog, key: str, least: int) -> int:
    """Write at least ``least`` events of whole activations of one key; how many they are."""
    stream = f"{AGENT}-{key}"
    histories = itertools.chain.from_iterable(copies(app, key))
    written = 0
    while written < least:
        events = list(itertools.islice(histories, min(_AT_ONCE, -(-(least - written) // EVENTS) * EVENTS)))
        log.append_batch([AppendRequest((StreamAppend(stream, events, ANY),))])
        written += len(events)
    return written


def copies(app: App, key: str) -> Iterator[list[NewEvent]]:
    """Activation after activation: the events of one that was really run, as those of the n-th."""
    stream = f"{AGENT}-{key}"
    log = open_log("memory://")
    serve(app, log, AGENT, key, 0, 1)
    run = [app.codec.decode_stored(stored) for stored in log.read(stream)]
    log.close()
    if len(run) != EVENTS:
        raise RuntimeError(f"an activation was expected to leave {EVENTS} events, not {[type(each).__name__ for each in run]}")
    for seq in itertools.count():
        correlation = input_event_id(f"i{seq}")
        first = seq * EVENTS
        found = []
        for place, fact in enumerate(run):
            event_id = correlation if isinstance(fact, facts.InputReceived) else (first + place + 1).to_bytes(16, "big")
            found.append(app.codec.stage(_of(fact, stream, seq, first), event_id=event_id, correlation=correlation))
        yield found


def _of(fact: Any, stream: str, seq: int, first: int) -> Any:
    """``fact`` of activation 0 as activation ``seq`` would have left it, whose first event has version ``first``."""
    names = {each.name for each in attrs.fields(type(fact))}
    changes: dict[str, Any] = {}
    if "seq" in names:
        changes["seq"] = seq
    if "seen" in names:
        changes["seen"] = first + fact.seen
    if "intent_id" in names:
        changes["intent_id"] = intent_id_for(stream, seq, 1)
    if "input_id" in names:
        changes["input_id"] = f"i{seq}"
    return attrs.evolve(fact, **changes)
