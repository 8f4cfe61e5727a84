"""Reading streams and the whole log, in chunks: every chunk is a short statement of its own that begins behind the last.

What a read covers is fixed when it is asked for, and its first chunk is fetched then; only the rest is lazy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from operator import itemgetter
from typing import Any, Final

from .. import reading
from ..events import Row, StoredEvent
from ..reading import DATA_IN_EVENT, DATA_IN_ROW, NAMES_AT_ONCE, NO_END, STREAMS_AT_ONCE, VERSION_IN_ROW, Shape, to_event
from ..versions import EMPTY
from .connection import Database
from .faults import misplaced
from .ranges import behind, is_storable, next_text
from .statements import for_rows, marks, statement

#: Positions that one filtered statement may look at, so that a rare type does not hold a snapshot of the file for long.
_WINDOW: Final = 20_000
#: No statement asks for more rows than this; it is also what a chunk holds at most.
_MOST_ROWS: Final = 2_048
#: Up to the last of so many rows. A bound on versions would do, were there no damaged streams: behind a hole there would seem to be nothing.
_AT_MOST: Final = (
    f"AND e.version <= coalesce((SELECT version FROM events WHERE stream_id = w.stream_id AND version > w.after ORDER BY version LIMIT 1 OFFSET ?), {NO_END})"
)
_selected: Final = reading.selecting(statement, "x''")


@lru_cache(maxsize=2 * STREAMS_AT_ONCE)
def _rows_of(count: int, *, bounded: bool) -> str:
    """The statement for ``count`` streams, with its bound or without."""
    return for_rows("read_rows_of", 2, count).replace(":bound", _AT_MOST if bounded else "")


class Reader(reading.Reader):
    """The reading half of the log."""

    event_shapes = reading.event_shapes(_selected)
    row_shape = Shape(statement("read_rows"), VERSION_IN_ROW, DATA_IN_ROW)

    def __init__(self, database: Database) -> None:
        self._database = database

    def rows_of(self, after: Mapping[str, int], most: int | None) -> dict[str, list[Row]]:
        found: dict[str, list[Row]] = {stream: [] for stream in after}
        ids = self.ids_of(after)
        by_id = {number: found[stream] for stream, number in ids.items()}
        wanted = [(number, after[stream]) for stream, number in ids.items()]
        for begin in range(0, len(wanted), STREAMS_AT_ONCE):
            part = wanted[begin : begin + STREAMS_AT_ONCE]
            sql = _rows_of(len(part), bounded=most is not None)
            for row in self._database.rows(sql, [value for pair in part for value in pair] + ([] if most is None else [most - 1])):
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
        head = self._last_version(stream)
        if type(head) is not int:
            raise misplaced(self._database.path, "events", f"the last event of stream {stream!r:.200}", "version", head, "an integer")
        return head

    def _last_version(self, stream: str) -> Any:
        """What the log has as the last version; no number where a hand has put something else."""
        found = self._database.rows(for_rows("find_streams", 1, 1), (stream,)) if is_storable(stream) else ()
        return found[0][2] if found else EMPTY

    def last_position(self) -> int:
        return int(self._database.rows("SELECT coalesce(max(position), 0) FROM events")[0][0])

    def streams(self, prefix: str = "") -> Iterator[str]:
        if not is_storable(prefix):
            return iter(())
        return self._more_names(prefix, self._names(prefix, None))

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
        for begin in range(0, len(unknown), STREAMS_AT_ONCE):
            part = unknown[begin : begin + STREAMS_AT_ONCE]
            ids.update(self._database.rows(statement("find_stream_ids").replace(":names", marks(len(part))), part))
        for stream in unknown:
            if stream in ids:
                known[stream] = ids[stream]
        return ids

    def _walk(self, shape: Shape, stream: str, after: int, upto: int | None, limit: int | None) -> Iterator[list[Any]]:
        number = self.ids_of((stream,)).get(stream)
        if number is None:
            self._database.rows("SELECT 1")  # a closed log says so here too
            return iter(())
        low, high = max(after, EMPTY), NO_END if upto is None else min(upto, NO_END)
        # Events bear the name of their stream; rows do not.
        fixed = (number,) if shape is self.row_shape else (stream, number)
        rows, done = self._chunk(shape.sql, (*fixed, low, high), shape.content, limit)
        if done:
            return iter((rows,) if rows else ())
        if high == NO_END and not shape.backwards:
            last = self._last_version(stream)
            high = last if type(last) is int else NO_END
        return self._rest(shape, fixed, low, high, rows)

    def _rest(self, shape: Shape, fixed: tuple[Any, ...], low: int, high: int, rows: list[Any]) -> Iterator[list[Any]]:
        while rows:
            yield rows
            if shape.backwards:
                high = rows[-1][shape.version] - 1
            else:
                low = rows[-1][shape.version]
            rows = self._chunk(shape.sql, (*fixed, low, high), shape.content, None)[0] if low < high else []

    def _chunk(self, sql: str, parameters: tuple[Any, ...], column: int, limit: int | None) -> tuple[list[Any], bool]:
        if limit is None:
            return self._database.chunk(sql, parameters, column)
        return self._database.chunk(sql, parameters, column, min(max(limit, 1), _MOST_ROWS))

    def _all(self, sql: str, after: int, end: int, filters: list[str], limit: int | None) -> Iterator[StoredEvent]:
        while after < end:
            edge = min(end, after + _WINDOW)
            rows, done = self._chunk(sql, (after, edge, *filters), DATA_IN_EVENT, limit)
            yield from map(to_event, rows)
            after = edge if done else rows[-1][0]

    def _names(self, prefix: str, last: str | None) -> list[str]:
        begin, most = prefix if last is None else next_text(last), NAMES_AT_ONCE
        found = [name for (name,) in self._database.rows(statement("list_streams"), (begin, behind(prefix), most))]
        while len(names := [name for name in found if type(name) is str]) < len(found) == most:
            # Text that is none cannot be gone on from. Such names are no streams for those who read; ``odd`` tells of them.
            most *= 4
            found = [name for (name,) in self._database.rows(statement("list_streams"), (begin, behind(prefix), most))]
        return names
