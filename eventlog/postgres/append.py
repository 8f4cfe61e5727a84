"""Appending: first at the requests' word, in one round trip; what is refused then is looked at closely and decided here.

Most batches are what they say: streams are where they are expected to be, leases are held, ids are new. The server checks
that while it writes (``sql/002_append.sql``, which also says why positions are in order) and keeps nothing when it is not
so. Then everything the batch is about is locked, read and planned by the rules that all stores share.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

import attrs
import psycopg

from ..clock import Clock
from ..errors import LogUnavailable, WrongExpectedVersion
from ..log import Appended, AppendRequest, Duplicate, Outcome
from ..planning import Decision, Known, LookCloser, Mismatch, Plan, check_requests
from ..versions import ANY, EMPTY, EXISTS, NO_STREAM, ExpectedVersion
from .arrays import blobs, integers, texts
from .batch import LARGEST_INLINE, Batch, batch_of
from .connection import Database
from .faults import is_lost
from .pooling import Connection
from .reading import Reader
from .statements import statement
from .waiting import Signal

#: Heads that the server fills in: whatever there is; whatever but none.
_ANY: Final = -2
_EXISTS: Final = -3
#: Where a plan takes a stream to be whose head the server fills in. No stream is that long.
_SOMEWHERE: Final = 1 << 40
#: Positions below count from the beginning of a batch; its transaction's id is not known while it is planned.
_FIRST_POSITION: Final = 1 << 20
#: Somebody else was faster, or the batch is not what it says: IL001 is our own (sql/002_append.sql).
_RACES: Final = ("IL001", "23505", "40P01", "40001")
_PATIENCE: Final = 30.0
_FIRST_PAUSE: Final = 0.002
_LONGEST_PAUSE: Final = 0.25
#: Locks take room in the server, and each stream whose head it fills in takes one. A batch of more streams goes without: their heads are
#: read first, and it may have to be tried again.
_MOST_LOCKS: Final = 1_000
_SINCE_LIMIT: Final = 1_000
_MOST_NAMES: Final = 100_000


class Digested(bytes):
    """The SHA-256 of stored bytes. Equal to whatever bytes have it, so that a repetition is told without fetching them."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, bytes) and len(other) > LARGEST_INLINE and sha256(other).digest() == bytes(self)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = bytes.__hash__


@attrs.frozen
class _Place:
    """Where a batch was written: positions begin behind ``base``; the heads its streams had, by name."""

    base: int
    heads: Mapping[str, int]


