"""A planned batch as the parameters of the statements that write it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from operator import itemgetter
from typing import Any, Final

import attrs

from ..clock import Micros
from ..errors import TerminalError
from ..names import category_of
from ..planning import KEEP, Plan
from .arrays import blobs, integers, texts

#: A payload above this many bytes is kept beside the events, once for all that have it.
LARGEST_INLINE: Final = 64 << 10
#: What one statement may carry: a batch beyond it is written by several, in one transaction.
_MOST_BYTES: Final = 4 << 20
_MOST_ROWS: Final = 5_000
#: Places in a transaction are the last 20 bits of a position.
_MOST_EVENTS: Final = (1 << 20) - 1
#: Values of an event in a plan: position, stream, version, id, type, schema, moment, correlation, causation, data.
_WIDTH: Final = 10

Columns = tuple[Sequence[Any], ...]


@attrs.frozen
class Batch:
    """What is written, in the order in which every writer writes. Columns of equal length."""

    now: Micros
    #: Streams by name: name, category, expected head, events to come.
    streams: Columns
    #: Events by stream and version: place, stream (from 1), step, schema, id, correlation, causation, type, digest, data.
    events: Columns
    #: Schedule rows by queue and name: queue, name, token, release, mode, moment.
    moves: Columns
    #: Payloads by digest: digest, data.
    payloads: Columns
    #: Whether one statement carries all of it.
    small: bool

    def at_once(self) -> tuple[Any, ...]:
        """The parameters of ``append_events``."""
        return (self.now, *_stream_arrays(self.streams), *_event_arrays(self.events), *_move_arrays(self.moves), *map(blobs, self.payloads))

    def in_one(self) -> tuple[str, tuple[Any, ...]]:
        """A statement that writes a small batch and gives the base of its positions and its streams' heads, and its parameters.

        A few events for one stream that has some, at its head, are most of what is appended one by one: there is a shorter one for them.
        """
        names, _, expected, growth = self.streams
        if len(names) != 1 or expected[0] < 0 or not growth[0] or self.moves[0] or self.payloads[0]:
            return "append_events", self.at_once()
        _, _, steps, schemas, ids, correlations, causations, types, _, contents = self.events
        arrays = integers(steps), integers(schemas), blobs(ids), blobs(correlations), blobs(causations), texts(types), blobs(contents)
        return "append_to_one", (self.now, names[0], expected[0], *arrays)

    def stream_arrays(self) -> tuple[Any, ...]:
        """The parameters of ``begin_append``."""
        return _stream_arrays(self.streams)

    def event_arrays(self, base: int, ids: Sequence[int], heads: Sequence[int]) -> Iterator[tuple[Any, ...]]:
        """The parameters of ``insert_events``, a few megabytes at a time: ``base``, ``ids`` and ``heads`` are what ``begin_append`` gave."""
        places, streams, steps, *rest = self.events
        positions = [base + place for place in places]
        numbers = [ids[stream - 1] for stream in streams]
        versions = [heads[stream - 1] + step for stream, step in zip(streams, steps, strict=True)]
        whole: Columns = (positions, numbers, versions, *rest)
        for begin, end in _helpings(whole[-1]):
            yield (self.now, *_event_arrays([column[begin:end] for column in whole]))

    def move_arrays(self) -> tuple[Any, ...]:
        """The parameters of ``move_schedule``."""
        return _move_arrays(self.moves)

    def payload_arrays(self) -> Iterator[tuple[Any, ...]]:
        """The parameters of ``insert_blobs``, a few megabytes at a time, or one payload that is larger than that."""
        digests, contents = self.payloads
        for begin, end in _helpings(contents):
            yield blobs(digests[begin:end]), blobs(contents[begin:end])


def batch_of(plan: Plan, streams: Mapping[str, int], starts: Mapping[str, int], tokens: Mapping[tuple[str, str], int]) -> Batch:
    """``plan`` as columns: ``streams`` by name with the head each must have, ``starts`` where the plan took them to be.

    Raises ``TerminalError`` for more events than one transaction can hold.
    """
    names = list(streams)
    growth = [plan.heads[name] - starts[name] for name in names]
    events, payloads = _events(plan.values, growth)
    held = [(*key, tokens.get(key), *_move(plan, key)) for key in sorted({*plan.moves, *tokens})]
    moves = tuple(zip(*held, strict=True)) if held else ((),) * 6
    large = sum(map(len, events[-1])) + sum(map(len, payloads[1])) > _MOST_BYTES or len(events[0]) > _MOST_ROWS
    return Batch(plan.now, (names, list(map(category_of, names)), list(streams.values()), growth), events, moves, payloads, not large)


def _move(plan: Plan, key: tuple[str, str]) -> tuple[int, int, Micros | None]:
    mode, at, release = plan.moves.get(key, (KEEP, None, False))
    return int(release), mode, at


def _events(values: list[Any], growth: Sequence[int]) -> tuple[Columns, Columns]:
    laid = [values[column::_WIDTH] for column in range(_WIDTH)]
    count = len(laid[0])
    if count > _MOST_EVENTS:
        raise TerminalError(f"A batch of {count} events is more than one transaction can hold ({_MOST_EVENTS}). Send fewer requests at once.")
    by_stream = laid[1]
    columns: Columns = tuple(laid)
    if any(map(int.__gt__, by_stream, by_stream[1:])):
        order = itemgetter(*sorted(range(count), key=by_stream.__getitem__))
        columns = tuple(order(column) for column in columns)
    places, streams, _, ids, types, schemas, _, correlations, causations, contents = columns
    steps = [step for grown in growth if grown for step in range(1, grown + 1)]
    digests: list[bytes | None] = [None] * count
    payloads: dict[bytes, bytes] = {}
    if count and max(map(len, contents)) > LARGEST_INLINE:
        contents = list(contents)
        for place, content in enumerate(contents):
            if len(content) > LARGEST_INLINE:
                digest = digests[place] = sha256(content).digest()
                payloads[digest] = content
                contents[place] = b""
    sorted_payloads = sorted(payloads.items())
    return (
        (places, streams, steps, schemas, ids, correlations, causations, types, digests, contents),
        ([digest for digest, _ in sorted_payloads], [content for _, content in sorted_payloads]),
    )


def _helpings(contents: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    """Ranges of rows that one statement carries."""
    begin = size = 0
    for place, content in enumerate(contents):
        if place > begin and (size + len(content) > _MOST_BYTES or place - begin == _MOST_ROWS):
            yield begin, place
            begin, size = place, 0
        size += len(content)
    if begin < len(contents):
        yield begin, len(contents)


def _stream_arrays(columns: Columns) -> tuple[Any, ...]:
    names, categories, expected, growth = columns
    return texts(names), texts(categories), integers(expected), integers(growth)


def _event_arrays(columns: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
    places, streams, steps, schemas, ids, correlations, causations, types, digests, contents = columns
    return (*map(integers, (places, streams, steps, schemas)), *map(blobs, (ids, correlations, causations)), texts(types), blobs(digests), blobs(contents))


def _move_arrays(columns: Columns) -> tuple[Any, ...]:
    queues, names, *numbers = columns
    return (texts(queues), texts(names), *map(integers, numbers))
