"""Which streams are looked at: by what was appended since, told from the log's own order. Reads no payload."""

from __future__ import annotations

from collections.abc import Iterator

from ..eventlog.events import StoredEvent
from ..eventlog.log import EventLog
from ..eventlog.since import parse_moment, position_before


def events_since(log: EventLog, since: str, category: str | None = None) -> Iterator[StoredEvent]:
    """Events at or after the place that ``since`` names, without their payloads. Raises a usage error for what names none."""
    moment, position = parse_moment(since, log.clock())
    after = max(position - 1, 0) if position else position_before(log, moment)
    for event in log.read_all(after=after, categories=(category,) if category else (), payloads=False):
        if event.recorded_at >= moment:
            yield event


def streams_since(log: EventLog, since: str, category: str | None = None) -> list[str]:
    """Streams to which something was appended since, in order of their names; memory grows with their number."""
    return sorted({event.stream for event in events_since(log, since, category)})
