"""The kill gate on a bus, with each dedup store that several effectors may share; see ``test_on_a_log``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.effector.gate.bus_ground import BusGround
from tests.effector.gate.cells import Cell
from tests.effector.gate.plans import ON_BUS

STORES = ("sqlite", "postgres", "redis")


@pytest.fixture(params=STORES)
def dedup(request: pytest.FixtureRequest) -> tuple[int, Callable[[Path], str]]:
    """The number of the store, and its URL for a run."""
    number = STORES.index(request.param)
    if request.param == "sqlite":
        return number, lambda folder: f"sqlite:///{folder}/dedup.db"
    server = request.getfixturevalue(f"{request.param}_url")
    return number, lambda folder: f"{server}?namespace={folder.name.replace('-', '_')}"


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_whatever_dies_every_intent_has_one_outcome_and_nothing_happens_twice(replicas: int, dedup: tuple[int, Callable[[Path], str]], tmp_path: Path):
    """Show 1: the dedup store decides."""
    number, url = dedup
    cell = Cell(replicas, ON_BUS, lambda folder: BusGround(url(folder), folder))
    assert {} == cell.faults(tmp_path, 3 * number + replicas - 1, 9)
