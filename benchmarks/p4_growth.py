"""P4: bytes on disk an event beyond its payload, and bytes an activation, from the 10th to the 10,000th activation of one key.

Measured: worker and effector, taking turns every 50 inputs, serve one key, each activation an input, a journalled model
call, an intent with its attempt and settlement, and a completion. At several ages of the key a window of activations is
weighed, indexes, schedule and snapshot included. SQLite: pages in use after a checkpoint of the write-ahead log.
PostgreSQL: tables, indexes and what lies out of line, after the VACUUM that autovacuum would make.

The bars: the heaviest later window over the first, at most 1.1; what the windows grew by, less the payload, at most 300 B an event.

Rival: LangGraph with SqliteSaver or PostgresSaver, one thread whose list of messages grows by 500 characters a step (informative).
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from intentlog.agents import App, Input
from intentlog.effector.process import Process
from intentlog.eventlog import EventLog, open_log

from .bare import Weight, bare
from .measuring import Absent, Line, alone, installed
from .sizes import Sizes, Told
from .stores import Postgresql, Sqlite, Store
from .workload import asked, make_app, record_inputs

STORES: Final = (Sqlite.name, Postgresql.name)
BAR: Final = 1.1
OVERHEAD_BAR: Final = 300.0
"""Bytes an event."""
RIVALS: Final = {
    Sqlite.name: ("LangGraph SqliteSaver", "langgraph.checkpoint.sqlite", "rivals.langgraph_units:growth_on_sqlite"),
    Postgresql.name: ("LangGraph PostgresSaver", "langgraph.checkpoint.postgres", "rivals.langgraph_units:growth_on_postgresql"),
}
_HELPING: Final = 50
"""Inputs recorded at once, so that what waits on the key weighs the same at every age."""
_RIVAL_AGES: Final = (10, 200)


def lines(store: Store, sizes: Sizes, told: Told) -> list[Line]:
    """The rows of this bar."""
    told(f"a key of {sizes.ages[-1] + sizes.window:,} activations")
    found = alone("p4_growth:ours", url=store.log("p4-growth"), ages=list(sizes.ages), window=sizes.window)
    weights: list[float] = found["bytes"]
    ages = " / ".join(f"{age:,}" for age in sizes.ages)
    shown = " / ".join(f"{weight:,.0f}" for weight in weights)
    first, heaviest = weights[0], max(weights[1:])
    growth = Line("P4", store.name, "bytes an activation", f"itself at age {ages}", f"{shown} B", f"{first:,.0f} B", heaviest / first, BAR, ceiling=True)
    beyond, shown = float(found["beyond"]), f"{found['beyond']:,.0f} B beside {found['payload']:,.0f} B"
    more = Line("P4", store.name, "overhead an event", "a ceiling", shown, f"{OVERHEAD_BAR:,.0f} B", beyond / OVERHEAD_BAR, 1.0, ceiling=True)
    return [growth, more, _rival(store, sizes, told, weights[-1] / first)]


def _rival(store: Store, sizes: Sizes, told: Told, ours: float) -> Line:
    what, (name, package, contender) = "growth with age", RIVALS[store.name]
    if not installed(package):
        return Absent(package).line("P4", store.name, what, name, None)
    told("LangGraph's growth")
    ages, window = [age for age in _RIVAL_AGES if age <= sizes.ages[-1]], min(sizes.window, 20)
    weights: list[float] = alone(contender, place=store.place("p4-langgraph"), ages=ages, window=window)["bytes"]
    theirs = weights[-1] / weights[0]
    return Line("P4", store.name, what, f"{name}, {ages[0]} → {ages[-1]} steps", f"× {ours:.2f}", f"× {theirs:.1f}", theirs / ours)


def ours(url: str, ages: list[int], window: int) -> dict[str, Any]:
    """The contender: serve one key up to each age, then weigh the window behind it."""
    app, log = make_app(), open_log(url)
    tables = bare(url)
    marks: list[Weight] = []
    done = 0
    for age in ages:
        for target in (age, age + window):
            serve(app, log, "finishing", "one", done, target)
            done = target
            marks.append(tables.weigh())
    tables.close()
    log.close()
    pairs = zip(marks[::2], marks[1::2], strict=True)
    pairs = zip(marks[::2], marks[1::2], strict=True)
    windows = [Weight(*(late - early for early, late in zip(before, after, strict=True))) for before, after in pairs]
    size, payload, events = (sum(column) for column in zip(*windows, strict=True))
    return {
        "bytes": [each.size / window for each in windows],
        "beyond": (size - payload) / events,
        "payload": payload / events,
        "events": events / len(ages) / window,
    }


def serve(app: App, log: EventLog, agent: str, key: str, first: int, end: int) -> None:
    """Activations ``first`` to ``end`` of one key of the agent, with their effects, until nothing is left to do."""
    for begin in range(first, end, _HELPING):
        record_inputs(app, log, [Input(agent, key, asked(number), f"i{number}") for number in range(begin, min(begin + _HELPING, end))])
        for worker in (True, False):
            asyncio.run(_Served(app, log, "bench", with_worker=worker, with_effector=not worker).run(until_idle=True))


class _Served(Process):
    """The same; a plain subclass has room for the parts that ``Process`` makes when it runs."""
