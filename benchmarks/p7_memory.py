"""P7: peak memory while a log of 1,000,000 events is replayed or tailed, on SQLite.

Measured: the peak resident size of a fresh process, Python and the product included, that (a) folds one stream of
1,000,000 events to its state, (b) runs the agent's code again over all of it, (c) tails the whole log in batches.
Everything stands in one stream, the hardest shape: many short streams are forgotten one by one.

The bar is a ceiling of 200 MB. The log is made once a run: one activation is run for real, and its six events are
repeated with the names and ordinals of the next ones. That (b) answers *same* for all of them proves the copy good.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import attrs

from intentlog.agents import App, facts
from intentlog.agents.intents import input_event_id, intent_id_for
from intentlog.eventlog import ANY, AppendRequest, NewEvent, StreamAppend, open_log, tail
from intentlog.replay import Verdict, replay_stream, state_at

from .measuring import Line, alone
from .p4_growth import serve
from .sizes import Sizes, Told
from .workload import make_app

CEILING: Final = 200.0
STREAM: Final = "brief-one"
_AT_ONCE: Final = 12_000
_CONTENDERS: Final = (("fold to the state", "state"), ("run the code again", "rerun"), ("tail", "follow"))


def lines(folder: Path, sizes: Sizes, told: Told) -> list[Line]:
    """The rows of this bar."""
    path = folder / "long.db"
    told(f"making a log of {sizes.long_log:,} events")
    events = int(alone("p7_memory:make", path=str(path), least=sizes.long_log)["events"])
    found = []
    for what, contender in _CONTENDERS:
        told(f"{what}: {events:,} events")
        result = alone(f"p7_memory:{contender}", path=str(path), events=events)
        peak = float(result["peak_mb"])
        found.append(Line("P7", f"peak memory, {what}", f"{events:,} events", f"{peak:,.0f} MB", f"{CEILING:,.0f} MB", peak / CEILING, 1.0, ceiling=True))
    return found


def make(path: str, least: int) -> dict[str, Any]:
    """Write at least ``least`` events of whole activations."""
    app, log = make_app(), open_log(f"sqlite:///{path}")
    histories = copies(app)
    written = 0
    while written < least:
        events = list(itertools.islice(itertools.chain.from_iterable(histories), min(_AT_ONCE, -(-(least - written) // _EVENTS) * _EVENTS)))
        log.append_batch([AppendRequest((StreamAppend(STREAM, events, ANY),))])
        written += len(events)
    log.close()
    return {"events": written}


_EVENTS: Final = 6
"""Of one activation: received, cached, staged, completed, attempted, settled."""


def copies(app: App) -> Iterator[list[NewEvent]]:
    """Activation after activation: the events of one that was really run, as those of the n-th."""
    log = open_log("memory://")
    serve(app, log, "brief", 0, 1)
    run = [app.codec.decode_stored(stored) for stored in log.read(STREAM)]
    log.close()
    if len(run) != _EVENTS:
        raise RuntimeError(f"an activation was expected to leave {_EVENTS} events, not {[type(each).__name__ for each in run]}")
    for seq in itertools.count():
        correlation = input_event_id(f"i{seq}")
        first = seq * _EVENTS
        found = []
        for place, fact in enumerate(run):
            event_id = correlation if isinstance(fact, facts.InputReceived) else (first + place + 1).to_bytes(16, "big")
            found.append(app.codec.stage(_of(fact, seq, first), event_id=event_id, correlation=correlation))
        yield found


def _of(fact: Any, seq: int, first: int) -> Any:
    """``fact`` of activation 0 as activation ``seq`` would have left it, whose first event has version ``first``."""
    names = {each.name for each in attrs.fields(type(fact))}
    changes: dict[str, Any] = {}
    if "seq" in names:
        changes["seq"] = seq
    if "seen" in names:
        changes["seen"] = first + fact.seen
    if "intent_id" in names:
        changes["intent_id"] = intent_id_for(STREAM, seq, 1)
    if "input_id" in names:
        changes["input_id"] = f"i{seq}"
    return attrs.evolve(fact, **changes)


def state(path: str, events: int) -> dict[str, Any]:
    """The contender: fold."""
    log = open_log(f"sqlite:///{path}")
    folded = state_at(log, make_app(), STREAM)
    log.close()
    return _whole(events, folded.version + 1, folded.run.completed * _EVENTS)


def rerun(path: str, events: int) -> dict[str, Any]:
    """The contender: run the code again."""
    log = open_log(f"sqlite:///{path}")
    replayed = replay_stream(log, make_app(), STREAM)
    log.close()
    if replayed.verdict is not Verdict.SAME:
        raise RuntimeError(f"the copied history is {replayed.verdict}: {replayed.divergence or replayed.reason}")
    return _whole(events, replayed.events, replayed.turns * _EVENTS)


def follow(path: str, events: int) -> dict[str, Any]:
    """The contender: tail."""
    log = open_log(f"sqlite:///{path}")
    seen, end = 0, threading.Event()
    for batch in tail(log, after=0, stop=end.is_set):
        seen += len(batch)
        if seen >= events:
            end.set()
    log.close()
    return _whole(events, seen)


def _whole(events: int, *seen: int) -> dict[str, Any]:
    if {*seen} != {events}:
        raise RuntimeError(f"of {events} events {seen} were seen")
    return {"events": events}
