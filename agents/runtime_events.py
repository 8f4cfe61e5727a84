"""The runtime's own events as a registry: every app's begins with it, and it is compiled once a process."""

from __future__ import annotations

import functools

from ..eventlog.registry import EventRegistry
from . import facts


@functools.cache
def runtime_registry() -> EventRegistry:
    """Frozen, so it may be shared; to build on: ``EventRegistry(…, base=runtime_registry())``."""
    return EventRegistry(*facts.FACTS).freeze()
