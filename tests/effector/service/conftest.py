"""The stores that several processes may share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.effector.service.replicas import World


@pytest.fixture
def world(shared_url: str, tmp_path: Path) -> Iterator[World]:
    """Replicas on each store that several processes may share."""
    made = World(tmp_path, shared_url)
    yield made
    made.close()


@pytest.fixture
def local(tmp_path: Path) -> Iterator[World]:
    """The same on one file, where the store makes no difference."""
    made = World(tmp_path, f"sqlite:///{tmp_path}/log.db")
    yield made
    made.close()
