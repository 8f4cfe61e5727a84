"""Versions of a stream that are not there, or there twice. No append leaves that behind; what is made of such a history is wrong."""

from __future__ import annotations

from collections.abc import Sequence

from ..eventlog.events import StoredEvent
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
