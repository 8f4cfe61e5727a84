"""LangGraph with SqliteSaver: a graph of five nodes in a row, one thread a unit, every step durable before the next.

``durability="sync"``; WAL and FULL sync as the saver sets them up. Units run one after the other: several threads share
the saver's one connection and were slower. The first node's answer and the prompt are those of our own workload.
"""

from __future__ import annotations

import sqlite3
import time
from operator import add
from pathlib import Path
from typing import Annotated, Any, Final, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

from ..workload import ANSWER, asked, prompt

STEPS: Final = {"answer": ANSWER, "intent": "pay", "outcome": "paid", "receipt": "r-1", "closing": "done"}


class Refund(TypedDict, total=False):
    prompt: str
    answer: str
    intent: str
    outcome: str
    receipt: str
    closing: str


class Talk(TypedDict):
    messages: Annotated[list[str], add]


def units(folder: str, count: int) -> dict[str, Any]:
    """The contender: ``count`` threads of five recorded steps."""
    with SqliteSaver.from_conn_string(str(Path(folder) / "langgraph.db")) as saver:
        graph = _five_steps().compile(checkpointer=saver)

        def run(number: int) -> None:
            question = asked(number)
            text = prompt(question.order, question.cents, question.words)
            graph.invoke({"prompt": text}, {"configurable": {"thread_id": f"k{number}"}}, durability="sync")

        run(count)  # the first one makes the tables
        began = time.perf_counter()
        for number in range(count):
            run(number)
        seconds = time.perf_counter() - began
        return {"seconds": seconds, "synchronous": saver.conn.execute("PRAGMA synchronous").fetchone()[0]}


def growth(folder: str, ages: list[int], window: int) -> dict[str, Any]:
    """Bytes on disk a step at several ages of one thread whose list of messages grows by 500 characters a step."""
    path = Path(folder) / "langgraph.db"
    building = StateGraph(Talk)
    building.add_node("speak", lambda state: {"messages": ["m" * 500]})
    building.add_edge(START, "speak")
    building.add_edge("speak", END)
    weights: list[float] = []
    with SqliteSaver.from_conn_string(str(path)) as saver:
        graph = building.compile(checkpointer=saver)
        done = 0
        for age in ages:
            marks = []
            for target in (age, age + window):
                for _ in range(target - done):
                    graph.invoke({"messages": []}, {"configurable": {"thread_id": "one"}}, durability="sync")
                done = target
                saver.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                marks.append(_bytes(path))
            weights.append((marks[1] - marks[0]) / window)
    return {"bytes": weights}


def _bytes(path: Path) -> int:
    connection = sqlite3.connect(path)
    try:
        return int(
            connection.execute("SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size").fetchone()[0]
        )
    finally:
        connection.close()


def _five_steps() -> Any:
    building = StateGraph(Refund)
    before = START
    for name, text in STEPS.items():
        building.add_node(f"do_{name}", lambda state, name=name, text=text: {name: text})
        building.add_edge(before, f"do_{name}")
        before = f"do_{name}"
    building.add_edge(before, END)
    return building
