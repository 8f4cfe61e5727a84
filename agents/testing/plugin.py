"""The pytest plugin, found through the entry point ``pytest11``: fixtures, and nothing that lives longer than a test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .clock import VirtualClock
    from .harness import Harness


@pytest.fixture
def harness() -> Iterator[Harness]:
    """Starts apps in memory: ``harness.start(app, crash_at=…)``."""
    from .harness import Harness  # not before a test asks for it: the plugin is loaded in every pytest run

    with Harness() as made:
        yield made


@pytest.fixture
def virtual_clock() -> VirtualClock:
    """A clock that stands still until it is told: ``harness.start(app, clock=virtual_clock)``."""
    from .clock import VirtualClock

    return VirtualClock()
