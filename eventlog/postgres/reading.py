"""Reading streams and the whole log, in chunks: every chunk is a short statement of its own that begins behind the last.

What a read covers is fixed when it is asked for, and its first chunk is fetched then; only the rest is lazy.

The order of the whole log is that of the transactions' ids, and transactions do not end in that order. So nothing at or
above the *horizon* is shown, the id of the oldest transaction that is still running: below it everything has ended, and
no event can appear there any more. The horizon is taken in the statement that says how far the log is complete
(``last_position``); what lies up to there may then be read by any later statement. A single stream needs no horizon: its
order is that of its versions.
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
from .arrays import integers, texts
from .blobs import Payloads
from .connection import Database
from .statements import statement
from .texts import is_storable, ranged

_NO_END: Final = (1 << 63) - 1
#: Events that one filtered statement may look at, so that a rare type neither runs long nor holds a snapshot.
_WINDOW: Final = 20_000
#: Parameters that a filtered statement has before those of its filters.
_FILTERED_VALUES: Final = 4
_STREAMS_AT_ONCE: Final = 256
_NAMES_AT_ONCE: Final = 1_000
_DATA_IN_EVENT: Final = 6
#: What ``StoredEvent._make`` does, without its check of the length.
to_event: Final = cast("Callable[[Sequence[Any]], StoredEvent]", partial(tuple.__new__, StoredEvent))


@attrs.frozen
class _Shape:
    """A statement that reads a range of one stream, and where its rows keep what walking them needs."""

    sql: str
    version: int
    content: int
    backwards: bool = False
    payloads: bool = True


def _selected(name: str, payloads: bool) -> str:
    """The statement ``name``, with an empty payload in place of each when they are not asked for."""
    return statement(name) if payloads else re.sub(r"\b(e\.)?data\b", "''::bytea", statement(name))


_ROWS: Final = _Shape(statement("read_rows"), version=0, content=3)
_EVENTS: Final = {
    (backwards, payloads): _Shape(_selected("read_backwards" if backwards else "read_forwards", payloads), 2, _DATA_IN_EVENT, backwards, payloads)
    for backwards in (False, True)
    for payloads in (False, True)
}


class _Pace:
    """How many rows to ask for next, so that a chunk stays near 4 MB.

    The server cannot cheaply be asked for rows up to so many bytes, so the last chunk tells. Payloads in the rows are
    small (larger ones lie elsewhere), and after a chunk of small ones 1,024 of the largest would still be 64 MB.
    """

    first: Final = 128
    most: Final = 1_024
    least: Final = 16
    bytes: Final = 4 << 20
    _sample: Final = 32

    def __init__(self, content: int, limit: int | None = None) -> None:
        self._content = content
        self._left = limit
        self._size = self.first

    @property
    def size(self) -> int:
        return self._size if self._left is None else max(1, min(self._size, self._left))

    def saw(self, rows: Sequence[Any]) -> None:
        if self._left is not None:
            self._left -= len(rows)
        content = self._content
        seen = rows[:: len(rows) // self._sample + 1]
        mean = sum([len(row[content]) for row in seen]) // len(seen) + 1
        self._size = max(self.least, min(self.most, self.bytes // mean))


class Reader:
    """The reading half of the log."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._payloads = Payloads(database)
        #: The last answer of ``last_position``: up to there nothing can come any more.
        self._complete = 0

    def read(self, stream: str, after: int, upto: int | None, limit: int | None, backwards: bool, payloads: bool = True) -> Iterator[StoredEvent]:
        chunks = self._walk(_EVENTS[backwards, payloads], stream, after, upto, limit)
        return islice((event for chunk in chunks for event in map(to_event, chunk)), limit)

    def rows(self, stream: str, after: int, upto: int | None) -> Iterator[Sequence[Row]]:
        return self._walk(_ROWS, stream, after, upto, None)

    def rows_of(self, after: Mapping[str, int]) -> dict[str, list[Row]]:
        found: dict[str, list[Row]] = {stream: [] for stream in after}
        wanted = [stream for stream in after if is_storable(stream)]
        for begin in range(0, len(wanted), _STREAMS_AT_ONCE):
            part = wanted[begin : begin + _STREAMS_AT_ONCE]
            lists = [found[stream] for stream in part]
            for row in self._database.rows(statement("read_rows_of"), (texts(part), integers([after[stream] for stream in part]))):
                lists[row[0] - 1].append(cast("Row", row[1:]))
            for stream, rows in zip(part, lists, strict=True):
                rows.sort(key=itemgetter(0))
                if not all(map(itemgetter(_ROWS.content), rows)):
                    whole = self._payloads.of_stream(stream, rows, _ROWS.version, _ROWS.content)
                    rows[:] = [row for helping in whole for row in helping]
        return found

    def read_all(
        self, after: int, upto: int | None, types: Iterable[str], categories: Iterable[str], limit: int | None, payloads: bool = True
    ) -> Iterator[StoredEvent]:
        end = upto if upto is not None and upto <= self._complete else min(self.last_position(), _NO_END if upto is None else upto)
        filters, values = "", []
        for column, wanted in (("e.type", list(dict.fromkeys(types))), ("s.category", list(dict.fromkeys(categories)))):
            if wanted:
                values.append(texts(each for each in wanted if is_storable(each)))
                filters += f" AND {column} = ANY(${_FILTERED_VALUES + len(values)})"
        walk = self._filtered(filters, values, max(after, 0), end, limit, payloads) if values else self._all(max(after, 0), end, limit, payloads)
        return islice((event for chunk in walk for event in map(to_event, chunk)), limit)

    def head(self, stream: str) -> int:
        found = self._database.rows(statement("find_head"), (stream,)) if is_storable(stream) else self._nothing()
        return int(found[0][0]) if found else EMPTY

    def last_position(self) -> int:
        last = int(self._database.rows(statement("last_position"))[0][0])
        self._complete = last
        return last

    def streams(self, prefix: str = "") -> Iterator[str]:
        if not is_storable(prefix):
            return iter(self._nothing())
        return self._more_names(prefix, self._names(prefix, None))

    def _walk(self, shape: _Shape, stream: str, after: int, upto: int | None, limit: int | None) -> Iterator[list[Any]]:
        if not is_storable(stream):
            return iter(self._nothing())
        low, high = max(after, EMPTY), _NO_END if upto is None else min(upto, _NO_END)
        pace = _Pace(shape.content, limit)
        size = pace.size
        rows = self._database.rows(shape.sql, (stream, min(low, _NO_END), max(high, EMPTY), size))
        done = len(rows) < size
        if not done and high == _NO_END and not shape.backwards:
            high = self.head(stream)
        return self._rest(shape, stream, low, high, rows, done, pace)

    def _rest(self, shape: _Shape, stream: str, low: int, high: int, rows: list[Any], done: bool, pace: _Pace) -> Iterator[list[Any]]:
        while rows:
            if shape.payloads:
                yield from self._payloads.of_stream(stream, rows, shape.version, shape.content)
            else:
                yield rows
            if shape.backwards:
                high = rows[-1][shape.version] - 1
            else:
                low = rows[-1][shape.version]
            if done or low >= high:
                return
            pace.saw(rows)
            size = pace.size
            rows = self._database.rows(shape.sql, (stream, low, high, size))
            done = len(rows) < size

    def _all(self, after: int, end: int, limit: int | None, payloads: bool) -> Iterator[list[Any]]:
        sql = _selected("read_all", payloads)
        pace = _Pace(_DATA_IN_EVENT, limit)
        while after < end:
            size = pace.size
            rows = self._database.rows(sql, (after, end, size))
            if rows:
                yield from self._payloads.of_log(rows, _DATA_IN_EVENT) if payloads else (rows,)
            if len(rows) < size:
                return
            pace.saw(rows)
            after = rows[-1][0]

    def _filtered(self, filters: str, values: list[Any], after: int, end: int, limit: int | None, payloads: bool) -> Iterator[list[Any]]:
        sql = _selected("read_all_filtered", payloads).replace(":filters", filters)
        window = _selected("read_window", payloads).replace(":filters", filters)
        pace = _Pace(_DATA_IN_EVENT, limit)
        while after < end:
            size = pace.size
            rows = self._database.rows(window, (after, end, _WINDOW, size, *values))
            edge, rows = rows[0][-1], [row[:-1] for row in rows if row[0] is not None]
            if rows:
                yield from self._payloads.of_log(rows, _DATA_IN_EVENT) if payloads else (rows,)
                pace.saw(rows)
            after = edge if len(rows) < size else rows[-1][0]
            while after < edge:
                size = pace.size
                rows = self._database.rows(sql, (after, edge, _WINDOW, size, *values))
                if rows:
                    yield from self._payloads.of_log(rows, _DATA_IN_EVENT) if payloads else (rows,)
                    pace.saw(rows)
                after = edge if len(rows) < size else rows[-1][0]

    def _names(self, prefix: str, last: str | None) -> list[str]:
        return [name for (name,) in self._database.rows(*ranged(statement("list_streams"), "name", [_NAMES_AT_ONCE], prefix, last))]

    def _more_names(self, prefix: str, names: list[str]) -> Iterator[str]:
        while names:
            yield from names
            names = self._names(prefix, names[-1]) if len(names) == _NAMES_AT_ONCE else []

    def _nothing(self) -> list[Any]:
        """What no statement has to look for; a closed log says so here too."""
        self._database.rows("SELECT 1")
        return []
