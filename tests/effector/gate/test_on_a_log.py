"""The kill gate on a log: real effectors, one to three at once, killed at every boundary, in mid-tool and at any moment.

Each cell has its share of the seeds; ``GATE_SEEDS=20`` has every cell run all of them (docs/contributing.md).
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.acceptance.kill.lives import faults_in_all
from tests.effector.gate.laws import faults
from tests.effector.gate.log_ground import LogGround
from tests.effector.gate.plans import plan_of, seeds_of
from tests.effector.gate.runs import run_of
from tests.stores import Store

pytestmark = pytest.mark.alone


def gone_through(folder: Path, store: Store, seed: int, replicas: int, died: Counter[str]) -> list[str]:
    """Everything that is wrong with one seed."""
    ground = LogGround(store.url(folder / "log"))
    try:
        with run_of(plan_of(seed, replicas), folder, ground) as run:
            run.live()
            died.update(life.death.at for life in run.kills if life.death is not None)
            found = faults(run) + ground.faults(run)
    finally:
        ground.close()
    if not found:
        shutil.rmtree(folder)
    return found


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_whatever_dies_every_intent_is_settled_once_and_nothing_happens_twice(replicas: int, shared_store: Store, tmp_path: Path):
    """Show 1"""
    died: Counter[str] = Counter()
    seeds = {f"seed {seed}": seed for seed in seeds_of(replicas - 1, 3)}
    wrong = faults_in_all(seeds, lambda name, seed: gone_through(tmp_path / name.replace(" ", "-"), shared_store, seed, replicas, died))
    assert {} == wrong
    assert died.total() >= 2 * len(seeds), died
    assert len(died) >= 5, died
