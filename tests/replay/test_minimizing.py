"""A smaller history still shows it, and no input of it can be left out alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intentlog.agents import Complete, Suspend
from intentlog.replay import Verdict
from intentlog.replay.bisect import bisect_here
from intentlog.replay.errors import CannotBisect
from intentlog.replay.expressions import parse_expression
from intentlog.replay.minimizing import Minimal, _History, _Smaller, minimize
from intentlog.replay.walking import Walk
from tests.acceptance.programs.living import STREAM as PROGRAM
from tests.acceptance.programs.living import lived
from tests.replay.world import STREAM, RefundAsked, RefundPaid, World, app_of, paying, refund


async def forgetful(ctx: Any, asked: RefundAsked) -> Any:
    """Decides by its input alone, so that any of its inputs could have come without the others."""
    if not ctx.is_resume:
        ctx.emit(asked)
        await ctx.call_model(f"Refund {asked.cents}?")
        ctx.act(refund, order_id=asked.order_id, cents=asked.cents)
        return Suspend(snapshot=b"1")
    ctx.emit(RefundPaid(ctx.resume_result.value, asked.cents))
    return Complete(ctx.resume_result.value)


def smallest(world: World, app: Any, text: str, **options: Any) -> Minimal:
    walk, condition = Walk(world.log, app, STREAM), parse_expression(text)
    return minimize(walk, condition, bisect_here(walk, condition), **options)


def is_minimal(world: World, app: Any, text: str, minimal: Minimal) -> None:
    walk, condition = Walk(world.log, app, STREAM), parse_expression(text)
    found = bisect_here(walk, condition)
    assert found.version is not None
    smaller = _Smaller(walk, condition, found.holds, _History.read(walk, found.version), 1)
    kept = [each.seq for each in minimal.kept]
    assert minimal.version == smaller.shown_at(kept)
    for seq in kept:
        assert None is smaller.shown_at([each for each in kept if each != seq])


@settings(max_examples=10, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(1, 9)), min_size=1, max_size=9),
    st.sampled_from(
        ["st.refunded_cents > 11", "len(st.orders) == 3", "'o-2' in st.orders and st.refunded_cents > 5", "ev.value == 're_o-1'", "run.completed > 1"]
    ),
)
def test_what_is_kept_shows_it_and_nothing_of_it_can_be_left_out(inputs, text):
    world, app = World(), app_of(forgetful)
    try:
        world.story(app, *[RefundAsked(f"o-{order}", cents) for order, cents in inputs])
        walk, condition = Walk(world.log, app, STREAM), parse_expression(text)
        found = bisect_here(walk, condition)
        if found.version is None:
            with pytest.raises(CannotBisect, match="never changes"):
                minimize(walk, condition, found)
            return
        minimal = minimize(walk, condition, found)
        is_minimal(world, app, text, minimal)
        assert (True, Verdict.SAME) == (minimal.whole, minimal.replayed.verdict)
    finally:
        world.log.close()


def test_the_one_input_that_matters_is_found_among_many(world):
    app = app_of(forgetful)
    world.story(app, *[RefundAsked(f"o-{n}", 900 if n == 13 else 1) for n in range(20)])
    minimal = smallest(world, app, "any(i.args.cents > 500 for i in run.intents.values())")
    assert (["in-14"], 14) == ([each.input_id for each in minimal.kept], minimal.of)
    assert Verdict.SAME is minimal.replayed.verdict


def test_inputs_that_alone_would_have_led_elsewhere_are_said_to(world):
    app = app_of(paying)  # asks the model with what was refunded before
    world.story(app, *[RefundAsked(f"o-{n}", n) for n in range(5)])
    minimal = smallest(world, app, "'o-4' in st.orders")
    assert (["in-5"], Verdict.DIVERGED) == ([each.input_id for each in minimal.kept], minimal.replayed.verdict)
    assert minimal.replayed.divergence is not None
    assert "6 before?'" in minimal.replayed.divergence.recorded


def test_what_an_input_led_to_goes_with_it(world):
    async def again(ctx: Any, asked: RefundAsked) -> Any:
        ctx.emit(RefundPaid("r", asked.cents))
        if asked.cents % 10:
            return ctx.continue_with(RefundAsked(asked.order_id, asked.cents - 1))
        return Complete()

    app = app_of(again)
    world.story(app, RefundAsked("o-1", 12), RefundAsked("o-2", 23), RefundAsked("o-3", 30))
    minimal = smallest(world, app, "st.refunded_cents > 60")
    assert (["in-2"], Verdict.SAME) == ([each.input_id for each in minimal.kept], minimal.replayed.verdict)


def test_it_is_given_up_when_it_takes_too_long(world):
    app = app_of(forgetful)
    world.story(app, *[RefundAsked(f"o-{n}", 1) for n in range(8)])
    minimal = smallest(world, app, "st.refunded_cents > 6", most_events=150)
    assert (False, 7, True) == (minimal.whole, len(minimal.kept), 0 < minimal.tries < 12)


@pytest.mark.parametrize("seed", [108, 135, 166])
def test_a_withdrawn_intent_breaks_no_append_apart(seed):
    world = lived(seed)
    walk, condition = Walk(world.log, world.app, PROGRAM), parse_expression("ev.status != 'OK'")
    assert Verdict.SAME is minimize(walk, condition, bisect_here(walk, condition)).replayed.verdict
    world.log.close()
