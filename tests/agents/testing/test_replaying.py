"""``assert_replays``: passes what is the same, and shows what is not."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from intentlog.agents import ActivationContext, App, agent
from intentlog.agents.testing import Harness, assert_replays
from intentlog.eventlog import open_log
from tests.agents.testing.shop import RefundAsked, Verdict, app, refund, ship


def app_of(cents: int, *, wait: bool = False) -> App:
    @agent("payers")
    async def payers(ctx: ActivationContext[Any], order: str) -> Any:
        if wait:
            await ctx.sleep(timedelta(days=1))
        return await ctx.perform(refund, order_id=order, cents=cents)

    return App(agents=[payers], tools=[refund])


def test_the_same_code_over_the_same_log_passes(harness: Harness):
    run = harness.start(app_of(42)).send("payers", "k", "o-1").until_idle()
    assert_replays(app_of(42), run)
    assert_replays(app_of(42), run.log, "payers-k")


def test_other_code_is_shown_with_both_sides(harness: Harness):
    run = harness.start(app_of(42)).send("payers", "k", "o-1").until_idle()
    with pytest.raises(AssertionError, match=r"payers-k diverges at version 1 \(intent.staged\).*(?s:.*)42.*\n.*43"):
        assert_replays(app_of(43), run)
    with pytest.raises(AssertionError, match="payers-k diverges"):
        assert_replays(app_of(42, wait=True), run.log, "payers-k")


def test_only_the_stream_that_is_named_is_looked_at(harness: Harness):
    run = harness.start(app, models=[Verdict(), Verdict()], tools={refund: "re_1"})
    run.send("accounts", "k", RefundAsked("o-1", 1)).send("explicit", "k", "o-1").until_idle()
    assert_replays(run.app, run, "explicit-k")
    with pytest.raises(AssertionError, match="cannot be replayed: the app has no agent 'explicit'"):
        assert_replays(app_of(43), run, "explicit-k")


def test_an_empty_log_proves_nothing():
    log = open_log("memory://")
    with pytest.raises(AssertionError, match="nothing to replay"):
        assert_replays(app_of(42), log)
    log.close()


def test_a_turn_that_failed_over_an_outcome_fails_again(harness: Harness):
    run = harness.start(app_of(42), tools={refund: OSError("down")}).send("payers", "k", "o-1").until_idle()
    with pytest.raises(AssertionError, match="EffectErrored"):
        run.output("payers", "k")
    run.assert_replays()


def test_a_run_that_is_under_way_replays_as_far_as_it_is(harness: Harness):
    run = harness.start(app).send("orders", "k", "o-1").until_idle().assert_replays()
    run.cancel("orders", "k").until_idle().assert_replays()
    assert ["shipped o-1"] == run.ledger(ship)
