"""A version that was deleted behind the log's back: nothing is said of what lies behind it, and it is named. S-1.3, S-9.2"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from intentlog.agents.errors import ImpossibleHistory
from intentlog.eventlog.cli import group
from intentlog.replay import Verdict, preflight_all, replay_all
from intentlog.replay.against import folded
from intentlog.replay.bisect import bisect
from intentlog.replay.differing import differing
from intentlog.replay.errors import BrokenHistory
from intentlog.replay.expressions import parse_expression
from intentlog.replay.paths import parse_path
from intentlog.replay.story import story
from intentlog.replay.walking import Walk
from intentlog.replay.why import why
from tests.replay import paid
from tests.replay.world import STREAM, RefundAsked, World, app_of, paying
from tests.stores import Store

APP = paid.app
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def two(shared_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Two refunds in one stream."""
    monkeypatch.chdir(ROOT)
    world = World(shared_url)
    world.story(app_of(paying), RefundAsked("o-1", 300), RefundAsked("o-2", 100))
    yield world
    world.log.close()


def without(world: World, store: Store, version: int) -> int:
    """The log without this version."""
    assert 1 == store.edit(world.log.url, "DELETE FROM events WHERE version = ?", version)
    return version


def call(world: World, *words: str) -> Result:
    return CliRunner().invoke(group, [*words, "--log", world.log.url], prog_name="eventlog")


def paid_at(world: World) -> int:
    """Where the first refund was paid."""
    return next(each.version for each in world.log.read(STREAM) if each.type == "refund.paid")


def test_every_command_that_folds_names_the_missing_version_and_gives_no_state(two, shared_store):
    hole = without(two, shared_store, paid_at(two))
    for words in (
        ("state", STREAM),
        ("state", STREAM, "--at", str(hole)),
        ("why", STREAM, "refunded_cents"),
        ("why", STREAM, "refunded_cents", "--at", str(hole)),
        ("diff", STREAM, "0", "now"),
        ("diff", STREAM, "0", str(hole)),
        ("bisect", STREAM, "st.refunded_cents > 0"),
        ("bisect", STREAM, "st.refunded_cents > 0", "--at", str(hole)),
    ):
        said = call(two, *words, "--app", "tests.replay.paid:app")
        assert (3, "") == (said.exit_code, said.stdout), words
        assert f"version {hole} is missing" in said.stderr, words


def test_before_the_hole_there_is_a_state(two, shared_store):
    hole = without(two, shared_store, paid_at(two))
    assert 0 == call(two, "state", STREAM, "--at", str(hole - 1), "--app", "tests.replay.paid:app").exit_code
    assert "orders" == why(two.log, APP, STREAM, parse_path("orders"), hole - 1).path[1]
    assert differing(two.log, APP, STREAM, 0, hole - 1).changes
    assert hole - 1 > (bisect(two.log, APP, STREAM, parse_expression("'o-1' in st.orders"), hole - 1).version or -1) > 0


@pytest.mark.parametrize("memory", [0, 2**20])
def test_a_walk_ends_before_the_hole_and_says_why(two, shared_store, memory):
    hole = without(two, shared_store, paid_at(two))
    walk = Walk(two.log, APP, STREAM, memory=memory, spacing=1)
    assert (hole - 1, hole - 1) == (walk.last, walk.version)
    assert f"version {hole} is missing" in str(walk.broken)
    for version in (hole, hole + 1, walk.head):
        with pytest.raises((ImpossibleHistory, BrokenHistory), match=f"version {hole} is missing"):
            walk.at(version)
    assert hole - 1 == max(row[0] for row, _ in walk.each())


def test_whatever_version_is_missing_no_replay_says_that_the_stream_is_the_same_or_blames_the_code(two, shared_store):
    head = two.log.head(STREAM)
    for hole in range(head):
        with_it = shared_store.edit(two.log.url, "UPDATE events SET version = version + 1000 WHERE version = ?", hole)
        assert 1 == with_it
        (replayed,) = replay_all(two.log, APP, [STREAM])
        assert (hole, Verdict.CANNOT, None) == (hole, replayed.verdict, replayed.divergence)
        assert f"version {hole} is missing" in replayed.reason
        shared_store.edit(two.log.url, "UPDATE events SET version = version - 1000 WHERE version = ?", hole + 1000)
    assert Verdict.SAME is next(replay_all(two.log, APP, [STREAM])).verdict


def test_a_last_event_that_was_moved_up_leaves_a_hole(two, shared_store):
    head = two.log.head(STREAM)
    shared_store.edit(two.log.url, "UPDATE events SET version = version + 16 WHERE version = ?", head)
    for words in (("replay", "--all"), ("replay", "--all", "--against", "."), ("replay", "--all", "--jobs", "2")):
        said = call(two, *words, "--app", "tests.replay.paid:app")
        assert 3 == said.exit_code, words
        assert f"versions {head} to {head + 15} are missing" in said.stdout, words


def test_a_fold_for_another_code_and_a_preflight_refuse_it_too(two, shared_store):
    hole = without(two, shared_store, paid_at(two))
    assert f"version {hole} is missing" in folded(two.log, APP, STREAM, two.log.head(STREAM)).reason
    two.send(app_of(paying), RefundAsked("o-3", 7))  # without a run under way nothing is folded
    (outlook,) = preflight_all(two.log, APP, [STREAM])
    assert f"version {hole} is missing" in outlook.reason


def test_the_story_tells_of_the_hole_where_it_stands(two, shared_store):
    hole = without(two, shared_store, 4)
    without(two, shared_store, 5)
    lines = list(story(two.log, STREAM))
    assert [(6, "versions 4 to 5 are missing")] == [(each.stored.version, each.missing) for each in lines if each.missing]
    told = call(two, "show", STREAM).stdout.splitlines()
    place = next(place for place, line in enumerate(told) if "versions 4 to 5 are missing" in line)
    assert "  3  " in told[place - 1]
    assert "  6  " in told[place + 1]
    trees = [json.loads(line) for line in call(two, "show", STREAM, "--json").stdout.splitlines()]
    assert ["versions 4 to 5 are missing"] == [each["missing"] for each in trees if each["version"] == 6]
    assert {None} == {each["missing"] for each in trees if each["version"] != 6}
    ended = call(two, "show", STREAM, "--from", "2", "--to", str(hole))
    assert "version 4 is missing" in ended.stderr
    alone = call(two, "show", STREAM, "--from", str(hole), "--to", str(hole))
    assert (0, "") == (alone.exit_code, alone.stdout)
    assert "version 4 is missing" in alone.stderr
    assert not [each for each in story(two.log, STREAM, first=7) if each.missing]


def test_a_stream_whose_first_events_are_missing_is_told_as_such(two, shared_store):
    without(two, shared_store, 0)
    assert "version 0 is missing" == next(iter(story(two.log, STREAM))).missing
    assert "version 0 is missing" in str(Walk(two.log, APP, STREAM).broken)
