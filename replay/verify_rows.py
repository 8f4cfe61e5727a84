"""What stands in a log's tables and no reader of streams comes across: rows beside every stream, and indexes that are gone.

Readers of a stream begin behind version -1 and ask for it by name, so a row below that, or of a stream without a name, would be nowhere in
a report that is made by reading. So the tables are asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from ..eventlog.events import StoredEvent
from ..eventlog.inspecting import Inspectable, missing_indexes_of, odd_cells_of, unseen_in
from ..eventlog.log import EventLog


@attrs.frozen
class Unseen:
    """The rows of one stream that no reader of it sees: the first, and how many there are."""

    first: StoredEvent
    count: int = 1

    @property
    def version(self) -> int | None:
        """That of the first row; ``None`` when it is no number."""
        return self.first.version if type(self.first.version) is int else None

    def __str__(self) -> str:
        stored = self.first
        row = f"the row at position {stored.position} ({stored.type!s:.80}) has version {stored.version!r:.40}"
        way = "No append writes such a row: take it out, or restore the log from a backup."
        nameless = ", its stream_id, which stands for no name" if stored.stream.startswith("(") else ""
        return f"{row} of the stream {stored.stream:.200}{nameless}, where no reader of the stream sees it. {way}"


def unseen_rows(log: EventLog) -> dict[str, Unseen]:
    """By stream; one without a name is called by its id, in brackets."""
    found: dict[str, Unseen] = {}
    for stored in unseen_in(log):
        known = found.get(stored.stream)
        found[stored.stream] = Unseen(stored._replace(data=b"")) if known is None else attrs.evolve(known, count=known.count + 1)
    return found


def nowhere(unseen: Mapping[str, Unseen], log: EventLog) -> Iterator[Unseen]:
    """Those of streams that the log does not list, so that no report of a stream tells of them."""
    for stream, rows in unseen.items():
        if next(iter(log.streams(stream)), None) != stream:
            yield rows


def odd_cells(log: EventLog) -> Iterator[str]:
    """Cells beside the events that hold what no append writes, in words; events are looked at one by one."""
    return (cell.text for cell in odd_cells_of(log, events=False))


def keeps_ids_apart(log: EventLog) -> bool:
    """Whether the log itself refuses an event id that its stream has already; a bundle refuses nothing."""
    return isinstance(log, Inspectable) and not any(index.unique and "event_id" in index.columns for index in log.missing_indexes())


def lacking_indexes(log: EventLog) -> Iterator[str]:
    """What is not kept any more, because somebody dropped an index, in words."""
    for index in missing_indexes_of(log):
        then = "so nothing refuses what it kept out" if index.unique else "so every search reads the whole table"
        yield f"the index {index.name} of the table {index.table} is missing, which keeps {index.purpose}: {then}. Make it anew with: eventlog init"
