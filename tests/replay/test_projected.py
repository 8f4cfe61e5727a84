"""Projections of the code against the log's views: a changed handler is found at its first row, a lost version by its name."""

from __future__ import annotations

from typing import Any

import pytest

from intentlog.agents import App, agent
from intentlog.eventlog.projections import OnError, Projection, catch_up, swap
from intentlog.replay import Verdict
from intentlog.replay.projected import replay_projections
from tests.replay.world import RefundAsked, RefundPaid, World, app_of, paying


def summing(factor: int = 1, failing: str = ""):
    def handle(view: Any, event: Any, paid: Any) -> None:
        if isinstance(paid, RefundPaid):
            if paid.receipt == failing:
                raise ValueError(f"no {failing}")
            key = paid.receipt
            view.put(key, str(int(view.get(key) or b"0") + factor * paid.cents).encode())

    return handle


def app_with(*projections: Projection) -> App:
    async def nothing(ctx: Any) -> None:
        return None

    return App(agents=[agent("others")(nothing)], events=[RefundAsked, RefundPaid], projections=projections)


def sums(version: int = 1, **options: Any) -> Projection:
    return Projection("sums", summing(**options), types=("refund.paid",), version=version)


@pytest.fixture
def built(world: World) -> World:
    world.story(app_of(paying), RefundAsked("o-1", 4200), RefundAsked("o-2", 100))
    projections = app_with(sums()).projections
    (projection,) = projections
    swap(world.log, projection, codec=projections.codec)
    return world


def found(world: World, *projections: Projection):
    return list(replay_projections(world.log, app_with(*projections)))


def test_the_same_handler_builds_the_same_rows(built):
    (each,) = found(built, sums())
    assert ("sums@v1", Verdict.SAME, 2) == (each.view, each.verdict, each.rows)


def test_events_beyond_the_views_checkpoint_are_not_missed_in_it(built):
    built.story(app_of(paying), RefundAsked("o-3", 1))
    assert [Verdict.SAME] == [each.verdict for each in found(built, sums())]


def test_a_changed_handler_is_found_at_its_first_row(built):
    (each,) = found(built, sums(factor=2))
    assert (Verdict.DIVERGED, "re_o-1", "b'4200'", "b'8400'") == (each.verdict, each.row, each.recorded, each.decided)


def test_a_handler_that_fails_now_is_told_with_the_event(built):
    (each,) = found(built, sums(failing="re_o-2"))
    assert (Verdict.DIVERGED, True) == (each.verdict, "it stops at accounts-acct-42 version" in each.decided)


def test_a_live_version_that_the_code_does_not_declare_is_found(built):
    (each,) = found(built, sums(version=2))
    assert ("sums@v1", Verdict.DIVERGED, "the code declares sums@v2") == (each.view, each.verdict, each.decided)
    assert [Verdict.SAME] == [each.verdict for each in found(built, sums(), sums(version=2))]


def test_a_projection_that_was_never_built_is_not_mentioned(built):
    assert [] == found(built, Projection("others", summing()))


def test_what_was_parked_is_not_asked_for_again(world):
    world.story(app_of(paying), RefundAsked("o-1", 4200), RefundAsked("o-2", 100))
    parking = Projection("sums", summing(failing="re_o-1"), types=("refund.paid",), on_error=OnError.PARK)
    projections = app_with(parking).projections
    catch_up(world.log, parking, codec=projections.codec)
    assert [(Verdict.SAME, 1)] == [(each.verdict, each.rows) for each in found(world, sums())]


def test_nothing_is_written(built):
    before = built.log.checkpoints.all(), built.log.views.pointed(), list(built.log.views.read("sums").items())
    found(built, sums(factor=2), sums(version=3))
    assert before == (built.log.checkpoints.all(), built.log.views.pointed(), list(built.log.views.read("sums").items()))
