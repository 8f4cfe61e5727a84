"""LangGraph with SqliteSaver or PostgresSaver: a graph of five nodes in a row, one LangGraph thread a unit, every step durable before the next.

``durability="sync"``. On SQLite: WAL and FULL sync as the saver sets them up, and units one after the other, for several
threads share the saver's one connection and were slower. On PostgreSQL: 8 threads, each with a saver and a connection of
its own, because one saver lets one thread in at a time. The first node's answer and the prompt are those of our own workload.
"""

from __future__ import annotations

import sqlite3
import threading
from contextlib import ExitStack
from operator import add
from pathlib import Path
from typing import Annotated, Any, Final, TypedDict

from langgraph.graph import END, START, StateGraph

from ..workload import ANSWER, asked, prompt
from .side_by_side import seconds_of

THREADS: Final = 8
STEPS: Final = {"answer": ANSWER, "intent": "pay", "outcome": "paid", "receipt": "r-1", "closing": "done"}

_WEIGHT: Final = "SELECT sum(pg_total_relation_size(oid))::bigint AS bytes FROM pg_class WHERE relkind = 'r' AND relname LIKE 'checkpoint%'"


class Refund(TypedDict, total=False):
    prompt: str
    answer: str
    intent: str
    outcome: str
    receipt: str
    closing: str


class Talk(TypedDict):
    messages: Annotated[list[str], add]


def sqlite(place: str, count: int) -> dict[str, Any]:
    """The contender: ``count`` units in a file in the folder ``place``."""
    from langgraph.checkpoint.sqlite import SqliteSaver

    with SqliteSaver.from_conn_string(str(Path(place) / "langgraph.db")) as saver:
        graph = _five_steps().compile(checkpointer=saver)
        seconds = seconds_of(lambda number: _run(graph, number), range(count + 1), 1)
        return {"seconds": seconds, "synchronous": saver.conn.execute("PRAGMA synchronous").fetchone()[0]}


def postgresql(place: str, count: int) -> dict[str, Any]:
    """The contender: ``count`` units in the database at the URL ``place``."""
    from langgraph.checkpoint.postgres import PostgresSaver

    own = threading.local()
    with ExitStack() as held:

        def graph() -> Any:
            if not hasattr(own, "graph"):
                saver = held.enter_context(PostgresSaver.from_conn_string(place))
                own.graph = _five_steps().compile(checkpointer=saver)
            return own.graph

        with PostgresSaver.from_conn_string(place) as first:
            first.setup()
        return {"seconds": seconds_of(lambda number: _run(graph(), number), range(count + THREADS), THREADS)}


def growth_on_sqlite(place: str, ages: list[int], window: int) -> dict[str, Any]:
    """Bytes on disk a step, at several ages of one thread, in a file in the folder ``place``."""
    from langgraph.checkpoint.sqlite import SqliteSaver

    path = Path(place) / "langgraph.db"
    with SqliteSaver.from_conn_string(str(path)) as saver:

        def weigh() -> int:
            saver.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            return _bytes(path)

        return {"bytes": _growth(saver, weigh, ages, window)}


def growth_on_postgresql(place: str, ages: list[int], window: int) -> dict[str, Any]:
    """The same in the database at the URL ``place``: its tables, their indexes and what lies out of line."""
    from langgraph.checkpoint.postgres import PostgresSaver

    with PostgresSaver.from_conn_string(place) as saver:
        saver.setup()

        def weigh() -> int:
            return int(saver.conn.execute(_WEIGHT).fetchone()["bytes"])

        return {"bytes": _growth(saver, weigh, ages, window)}


def _growth(saver: Any, weigh: Any, ages: list[int], window: int) -> list[float]:
    """Bytes a step at several ages of one thread whose list of messages grows by 500 characters a step."""
    building = StateGraph(Talk)
    building.add_node("speak", lambda state: {"messages": ["m" * 500]})
    building.add_edge(START, "speak")
    building.add_edge("speak", END)
    graph = building.compile(checkpointer=saver)
    weights: list[float] = []
    done = 0
    for age in ages:
        marks = []
        for target in (age, age + window):
            for _ in range(target - done):
                graph.invoke({"messages": []}, {"configurable": {"thread_id": "one"}}, durability="sync")
            done = target
            marks.append(weigh())
        weights.append((marks[1] - marks[0]) / window)
    return weights


def _bytes(path: Path) -> int:
    connection = sqlite3.connect(path)
    try:
        return int(
            connection.execute("SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size").fetchone()[0]
        )
    finally:
        connection.close()


def _run(graph: Any, number: int) -> None:
    question = asked(number)
    text = prompt(question.order, question.cents, question.words)
    graph.invoke({"prompt": text}, {"configurable": {"thread_id": f"k{number}"}}, durability="sync")


def _five_steps() -> Any:
    building = StateGraph(Refund)
    before = START
    for name, text in STEPS.items():
        building.add_node(f"do_{name}", lambda state, name=name, text=text: {name: text})
        building.add_edge(before, f"do_{name}")
        before = f"do_{name}"
    building.add_edge(before, END)
    return building
