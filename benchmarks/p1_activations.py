"""P1: durable activations a second, one worker process, every commit flushed (SQLite with FULL sync, PostgreSQL with fsync).

Measured: inputs are recorded; 64 keys are in flight; each activation journals one model call (answered at once), stages
one intent and suspends. The clock runs from the first lease to the last commit. Worker and batcher, no effector.

Bound: the rows that the worker has just written, same bytes, into the same table with the same indexes beside the same
recorded inputs: one insert and one commit for every 100 activations (SQLite: ``executemany``; PostgreSQL: arrays and
``unnest``). No lease, no wake-up, no agent.

Beside it, without a bar: the calls that the worker makes on its log, made again by nobody (``retelling.py``), against the bound.

Rivals: LangGraph with SqliteSaver or PostgresSaver, and DBOS on the same store, each doing five recorded steps a unit in
a fresh place.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import attrs

from intentlog.agents import App, Committer, Input, Worker, WorkerSettings
from intentlog.agents.tuning import tune_for_serving
from intentlog.eventlog import EventLog, open_log

from .bare import Raw, bare
from .measuring import Absent, Line, alone, in_turns, installed
from .retelling import listening, retell
from .sizes import Sizes, Told
from .stores import Postgresql, Sqlite, Store
from .workload import asked, make_app, record_inputs

STORES: Final = (Sqlite.name, Postgresql.name)
KEYS_IN_FLIGHT: Final = 64
UNITS_A_COMMIT: Final = 100
"""Of the bound."""


def lines(store: Store, sizes: Sizes, told: Told) -> list[Line]:
    """The rows of this bar."""
    measured = {"ours": _ours, BOUND: _bound, "calls": _calls}
    contenders: dict[str, Callable[[int], float]] = {name: partial(each, store, sizes.activations) for name, each in measured.items()}
    rivals = RIVALS[store.name]
    absent = {rival.name: Absent(rival.package) for rival in rivals if not installed(rival.package)}
    for place, rival in enumerate(rivals):
        if rival.name not in absent:
            contenders[rival.name] = partial(_rival, store, f"p1-rival{place}", sizes.rival_units, rival)
    best = in_turns(contenders, sizes.rounds, told)

    def line(against: str, bar: float | None, what: str = _WHAT, whose: str = "ours") -> Line:
        if against in absent:
            return absent[against].line("P1", store.name, what, against, bar)
        return Line("P1", store.name, what, against, f"{best[whose]:,.0f}/s", f"{best[against]:,.0f}/s", best[whose] / best[against], bar)

    return [line(BOUND, BAR), *(line(rival.name, rival.bar) for rival in rivals), line(BOUND, None, CALLS, "calls")]


@attrs.frozen
class Rival:
    """Somebody else's five recorded steps, and how many times faster we have to be."""

    name: str
    package: str
    contender: str
    arguments: dict[str, Any]
    bar: float | None


BAR: Final = 0.4
BOUND: Final = "the raw bound"
RIVALS: Final = {
    Sqlite.name: (
        Rival("LangGraph SqliteSaver", "langgraph.checkpoint.sqlite", "rivals.langgraph_units:sqlite", {}, 60.0),
        Rival("DBOS on SQLite", "dbos", "rivals.dbos_units:sqlite", {}, 35.0),
        Rival("DBOS, switched to WAL", "dbos", "rivals.dbos_units:sqlite", {"wal": True}, None),
    ),
    Postgresql.name: (
        Rival("LangGraph PostgresSaver", "langgraph.checkpoint.postgres", "rivals.langgraph_units:postgresql", {}, 60.0),
        Rival("DBOS on PostgreSQL", "dbos", "rivals.dbos_units:postgresql", {}, 35.0),
    ),
}
_WHAT: Final = "durable activations"
CALLS: Final = "the log's calls alone"


def _ours(store: Store, units: int, turn: int) -> float:
    return units / float(alone("p1_activations:ours", url=store.log(f"p1-ours{turn}"), units=units)["seconds"])


def _bound(store: Store, units: int, turn: int) -> float:
    source, url = store.log(f"p1-ours{turn}"), store.log(f"p1-bound{turn}")
    return units / float(alone("p1_activations:bound", source=source, url=url, units=units)["seconds"])


def _calls(store: Store, units: int, turn: int) -> float:
    url, again = store.log(f"p1-heard{turn}"), store.log(f"p1-again{turn}")
    return units / float(alone("p1_activations:calls", url=url, again=again, units=units)["seconds"])


def _rival(store: Store, label: str, units: int, rival: Rival, turn: int) -> float:
    return units / float(alone(rival.contender, place=store.place(f"{label}-{turn}"), count=units, **rival.arguments)["seconds"])


def ours(url: str, units: int) -> dict[str, Any]:
    """The contender: record the inputs, then run the worker over them."""
    app, log = make_app(), open_log(url)
    record(app, log, units)
    tune_for_serving()  # as ``eventlog run`` and ``eventlog worker`` do
    seconds = asyncio.run(run_worker(app, log, units))
    log.close()
    return {"seconds": seconds}


def record(app: App, log: EventLog, units: int) -> None:
    """Make an input durable for each of ``units`` keys."""
    record_inputs(app, log, [Input("waiting", f"k{number}", asked(number), f"i{number}") for number in range(units)])


async def run_worker(app: App, log: EventLog, units: int) -> float:
    """Seconds from the first lease to the last commit of ``units`` activations; everything used of the worker is here."""
    commits: list[float] = []
    committer = Committer(log, after_commit=lambda requests: commits.append(time.perf_counter()))
    worker = Worker(app, log, owner="bench", committer=committer, settings=WorkerSettings(concurrency=KEYS_IN_FLIGHT), on_error=_fail)
    began = time.perf_counter()
    serving = asyncio.create_task(worker.run())
    while worker.turns_run < units and not serving.done():  # noqa: ASYNC110 - the worker has no event for it, and it must not pay for one
        await asyncio.sleep(0.002)
    worker.stop()
    await serving
    committer.close()
    return commits[-1] - began


def calls(url: str, again: str, units: int) -> dict[str, Any]:
    """The contender: what the worker asks of its log, asked of another log with the same inputs."""
    app, log, other = make_app(), open_log(url), open_log(again)
    record(app, log, units)
    record(app, other, units)
    made = listening(log, lambda heard: asyncio.run(run_worker(app, heard, units)))
    seconds = retell(made, other)
    log.close()
    other.close()
    return {"seconds": seconds}


def _fail(doing: str, problem: BaseException) -> None:
    raise RuntimeError(f"the worker met trouble while {doing}") from problem


def bound(source: str, url: str, units: int) -> dict[str, Any]:
    """The contender: the same inputs recorded the same way, then the rows and nothing else."""
    app, log = make_app(), open_log(url)
    record(app, log, units)
    log.close()
    rows = written_rows(source)
    a_commit = UNITS_A_COMMIT * len(rows) // units
    tables = bare(url)
    seconds = tables.insert([rows[begin : begin + a_commit] for begin in range(0, len(rows), a_commit)])
    tables.close()
    return {"seconds": seconds}


def written_rows(url: str) -> list[Raw]:
    """What the worker added to a log, an activation's rows side by side."""
    tables = bare(url)
    rows = tables.written(but=("input.received",))
    tables.close()
    return rows
