"""Versions of a stream that are not there, or there twice. No append leaves that behind; what is made of such a history is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

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
    behind = "" if not stands or found < expected else f": {found} stands in its place" if found == expected + 1 else f": {found} comes next"
    return BrokenHistory(
        f"{stream} {missing(expected, found)}{behind}. Events were changed behind the log's back: see eventlog verify, and restore them from a backup."
    )


def missing(expected: int, found: int) -> str:
    """What is wrong where version ``found`` stands and ``expected`` should; empty when nothing is.

    >>> missing(4, 5), missing(4, 6), missing(4, 3), missing(4, 4)
    ('version 4 is missing', 'versions 4 to 5 are missing', 'version 3 is there twice', '')
    """
    if found == expected:
        return ""
    if found < expected:
        return f"version {found} is there twice"
    return f"version {expected} is missing" if found == expected + 1 else f"versions {expected} to {found - 1} are missing"