class Appender:
    """The writing half of the log."""

    def __init__(self, database: Database, clock: Clock, reader: Reader, signal: Signal) -> None:
        self._database = database
        self._clock = clock
        self._reader = reader
        self._signal = signal
        #: Names that have been looked at already.
        self._names: dict[str, int] = {}

    def append_batch(self, requests: Sequence[AppendRequest]) -> list[Outcome]:
        """See ``EventLog.append_batch``."""
        check_requests(requests, self._names)
        if not requests:
            return []
        try:
            outcomes = self._at_their_word(requests)
        except LookCloser:
            outcomes = self._closely(requests)
        self._remember(requests)
        return outcomes

    def _at_their_word(self, requests: Sequence[AppendRequest]) -> list[Outcome]:
        """Raises ``LookCloser`` when anything may not be as the requests say; nothing is kept then."""
        expected, tokens = _their_word(requests)
        if len(expected) > _MOST_LOCKS and sum(head < EMPTY for head in expected.values()) > _MOST_LOCKS:
            raise LookCloser
        starts = {name: head if head >= EMPTY else _SOMEWHERE for name, head in expected.items()}
        plan = Plan(self._clock(), 0, _numbers(expected), dict(starts), dict(tokens), 0)
        decisions = [plan.decide(request) for request in requests]
        if not all(isinstance(decision, Appended) for decision in decisions):
            raise LookCloser
        batch = batch_of(plan, expected, starts, tokens)
        if batch.small:
            place = self._in_one_statement(batch)
        else:
            with self._database.transaction() as connection:
                place = _racing(connection, batch)
        return self._settled(requests, decisions, starts, place, plan.position)

    def _in_one_statement(self, batch: Batch) -> _Place:
        try:
            name, values = batch.in_one()
            found = self._database.call(statement(name), values)
        except (psycopg.Error, UnicodeEncodeError) as error:
            if getattr(error, "sqlstate", None) in _RACES:
                raise LookCloser from error
            raise self._database.translated(error) from error
        if found is None:
            raise LookCloser
        base, heads = found
        return _Place(base, dict(zip(batch.streams[0], heads, strict=True)))

    def _closely(self, requests: Sequence[AppendRequest]) -> list[Outcome]:
        """Everything is read before it is written, so that each request gets the outcome it would get alone; again, while others interfere."""
        deadline = time.monotonic() + _PATIENCE
        pause = _FIRST_PAUSE
        while True:
            try:
                return self._once_closely(requests)
            except LookCloser as again:
                if time.monotonic() >= deadline:
                    raise LogUnavailable(
                        f"{self._database.address.shown}: other writers were faster for {_PATIENCE:g} s, so nothing of this batch was kept. "
                        "Let one writer have a stream at a time (a lease does that), or try again."
                    ) from again
            time.sleep(random.uniform(pause / 2, pause))
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _once_closely(self, requests: Sequence[AppendRequest]) -> list[Outcome]:
        names = sorted({part.stream for request in requests for part in request.parts})
        with self._database.transaction() as connection:
            if len(names) <= _MOST_LOCKS:
                connection.execute(statement("lock_streams"), (texts(names),))
            ids, heads = _find_heads(connection, names)
            plan = Plan(self._clock(), 0, _numbers(names), dict(heads), _find_held(connection, requests), 0, thorough=True)
            held = dict(plan.held)
            plan.known = _find_known(connection, requests, ids)
            decisions = [plan.decide(request) for request in requests]
            winners = [request for request, decision in zip(requests, decisions, strict=True) if isinstance(decision, Appended)]
            tokens = {(fence.queue, fence.name): held[fence.queue, fence.name] for request in winners for fence in request.fences}
            place = _Place(0, heads)
            if winners:
                place = _racing(connection, batch_of(plan, heads, heads, tokens))
        return self._settled(requests, decisions, heads, place, plan.position)

    def _settled(self, requests: Sequence[AppendRequest], decisions: Sequence[Decision], starts: Mapping[str, int], place: _Place, last: int) -> list[Outcome]:
        """Decisions with the places that were not known when they were made."""
        base, heads = place.base, place.heads
        outcomes: list[Outcome] = []
        for request, decision in zip(requests, decisions, strict=True):
            if isinstance(decision, Mismatch):
                outcomes.append(self._since(decision))
            elif isinstance(decision, Appended | Duplicate):
                firsts = [first - starts[part.stream] + heads[part.stream] for part, first in zip(request.parts, decision.first_versions, strict=True)]
                placing = _in_a_row if isinstance(decision, Appended) else _placed
                outcomes.append(type(decision)(tuple(firsts), tuple([placing(found, base) for found in decision.positions])))
            else:
                outcomes.append(decision)
        if last:
            self._signal.reached(base + last)
        return outcomes

    def _since(self, mismatch: Mismatch) -> WrongExpectedVersion:
        """The error with what the writer has not seen; later requests of the batch are no part of it."""
        stream, expected, actual = mismatch
        exact = EMPTY if expected is NO_STREAM else expected
        if not isinstance(exact, int):
            return WrongExpectedVersion(stream, expected, actual)
        return WrongExpectedVersion(stream, expected, actual, list(self._reader.read(stream, max(exact, EMPTY), actual, _SINCE_LIMIT, False)))

    def _remember(self, requests: Sequence[AppendRequest]) -> None:
        if len(self._names) > _MOST_NAMES:
            self._names.clear()
        for request in requests:
            for part in request.parts:
                self._names[part.stream] = 1


def _in_a_row(found: Sequence[int], base: int) -> tuple[int, ...]:
    return tuple(range(base + found[0], base + found[-1] + 1)) if found else ()


def _placed(found: Sequence[int], base: int) -> tuple[int, ...]:
    """A duplicate's places may be of this batch, or of long ago."""
    return tuple([place + base if place < _FIRST_POSITION else place for place in found])


def _numbers(names: Sequence[str] | Mapping[str, int]) -> dict[str, int]:
    return {name: number for number, name in enumerate(names, 1)}


