"""Reading events that stand in lists: what a log in memory and a bundle have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .events import Row, StoredEvent
from .names import category_of


def as_rows(events: Iterable[StoredEvent]) -> list[Row]:
    """The events as folds take them."""
    return [(event.version, event.type, event.schema, event.data, event.event_id, event.recorded_at) for event in events]


def shown(events: Iterator[StoredEvent], payloads: bool) -> Iterator[StoredEvent]:
    """The events, without their payloads when those are not asked for."""
    return events if payloads else (event._replace(data=b"") for event in events)


def passing(types: Iterable[str], categories: Iterable[str], events: Iterator[StoredEvent]) -> Iterator[StoredEvent]:
    """Those of ``events`` that the filters of ``read_all`` let through; empty ones let everything through."""
    wanted, of = frozenset(types), frozenset(categories)
    if not wanted and not of:
        return events
    return (event for event in events if (not wanted or event.type in wanted) and (not of or category_of(event.stream) in of))
