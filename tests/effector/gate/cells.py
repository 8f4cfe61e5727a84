"""A cell of the gate: its share of the seeds, a few runs at a time, for most of a run is waiting."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import attrs

from tests.effector.gate.laws import faults
from tests.effector.gate.plans import plan_of, seeds_of
from tests.effector.gate.runs import Ground, run_of

AT_ONCE = 3


@attrs.define(eq=False)
class Cell:
    """So many replicas at once on one kind of ground."""

    replicas: int
    deaths: tuple[str, ...]
    #: The ground of one run, in its folder.
    ground: Callable[[Path], Ground]
    #: How often whom what killed.
    died: Counter[str] = attrs.field(factory=Counter)

    def faults(self, folder: Path, share: int, shares: int) -> dict[str, list[str]]:
        """Everything that is wrong, by seed."""
        seeds = seeds_of(share, shares)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            found = dict(zip(seeds, pool.map(lambda seed: self._gone_through(folder / f"seed-{seed}", seed), seeds), strict=True))
        assert self.died.total() >= 2 * len(seeds), f"hardly anybody died: {self.died}"
        return {f"seed {seed}": wrong for seed, wrong in found.items() if wrong}

    def _gone_through(self, folder: Path, seed: int) -> list[str]:
        ground = self.ground(folder)
        try:
            with run_of(plan_of(seed, self.replicas, self.deaths), folder, ground) as run:
                run.live()
                self.died.update(life.death.at for life in run.kills if life.death is not None)
                found = faults(run) + ground.faults(run)
        finally:
            ground.close()
        if not found:
            shutil.rmtree(folder)
        return found