def _their_word(requests: Sequence[AppendRequest]) -> tuple[dict[str, int], dict[tuple[str, str], int]]:
    """Where the requests say that streams are, by name in order, and under which tokens they say that names are held.

    Raises ``LookCloser`` when they contradict each other or say too little.
    """
    expected: dict[str, int] = {}
    tokens: dict[tuple[str, str], int] = {}
    grown: set[str] = set()
    for request in requests:
        for part in request.parts:
            stream, said = part.stream, part.expected
            head = expected.get(stream)
            if head is None:
                expected[stream] = _head_of(said)
            elif head < EMPTY:
                if said is not ANY and said is not EXISTS:
                    raise LookCloser
                if said is EXISTS and stream not in grown:
                    expected[stream] = _EXISTS
            if part.events:
                grown.add(stream)
        for fence in request.fences:
            tokens.setdefault((fence.queue, fence.name), fence.token)
    return {name: expected[name] for name in sorted(expected)}, tokens


def _head_of(said: ExpectedVersion) -> int:
    if said is ANY:
        return _ANY
    if said is EXISTS:
        return _EXISTS
    if said is NO_STREAM:
        return EMPTY
    if not isinstance(said, int) or said < EMPTY:  # no stream is there
        raise LookCloser
    return said


def _racing(connection: Connection, batch: Batch) -> _Place:
    """Write ``batch`` inside a transaction. Raises ``LookCloser``, which undoes it, when somebody else was faster."""
    try:
        return _write(connection, batch)
    except psycopg.Error as error:
        if error.sqlstate in _RACES and not is_lost(error):
            raise LookCloser from error
        raise


def _write(connection: Connection, batch: Batch) -> _Place:
    names = batch.streams[0]
    if batch.small:
        base, heads = _one(connection, "append_events", batch.at_once())
        return _Place(base, dict(zip(names, heads, strict=True)))
    base, ids, heads = _one(connection, "begin_append", batch.stream_arrays())
    for values in batch.event_arrays(base, ids, heads):
        connection.execute(statement("insert_events"), values, prepare=True)
    if batch.moves[0]:
        connection.execute(statement("move_schedule"), batch.move_arrays())
        stream_names, _, *heads_and_growth = batch.stream_arrays()
        connection.execute(statement("check_unchanged"), (stream_names, *heads_and_growth))
    for values in batch.payload_arrays():
        connection.execute(statement("insert_blobs"), values)
    return _Place(base, dict(zip(names, heads, strict=True)))


def _one(connection: Connection, name: str, values: Sequence[Any]) -> tuple[Any, ...]:
    (row,) = connection.execute(statement(name), values, binary=True, prepare=True).fetchall()
    return row


def _find_heads(connection: Connection, names: Sequence[str]) -> tuple[dict[str, int], dict[str, int]]:
    """Ids of the streams there are, and heads of all."""
    ids: dict[str, int] = {}
    heads = dict.fromkeys(names, EMPTY)
    for name, number, head in connection.execute(statement("find_heads"), (texts(names),), binary=True):
        ids[name], heads[name] = number, head
    return ids, heads


def _find_held(connection: Connection, requests: Sequence[AppendRequest]) -> dict[tuple[str, str], int]:
    keys = list({(fence.queue, fence.name) for request in requests for fence in request.fences})
    if not keys:
        return {}
    values = texts([queue for queue, _ in keys]), texts([name for _, name in keys])
    return {(queue, name): token for queue, name, token in connection.execute(statement("find_held"), values, binary=True)}


def _find_known(connection: Connection, requests: Sequence[AppendRequest], ids: Mapping[str, int]) -> dict[str, dict[bytes, Known]]:
    names = {number: name for name, number in ids.items()}
    wanted = [(event.event_id, ids[part.stream]) for request in requests for part in request.parts if part.stream in ids for event in part.events]
    if not wanted:
        return {}
    values = blobs([event_id for event_id, _ in wanted]), integers([number for _, number in wanted])
    known: dict[str, dict[bytes, Known]] = {}
    for number, event_id, version, position, kind, schema, content, blob in connection.execute(statement("find_ids"), values, binary=True):
        known.setdefault(names[number], {})[event_id] = Known(version, position, kind, schema, content if blob is None else Digested(blob))
    return known
