"""A stream whose events were deleted behind the log's back: it is damage, it is empty, and it hides nothing that is behind it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result

from intentlog.agents.listing import listed
from intentlog.agents.stats import stats
from intentlog.eventlog.cli import group
from intentlog.replay import EmptyStream, Verdict, replay_all, state_at
from intentlog.replay.errors import BrokenHistory
from intentlog.replay.verify import FaultKind, verify_all
from tests.replay.world import STREAM, RefundAsked, World, app_of, paying
from tests.stores import Store

APP = app_of(paying)
LATER = f"{STREAM}-later"


@pytest.fixture
def gone(shared_store: Store, shared_url: str) -> Iterator[World]:
    """Two streams: the events of the first are gone, and a version of the second is."""
    world = World(shared_url)
    world.story(APP, RefundAsked("o-1", 4200))
    world.story(APP, RefundAsked("o-2", 7), key=LATER.partition("-")[2])
    assert 1 < shared_store.edit(shared_url, "DELETE FROM events WHERE stream_id = (SELECT id FROM streams WHERE name = ?)", STREAM)
    assert 1 == shared_store.edit(shared_url, "DELETE FROM events WHERE version = 4")
    yield world
    world.log.close()


def call(world: World, *words: str) -> Result:
    return CliRunner().invoke(group, [*words, "--log", world.log.url], prog_name="eventlog")


@pytest.mark.parametrize("app", [None, APP])
def test_it_is_damage_and_what_is_behind_it_is_found_too(gone, app):
    first, second = verify_all(gone.log, app)
    assert {FaultKind.EMPTY} == set(first.faults)
    assert FaultKind.HOLE in second.faults
    assert [FaultKind.EMPTY] == [kind for report in verify_all(gone.log, app, [STREAM]) for kind in report.faults]


def test_it_cannot_be_replayed_and_the_next_one_is_looked_at(gone):
    first, second = replay_all(gone.log, APP)
    assert (STREAM, Verdict.CANNOT, 0) == (first.stream, first.verdict, first.events)
    assert "has no events" in first.reason
    assert (LATER, Verdict.CANNOT, None) == (second.stream, second.verdict, second.divergence)
    assert "version 4 is missing" in second.reason


def test_it_is_listed_and_counted_as_empty(gone):
    first, second = listed(gone.log)
    assert (STREAM, 0, "", 0, "") == (first.stream, first.events, first.last_type, first.last_at, first.state)
    found = stats(gone.log)
    assert (2, second.events) == (found.streams, found.events)


def test_it_has_no_state(gone):
    with pytest.raises(EmptyStream, match=f"{STREAM} has no events"):
        state_at(gone.log, APP, STREAM)


def test_the_commands_say_so(gone):
    shown = call(gone, "show", STREAM)
    assert (3, "") == (shown.exit_code, shown.stdout)
    assert f"{STREAM} has no events" in shown.stderr
    assert "There is" not in shown.stderr
    verified = call(gone, "verify")
    assert 1 == verified.exit_code
    assert "not one event is there" in verified.stdout
    assert "4 is missing" in verified.stdout
    listing = call(gone, "streams", "--json")
    assert {"stream": STREAM, "events": 0, "state": "", "last_type": "", "last_at": None} == json.loads(listing.stdout.splitlines()[0])
    for words in (("streams",), ("stats",), ("tail",), ("dead-letters", "list"), ("intents", "list")):
        assert 0 == call(gone, *words).exit_code, words
    assert "1970" not in call(gone, "streams").stdout


def test_no_state_is_folded_over_a_hole_and_no_turn_is_run_over_one(gone):
    """S-1.3"""
    with pytest.raises(BrokenHistory, match=rf"{LATER} version 4 is missing: 5 stands in its place.*eventlog verify"):
        state_at(gone.log, APP, LATER)
    assert 3 == state_at(gone.log, APP, LATER, 3).version
    gone.story(APP, RefundAsked("o-3", 8), key=LATER.partition("-")[2])
    assert "stream.blocked" == [each.type for each in gone.log.read(LATER)][-1]
