"""Runs in memory: time that jumps, people that answer, models and tools that are scripted, and what is left to look at."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from intentlog.agents import ActivationContext, IntentInfo, RetryPolicy, agent
from intentlog.agents.errors import ModelFailed, RequestRefused, UnknownTool
from intentlog.agents.facts import ActivationFailed, SignalReceived, Suspended
from intentlog.agents.testing import Harness, NotWaitedFor, VirtualClock, results
from tests.agents.testing.shop import Account, RefundAsked, RefundPaid, Verdict, accounts, app, explicit, refund, ship, stock

ASKED = RefundAsked("o-1", 4200)
ASKS = [Verdict(needs_a_person=True)]


def test_a_run_goes_through_to_its_end(harness: Harness):
    run = harness.start(app, tools={refund: "re_9"}).send("accounts", "acct-42", ASKED).until_idle()
    assert "re_9" == run.output("accounts", "acct-42")
    assert Account(open_orders=frozenset({"o-1"}), receipts=("re_9",)) == run.state("accounts", "acct-42")
    assert [ASKED, RefundPaid("re_9")] == run.events("accounts-acct-42", (RefundAsked, RefundPaid))
    assert ["Refund 4200 for o-1?"] == [call.prompt for call in run.calls]
    assert [("refund", {"order_id": "o-1", "cents": 4200}, "re_9", 1)] == [(e.tool, e.args, e.result, e.intent.attempt) for e in run.effects]
    run.assert_replays().assert_replays("accounts-acct-42")


def test_days_pass_in_no_time(harness: Harness):
    began = time.monotonic()
    run = harness.start(app).send("orders", "k", "o-1").until_idle(past_deadlines=True)
    assert [3, "shipped o-1", "no reply"] == run.output("orders", "k")
    assert datetime(2026, 1, 14, 9, tzinfo=UTC) == run.clock.now
    assert time.monotonic() - began < 5
    run.assert_replays()


def test_a_run_waits_for_a_person_and_for_nobody_else(harness: Harness):
    run = harness.start(app, models=ASKS, tools={refund: "re_1"}).send("accounts", "k", ASKED).until_idle()
    assert datetime(2026, 1, 5, 9, tzinfo=UTC) == run.clock.now
    with pytest.raises(AssertionError, match="activation 0 is suspended; it waits for approval-0-1"):
        run.output("accounts", "k")
    assert "re_1" == run.approve("accounts", "k").until_idle().output("accounts", "k")
    run.assert_replays()


def test_an_answer_may_be_no_or_never_come(harness: Harness):
    run = harness.start(app, models=lambda request: Verdict(needs_a_person=True))
    run.send("accounts", "a", ASKED).send("accounts", "b", ASKED).until_idle()
    run.deny("accounts", "a", "Pay this refund?", by="ann", reason="no")
    assert "refused" == run.advance(timedelta(hours=3)).output("accounts", "a")
    with pytest.raises(AssertionError, match="waits for"):
        run.output("accounts", "b")
    assert "refused" == run.advance(timedelta(hours=1)).output("accounts", "b")
    assert datetime(2026, 1, 5, 13, tzinfo=UTC) == run.clock.now
    assert [] == run.effects


def test_nothing_is_approved_that_was_not_asked(harness: Harness):
    run = harness.start(app, models=ASKS).send("accounts", "k", ASKED)
    with pytest.raises(NotWaitedFor, match="no approval is open; open are: none"):
        run.approve("accounts", "k")
    with pytest.raises(NotWaitedFor, match="'Something else' was given; open are: 'Pay this refund"):
        run.until_idle().approve("accounts", "k", "Something else")


def test_a_signal_is_kept_until_it_is_waited_for(harness: Harness):
    run = (
        harness.start(app)
        .send("orders", "k", "o-1")
        .signal("orders", "k", "customer.reply", "thanks", id="s-1")
        .signal("orders", "k", "customer.reply", "thanks", id="s-1")
    )
    assert [3, "shipped o-1", "thanks"] == run.until_idle().output("orders", "k")
    assert datetime(2026, 1, 7, 9, tzinfo=UTC) == run.clock.now
    assert 1 == len(run.events("orders-k", SignalReceived))


def test_a_signal_wakes_a_run_that_waits(harness: Harness):
    run = harness.start(app).send("orders", "k", "o-1").until_idle()
    assert datetime(2026, 1, 7, 9, tzinfo=UTC) == run.clock.now
    assert [3, "shipped o-1", "hello"] == run.signal("orders", "k", "customer.reply", "hello").until_idle().output("orders", "k")


def test_time_goes_exactly_as_far_as_it_is_told(harness: Harness):
    run = harness.start(app).send("orders", "k", "o-1").until(datetime(2026, 1, 7, 8, 59, tzinfo=UTC))
    assert ([], 1) == (run.effects, len(run.events("orders-k", Suspended)))
    run.advance(timedelta(minutes=1))
    assert ["shipped o-1"] == run.ledger(ship)
    with pytest.raises(ValueError, match="has passed"):
        run.until(datetime(2026, 1, 1, tzinfo=UTC))


def test_a_cancelled_run_ends(harness: Harness):
    run = harness.start(app).send("orders", "k", "o-1").advance(timedelta(hours=1)).cancel("orders", "k", reason="changed my mind").until_idle()
    assert None is run.output("orders", "k")
    assert [] == run.effects
    with pytest.raises(RequestRefused, match="nothing to cancel"):
        run.cancel("orders", "k")


def test_retries_wait_on_the_virtual_clock(harness: Harness):
    @agent("flaky", retry=RetryPolicy(max_attempts=4, first=timedelta(minutes=10), longest=timedelta(hours=1)))
    async def flaky(ctx: ActivationContext[Any], order: str) -> str:
        answer = await ctx.call_model("Well?")
        return str(answer.text)

    run = harness.start(flaky, models=[ModelFailed("503"), ModelFailed("503"), "fine"])
    with pytest.raises(AssertionError):
        run.output("flaky", "k")
    began = time.monotonic()
    assert "fine" == run.send("flaky", "k", "o-1").until_idle().output("flaky", "k")
    assert timedelta(minutes=30) == run.clock.now - VirtualClock().now
    assert (2, 3) == (len(run.events("flaky-k", ActivationFailed)), len(run.calls))
    assert time.monotonic() - began < 5
    run.assert_replays()


def test_a_read_is_tried_again_without_waiting(harness: Harness):
    tried: list[int] = []

    def look() -> int:
        tried.append(1)
        if len(tried) < 3:
            raise OSError("not now")
        return len(tried)

    @agent("reader")
    async def reader(ctx: ActivationContext[Any], order: str) -> int:
        found: int = await ctx.run(look, retry=RetryPolicy(first=timedelta(hours=1)))
        return found

    assert 3 == harness.start(reader).send("reader", "k", "o-1").until_idle().output("reader", "k")


def test_a_parked_input_says_why(harness: Harness):
    run = harness.start(app, models=[]).send("accounts", "k", ASKED).until_idle()
    with pytest.raises(
        AssertionError, match="parked after 1 attempts: NothingScripted: the model's script is used up, and the agent asks once more: 'Refund 4200"
    ):
        run.output("accounts", "k")
    with pytest.raises(AssertionError, match="nothing was sent to it"):
        run.output("accounts", "other")


def test_models_are_scripted_by_list_by_prompt_and_by_function(harness: Harness):
    async def later(request: Any) -> Any:
        return Verdict()

    for models in ([Verdict()], '{"needs_a_person": false}', {"Refund 4200 for o-1?": Verdict()}, {"o-1": Verdict(), "1": 7}, lambda request: Verdict(), later):
        run = harness.start(app, models=models, tools={refund: "re_1"}).send("accounts", "k", ASKED).until_idle()
        assert "re_1" == run.output("accounts", "k"), models
        assert 1 == len(run.calls)
    run = harness.start(app, models={"else": "x"}).send("accounts", "k", ASKED).until_idle()
    with pytest.raises(AssertionError, match="no answer is scripted for the prompt 'Refund 4200 for o-1"):
        run.output("accounts", "k")


def test_tools_have_stand_ins_of_every_form(harness: Harness):
    def shipped(order_id: str) -> str:
        return order_id.upper()

    def refunded(order_id: str, cents: int, intent: IntentInfo) -> str:
        return f"{order_id} {intent.entity_key}"

    run = harness.start(app, tools={ship: shipped, "refund": refunded, stock: {"items": 7}})
    run.send("orders", "k", "o-1").send("accounts", "a", ASKED).until_idle(past_deadlines=True)
    assert [7, "O-1", "no reply"] == run.output("orders", "k")
    assert "o-1 a" == run.output("accounts", "a")
    run.assert_replays()
    failing = harness.start(app, tools={ship: OSError("no truck")}).send("explicit", "k", "o-1").until_idle()
    assert "EffectErrored" == failing.output("explicit", "k")
    assert ["OSError"] == [type(effect.error).__name__ for effect in failing.effects]
    assert [] == failing.ledger(ship)
    with pytest.raises(UnknownTool):
        harness.start(app, tools={"nothing": 1})


def test_results_come_one_a_call(harness: Harness):
    run = harness.start(explicit, tools={"ship": results("a", OSError("no truck"), "c")})
    for key in "wxyz":
        run.send("explicit", key, key).until_idle()
    assert ["a", "EffectErrored", "c", "c"] == [run.output("explicit", key) for key in "wxyz"]


def test_an_agent_alone_is_an_app(harness: Harness):
    run = harness.start(accounts, models=[Verdict()], tools={refund: "re_1"}, clock=VirtualClock(datetime(2030, 5, 1, tzinfo=UTC)))
    assert "re_1" == run.send("accounts", "k", ASKED).until_idle().output("accounts", "k")
    assert datetime(2030, 5, 1, tzinfo=UTC) == run.clock.now


def test_the_app_itself_is_left_as_it_was(harness: Harness):
    client = app.models
    harness.start(app, models=[Verdict()], tools={refund: "re_1"}).send("accounts", "k", ASKED).until_idle()
    assert client is app.models
    assert "scripted" == app.definitions["accounts"].model
    assert app.tools.named("refund") is refund


def test_a_run_that_does_not_come_to_rest_is_a_failure(harness: Harness):
    @agent("busy")
    async def busy(ctx: ActivationContext[Any], order: str) -> Any:
        return ctx.continue_with(order)

    run = harness.start(busy, patience=timedelta(seconds=0.3)).send("busy", "k", "o-1")
    with pytest.raises(AssertionError, match=r"not at rest after 0\.3 s"):
        run.until_idle()


def test_a_test_may_be_a_coroutine_itself(harness: Harness):
    async def whole_run() -> Any:
        run = harness.start(app, tools={refund: "re_1"}).send("accounts", "k", ASKED).until_idle()
        run.assert_replays()
        return run.output("accounts", "k")

    assert "re_1" == asyncio.run(whole_run())


def test_what_the_worker_cannot_do_is_a_failure(harness: Harness):
    run = harness.start(app, tools={refund: "re_1"})

    def broken(*args: Any, **named: Any) -> Any:
        raise RuntimeError("a bug of ours")

    run.log.checkpoints.save = broken  # type: ignore[method-assign]
    with pytest.raises(AssertionError, match="RuntimeError: a bug of ours"):
        run.send("accounts", "k", ASKED).until_idle()


def test_a_history_that_grows_too_long_is_warned_of(harness: Harness):
    @agent("chatty")
    async def chatty(ctx: ActivationContext[Any], order: str) -> None:
        for _ in range(10_001):
            ctx.trace("and on")

    with pytest.warns(UserWarning, match="has a history of 100.. events"):
        harness.start(chatty).send("chatty", "k", "x").until_idle()
