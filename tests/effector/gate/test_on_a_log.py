"""The kill gate on a log: real effectors, one to three at once, killed at every boundary, in mid-tool and at any moment.

Each cell has its share of the seeds; ``GATE_SEEDS=20`` has every cell run all of them (docs/contributing.md).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.effector.gate.cells import Cell
from tests.effector.gate.log_ground import LogGround
from tests.effector.gate.plans import ON_LOG
from tests.stores import Store


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_whatever_dies_every_intent_is_settled_once_and_nothing_happens_twice(replicas: int, shared_store: Store, tmp_path: Path):
    """Show 1: the log is the dedup store."""
    cell = Cell(replicas, ON_LOG, lambda folder: LogGround(shared_store.url(folder / "log")))
    assert {} == cell.faults(tmp_path, replicas - 1, 3)
    assert len(cell.died) >= 5, cell.died
