"""Reading streams themselves, where the tail of the log may not show yet what was written to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from ..eventlog.events import StoredEvent
from ..eventlog.log import EventLog
from .outbox import TYPES, Outbox

Ahead: TypeAlias = "dict[str, list[tuple[StoredEvent, Any]]]"
"""What streams tell, by stream."""


def ahead_of_tail(log: EventLog, outbox: Outbox, after: Mapping[str, int]) -> Ahead:
    """Events about intents in the streams of ``after`` behind the version given, and what they say. Changes nothing; positions are left out."""
    found: Ahead = {}
    for stream, rows in log.rows_of(after).items() if after else ():
        told = found[stream] = []
        for version, kind, schema, content, event_id, recorded_at in rows:
            if kind in TYPES:
                event = StoredEvent(0, stream, version, event_id, kind, schema, content, recorded_at, None, None)
                told.append((event, outbox.read(event)))
    return found
