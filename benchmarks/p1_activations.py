"""P1: durable activations a second, one worker process, SQLite with FULL sync.

Measured: inputs are recorded; 64 keys are in flight; each activation journals one model call (answered at once), stages
one intent and suspends. The clock runs from the first lease to the last commit. Worker and batcher, no effector.

Bound: the rows that the worker has just written, same bytes, into the same table with the same indexes beside the same
recorded inputs: one ``executemany`` and one commit for every 100 activations. No lease, no wake-up, no agent.

Rivals: LangGraph with SqliteSaver and DBOS on SQLite, each doing five recorded steps a unit on a fresh file.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import attrs

from intentlog.agents import App, Committer, Input, Worker, WorkerSettings
from intentlog.eventlog import EventLog, open_log
from intentlog.eventlog.sqlite.address import parse_address
from intentlog.eventlog.sqlite.connection import Database

from .measuring import Absent, Line, alone, in_turns, installed
from .sizes import Sizes, Told
from .workload import asked, make_app, record_inputs

KEYS_IN_FLIGHT: Final = 64
UNITS_A_COMMIT: Final = 100
"""Of the bound."""


def lines(folder: Path, sizes: Sizes, told: Told) -> list[Line]:
    """The rows of this bar."""
    contenders: dict[str, Callable[[int], float]] = {"ours": partial(_ours, folder, sizes.activations), BOUND: partial(_bound, folder, sizes.activations)}
    absent = {rival.name: Absent(rival.package) for rival in RIVALS if not installed(rival.package)}
    for place, rival in enumerate(RIVALS):
        if rival.name not in absent:
            contenders[rival.name] = partial(_rival, folder / f"rival{place}", sizes.rival_units, rival)
    best = in_turns(contenders, sizes.rounds, told)
    found = [_line(BOUND, best, BAR)]
    for rival in RIVALS:
        found.append(absent[rival.name].line("P1", _WHAT, rival.name, rival.bar) if rival.name in absent else _line(rival.name, best, rival.bar))
    return found


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
RIVALS: Final = (
    Rival("LangGraph SqliteSaver", "langgraph.checkpoint.sqlite", "rivals.langgraph_sqlite:units", {}, 60.0),
    Rival("DBOS on SQLite", "dbos", "rivals.dbos_sqlite:units", {}, 35.0),
    Rival("DBOS, switched to WAL", "dbos", "rivals.dbos_sqlite:units", {"wal": True}, None),
)
_WHAT: Final = "durable activations"


def _ours(folder: Path, units: int, turn: int) -> float:
    return units / float(alone("p1_activations:ours", path=str(folder / f"ours{turn}.db"), units=units)["seconds"])


def _bound(folder: Path, units: int, turn: int) -> float:
    source, path = str(folder / f"ours{turn}.db"), str(folder / f"bound{turn}.db")
    return units / float(alone("p1_activations:bound", source=source, path=path, units=units)["seconds"])


def _rival(folder: Path, units: int, rival: Rival, turn: int) -> float:
    target = folder / str(turn)
    target.mkdir(parents=True)
    return units / float(alone(rival.contender, folder=str(target), count=units, **rival.arguments)["seconds"])


def _line(against: str, best: dict[str, float], bar: float | None) -> Line:
    return Line("P1", _WHAT, against, f"{best['ours']:,.0f}/s", f"{best[against]:,.0f}/s", best["ours"] / best[against], bar)


def ours(path: str, units: int) -> dict[str, Any]:
    """The contender: record the inputs, then run the worker over them."""
    app, log = make_app(), open_log(f"sqlite:///{path}")
    record_inputs(app, log, [Input("waiting", f"k{number}", asked(number), f"i{number}") for number in range(units)])
    seconds = asyncio.run(run_worker(app, log, units))
    log.close()
    return {"seconds": seconds}


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


def _fail(doing: str, problem: BaseException) -> None:
    raise RuntimeError(f"the worker met trouble while {doing}") from problem


def bound(source: str, path: str, units: int) -> dict[str, Any]:
    """The contender: the same inputs recorded the same way, then the rows and nothing else."""
    app, log = make_app(), open_log(f"sqlite:///{path}")
    record_inputs(app, log, [Input("waiting", f"k{number}", asked(number), f"i{number}") for number in range(units)])
    log.close()
    rows = written_rows(source)
    a_commit = UNITS_A_COMMIT * len(rows) // units
    # A Database of ours, for its settings: FULL sync, page cache and checkpoints as the contender has them.
    database = Database(parse_address(f"sqlite:///{path}"))
    insert = f"INSERT INTO events VALUES ({','.join('?' * len(rows[0]))})"
    began = time.perf_counter()
    for begin in range(0, len(rows), a_commit):
        with database.write() as connection:
            connection.executemany(insert, rows[begin : begin + a_commit])
    seconds = time.perf_counter() - began
    database.close()
    return {"seconds": seconds, "bytes": sum(len(row[-1]) for row in rows)}


def written_rows(source: str) -> list[tuple[Any, ...]]:
    """What the worker added, an activation's rows side by side, at growing positions."""
    database = Database(parse_address(f"sqlite:///{source}"))
    inputs = database.rows("SELECT count(*) FROM events WHERE type = 'input.received'")[0][0]
    rows = database.rows("SELECT * FROM events WHERE type <> 'input.received' ORDER BY stream_id, version")
    database.close()
    return [(inputs + place, *row[1:]) for place, row in enumerate(rows, 1)]
