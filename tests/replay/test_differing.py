"""What differs between two places of a history, applied to the state at the one, gives the state at the other."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intentlog.replay.diff import apply, same
from intentlog.replay.differing import differing
from intentlog.replay.errors import NoSuchPath, NoSuchVersion
from intentlog.replay.fold import At, state_as_tree, state_at
from intentlog.replay.paths import ABSENT, look, parse_path
from tests.acceptance.programs.living import STREAM as PROGRAM
from tests.acceptance.programs.living import lived
from tests.replay.histories import moves, played
from tests.replay.world import START, STREAM, RefundAsked, World, app_of, paying


@settings(max_examples=12, deadline=None)
@given(moves, st.floats(0, 1), st.floats(0, 1))
def test_changes_applied_to_the_state_at_a_give_the_state_at_b(happened, first, second):
    app = app_of(paying)
    world = played(app, happened)
    head = world.log.head(STREAM)
    a, b = round(first * head), round(second * head)
    leads(world, app, STREAM, a, b)
    world.log.close()


@pytest.mark.parametrize("seed", [6, 14])
def test_so_they_do_in_linear_programs(seed):
    world = lived(seed)
    head = world.log.head(PROGRAM)
    for a in range(0, head + 1, 7):
        leads(world, world.app, PROGRAM, a, head - a)
    world.log.close()


def leads(world, app, stream: str, a: int, b: int) -> None:
    found = differing(world.log, app, stream, a, b)
    left, right = (state_as_tree(state_at(world.log, app, stream, version)) for version in (a, b))
    assert (a, b) == (found.a, found.b)
    assert same(right | {"version": a}, apply(found.changes, left))
    assert (found.changes == ()) == same(left | {"version": 0}, right | {"version": 0})


@pytest.fixture
def told(world: World) -> World:
    world.story(app_of(paying), RefundAsked("o-1", 42), RefundAsked("o-2", 7))
    return world


def test_of_a_part_only_its_changes_are_told(told):
    found = differing(told.log, app_of(paying), STREAM, 10, None, parse_path("orders"))
    assert [("added", ("state", "orders", "o-2"))] == [(change.kind.value, change.path) for change in found.changes]


def test_a_part_that_is_at_one_place_only_was_added_or_removed(told):
    app = app_of(paying)
    path = ("run", "activations", "0")
    found = differing(told.log, app, STREAM, 4, 10, path)
    assert [("removed", path, ABSENT)] == [(change.kind.value, change.path, change.after) for change in found.changes]
    assert look(state_as_tree(state_at(told.log, app, STREAM, 4)), path) == found.changes[0].before
    assert ["added"] == [change.kind.value for change in differing(told.log, app, STREAM, 10, 4, path).changes]


def test_places_are_moments_and_positions_as_well(told):
    found = differing(told.log, app_of(paying), STREAM, At(moment=START + 1_000_000), At(position=22))
    assert (10, 21) == (found.a, found.b)


def test_what_is_at_neither_place_is_told_with_what_there_is(told):
    with pytest.raises(NoSuchPath, match="nothing stands at order; state has orders"):
        differing(told.log, app_of(paying), STREAM, 4, 10, parse_path("order"))
    with pytest.raises(NoSuchVersion):
        differing(told.log, app_of(paying), STREAM, 4, 99)
