"""Show 4, the kill matrix: a real SIGKILL at every durable boundary, for every kind of effect, the first, a middle and the last time.

Each cell is one log: a child dies at the boundary, another one goes on with the whole input file, and then every law is
asked of the log, of the model and of the bank (``laws``). A third life must find nothing left to do.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from intentlog.effector.crash import BOUNDARIES
from tests.acceptance.kill.conftest import Unkilled
from tests.acceptance.kill.laws import faults, killed_by_itself
from tests.acceptance.kill.lives import Case, Order, case, faults_in_all, killed, orders_of
from tests.acceptance.kill.orders import EFFECTS, KINDS
from tests.stores import Store, part_of

PLACES = ("first", "middle", "last")
#: Of several keys, three at a time are under way when the kill falls; with one key there is nothing but what the kill interrupts.
CROWD = {kind: orders_of((kind,), keys=3, each=2) for kind in KINDS}
ALONE = {kind: orders_of((kind,), keys=1, each=2) for kind in KINDS}


def places(store: Store, boundary: str, kind: str) -> list[str]:
    """All of them; on a store that gets a part of the matrix one, so that every boundary meets every kind, and each place some kind."""
    return part_of(store, PLACES, len(PLACES), (BOUNDARIES.index(boundary) + KINDS.index(kind)) % len(PLACES))


def nth(place: str, times: int) -> int:
    """Which time of ``times`` is meant."""
    return {"first": 1, "middle": max(1, times // 2), "last": times}[place]


def cell(folder: Path, orders: list[Order], boundary: str, place: str, unkilled: Case) -> list[str]:
    """Everything that is wrong with one cell."""
    with case(unkilled.store, folder, orders) as made:
        killed(made, boundary, nth(place, unkilled.counts[boundary]))
        found = killed_by_itself(made.lives[0])
        made.live()
        found += faults(made, unkilled)
        found += interrupted_at(made, boundary)
        before, calls = len(made.left.events), len(made.world.calls)
        if place == "last":
            made.live()
            if (len(made.left.events), len(made.world.calls)) != (before, calls):
                found.append("a third life found something to do")
    if not found:
        shutil.rmtree(folder)
    return found


def interrupted_at(made: Case, boundary: str) -> list[str]:
    """What a kill at this very boundary must have left behind."""
    first = made.lives[0]
    asked = {call.key for call in made.world.calls if call.caller == first.caller and call.what == "model"}
    called = {call.key for call in made.world.calls if call.caller == first.caller and call.what in EFFECTS}
    found = []
    if boundary == "input.offered" and len(first.left.journal) == len(made.orders) * 3:
        found.append("the last helping was recorded before it was offered")
    if boundary == "model.answered" and not asked - first.left.journal:
        found.append("the model answered, and every answer was in the journal")
    if boundary == "attempt.recorded" and not first.left.interrupted:
        found.append("an attempt was recorded, and the log has none without outcome")
    if boundary == "tool.called" and not called & first.left.interrupted:
        found.append("a tool was called, and the log has no attempt of it without outcome")
    if boundary == "settled" and not first.left.statuses:
        found.append("an intent was settled, and the log has no outcome")
    return found


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_many_keys_killed_at_a_boundary_end_as_if_nothing_had_been(boundary, tmp_path, unkilled: Unkilled, shared_store: Store):
    cells = {f"{kind} {place}": (kind, place) for kind in KINDS for place in places(shared_store, boundary, kind)}
    assert {} == faults_in_all(cells, lambda name, at: cell(tmp_path / name.replace(" ", "-"), CROWD[at[0]], boundary, at[1], unkilled(CROWD[at[0]])))


#: boundary → (model calls repeated, tool calls repeated of an idempotent tool), when one key is all there is.
REPEATED = dict.fromkeys(BOUNDARIES, (0, 0)) | {"model.answered": (1, 0), "tool.called": (0, 1)}
#: boundary → whether an attempt was left without an outcome.
OPEN_ATTEMPT = ("attempt.recorded", "tool.called")


def alone(folder: Path, kind: str, boundary: str, place: str, unkilled: Case) -> list[str]:
    """Everything that is wrong with a cell of one key, in which repetitions are known exactly."""
    with case(unkilled.store, folder, ALONE[kind]) as made:
        killed(made, boundary, nth(place, unkilled.counts[boundary]))
        found = killed_by_itself(made.lives[0])
        made.live()
        found += faults(made, unkilled)
        models, tools = made.world.count("model"), made.world.count(*EFFECTS)
        repeated = models.total() - len(models), tools.total() - len(tools)
        expected = REPEATED[boundary] if kind == "idempotent" else (REPEATED[boundary][0], 0)
        # A checkpoint is saved beside the turn or the effect under way: one call of either may be in flight, and the laws count it.
        beside = boundary == "checkpointed"
        if repeated != expected and not (beside and repeated in ((1, 0), (0, 1))):
            found.append(f"{repeated} model and tool calls were repeated, expected {expected}")
        left = made.lives[0].left.interrupted
        if len(left) != (boundary in OPEN_ATTEMPT) and not (beside and len(left) == 1):
            found.append(f"attempts without outcome: {sorted(left)}")
        unknown = [status for status in made.left.statuses.values() if status == "UNKNOWN"]
        certain = kind == "idempotent" or (kind == "told" and boundary == "tool.called")
        if len(unknown) != (boundary in OPEN_ATTEMPT and not certain):
            found.append(f"{len(unknown)} effects are UNKNOWN")
    if not found:
        shutil.rmtree(folder)
    return found


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_of_one_key_exactly_the_call_in_flight_is_repeated(boundary, tmp_path, unkilled: Unkilled, shared_store: Store):
    kinds = KINDS if boundary in OPEN_ATTEMPT else ("idempotent",)
    cells = {f"{kind} {place}": (kind, place) for kind in kinds for place in places(shared_store, boundary, kind)}
    assert {} == faults_in_all(cells, lambda name, at: alone(tmp_path / name.replace(" ", "-"), at[0], boundary, at[1], unkilled(ALONE[at[0]])))
