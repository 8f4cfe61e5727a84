"""DBOS: a workflow of five recorded steps a unit, with the prompt as its input; on SQLite and on PostgreSQL.

On SQLite, as it is installed, it keeps the rollback journal with FULL sync; ``wal`` switches the file before the first
start, which DBOS itself does not do. Units run one after the other there: threads were slower. On PostgreSQL 16 threads
run units at once, with a pool that has a connection for each.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, Final

import psycopg
from dbos import DBOS

from ..workload import ANSWER, asked, prompt
from .side_by_side import seconds_of

THREADS: Final = 16
_QUIET: Final = {"console_log_level": "ERROR", "log_level": "ERROR"}
_COUNT: Final = "SELECT count(*) FROM {}operation_outputs"


def _answer(text: str) -> str:
    return ANSWER


def _small(text: str) -> str:
    return text


def _refund(text: str) -> str:
    answer(text)
    for name in ("pay", "paid", "r-1", "done"):
        small(name)
    return "done"


answer = DBOS.step()(_answer)
small = DBOS.step()(_small)
refund = DBOS.workflow()(_refund)


def sqlite(place: str, count: int, wal: bool = False) -> dict[str, Any]:
    """The contender: ``count`` workflows of five steps in a file in the folder ``place``."""
    path = Path(place) / "dbos.db"
    if wal:
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA journal_mode = wal").fetchall()
        connection.close()
    seconds = _run({"system_database_url": f"sqlite:///{path}"}, count, 1)
    connection = sqlite3.connect(path)
    _check(connection.execute(_COUNT.format("")).fetchone()[0], count + 1)
    connection.close()
    return {"seconds": seconds}


def postgresql(place: str, count: int) -> dict[str, Any]:
    """The contender: ``count`` workflows of five steps in the database at the URL ``place``."""
    seconds = _run({"system_database_url": place, "sys_db_pool_size": THREADS + 4}, count, THREADS)
    with psycopg.connect(place) as connection:
        found = connection.execute(_COUNT.format("dbos.")).fetchone()
        _check(found[0] if found else 0, count + THREADS)
    return {"seconds": seconds}


def _run(config: dict[str, Any], count: int, threads: int) -> float:
    DBOS(config={"name": "bench", **_QUIET, **config})
    DBOS.launch()
    questions = [asked(number) for number in range(count + threads)]
    texts = [prompt(each.order, each.cents, each.words) for each in questions]
    seconds = seconds_of(refund, texts, threads)
    DBOS.destroy()
    return seconds


def _check(steps: int, workflows: int) -> None:
    if steps != 5 * workflows:
        raise RuntimeError(f"DBOS recorded {steps} steps for {workflows} workflows of five")
