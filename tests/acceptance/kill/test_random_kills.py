"""Kills that nobody aimed: while many keys share each commit, and while what the last kill broke is being mended."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from intentlog.effector.crash import BOUNDARIES
from tests.acceptance.harness import end_of
from tests.acceptance.kill.conftest import Unkilled
from tests.acceptance.kill.laws import faults, killed_by_itself
from tests.acceptance.kill.lives import Case, case, faults_in_all, killed, orders_of
from tests.acceptance.kill.orders import KINDS
from tests.stores import Store, part_of

#: 24 keys, all kinds of effects side by side.
MANY = orders_of(KINDS, keys=6, each=2)
FEW = orders_of(KINDS, keys=1, each=2)
SEEDS = range(20)


def at_random(folder: Path, seed: int, unkilled: Case) -> list[str]:
    """One to three lives are killed from outside, each a moment after some number of requests has gone out."""
    moments = random.Random(seed)
    with case(unkilled.store, folder, MANY) as made:
        for number in range(1, moments.randint(1, 3) + 1):
            wanted = len(made.world.calls) + moments.randrange(len(unkilled.world.calls) // 2)
            with made.start(f"life-{number}") as started:
                made.world.wait_for(wanted, lambda: started.poll() is not None)
                made.buried(f"life-{number}", end_of(started, kill_after=moments.uniform(0, 0.02)))
        made.live()
        found = faults(made, unkilled)
    if not found:
        shutil.rmtree(folder)
    return found


def test_killed_at_any_moment_while_many_keys_share_each_commit(tmp_path, unkilled: Unkilled, shared_store: Store):
    reference, seeds = unkilled(MANY), part_of(shared_store, SEEDS, 3)
    assert {} == faults_in_all({f"seed {seed}": seed for seed in seeds}, lambda name, seed: at_random(tmp_path / name.replace(" ", "-"), seed, reference))


def twice(folder: Path, first: str, second: str, unkilled: Case, ends: list[str]) -> list[str]:
    """A life dies at one boundary, the next one at another while it recovers, the third goes through."""
    moments = random.Random(f"{first} {second}")
    with case(unkilled.store, folder, FEW) as made:
        killed(made, first, moments.randint(1, max(1, unkilled.counts[first] // 2)))
        found = killed_by_itself(made.lives[0])
        if made.live(crash=f"{second}:{moments.randint(1, 2)}").killed:
            ends.append(second)
        made.live()
        found += faults(made, unkilled)
    if not found:
        shutil.rmtree(folder)
    return found


@pytest.mark.parametrize("distance", [0, 3, 7])
def test_killed_again_while_it_recovers(distance, tmp_path, unkilled: Unkilled, shared_store: Store):
    """Every boundary is once the first and once the second, at each distance; after a late first death there may be nothing left to die of."""
    reference, ends = unkilled(FEW), list[str]()
    pairs = {f"{first} {second}": (first, second) for first, second in zip(BOUNDARIES, (*BOUNDARIES[distance:], *BOUNDARIES[:distance]), strict=True)}
    # Where only a part is tried, each boundary is the first one at one of the distances.
    pairs = dict(part_of(shared_store, pairs.items(), 3, (distance + 1) // 3))
    assert {} == faults_in_all(pairs, lambda name, pair: twice(tmp_path / name.replace(" ", "-"), pair[0], pair[1], reference, ends))
    assert len(ends) >= (7 if len(pairs) == len(BOUNDARIES) else 1), ends
