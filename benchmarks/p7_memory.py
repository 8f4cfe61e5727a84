"""P7: peak memory while a log of 1,000,000 events is replayed or tailed, on SQLite.

Measured: the peak resident size of a fresh process, Python and the product included, that (a) folds one stream of
1,000,000 events to its state, (b) runs the agent's code again over all of it, (c) tails the whole log in batches.
Everything stands in one stream, the hardest shape: many short streams are forgotten one by one.

The bar is a ceiling of 200 MB. The log is made once a run, as ``long_log`` says; that (b) answers *same* for all of it
proves the copy good.
"""

from __future__ import annotations

import threading
from typing import Any, Final

from intentlog.eventlog import open_log, tail
from intentlog.replay import Verdict, replay_stream, state_at

from . import long_log
from .measuring import Line, alone
from .sizes import Sizes, Told
from .stores import Sqlite, Store
from .workload import make_app

STORES: Final = (Sqlite.name,)
CEILING: Final = 200.0
KEY: Final = "one"
STREAM: Final = f"{long_log.AGENT}-{KEY}"
_CONTENDERS: Final = (("fold to the state", "state"), ("run the code again", "rerun"), ("tail", "follow"))


def lines(store: Store, sizes: Sizes, told: Told) -> list[Line]:
    """The rows of this bar."""
    url = store.log("p7-long")
    told(f"making a log of {sizes.long_log:,} events")
    events = int(alone("p7_memory:make", url=url, least=sizes.long_log)["events"])
    found = []
    for what, contender in _CONTENDERS:
        told(f"{what}: {events:,} events")
        peak = float(alone(f"p7_memory:{contender}", url=url, events=events)["peak_mb"])
        line = Line("P7", store.name, f"peak memory, {what}", f"{events:,} events", f"{peak:,.0f} MB", f"{CEILING:,.0f} MB", peak / CEILING, 1.0, ceiling=True)
        found.append(line)
    return found


def make(url: str, least: int) -> dict[str, Any]:
    """Write at least ``least`` events of whole activations."""
    app, log = make_app(), open_log(url)
    written = long_log.write(app, log, KEY, least)
    log.close()
    return {"events": written}


def state(url: str, events: int) -> dict[str, Any]:
    """The contender: fold."""
    log = open_log(url)
    folded = state_at(log, make_app(), STREAM)
    log.close()
    return _whole(events, folded.version + 1, folded.run.completed * long_log.EVENTS)


def rerun(url: str, events: int) -> dict[str, Any]:
    """The contender: run the code again."""
    log = open_log(url)
    replayed = replay_stream(log, make_app(), STREAM)
    log.close()
    if replayed.verdict is not Verdict.SAME:
        raise RuntimeError(f"the copied history is {replayed.verdict}: {replayed.divergence or replayed.reason}")
    return _whole(events, replayed.events, replayed.turns * long_log.EVENTS)


def follow(url: str, events: int) -> dict[str, Any]:
    """The contender: tail."""
    log = open_log(url)
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
