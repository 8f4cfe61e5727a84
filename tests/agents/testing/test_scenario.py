"""Scenarios: what passes, what does not, and what is shown then."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from intentlog.agents import ActivationContext, Aggregate, App, ModelResponse, agent
from intentlog.agents.errors import DefinitionError, EffectErrored, ForeignAwait, ModelFailed, StepDrift
from intentlog.agents.testing import (
    ANYTHING,
    approval,
    approved,
    cancelled,
    completed,
    continued,
    denied,
    elapsed,
    ended_cancelled,
    failed,
    given,
    intent,
    patched,
    performed,
    returned,
    saved,
    sent,
    signalled,
    sleeping,
    suspended,
    taken,
    traced,
    withdrawn,
)
from intentlog.eventlog import event
from tests.agents.testing.shop import Account, RefundAsked, RefundPaid, Verdict, accounts, app, explicit, orders, refund, ship, stock

ASKED = RefundAsked("o-1", 999_00)


def asked() -> Any:
    return given(accounts).when(ASKED).answering(Verdict(needs_a_person=True))


def test_a_person_is_asked_above_the_limit():
    given(accounts).when(RefundAsked("o-1", 999_00)).answering(Verdict(needs_a_person=True)).then(approval("Pay this refund?"), suspended())


def test_domain_events_are_compared_once_one_is_listed():
    asked().then(ASKED, approval("Pay this refund?"), suspended())
    with pytest.raises(AssertionError, match="what was staged is not what was expected"):
        asked().then(RefundAsked("o-1", 1), approval("Pay this refund?"), suspended())


def test_dots_stand_for_any_number_of_things():
    asked().then(..., suspended())
    asked().then(ASKED, ...)
    asked().then(...)
    asked().then(ASKED, ..., approval(), ..., suspended())
    with pytest.raises(AssertionError):
        asked().then(..., completed())


def test_a_failure_shows_both_lists_side_by_side_and_marks_the_lines():
    with pytest.raises(AssertionError) as shown:
        asked().then(ASKED, approval("Pay that refund?"), suspended())
    assert (
        "accounts-key, activation 0, turn 0: what was staged is not what was expected\n"
        "    expected                                  │ staged\n"
        "    RefundAsked(order_id='o-1', cents=99900)  │ RefundAsked(order_id='o-1', cents=99900)\n"
        "  > approval('Pay that refund?')              │ approval('Pay this refund?', channel='support')\n"
        "    suspended()                               │ suspended()"
    ) == str(shown.value)


def test_something_more_or_less_than_expected_fails():
    with pytest.raises(AssertionError, match=r"> \(nothing\)\s+│ approval"):
        asked().then(suspended())
    with pytest.raises(AssertionError, match=r"> performed\(refund\)\s+│ \(nothing\)"):
        asked().then(approval(), performed(refund), suspended())


def test_a_story_goes_on_turn_by_turn():
    waiting = asked().then(approval(channel="support"), suspended())
    paying = waiting.when(approved(by="ann")).then(performed(refund, cents=999_00, order_id="o-1"), suspended())
    paid = paying.when(returned(refund, "re_7")).then(RefundPaid("re_7"), completed("re_7"))
    assert Account(open_orders=frozenset({"o-1"}), receipts=("re_7",)) == paid.state
    paid.when(ASKED).then_nothing()


def test_a_story_can_go_on_in_several_ways():
    waiting = asked().then(approval(), suspended())
    waiting.when(denied(reason="too much")).then(completed("refused"))
    waiting.when(elapsed(timedelta(hours=4))).then(completed("refused"))
    waiting.when(cancelled()).then(ended_cancelled())
    waiting.when(approved("Pay this refund?")).then(intent("refund"), suspended())
    assert () == waiting.state.receipts


def test_history_is_where_a_story_begins():
    given(accounts, ASKED).when(ASKED).then(completed("already asked"))
    given(app, ASKED, agent="accounts", key="acct-42").when(ASKED).then_nothing()


def test_then_nothing_is_strict():
    with pytest.raises(AssertionError, match="the end, and nothing before it"):
        asked().then_nothing()
    with pytest.raises(AssertionError):
        given(explicit).when("o-1").then(performed(ship), suspended()).when(returned(ship, "x")).then_nothing()


def test_the_explicit_style_reads_the_same():
    waiting = given(explicit).when("o-1").then(performed(ship, order_id="o-1"), suspended())
    waiting.when(returned(ship, "shipped")).then(RefundPaid("shipped"), completed("shipped"))
    waiting.when(failed(ship, OSError("no truck"))).then(completed("EffectErrored"))
    waiting.when(failed(ship, status="UNKNOWN")).then(completed("EffectUnknown"))
    waiting.when(elapsed(timedelta(minutes=5))).then(completed("EffectTimedOut"))


def test_reads_are_scripted_or_really_run():
    given(orders).when("o-1").then(sleeping(timedelta(days=2)), suspended())
    given(orders).when("o-1").answering(returned(stock, {"items": 9})).then(traced("counted"), sleeping(), suspended())
    given(orders).when("o-1").answering(failed(stock, KeyError("o-1"))).then_raises(KeyError, "o-1")


def test_time_and_signals_move_a_story_on():
    asleep = given(orders).when("o-1").answering(returned(stock, {"items": 9})).then(..., suspended())
    shipping = asleep.when(elapsed(timedelta(days=2))).then(performed(ship), suspended())
    waiting = shipping.when(returned(ship, "gone")).then(sleeping(timedelta(days=7)), suspended())
    waiting.when(signalled("customer.reply", "thanks")).then(taken("customer.reply"), completed([9, "gone", "thanks"]))
    waiting.when(elapsed(timedelta(days=7))).then(completed([9, "gone", "no reply"]))


def test_what_is_not_waited_for_is_said():
    waiting = asked().then(approval(), suspended())
    with pytest.raises(AssertionError, match="no effect of refund is open; open are: none"):
        waiting.when(returned(refund, "re_1"))
    with pytest.raises(AssertionError, match=r"which approval.*open are: 'Pay this refund"):
        waiting.when(approved("Pay that?"))
    with pytest.raises(AssertionError, match="the next is in 4:00:00"):
        waiting.when(elapsed(timedelta(hours=3)))
    with pytest.raises(AssertionError, match="there is no turn to run, for it still waits for approval-0-1"):
        waiting.when(signalled("other")).then(...)


def test_an_answer_too_few_or_too_many_fails():
    with pytest.raises(AssertionError, match=r"the test has no answer: \.answering\(…\)\n  prompt  'Refund 99900 for o-1\?'"):
        given(accounts).when(ASKED).then(...)
    with pytest.raises(AssertionError, match="nobody had asked for 'another'"):
        given(accounts).when(ASKED).answering(Verdict(), "another").then(...)
    with pytest.raises(AssertionError, match="nobody had asked for Settled"):
        given(accounts).when(ASKED).answering(Verdict(), returned(stock, {})).then(...)


def test_answers_come_in_every_form():
    for answer in (
        '{"needs_a_person": true}',
        ModelResponse('{"needs_a_person": true}'),
        {"needs_a_person": True},
        lambda request: Verdict(needs_a_person=True),
    ):
        given(accounts).when(ASKED).answering(answer).then(approval(), suspended())
    given(accounts).when(ASKED).answering(ModelFailed("503")).then_raises(ModelFailed, "503")
    with pytest.raises(TypeError, match="is no model's answer"):
        given(accounts).when(ASKED).answering(object()).then(...)


def test_then_raises_is_exact():
    with pytest.raises(AssertionError, match="ModelFailed was expected, and the turn ended with Suspended"):
        asked().then_raises(ModelFailed)
    with pytest.raises(AssertionError, match="'504' is not in its text: 503"):
        given(accounts).when(ASKED).answering(ModelFailed("503")).then_raises(ModelFailed, "504")
    with pytest.raises(AssertionError, match="KeyError was expected, and ModelFailed was raised"):
        given(accounts).when(ASKED).answering(ModelFailed("503")).then_raises(KeyError)
    with pytest.raises(AssertionError, match="the turn failed with ModelFailed: 503"):
        given(accounts).when(ASKED).answering(ModelFailed("503")).then(...)


def test_the_core_is_the_real_one():
    @agent("impure")
    async def impure(ctx: ActivationContext[Any], mode: str) -> None:
        await asyncio.sleep(0)

    given(impure).when("x").then_raises(ForeignAwait, "asyncio.sleep")


def test_drift_is_found_between_turns():
    steps = ["a", "b"]

    @agent("drifting")
    async def drifting(ctx: ActivationContext[Any], order: str) -> None:
        if steps.pop(0) == "a":
            await ctx.sleep(timedelta(days=1))
        await ctx.perform(ship, order_id=order)

    asleep = given(App(agents=[drifting], tools=[ship])).when("o-1").then(sleeping(), suspended())
    asleep.when(elapsed(timedelta(days=1))).then_raises(StepDrift)


def test_the_whole_vocabulary():
    @agent("talker")
    async def talker(ctx: ActivationContext[Any], order: str) -> Any:
        assert ctx.patched("new way")
        ctx.send("orders", "o-2", {"n": 1})
        await ctx.first(ctx.perform(ship, order_id=order), ctx.sleep(timedelta(hours=1)))
        return ctx.continue_with("next")

    waiting = given(App(agents=[talker, orders], tools=[ship]), agent="talker").when("o-1")
    begun = waiting.then(patched("new way"), sent("orders", "o-2", {"n": 1}), performed(ship), sleeping(timedelta(hours=1)), suspended())
    begun.when(elapsed(timedelta(hours=1))).then(withdrawn(ship), continued("next"))
    begun.when(elapsed(timedelta(hours=1))).then(withdrawn("ship"), continued(ANYTHING))
    for wrong in (
        sent("orders", "o-2", {"n": 2}),
        sent("orders", "o-3"),
        patched("other"),
        sleeping(timedelta(hours=2)),
        performed(ship, order_id="o-9"),
        performed(refund),
    ):
        with pytest.raises(AssertionError):
            given(App(agents=[talker, orders], tools=[ship]), agent="talker").when("o-1").then(..., wrong, ...)


@event("stock.reserved", version=1)
class Reserved:
    count: int


class Stock(Aggregate, category="stock"):
    left: int = 10


def test_other_aggregates_are_given_and_what_is_saved_is_compared():
    @agent("buyer")
    async def buyer(ctx: ActivationContext[Any], count: int) -> int:
        item = await ctx.load(Stock, "sku-1")
        item.emit(Reserved(count))
        return item.version

    shop = App(agents=[buyer], events=[Reserved], aggregates=[Stock])
    bought = given(shop, others={"stock-sku-1": [Reserved(1), Reserved(2)]}).when(3).then(saved("stock-sku-1", Reserved(3)), completed(1))
    bought.when(4).then(saved("stock-sku-1"), completed(2))
    with pytest.raises(AssertionError, match=r"saved\('stock-sku-1', Reserved\(count=3\)\)"):
        given(shop).when(3).then(saved("stock-sku-1", Reserved(4)), completed())


def test_what_cannot_be_expected_is_refused():
    with pytest.raises(TypeError, match="takes matchers, domain events and"):
        asked().then("suspended")
    with pytest.raises(TypeError, match="takes an input"):
        given(accounts).when()
    with pytest.raises(DefinitionError, match="several agents"):
        given(app)


def test_an_unhandled_effect_raises():
    paying = given(accounts).when(ASKED).answering(Verdict()).then(performed(refund), suspended())
    paying.when(failed(refund, OSError("down"))).then_raises(EffectErrored, "OSError: down")


def test_staged_is_there_for_assertions_of_ones_own():
    assert [ASKED] == [each for each in asked().staged if isinstance(each, RefundAsked)]


def test_a_test_may_be_a_coroutine_itself():
    async def one_turn() -> str:
        given(orders).when("o-1").then(sleeping(), suspended())
        return "done"

    assert "done" == asyncio.run(one_turn())
