"""A search finds what looking at every version finds, and says when the condition changes more than once."""

from __future__ import annotations

from math import isqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intentlog.replay.bisect import Found, bisect, bisect_here, holding
from intentlog.replay.errors import BadExpression, UnknownAgent
from intentlog.replay.expressions import Expression, parse_expression
from intentlog.replay.fold import state_as_tree, state_at
from intentlog.replay.trees import EventTree
from intentlog.replay.walking import Walk
from tests.acceptance.programs.living import STREAM as PROGRAM
from tests.acceptance.programs.living import lived
from tests.replay.histories import moves, played
from tests.replay.world import STREAM, RefundAsked, World, app_of, paying

CONDITIONS = [
    "st.refunded_cents > 200",
    "not st.orders",
    "run.completed >= 1",
    "run.line",
    "len(run.intents) == 1",
    "ev.type == 'intent.settled'",
    "ev.payload.cents > 100",
    "version > 5",
    "st.refunded_cents < 0",
    "any(a.state == 'suspended' for a in run.activations.values())",
    "version < 4 or run.completed > 0",
]


def scanned(walk: Walk, condition: Expression) -> list[int]:
    """Every version at which the condition changes, by a fresh fold of each."""
    before, changes = False, []
    rows = [row for rows in walk.log.rows(walk.stream) for row in rows]
    empty = Walk(walk.log, walk.app, walk.stream)
    empty.goto(-1)
    before = condition.holds(empty.tree)
    for version, row in enumerate(rows):
        now = condition.holds(state_as_tree(state_at(walk.log, walk.app, walk.stream, version)), EventTree(row, walk.app.codec))
        if now is not before:
            changes.append(version)
        before = now
    return changes


def as_scanned(found: Found, changes: list[int], begin: bool) -> None:
    assert (changes, next(iter(changes), None), not begin) == (list(found.changes), found.version, found.holds)
    assert found.monotone is (len(changes) <= 1)


@settings(max_examples=10, deadline=None)
@given(moves, st.sampled_from(CONDITIONS), st.sampled_from([1, 5, 64]))
def test_it_finds_what_a_scan_of_fresh_folds_finds(happened, text, spacing):
    app = app_of(paying)
    world = played(app, happened)
    try:
        condition = parse_expression(text)
        walk = Walk(world.log, app, STREAM, spacing=spacing)
        changes = scanned(walk, condition)
        as_scanned(bisect_here(walk, condition), changes, text in ("not st.orders", "version < 4 or run.completed > 0"))
        trusted = bisect_here(walk, condition, trusted=True)
        if len(changes) == 1:
            assert changes[0] == trusted.version
        elif trusted.version is not None:
            assert trusted.version in changes
        assert (None, True) == (trusted.monotone, trusted.looks <= 3 + walk.head.bit_length() + 2 * isqrt(walk.head) + 4)
    finally:
        world.log.close()


@pytest.mark.parametrize("seed", [4, 19])
def test_so_it_does_in_linear_programs(seed):
    world = lived(seed)
    walk = Walk(world.log, world.app, PROGRAM)
    for text in ("st.count > 2", "run.intents", "ev.status != 'OK'", "run.completed == 1"):
        condition = parse_expression(text)
        assert scanned(walk, condition) == list(bisect_here(walk, condition).changes)
    world.log.close()


@pytest.fixture
def told(world: World) -> World:
    world.story(app_of(paying), *[RefundAsked(f"o-{n}", n + 1) for n in range(4)])
    return world


def found_in(world: World, text: str, **options) -> Found:
    return bisect(world.log, app_of(paying), STREAM, parse_expression(text), **options)


def test_a_condition_that_holds_before_the_first_event_is_found_where_it_stops(told):
    found = found_in(told, "not st.orders")
    assert (3, "refund.asked", False, True) == (found.version, found.type, found.holds, found.monotone)


def test_one_that_changes_more_than_once_is_scanned_and_said_to(told):
    found = found_in(told, "len(run.intents) == 1")
    assert (5, False, (5, 10, 16, 21)) == (found.version, found.monotone, found.changes[:4])


def test_one_that_is_as_before_at_the_end_is_found_all_the_same(told):
    assert ((0, 10), 0) == (found_in(told, "run.line").changes[:2], found_in(told, "run.line").version)


def test_one_that_never_changes_is_not_found(told):
    found = found_in(told, "st.refunded_cents > 999")
    assert (None, (), True) == (found.version, found.changes, found.monotone)


def test_it_looks_no_further_than_it_is_told(told):
    assert (None, 31) == (found_in(told, "st.refunded_cents > 5", upto=30).version, found_in(told, "st.refunded_cents > 5", upto=31).version)


def test_what_cannot_be_evaluated_stops_the_search(told):
    with pytest.raises(BadExpression, match=r"before the first event of accounts-acct-42, st\.cents: Account has no"):
        found_in(told, "st.cents > 3")
    with pytest.raises(UnknownAgent):
        bisect(told.log, app_of(paying), "payments-1", parse_expression("version > 1"))


def test_whether_it_holds_now_is_told_to_another_process_as_a_tree(told):
    app = app_of(paying)
    assert {"stream": STREAM, "holds": True, "problem": ""} == holding(told.log, app, STREAM, "st.refunded_cents == 10 and ev.type == 'activation.completed'")
    assert "has no 'cents'" in str(holding(told.log, app, STREAM, "st.cents == 1")["problem"])
