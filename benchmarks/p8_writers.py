"""P8: how appends from many processes add up, each to a stream of its own.

Measured: events made durable a second by 1 and by 16 writers. A writer is a process with a log of its own; it appends one
event of 300 bytes, waits until it is durable, and appends the next, at the version it expects. All start at once and write
for the same time.

Beside it, without a bar: the same writers with a bare connection each, one row an ``INSERT``, which is how far this server
on this machine lets commits add up.

The bar: 16 writers make at least twice as many events durable as one does.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any, Final

from intentlog.eventlog import NO_STREAM, NewEvent, open_log

from .bare import bare
from .measuring import Line, in_turns, ready, together
from .sizes import Sizes, Told
from .stores import Postgresql, Store

STORES: Final = (Postgresql.name,)
BAR: Final = 2.0
PAYLOAD: Final = b"x" * 300
_AT_ONCE: Final = 20
"""Commits of a bare writer between two looks at the clock."""


def lines(store: Store, sizes: Sizes, told: Told) -> list[Line]:
    """The rows of this bar."""
    url = store.log("p8-writers")
    open_log(url).close()
    contenders = {f"{kind} {writers}": partial(_rate, url, kind, writers, sizes.seconds) for kind in ("ours", "bare_writer") for writers in (1, sizes.writers)}
    best = in_turns(contenders, sizes.rounds, told)

    def line(what: str, kind: str, bar: float | None) -> Line:
        many, one = best[f"{kind} {sizes.writers}"], best[f"{kind} 1"]
        return Line("P8", store.name, f"{what}, {sizes.writers} writers", "one writer", f"{many:,.0f}/s", f"{one:,.0f}/s", many / one, bar)

    return [line("events appended", "ours", BAR), line("bare inserts", "bare_writer", None)]


def _rate(url: str, kind: str, writers: int, seconds: float, turn: int) -> float:
    """Events a second, by all of them."""
    names = [f"{kind}-{turn}x{writers}x{number}" for number in range(writers)]
    wrote = together([(f"p8_writers:{kind}", {"url": url, "stream": name, "seconds": seconds}) for name in names])
    return sum(float(each["events"] / each["seconds"]) for each in wrote)


def ours(url: str, stream: str, seconds: float) -> dict[str, Any]:
    """The contender: append one event after the other."""
    log = open_log(url)
    log.append(stream, [_event(0)], NO_STREAM)
    ready()
    number, began = 0, time.perf_counter()
    while (took := time.perf_counter() - began) < seconds:
        log.append(stream, [_event(number + 1)], number)
        number += 1
    log.close()
    return {"events": number, "seconds": took}


def bare_writer(url: str, stream: str, seconds: float) -> dict[str, Any]:
    """The contender: insert one row after the other."""
    log = open_log(url)
    log.append(stream, [_event(0)], NO_STREAM)
    log.close()
    tables = bare(url)
    first = dict(zip(tables.columns, tables.last(stream), strict=True))
    ready()
    number, began = 0, time.perf_counter()
    while (took := time.perf_counter() - began) < seconds:
        rows = [tuple((first | {"version": each, "event_id": _id(each)}).values()) for each in range(number + 1, number + 1 + _AT_ONCE)]
        tables.insert([[row] for row in rows])
        number += _AT_ONCE
    tables.close()
    return {"events": number, "seconds": took}


def _event(number: int) -> NewEvent:
    return NewEvent(_id(number), "bench.written", 1, PAYLOAD)


def _id(number: int) -> bytes:
    return number.to_bytes(16, "big")
