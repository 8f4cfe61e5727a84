"""A world for each test, closed at its end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.replay.world import World


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.log.close()
