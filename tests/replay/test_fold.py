"""State at any version is the fold of the events up to there, wherever that is asked for by version, position or moment."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intentlog.agents.streams import Folder
from intentlog.eventlog.clock import span_of, to_datetime
from intentlog.replay import At, NoSuchStream, NoSuchVersion, UnknownAgent, parse_at, state_as_tree, state_at
from tests.replay.test_replays import many
from tests.replay.world import START, STREAM, RefundAsked, World, app_of, paying


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9), st.integers(0, 90)), min_size=1, max_size=5))
def test_the_state_at_n_is_a_fresh_fold_of_the_events_up_to_n(inputs):
    world, app = World(), app_of(paying)
    try:
        for plain, cents, wait in inputs:
            world.clock.tick(wait)
            world.story(app if plain else app_of(many), RefundAsked(f"o-{cents}", cents))
        folder = Folder(app.definitions["accounts"])
        rows = world.log.rows_of({STREAM: -1})[STREAM]
        for version in range(len(rows)):
            oracle = folder.fold(folder.empty(STREAM), rows[: version + 1])
            found = state_at(world.log, app, STREAM, version)
            assert (oracle.version, oracle.state, oracle.run) == (found.version, found.state, found.run)
            position = next(iter(world.log.read(STREAM, after=version - 1, limit=1))).position
            assert version == state_at(world.log, app, STREAM, At(position=position)).version
    finally:
        world.log.close()


@pytest.fixture
def told(world: World) -> World:
    world.story(app_of(paying), RefundAsked("o-1", 42))
    world.clock.tick(59)
    world.story(app_of(paying), RefundAsked("o-2", 7))
    return world


def test_without_a_place_it_is_the_state_now(told):
    found = state_at(told.log, app_of(paying), STREAM)
    assert (21, 49, 2) == (found.version, found.state.refunded_cents, found.run.completed)


def test_a_moment_means_everything_recorded_until_then(told):
    app = app_of(paying)
    assert 10 == state_at(told.log, app, STREAM, At(moment=START + 60_999_999)).version
    assert 21 == state_at(told.log, app, STREAM, At(moment=START + 61_000_000)).version


def test_places_are_versions_positions_and_moments():
    assert (At(version=17), At(position=1234)) == (parse_at("17"), parse_at(" @1234"))
    assert (None, None, None) == (parse_at("now"), parse_at("HEAD"), parse_at(" end "))
    with pytest.raises(NoSuchVersion, match=r"'soon' is no place in a stream: give a version \(17\)"):
        parse_at("soon")


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("2025-11-29T09:14", 60_000_000),
        ("2025-11-29 10:14+01:00", 60_000_000),
        ("20251129T091400Z", 1_000_000),
        ("2025-11-29T09:14:00.5", 600_000),
        ("2025-11-29T09:14:00.500+00:00", 501_000),
        ("2025-11-29T09:14:00.500000", 500_001),
        ("2025-11-29T09:14:00.5000001", 500_001),
        ("2025-11-29T09", 46 * 60_000_000),
        ("2025-11-29", (24 * 60 - 554) * 60_000_000),
        ("2025-W48-6", (24 * 60 - 554) * 60_000_000),
        ("2025-W48", (48 * 60 - 554) * 60_000_000),
    ],
)
def test_a_moment_means_the_end_of_what_is_written(text, after):
    """``after``: µs from 09:14 on to the first one that is not meant."""
    assert At(moment=START + after - 1) == parse_at(text)


@given(micros=st.integers(START, START + 10**12), digits=st.integers(0, 6))
def test_a_moment_cut_to_fewer_digits_still_has_what_was_recorded_then(micros, digits):
    cut = to_datetime(micros).strftime("%Y-%m-%dT%H:%M:%S.%f")[: 20 + digits].rstrip(".")
    first, last = span_of(cut)
    assert first <= micros <= last
    assert At(moment=last) == parse_at(cut)
    assert 10 ** (6 - digits) == last - first + 1


def test_a_version_beyond_the_head_names_the_head(told):
    with pytest.raises(NoSuchVersion, match="has no version 22: its versions are 0 to 21"):
        state_at(told.log, app_of(paying), STREAM, 22)


def test_a_moment_before_the_first_event_names_it(told):
    with pytest.raises(NoSuchVersion, match="had not begun then: its first event stands at position 1, recorded 2025-11-29T09:14:01"):
        state_at(told.log, app_of(paying), STREAM, At(moment=START))


def test_a_stream_that_does_not_exist_names_close_ones(told):
    with pytest.raises(NoSuchStream, match=r"memory:// has no stream 'accounts-acct-24'\. There is accounts-acct-42"):
        state_at(told.log, app_of(paying), "accounts-acct-24")


def test_an_agent_the_app_does_not_have_is_named(told):
    with pytest.raises(UnknownAgent, match="this app has no agent 'payments'; it has: accounts"):
        state_at(told.log, app_of(paying), "payments-1")


def test_the_state_as_a_tree_has_the_aggregate_and_the_run(told):
    tree = state_as_tree(state_at(told.log, app_of(paying), STREAM, 6))
    activation = tree["run"]["activations"]["0"]
    assert ("suspended", 1, [0], [0]) == tuple(activation[name] for name in ("state", "turns", "model_calls", "reads"))
    (intent,) = tree["run"]["intents"].values()
    assert ("refund", "staged", {"order_id": "o-1", "cents": 42}) == (intent["tool"], intent["state"], intent["args"])
    assert frozenset({"o-1"}) == tree["state"].orders
