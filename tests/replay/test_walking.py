"""A walk stands wherever it is told to, at just what a fresh fold gives there, however it came and whatever was done before."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intentlog.agents import Aggregate, Complete, applies
from intentlog.eventlog.errors import Undecodable
from intentlog.replay import walking
from intentlog.replay.errors import BadExpression, NoSuchVersion
from intentlog.replay.expressions import parse_expression
from intentlog.replay.fold import state_as_tree, state_at
from intentlog.replay.trees import tree_of, whole
from intentlog.replay.walking import Walk
from tests.acceptance.programs.living import STREAM as PROGRAM
from tests.acceptance.programs.living import lived
from tests.replay.histories import moves, played
from tests.replay.world import STREAM, RefundAsked, RefundPaid, World, app_of, paying


@pytest.fixture
def told(world: World) -> World:
    world.story(app_of(paying), *[RefundAsked(f"o-{n}", n + 1) for n in range(5)])
    return world


def equal(walk: Walk, world: World) -> None:
    state = walk.state
    if walk.version < 0:
        assert (-1, 0) == (state.version, state.run.inputs)
        return
    oracle = state_at(world.log, walk.app, walk.stream, walk.version)
    assert (oracle.version, oracle.state, oracle.run, oracle.bases) == (state.version, state.state, state.run, state.bases)


@settings(max_examples=10, deadline=None)
@given(moves, st.lists(st.tuples(st.sampled_from(["goto", "next", "back"]), st.integers(0, 10**6)), max_size=12), st.sampled_from([1, 3, 10]))
def test_it_stands_at_what_a_fresh_fold_gives(happened, steps, spacing):
    app = app_of(paying)
    world = played(app, happened)
    try:
        walk = Walk(world.log, app, STREAM, spacing=spacing)
        for kind, number in steps:
            handed, stood = walk.state, walk.version
            try:
                {"goto": lambda n: walk.goto(n % (walk.head + 2) - 1), "next": lambda _: walk.next(), "back": lambda _: walk.back()}[kind](number)
            except NoSuchVersion:
                assert walk.version in (-1, walk.head)
            if stood != walk.version:  # whoever was handed a state may do with it as he likes
                handed.run.line.append(99)
                handed.run.open.clear()
            equal(walk, world)
    finally:
        world.log.close()


@pytest.mark.parametrize("seed", [3, 11, 27])
def test_linear_programs_are_walked_like_any_other(seed):
    world = lived(seed)
    walk = Walk(world.log, world.app, PROGRAM, spacing=4)
    for version in [*range(walk.head, -2, -7), *range(0, walk.head + 1, 5)]:
        walk.goto(version)
        if version >= 0:
            oracle = state_at(world.log, world.app, PROGRAM, version)
            assert oracle == walk.state
            assert state_as_tree(oracle) == walk.tree == whole(tree_of(walk.state))
    world.log.close()


def test_a_state_that_was_handed_out_does_not_move_with_the_walk(told):
    walk = Walk(told.log, app_of(paying), STREAM)
    walk.goto(5)
    state, tree = walk.state, walk.tree
    walk.next(3)
    walk.back(6)
    assert (5, tree) == (state.version, state_as_tree(state))


class Careless(Aggregate):
    """Its applier is not pure: it changes the state in place."""

    cents: list[int] = []

    @applies(RefundPaid)
    def _(self, e: RefundPaid) -> Careless:
        self.cents.append(e.cents)
        return self


def test_what_is_kept_is_right_even_when_an_applier_changes_the_state_in_place():

    async def adding(ctx: Any, asked: RefundAsked) -> Complete:
        ctx.emit(RefundPaid("r", asked.cents))
        return Complete()

    world, app = World(), app_of(adding, state=Careless)
    world.story(app, *[RefundAsked("o", n) for n in range(6)])
    walk = Walk(world.log, app, STREAM, spacing=3)
    for version in (17, 4, 10, 1, 16, 7):
        walk.goto(version)
        assert list(range((version + 2) // 3)) == walk.state.state.cents
    world.log.close()


def test_beyond_its_ends_it_does_not_go(told):
    walk = Walk(told.log, app_of(paying), STREAM)
    for go in (walk.next, lambda: walk.goto(55), lambda: walk.goto(-2)):
        with pytest.raises(NoSuchVersion, match="its versions are 0 to 54"):
            go()
        assert 54 == walk.version


def test_until_goes_to_the_next_place_and_back_to_the_last_one(told):
    walk = Walk(told.log, app_of(paying), STREAM, spacing=4)
    versions = list(walk.holding(parse_expression("ev.type == 'refund.paid'")))
    assert [9, 20, 31, 42, 53] == versions
    condition = parse_expression("ev.type == 'refund.paid'")
    walk.goto(-1)
    assert [9, 20, 31, 42, 53, None] == [walk.until(condition) for _ in range(6)]
    assert 53 == walk.version
    assert [42, 31, 20, 9, None] == [walk.until(condition, backwards=True) for _ in range(5)]
    assert 9 == walk.version


def test_going_back_meets_the_nearest_place_first_whatever_lies_behind_it(told):
    walk = Walk(told.log, app_of(paying), STREAM, spacing=16)
    assert 52 == walk.until(parse_expression("100 / st.refunded_cents > 9"), backwards=True)  # there was nothing to divide by earlier on
    walk.goto(9)
    with pytest.raises(BadExpression, match=f"at version 8 of {STREAM}, .* division by zero"):
        walk.until(parse_expression("100 / st.refunded_cents < 9"), backwards=True)
    assert 9 == walk.version


def test_until_tells_at_which_version_a_condition_cannot_be_evaluated(told):
    walk = Walk(told.log, app_of(paying), STREAM)
    walk.goto(3)
    with pytest.raises(BadExpression, match=f"at version 4 of {STREAM}, st.cents: Account has no 'cents'"):
        walk.until(parse_expression("st.cents > 3"))
    assert 3 == walk.version


def test_next_of_type_knows_types_and_classes_and_ways(told):
    walk = Walk(told.log, app_of(paying), STREAM)
    walk.goto(-1)
    found = [walk.next_of_type("RefundPaid"), walk.next_of_type("refund.asked"), walk.next_of_type("RefundPaid", backwards=True), walk.next_of_type("Nothing")]
    assert [9, 14, 9, None] == found
    assert "intent.staged" in walk.types()


def test_an_event_comes_decoded_or_says_why_not(told):
    walk = Walk(told.log, app_of(paying), STREAM)
    assert ("refund.asked", RefundAsked("o-0", 1), "") == (walk.event(3).stored.type, walk.event(3).fact, walk.event(3).problem)
    assert 54 == walk.event().stored.version
    with pytest.raises(NoSuchVersion):
        walk.event(55)


def test_a_history_that_cannot_be_folded_is_walked_up_to_there(tmp_path):
    world, app = World(f"sqlite:///{tmp_path}/log.db"), app_of(paying)
    world.story(app, RefundAsked("o-1", 42), RefundAsked("o-2", 7))
    with sqlite3.connect(tmp_path / "log.db") as file:
        file.execute("UPDATE events SET schema = 9 WHERE version = 14")
    file.close()
    walk = Walk(world.log, app, STREAM, spacing=2)
    assert (13, 13, 21) == (walk.version, walk.last, walk.head)
    assert "refund.asked was written under schema version 9" in str(walk.broken)
    with pytest.raises(Undecodable):
        walk.goto(14)
    assert (13, {"order_id": "o-2", "cents": 7}) == (walk.version, walk.event(14).fact)
    assert "schema version 9" in walk.event(14).problem
    walk.back(10)
    equal(walk, world)
    world.log.close()


def test_without_the_memory_for_its_rows_it_reads_them_again(told):
    app = app_of(paying)
    whole_walk = Walk(told.log, app, STREAM)
    for memory in (0, 5_000):
        walk = Walk(told.log, app, STREAM, memory=memory, spacing=4)
        for version in (50, 3, 27, 28, -1, 54):
            walk.goto(version)
            whole_walk.goto(version)
            assert whole_walk.state == walk.state
        assert [row for rows in whole_walk.rows(3, 40) for row in rows] == [row for rows in walk.rows(3, 40) for row in rows]
        assert [41, 40, 39] == [row[0] for row, _ in zip(walk.rows_back(41), range(3), strict=False)]


def test_states_that_take_too_much_room_are_kept_less_often(told, monkeypatch):
    monkeypatch.setattr(walking, "_MOST_KEPT", 600)
    walk = Walk(told.log, app_of(paying), STREAM, spacing=1)
    assert len(walk._marks) < 20
    for version in (54, 1, 30, 29):
        walk.goto(version)
        equal(walk, told)


def test_it_looks_at_the_history_as_it_was(told):
    walk = Walk(told.log, app_of(paying), STREAM, 20)
    assert (20, 20) == (walk.head, walk.version)
    equal(walk, told)
