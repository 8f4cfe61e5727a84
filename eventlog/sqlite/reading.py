"""Reading streams and the whole log, in chunks: every chunk is a short statement of its own that begins behind the last.

What a read covers is fixed when it is asked for, and its first chunk is fetched then; only the rest is lazy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from operator import itemgetter
from typing import Any, Final, cast

import attrs

from ..events import Row, StoredEvent
from ..versions import EMPTY
from .connection import Database
from .faults import misplaced
from .ranges import behind, is_storable, next_text
from .statements import for_rows, marks, statement

_NO_END: Final = (1 << 63) - 1
#: Positions that one filtered statement may look at, so that a rare type does not hold a snapshot of the file for long.
_WINDOW: Final = 20_000
_STREAMS_AT_ONCE: Final = 256
_NAMES_AT_ONCE: Final = 1_000
#: No statement asks for more rows than this; it is also what a chunk holds at most.
_MOST_ROWS: Final = 2_048
_DATA_IN_EVENT: Final = 6
#: What ``StoredEvent._make`` does, without its check of the length.
to_event: Final = cast("Callable[[Sequence[Any]], StoredEvent]", partial(tuple.__new__, StoredEvent))


@attrs.frozen
class _Shape:
    """A statement that reads a range of one stream, and where its rows keep what walking them needs."""

    statement: str
    version: int
    content: int
    #: Whether the stream's name is its first parameter.
    named: bool
    backwards: bool = False
    payloads: bool = True


_ROWS: Final = _Shape("read_rows", version=0, content=3, named=False)
_EVENTS: Final = {
    (backwards, payloads): _Shape("read_backwards" if backwards else "read_forwards", 2, _DATA_IN_EVENT, True, backwards, payloads)
    for backwards in (False, True)
    for payloads in (False, True)
}


def _selected(name: str, payloads: bool) -> str:
    """The statement ``name``, with an empty payload in place of each when they are not asked for."""
    return statement(name) if payloads else re.sub(r"\b(e\.)?data\b", "x''", statement(name))


class Reader:
    """The reading half of the log."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read(self, stream: str, after: int, upto: int | None, limit: int | None, backwards: bool, payloads: bool = True) -> Iterator[StoredEvent]:
        chunks = self._walk(_EVENTS[backwards, payloads], stream, after, upto, limit)
        return islice((event for chunk in chunks for event in map(to_event, chunk)), limit)

    def rows(self, stream: str, after: int, upto: int | None) -> Iterator[Sequence[Row]]:
        return self._walk(_ROWS, stream, after, upto, None)

    def rows_of(self, after: Mapping[str, int]) -> dict[str, list[Row]]:
        found: dict[str, list[Row]] = {stream: [] for stream in after}
        ids = self.ids_of(after)
        by_id = {number: found[stream] for stream, number in ids.items()}
        wanted = [(number, after[stream]) for stream, number in ids.items()]
        for begin in range(0, len(wanted), _STREAMS_AT_ONCE):
            part = wanted[begin : begin + _STREAMS_AT_ONCE]
            for row in self._database.rows(for_rows("read_rows_of", 2, len(part)), [value for pair in part for value in pair]):
                by_id[row[0]].append(row[1:])
        for rows in by_id.values():
            rows.sort(key=itemgetter(0))
        return found

    def read_all(
        self, after: int, upto: int | None, types: Iterable[str], categories: Iterable[str], limit: int | None, payloads: bool = True
    ) -> Iterator[StoredEvent]:
        end = self.last_position() if upto is None else min(upto, self.last_position())
        wanted_types = list(dict.fromkeys(types))
        wanted_categories = list(dict.fromkeys(categories))
        filters = f"AND e.type IN ({marks(len(wanted_types))})" if wanted_types else ""
        filters += f" AND s.category IN ({marks(len(wanted_categories))})" if wanted_categories else ""
        sql = _selected("read_all", payloads).replace(":filters", filters)
        return islice(self._all(sql, max(after, 0), end, [*wanted_types, *wanted_categories], limit), limit)

    def head(self, stream: str) -> int:
        if not is_storable(stream):
            return EMPTY
        found = self._database.rows(for_rows("find_streams", 1, 1), (stream,))
        if not found:
            return EMPTY
        head = found[0][2]
        if type(head) is not int:
            raise misplaced(self._database.path, "events", f"the last event of stream {stream!r:.200}", "version", head, "an integer")
        return head

    def last_position(self) -> int:
        return int(self._database.rows("SELECT coalesce(max(position), 0) FROM events")[0][0])

    def streams(self, prefix: str) -> Iterator[str]:
        if not is_storable(prefix):
            return iter(())
        return self._more_names(prefix, self._names(prefix, prefix))

    def ids_of(self, streams: Iterable[str]) -> dict[str, int]:
        """Ids of those of ``streams`` that exist."""
        known = self._database.memo.ids
        ids: dict[str, int] = {}
        unknown: list[str] = []
        for stream in streams:
            number = known.get(stream)
            if number is not None:
                ids[stream] = number
            elif is_storable(stream):
                unknown.append(stream)
        for begin in range(0, len(unknown), _STREAMS_AT_ONCE):
            part = unknown[begin : begin + _STREAMS_AT_ONCE]
            ids.update(self._database.rows(statement("find_stream_ids").replace(":names", marks(len(part))), part))
        for stream in unknown:
            if stream in ids:
                known[stream] = ids[stream]
        return ids

    def _walk(self, shape: _Shape, stream: str, after: int, upto: int | None, limit: int | None) -> Iterator[list[Any]]:
        number = self.ids_of((stream,)).get(stream)
        if number is None:
            self._database.rows("SELECT 1")  # a closed log says so here too
            return iter(())
        low, high = max(after, EMPTY), _NO_END if upto is None else min(upto, _NO_END)
        fixed = (stream, number) if shape.named else (number,)
        rows, done = self._chunk(_selected(shape.statement, shape.payloads), (*fixed, low, high), shape.content, limit)
        if done:
            return iter((rows,) if rows else ())
        if high == _NO_END and not shape.backwards:
            high = self.head(stream)
        return self._rest(shape, fixed, low, high, rows)

    def _rest(self, shape: _Shape, fixed: tuple[Any, ...], low: int, high: int, rows: list[Any]) -> Iterator[list[Any]]:
        sql = _selected(shape.statement, shape.payloads)
        while rows:
            yield rows
            if shape.backwards:
                high = rows[-1][shape.version] - 1
            else:
                low = rows[-1][shape.version]
            rows = self._chunk(sql, (*fixed, low, high), shape.content, None)[0] if low < high else []

    def _chunk(self, sql: str, parameters: tuple[Any, ...], column: int, limit: int | None) -> tuple[list[Any], bool]:
        if limit is None:
            return self._database.chunk(sql, parameters, column)
        return self._database.chunk(sql, parameters, column, min(max(limit, 1), _MOST_ROWS))

    def _all(self, sql: str, after: int, end: int, filters: list[str], limit: int | None) -> Iterator[StoredEvent]:
        while after < end:
            edge = min(end, after + _WINDOW)
            rows, done = self._chunk(sql, (after, edge, *filters), _DATA_IN_EVENT, limit)
            yield from map(to_event, rows)
            after = edge if done else rows[-1][0]

    def _names(self, begin: str, prefix: str) -> list[str]:
        return [name for (name,) in self._database.rows(statement("list_streams"), (begin, behind(prefix), _NAMES_AT_ONCE))]

    def _more_names(self, prefix: str, names: list[str]) -> Iterator[str]:
        while names:
            yield from names
            names = self._names(next_text(names[-1]), prefix) if len(names) == _NAMES_AT_ONCE else []
