"""Reading streams and the whole log, in chunks: every chunk is a short statement of its own that begins behind the last.

What a read covers is fixed when it is asked for, and its first chunk is fetched then; only the rest is lazy.

The order of the whole log is that of the transactions' ids, and transactions do not end in that order. So nothing at or
above the *horizon* is shown, the id of the oldest transaction that is still running: below it everything has ended, and
no event can appear there any more. The horizon is taken in the statement that says how far the log is complete
(``last_position``); what lies up to there may then be read by any later statement. A single stream needs no horizon: its
order is that of its versions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any, Final, cast

from .. import reading
from ..events import Row, StoredEvent
from ..reading import DATA_IN_EVENT, DATA_IN_ROW, NAMES_AT_ONCE, NO_END, STREAMS_AT_ONCE, VERSION_IN_ROW, Shape, to_event
from ..versions import EMPTY
from .arrays import integers, texts
from .blobs import Payloads
from .connection import Database
from .statements import statement
from .texts import is_storable, ranged

#: Events that one filtered statement may look at, so that a rare type neither runs long nor holds a snapshot.
_WINDOW: Final = 20_000
#: Parameters that a filtered statement has before those of its filters.
_FILTERED_VALUES: Final = 4
_selected: Final = reading.selecting(statement, "''::bytea")


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


class Reader(reading.Reader):
    """The reading half of the log."""

    event_shapes = reading.event_shapes(_selected)
    row_shape = Shape(statement("read_rows"), VERSION_IN_ROW, DATA_IN_ROW)

    def __init__(self, database: Database) -> None:
        self._database = database
        self._payloads = Payloads(database)
        #: The last answer of ``last_position``: up to there nothing can come any more.
        self._complete = 0

    def rows_of(self, after: Mapping[str, int], most: int | None) -> dict[str, list[Row]]:
        found: dict[str, list[Row]] = {stream: [] for stream in after}
        wanted = [stream for stream in after if is_storable(stream)]
        for begin in range(0, len(wanted), STREAMS_AT_ONCE):
            part = wanted[begin : begin + STREAMS_AT_ONCE]
            lists = [found[stream] for stream in part]
            for row in self._database.rows(statement("read_rows_of"), (texts(part), integers([after[stream] for stream in part]), most)):
                lists[row[0] - 1].append(cast("Row", row[1:]))
            for stream, rows in zip(part, lists, strict=True):
                rows.sort(key=itemgetter(0))
                if not all(map(itemgetter(DATA_IN_ROW), rows)):
                    whole = self._payloads.of_stream(stream, rows, VERSION_IN_ROW, DATA_IN_ROW)
                    rows[:] = [row for helping in whole for row in helping]
        return found

    def read_all(
        self, after: int, upto: int | None, types: Iterable[str], categories: Iterable[str], limit: int | None, payloads: bool = True
    ) -> Iterator[StoredEvent]:
        end = upto if upto is not None and upto <= self._complete else min(self.last_position(), NO_END if upto is None else upto)
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

    def _walk(self, shape: Shape, stream: str, after: int, upto: int | None, limit: int | None) -> Iterator[list[Any]]:
        if not is_storable(stream):
            return iter(self._nothing())
        low, high = max(after, EMPTY), NO_END if upto is None else min(upto, NO_END)
        pace = _Pace(shape.content, limit)
        size = pace.size
        rows = self._database.rows(shape.sql, (stream, min(low, NO_END), max(high, EMPTY), size))
        done = len(rows) < size
        if not done and high == NO_END and not shape.backwards:
            high = self.head(stream)
        return self._rest(shape, stream, low, high, rows, done, pace)

    def _rest(self, shape: Shape, stream: str, low: int, high: int, rows: list[Any], done: bool, pace: _Pace) -> Iterator[list[Any]]:
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
        pace = _Pace(DATA_IN_EVENT, limit)
        while after < end:
            size = pace.size
            rows = self._database.rows(sql, (after, end, size))
            if rows:
                yield from self._payloads.of_log(rows, DATA_IN_EVENT) if payloads else (rows,)
            if len(rows) < size:
                return
            pace.saw(rows)
            after = rows[-1][0]

    def _filtered(self, filters: str, values: list[Any], after: int, end: int, limit: int | None, payloads: bool) -> Iterator[list[Any]]:
        sql = _selected("read_all_filtered", payloads).replace(":filters", filters)
        window = _selected("read_window", payloads).replace(":filters", filters)
        pace = _Pace(DATA_IN_EVENT, limit)
        while after < end:
            size = pace.size
            rows = self._database.rows(window, (after, end, _WINDOW, size, *values))
            edge, rows = rows[0][-1], [row[:-1] for row in rows if row[0] is not None]
            if rows:
                yield from self._payloads.of_log(rows, DATA_IN_EVENT) if payloads else (rows,)
                pace.saw(rows)
            after = edge if len(rows) < size else rows[-1][0]
            while after < edge:
                size = pace.size
                rows = self._database.rows(sql, (after, edge, _WINDOW, size, *values))
                if rows:
                    yield from self._payloads.of_log(rows, DATA_IN_EVENT) if payloads else (rows,)
                    pace.saw(rows)
                after = edge if len(rows) < size else rows[-1][0]

    def _names(self, prefix: str, last: str | None) -> list[str]:
        return [name for (name,) in self._database.rows(*ranged(statement("list_streams"), "name", [NAMES_AT_ONCE], prefix, last))]

    def _nothing(self) -> list[Any]:
        """What no statement has to look for; a closed log says so here too."""
        self._database.rows("SELECT 1")
        return []
