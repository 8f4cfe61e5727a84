"""Appending: fetch what a batch needs to know, plan it, write it in as few statements as there are kinds of rows, commit once."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from ..clock import Clock
from ..errors import WrongExpectedVersion
from ..events import StoredEvent
from ..log import AppendRequest, Outcome
from ..planning import SET, SOONER, Decision, Known, LookCloser, Mismatch, Move, Plan, check_requests
from ..reading import to_event
from ..versions import EMPTY, NO_STREAM
from .connection import Database
from .statements import for_rows, statement
from .waiting import Signal

#: Rows of one INSERT, and of one list of things to look up.
_ROWS: Final = 128
_SINCE_LIMIT: Final = 1_000


class Appender:
    """The writing half of the log."""

    def __init__(self, database: Database, clock: Clock, signal: Signal) -> None:
        self._database = database
        self._clock = clock
        self._signal = signal

    def append_batch(self, requests: Sequence[AppendRequest]) -> list[Outcome]:
        """See ``EventLog.append_batch``."""
        check_requests(requests, self._database.memo.ids)
        if not requests:
            return []
        try:
            return self._attempt(requests, thorough=False)
        except LookCloser:
            return self._attempt(requests, thorough=True)

    def _attempt(self, requests: Sequence[AppendRequest], *, thorough: bool) -> list[Outcome]:
        memo = self._database.memo
        with self._database.write() as connection:
            plan, decisions = self._plan(connection, requests, thorough)
            try:
                _store(connection, plan)
            except sqlite3.IntegrityError as error:
                if plan.thorough:
                    raise
                raise LookCloser from error
            outcomes: list[Outcome] = [_since(connection, plan, each) if isinstance(each, Mismatch) else each for each in decisions]
            # Under the write lock; a failing commit forgets all of it.
            memo.position = plan.position
            memo.heads.update(plan.heads)
            for key, (_, _, release) in plan.moves.items():
                if release:
                    memo.leases.pop(key, None)
            memo.trim()
        # Only now: an id that was rolled back is given to another stream.
        memo.ids.update(plan.ids)
        if plan.values:
            self._signal.reached(plan.position)
        return outcomes

    def _plan(self, connection: sqlite3.Connection, requests: Sequence[AppendRequest], thorough: bool) -> tuple[Plan, list[Decision]]:
        plan = self._prepare(connection, requests, thorough)
        try:
            return plan, [plan.decide(request) for request in requests]
        except LookCloser:
            plan = self._prepare(connection, requests, True)
            return plan, [plan.decide(request) for request in requests]

    def _prepare(self, connection: sqlite3.Connection, requests: Sequence[AppendRequest], thorough: bool) -> Plan:
        memo = self._database.memo
        if memo.position is None:
            found = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'events'").fetchone()
            memo.position = found[0] if found else 0
        ids: dict[str, int] = {}
        heads: dict[str, int] = {}
        missing: list[str] = []
        fenced: dict[tuple[str, str], int | None] = {}
        loose: list[AppendRequest] = []
        for request in requests:
            for part in request.parts:
                stream, expected = part.stream, part.expected
                if expected.__class__ is not int and expected is not NO_STREAM and (not loose or loose[-1] is not request):
                    loose.append(request)
                if stream in heads:
                    continue
                number, head = memo.ids.get(stream), memo.heads.get(stream)
                if number is None or head is None:
                    missing.append(stream)
                    heads[stream] = EMPTY
                else:
                    ids[stream] = number
                    heads[stream] = head
            for fence in request.fences:
                key = (fence.queue, fence.name)
                fenced[key] = memo.leases.get(key)
        for name, number, head in _in_parts(connection, "find_streams", 1, missing):
            ids[name] = number
            heads[name] = head
        next_id = 0
        if len(ids) < len(heads):
            next_id = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM streams").fetchone()[0]
        held = {key: token for key, token in fenced.items() if token is not None}
        if len(held) < len(fenced):
            unsure = [value for key, token in fenced.items() if token is None for value in key]
            for queue, name, token in _in_parts(connection, "find_held", 2, unsure):
                held[queue, name] = memo.leases[queue, name] = token
        plan = Plan(self._clock(), memo.position, ids, heads, held, next_id, thorough=thorough)
        looked_up = requests if thorough else loose
        if looked_up:
            plan.known = _known(connection, looked_up, ids)
        return plan


def _store(connection: sqlite3.Connection, plan: Plan) -> None:
    if plan.new_streams:
        _write(connection, "insert_streams", 3, [value for row in plan.new_streams for value in row])
    if plan.values:
        _write(connection, "insert_events", 10, plan.values)
    if plan.moves:
        _move(connection, plan.moves)


def _write(connection: sqlite3.Connection, name: str, width: int, values: list[Any]) -> None:
    step = width * _ROWS
    if len(values) <= step:
        connection.execute(for_rows(name, width, len(values) // width), values)
        return
    for begin in range(0, len(values), step):
        part = values[begin : begin + step]
        connection.execute(for_rows(name, width, len(part) // width), part)


def _in_parts(connection: sqlite3.Connection, name: str, width: int, values: list[Any]) -> list[Any]:
    rows: list[Any] = []
    for begin in range(0, len(values), width * _ROWS):
        part = values[begin : begin + width * _ROWS]
        rows += connection.execute(for_rows(name, width, len(part) // width), part).fetchall()
    return rows


def _move(connection: sqlite3.Connection, moves: dict[tuple[str, str], Move]) -> None:
    """Moves of one kind go together; at most five kinds."""
    kinds: dict[tuple[int, bool], list[Any]] = {}
    for (queue, name), (mode, at, release) in moves.items():
        values = kinds.get((mode, release))
        if values is None:
            values = kinds[mode, release] = []
        values += (queue, name, at)
    for (mode, release), values in kinds.items():
        for begin in range(0, len(values), 3 * _ROWS):
            part = values[begin : begin + 3 * _ROWS]
            connection.execute(moving(mode, release, len(part) // 3), part)


@lru_cache(maxsize=1024)
def moving(mode: int, release: bool, count: int) -> str:
    """The statement that makes ``count`` moves of one kind."""
    changes = []
    if mode == SET:
        changes.append("wake_at = excluded.wake_at")
    elif mode == SOONER:
        changes.append("wake_at = min(coalesce(schedule.wake_at, excluded.wake_at), excluded.wake_at)")
    if release:
        changes.append("owner = NULL, lease_until = NULL")
    return for_rows("move_wakes", 3, count).replace(":moves", ", ".join(changes))


def _known(connection: sqlite3.Connection, requests: Sequence[AppendRequest], ids: dict[str, int]) -> dict[str, dict[bytes, Known]]:
    names: dict[int, str] = {}
    wanted: list[Any] = []
    for request in requests:
        for part in request.parts:
            number = ids.get(part.stream)
            if number is not None:
                names[number] = part.stream
                for event in part.events:
                    wanted += (event.event_id, number)
    known: dict[str, dict[bytes, Known]] = {}
    for number, event_id, *rest in _in_parts(connection, "find_ids", 2, wanted):
        known.setdefault(names[number], {})[event_id] = Known(*rest)
    return known


def _since(connection: sqlite3.Connection, plan: Plan, mismatch: Mismatch) -> WrongExpectedVersion:
    """The error with what the writer has not seen; later requests of the batch are no part of it."""
    stream, expected, actual = mismatch
    events: list[StoredEvent] = []
    number = plan.ids.get(stream)
    if number is not None and (expected is NO_STREAM or isinstance(expected, int)):
        after = expected if isinstance(expected, int) else EMPTY
        cursor = connection.execute(statement("read_forwards"), (stream, number, max(after, EMPTY), actual))
        events = list(map(to_event, cursor.fetchmany(_SINCE_LIMIT)))
        cursor.close()
    return WrongExpectedVersion(stream, expected, actual, events)
