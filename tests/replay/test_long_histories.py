"""A history of 100,000 events is read once; after that each look at it answers at once (Show 6).

Times are of this process' own work, for the machine may be doing others' as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pytest

from intentlog.eventlog.opening import open_log
from intentlog.replay.expressions import parse_expression
from intentlog.replay.fold import state_at
from intentlog.replay.paths import parse_path
from intentlog.replay.story import story
from intentlog.replay.walking import Walk
from intentlog.replay.why import why_here
from tests.replay.long_history import record_long
from tests.replay.world import STREAM, app_of, paying

EVENTS = 100_000
AT_ONCE = 0.3
"""Seconds."""
APP = app_of(paying)


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    log = open_log(f"sqlite:///{tmp_path_factory.mktemp('long')}/log.db")
    record_long(log, APP, EVENTS)
    yield Walk(log, APP, STREAM)
    log.close()


def seconds(look: Callable[[], Any]) -> float:
    """The best of three: what it takes when nothing else gets in its way."""
    return min(_once(look) for _ in range(3))


def _once(look: Callable[[], Any]) -> float:
    begun = time.process_time()
    look()
    return time.process_time() - begun


@pytest.mark.parametrize("version", [99_999, 50_123, 7])
def test_the_state_at_any_version_is_there_at_once_and_is_a_fresh_fold(walk, version):
    def look() -> None:
        walk.goto(33_333)
        walk.goto(version)
        assert walk.state.version == walk.tree["version"] == version

    assert seconds(look) < AT_ONCE
    oracle = state_at(walk.log, APP, STREAM, version)
    assert (oracle.state, oracle.run) == (walk.state.state, walk.state.run)


def test_a_step_back_is_there_at_once(walk):
    walk.goto(99_999)
    assert seconds(lambda: (walk.back(), walk.state, walk.event())) < AT_ONCE
    walk.goto(63_210)
    assert seconds(lambda: (walk.back(100), walk.state, walk.event())) < AT_ONCE


def test_a_page_of_the_story_is_there_at_once(walk):
    assert seconds(lambda: list(islice(story(walk.log, STREAM, APP, first=50_000), 50))) < AT_ONCE
    assert seconds(lambda: list(story(walk.log, STREAM, APP, first=99_950))) < AT_ONCE


def test_the_next_place_and_the_last_cause_near_by_are_there_at_once(walk):
    walk.goto(70_000)
    paid = parse_expression("ev.type == 'refund.paid'")
    assert seconds(lambda: (walk.until(paid), walk.until(paid, backwards=True), walk.next_of_type("RefundPaid"))) < AT_ONCE
    assert seconds(lambda: why_here(walk, parse_path("refunded_cents"), 99_999)) < AT_ONCE
