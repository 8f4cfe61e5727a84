"""Dying at every boundary, in memory: the log survives and nothing else does."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any

import pytest

from intentlog.agents import ActivationContext, App, IntentInfo, agent, tool
from intentlog.agents.facts import InputReceived, IntentSettled
from intentlog.agents.testing import Harness
from tests.agents.testing.shop import RefundAsked, Verdict, app, payments, refund, ship

ASKED = RefundAsked("o-1", 4200)


def test_one_refund_whatever_dies(harness):  # in memory, virtual clock
    for boundary in harness.boundaries:
        payments.by_intent.clear()
        run = harness.start(app, crash_at=boundary).send("accounts", "acct-42", RefundAsked("o-1", 4200))
        run.until_idle()
        assert ["re_1"] == run.ledger(refund)
        run.assert_replays()
        assert [boundary] == run.crashes
        assert "re_1" == run.output("accounts", "acct-42")


def test_only_a_call_without_a_journal_entry_is_made_again(harness: Harness):
    calls, effects = {}, {}
    for boundary in harness.boundaries:
        run = harness.start(app, crash_at=boundary, models=[Verdict()], tools={refund: "re_1"}).send("accounts", "k", ASKED).until_idle()
        calls[boundary], effects[boundary] = len(run.calls), len(run.effects)
    assert {"model.answered"} == {boundary for boundary, count in calls.items() if count > 1}
    assert {"tool.called"} == {boundary for boundary, count in effects.items() if count > 1}


def test_a_tool_that_is_not_idempotent_is_never_called_twice(harness: Harness):
    outputs = {}
    for boundary in harness.boundaries:
        run = harness.start(app, crash_at=boundary).send("explicit", "k", "o-1").until_idle()
        assert len(run.effects) <= 1
        outputs[boundary] = run.output("explicit", "k")
        run.assert_replays()
    assert {"attempt.recorded": "EffectUnknown", "tool.called": "EffectUnknown"} == {b: out for b, out in outputs.items() if out != "shipped o-1"}


def test_the_nth_time_and_several_times(harness: Harness):
    run = harness.start(app, crash_at=["turn.appended:2", "settled"], tools={refund: "re_1"}).crash_at("turn.decided", 3)
    run.send("accounts", "a", ASKED).until_idle()
    assert ["settled", "turn.appended"] == run.crashes
    run.send("accounts", "b", ASKED).until_idle()
    assert ["settled", "turn.appended", "turn.decided"] == run.crashes
    assert ["re_1", "re_1"] == [run.output("accounts", key) for key in "ab"]


def test_what_dies_before_a_receipt_is_sent_again_and_counts_once(harness: Harness):
    for boundary in ("input.offered", "input.recorded"):
        run = harness.start(app, crash_at=[boundary, f"{boundary}:2"], tools={refund: "re_1"}).send("accounts", "k", ASKED).until_idle()
        assert [boundary, boundary] == run.crashes
        assert 1 == len(run.events("accounts-k", InputReceived))


def test_everything_in_memory_is_dropped(harness: Harness):
    """Keys under way beside the one at which it dies commit nothing more in that life."""
    for boundary in ("turn.decided", "model.journalled", "tool.called", "attempt.recorded"):
        run = harness.start(app, crash_at=f"{boundary}:3", tools={refund: "re_1"})
        for key in map(str, range(8)):
            run.send("accounts", key, ASKED)
        run.until_idle()
        assert [boundary] == run.crashes
        assert ["re_1"] * 8 == [run.output("accounts", str(key)) for key in range(8)]
        assert 8 == len([event for key in range(8) for event in run.events(f"accounts-{key}", IntentSettled)])
        run.assert_replays()


def test_a_run_dies_while_it_sleeps_waits_and_is_told(harness: Harness):
    for boundary, n in itertools.product(("turn.decided", "turn.appended", "settled", "checkpointed"), (1, 2)):
        run = harness.start(app).crash_at(boundary, n).send("orders", "k", "o-1").until_idle()
        run.signal("orders", "k", "customer.reply", "thanks").until_idle()
        assert [3, "shipped o-1", "thanks"] == run.output("orders", "k")
        assert ["shipped o-1"] == run.ledger(ship)
        run.assert_replays()


def test_a_crash_that_never_comes_is_seen_in_crashes(harness: Harness):
    run = harness.start(app, crash_at="model.answered").send("orders", "k", "o-1").until_idle()
    assert [] == run.crashes


def test_a_tool_that_only_says_it_is_idempotent_is_found_out(harness: Harness):
    paid: list[str] = []

    @tool(side_effect=True, idempotent=True)
    async def pay(order: str, *, intent: IntentInfo) -> str:
        """Pays again every time."""
        paid.append(order)
        return f"paid {len(paid)}"

    @agent("payers")
    async def payers(ctx: ActivationContext[Any], order: str) -> Any:
        return await ctx.perform(pay, order=order)

    run = harness.start(App(agents=[payers], tools=[pay]), crash_at="tool.called").send("payers", "k", "o-1").until_idle()
    assert ["paid 1", "paid 2"] == run.ledger(pay)


def test_a_boundary_nobody_knows_is_refused(harness: Harness):
    for wrong in ("tea.time", "settled:no", "settled:0"):
        with pytest.raises(ValueError, match=r"names no boundary|stands which time|counts from 1"):
            harness.start(app, crash_at=wrong)


def test_leases_of_the_dead_do_not_hold_up_the_living(harness: Harness):
    run = harness.start(app, crash_at=["attempt.recorded", "model.journalled"], tools={refund: "re_1"}).send("accounts", "k", ASKED).until_idle()
    assert timedelta(0) == run.clock.now - harness.start(app).clock.now
    assert set() == run.log.schedule.owners()
