"""P4, the SQLite half: bytes on disk an activation, from the 10th to the 10,000th activation of one key.

Measured: worker and effector, taking turns every 50 inputs, serve one key, each activation an input, a journalled model
call, an intent with its attempt and settlement, and a completion. At several ages of the key a window of activations is weighed: pages in
use after a checkpoint of the write-ahead log, indexes, schedule and snapshot included.

The bar: the heaviest later window over the first, at most 1.1. Also reported: bytes an event beyond its payload.

Rival: LangGraph with SqliteSaver, one thread whose list of messages grows by 500 characters a step (informative).
"""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any, Final

from intentlog.agents import App, Input
from intentlog.effector.process import Process
from intentlog.eventlog import EventLog, open_log

from .measuring import Absent, Line, alone, installed
from .sizes import Sizes, Told
from .workload import asked, make_app, record_inputs

BAR: Final = 1.1
_HELPING: Final = 50
"""Inputs recorded at once, so that what waits on the key weighs the same at every age."""
_WHAT: Final = "bytes an activation"
_RIVAL_AGES: Final = (10, 200)


def lines(folder: Path, sizes: Sizes, told: Told) -> list[Line]:
    """The rows of this bar."""
    told(f"a key of {sizes.ages[-1] + sizes.window:,} activations")
    found = alone("p4_growth:ours", path=str(folder / "growth.db"), ages=list(sizes.ages), window=sizes.window)
    weights: list[float] = found["bytes"]
    ages = " / ".join(f"{age:,}" for age in sizes.ages)
    shown = " / ".join(f"{weight:,.0f}" for weight in weights)
    first, heaviest = weights[0], max(weights[1:])
    growth = Line("P4", _WHAT, f"itself at age {ages}", f"{shown} B", f"{first:,.0f} B", heaviest / first, BAR, ceiling=True)
    beyond, payload = float(found["beyond"]), float(found["payload"])
    more = Line("P4", "overhead an event", "the payload", f"{beyond:,.0f} B", f"{payload:,.0f} B", beyond / payload)
    return [growth, more, _rival(folder, sizes, told, weights[-1] / first)]


def _rival(folder: Path, sizes: Sizes, told: Told, ours: float) -> Line:
    what, name = "growth with age", "LangGraph SqliteSaver"
    if not installed("langgraph.checkpoint.sqlite"):
        return Absent("langgraph.checkpoint.sqlite").line("P4", what, name, None)
    told("LangGraph's growth")
    ages, window = [age for age in _RIVAL_AGES if age <= sizes.ages[-1]], min(sizes.window, 20)
    weights: list[float] = alone("rivals.langgraph_sqlite:growth", folder=str(folder), ages=ages, window=window)["bytes"]
    theirs = weights[-1] / weights[0]
    return Line("P4", what, f"{name}, {ages[0]} → {ages[-1]} steps", f"× {ours:.2f}", f"× {theirs:.1f}", theirs / ours)


def ours(path: str, ages: list[int], window: int) -> dict[str, Any]:
    """The contender: serve one key up to each age, then weigh the window behind it."""
    app, log = make_app(), open_log(f"sqlite:///{path}")
    marks: list[tuple[int, int, int]] = []
    done = 0
    for age in ages:
        for target in (age, age + window):
            serve(app, log, "finishing", done, target)
            done = target
            marks.append(weigh(path))
    log.close()
    windows = [(after[0] - before[0], after[1] - before[1], after[2] - before[2]) for before, after in zip(marks[::2], marks[1::2], strict=True)]
    size, payload, events = (sum(column) for column in zip(*windows, strict=True))
    return {
        "bytes": [each[0] / window for each in windows],
        "beyond": (size - payload) / events,
        "payload": payload / events,
        "events": events / len(ages) / window,
    }


def serve(app: App, log: EventLog, agent: str, first: int, end: int) -> None:
    """Activations ``first`` to ``end`` of the agent's one key, with their effects, until nothing is left to do."""
    for begin in range(first, end, _HELPING):
        record_inputs(app, log, [Input(agent, "one", asked(number), f"i{number}") for number in range(begin, min(begin + _HELPING, end))])
        for worker in (True, False):
            asyncio.run(_Served(app, log, "bench", with_worker=worker, with_effector=not worker).run(until_idle=True))


class _Served(Process):
    """The same; a plain subclass has room for the parts that ``Process`` makes when it runs."""


def weigh(path: str) -> tuple[int, int, int]:
    """(bytes of pages in use, bytes of payload, events) with nothing left in the write-ahead log."""
    connection = sqlite3.connect(path)
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        (pages,), (free,), (size,) = (connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "freelist_count", "page_size"))
        payload, events = connection.execute("SELECT coalesce(sum(length(data)), 0), count(*) FROM events").fetchone()
        return (pages - free) * size, payload, events
    finally:
        connection.close()
