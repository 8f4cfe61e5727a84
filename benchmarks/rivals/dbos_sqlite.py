"""DBOS on SQLite: a workflow of five recorded steps a unit, with the prompt as its input.

As it is installed it keeps SQLite's rollback journal with FULL sync; ``wal`` switches the file before the first start,
which DBOS itself does not do. Units run one after the other: threads were slower.
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any

from dbos import DBOS

from ..workload import ANSWER, asked, prompt


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


def units(folder: str, count: int, wal: bool = False) -> dict[str, Any]:
    """The contender: ``count`` workflows of five steps."""
    path = Path(folder) / "dbos.db"
    if wal:
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA journal_mode = wal").fetchall()
        connection.close()
    DBOS(config={"name": "bench", "system_database_url": f"sqlite:///{path}", "console_log_level": "ERROR", "log_level": "ERROR"})
    DBOS.launch()
    questions = [asked(number) for number in range(count + 1)]
    texts = [prompt(each.order, each.cents, each.words) for each in questions]
    refund(texts[0])
    began = time.perf_counter()
    for text in texts[1:]:
        refund(text)
    seconds = time.perf_counter() - began
    DBOS.destroy()
    connection = sqlite3.connect(path)
    (steps,) = connection.execute("SELECT count(*) FROM operation_outputs").fetchone()
    connection.close()
    if steps != 5 * (count + 1):
        raise RuntimeError(f"DBOS recorded {steps} steps for {count + 1} workflows of five")
    return {"seconds": seconds}
