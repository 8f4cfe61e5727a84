"""Versions of a stream that are not there, or there twice. No append leaves that behind; what is made of such a history is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..agents.holes import hole
from ..eventlog.events import Row, StoredEvent
from .errors import BrokenHistory


def check_whole(stream: str, events: Sequence[StoredEvent], so: str) -> None:
    """Raise ``BrokenHistory`` unless ``events`` have the versions 0, 1, 2 and so on. ``so``: what is refused, in words."""
    for expected, event in enumerate(events):
        if event.version == expected:
            continue
        if event.version == expected - 1:
            found = f"has version {event.version} twice"
        elif event.version - 1 > expected:
            found = f"has no versions {expected} to {event.version - 1}, though it goes on with {event.version}"
        else:
            found = f"has no version {expected}, though it goes on with {event.version}"
        raise BrokenHistory(f"{stream} {found}: it was changed behind the log's back, so {so}. Restore it from a backup. All faults: eventlog verify {stream}")


def whole(stream: str, chunks: Iterable[Sequence[Row]], after: int = -1) -> Iterator[Sequence[Row]]:
    """``chunks`` as they are, as long as each row's version follows that of the one before; then raises ``BrokenHistory``.

    What stands before the hole is given first: of that much something can be said.
    """
    expected = after + 1
    for rows in chunks:
        if rows and (rows[0][0] != expected or rows[-1][0] - expected != len(rows) - 1):
            sound = next(place for place, row in enumerate(rows) if row[0] != expected + place)
            if sound:
                yield rows[:sound]
            raise broken(stream, expected + sound, rows[sound][0])
        expected += len(rows)
        yield rows


def broken(stream: str, expected: int, found: int, *, stands: bool = True) -> BrokenHistory:
    """What is raised where ``found`` stands and ``expected`` should: nothing is said of what lies behind. ``stands``: it is known to be there."""
    return BrokenHistory(hole(stream, expected, found, stands=stands))
