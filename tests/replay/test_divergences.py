"""Code that changed is found at its first event, with the right step and field, both sides named."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from intentlog.agents import ActivationContext, Aggregate, Complete, Suspend, applies
from intentlog.replay import Divergence, Kind, Verdict
from tests.replay.world import STREAM, Account, RefundAsked, RefundPaid, World, app_of, lookup, notify, refund


def code(
    *,
    prompt: str = "Refund {cents} for {order}?",
    order: str = "o-1",
    cents: int = 0,
    swapped: bool = False,
    wait: timedelta = timedelta(minutes=5),
    ttl: timedelta | None = None,
    extra: Callable[[ActivationContext[Any], str], Any] = lambda ctx, where: None,
    without: str = "",
    output: Any = "done",
    raising: str = "",
) -> Any:
    """The agent whose history is recorded when nothing is changed."""

    async def run(ctx: ActivationContext[Any], asked: RefundAsked) -> Any:
        if ctx.is_resume:
            if raising:
                raise KeyError(raising)
            ctx.emit(RefundPaid("r", 7))
            return Complete(output)
        ctx.emit(asked)
        if without != "read":
            await ctx.run_tool(lookup, order_id=order)
        extra(ctx, "before")
        answer = await ctx.call_model(prompt.format(cents=asked.cents + ctx.state.refunded_cents, order=asked.order_id))
        both = [lambda: ctx.act(refund, order_id=asked.order_id, cents=asked.cents + cents, ttl=ttl), lambda: ctx.act(notify, text=answer.text)]
        for stage in reversed(both) if swapped else both:
            stage()
        if without != "trace":
            ctx.trace("staged", count=2)
        extra(ctx, "after")
        if without == "call":
            return Suspend(timeout=wait)
        again = await ctx.call_model("And now?")
        ctx.trace(again.text)
        return Suspend(timeout=wait)

    return run


@pytest.fixture
def recorded(world: World) -> World:
    app = app_of(code())
    world.story(app, RefundAsked("o-1", 4200), RefundAsked("o-2", 100))
    assert Verdict.SAME == world.replay(app).verdict
    return world


def diverged(world: World, changed: Any, state: type[Aggregate] = Account) -> Divergence:
    found = world.replay(app_of(changed, state=state))
    assert (Verdict.DIVERGED, STREAM) == (found.verdict, found.stream), found
    assert found.divergence is not None
    return found.divergence


def where(found: Divergence) -> tuple[Any, ...]:
    return (found.kind, found.version, found.event, found.seq, found.turn, found.step, found.field)


# The history: 0 input, 1 read 0, 2 model step 0, 3 model step 3, 4 RefundAsked, 5 intent step 1, 6 intent step 2, 7 traced, 8 traced, 9 suspended


def test_a_changed_byte_of_the_prompt(recorded):
    found = diverged(recorded, code(prompt="Refund {cents} for {order}!"))
    assert (Kind.DRIFT, 2, "model_call.cached", 0, 0, 0, "messages[0].content (character 19)") == where(found)
    assert ("'Refund 4200 for o-1?'", "'Refund 4200 for o-1!'", "model call") == (found.recorded, found.decided, found.subject)


def test_a_changed_argument_of_an_effect(recorded):
    found = diverged(recorded, code(cents=100))
    assert (Kind.EVENT, 5, "intent.staged", 0, 0, 1, "args.cents") == where(found)
    assert ("4200", "4300", "intent.staged refund") == (found.recorded, found.decided, found.subject)


def test_a_changed_argument_of_a_read(recorded):
    found = diverged(recorded, code(order="o-9"))
    assert (Kind.DRIFT, 1, "tool_call.cached", 0, 0, -1, "args.order_id (character 2)") == where(found)
    assert ("'o-1'", "'o-9'", "read 0") == (found.recorded, found.decided, found.subject)


def test_two_effects_in_another_order(recorded):
    found = diverged(recorded, code(swapped=True))
    assert (Kind.EVENT, 5, "intent.staged", 0, 0, 1, "tool (character 0)") == where(found)
    assert ("'refund'", "'notify'") == (found.recorded, found.decided)


def test_a_changed_timeout(recorded):
    found = diverged(recorded, code(wait=timedelta(minutes=6)))
    assert (Kind.EVENT, 9, "activation.suspended", 0, 0, -1, "deadline") == where(found)
    assert 60_000_000 == int(found.decided) - int(found.recorded)


def test_a_changed_expiry(recorded):
    assert (Kind.EVENT, 5, "intent.staged", 0, 0, 1, "expires_at") == where(diverged(recorded, code(ttl=timedelta(hours=2))))


def test_a_changed_applier(recorded):
    class Changed(Aggregate):
        refunded_cents: int = 0

        @applies(RefundPaid)
        def _(self, e: RefundPaid) -> Changed:
            return self.evolve(refunded_cents=self.refunded_cents + e.cents + 1)

    found = diverged(recorded, code(), Changed)
    assert (Kind.DRIFT, 1, 0, 0, "messages[0].content (character 9)") == (found.kind, found.seq, found.turn, found.step, found.field)


def test_a_changed_default_in_the_aggregate(recorded):
    class Changed(Account):
        refunded_cents: int = 1

    assert (Kind.DRIFT, 2, "model_call.cached", 0, 0, 0, "messages[0].content (character 10)") == where(diverged(recorded, code(), Changed))


def test_an_effect_more_before_a_model_call(recorded):
    found = diverged(recorded, code(extra=lambda ctx, place: ctx.act(notify, text="new") if place == "before" else None))
    assert (Kind.DRIFT, 2, "model_call.cached", 0, 0, 0, "") == where(found)
    assert ("a model call (model-x)", "intent notify") == (found.recorded, found.decided)


def test_an_effect_more_before_the_last_model_call(recorded):
    found = diverged(recorded, code(extra=lambda ctx, place: ctx.act(notify, text="new") if place == "after" else None))
    assert (Kind.DRIFT, 3, "model_call.cached", 0, 0, 3, "") == where(found)


def test_a_remark_more(recorded):
    found = diverged(recorded, code(extra=lambda ctx, place: ctx.trace("new") if place == "before" else None))
    assert (Kind.EVENT, 5, "intent.staged", 0, 0, 1, "") == where(found)
    assert found.recorded.startswith("intent.staged refund")
    assert found.decided.startswith("traced")


def test_a_domain_event_more_at_the_end(recorded):
    found = diverged(recorded, code(extra=lambda ctx, place: ctx.emit(RefundPaid("x")) if place == "after" else None))
    assert (Kind.EVENT, 8, "traced", 0, 0, 4, "") == where(found)
    assert found.decided.startswith("refund.paid")


def test_a_remark_less(recorded):
    found = diverged(recorded, code(without="trace"))
    assert (Kind.EVENT, 7, "traced", 0, 0, 3, "step") == where(found)


def test_a_model_call_less(recorded):
    found = diverged(recorded, code(without="call"))
    assert (Kind.DRIFT, 3, "model_call.cached", 0, 0, 3, "") == where(found)
    assert ("a model call (model-x)", "the turn ended before this step") == (found.recorded, found.decided)


def test_a_read_less(recorded):
    found = diverged(recorded, code(without="read"))
    assert (Kind.DRIFT, 1, "tool_call.cached", 0, 0, -1) == where(found)[:6]
    assert ("lookup", "the turn ended before this read") == (found.recorded, found.decided)


def test_a_model_call_more_is_a_miss(world):
    async def short(ctx: ActivationContext[Any], asked: RefundAsked) -> Any:
        return "fine"

    async def longer(ctx: ActivationContext[Any], asked: RefundAsked) -> Any:
        return (await ctx.call_model("Is it?")).text

    world.story(app_of(short), RefundAsked("o-1", 1))
    found = diverged(world, longer)
    assert (Kind.MISS, 1, "activation.completed", 0, 0, 0, "") == where(found)
    assert ("no such step: a replay never calls out", "a model call (model-x) 'Is it?'") == (found.recorded, found.decided)
    replayed = world.replay(app_of(longer))
    assert (0, 1, 0) == (replayed.hits, replayed.misses, replayed.drifts)


def test_a_guarded_model_call_more_is_a_miss_too(world):
    async def short(ctx: ActivationContext[Any], asked: RefundAsked) -> Any:
        ctx.act(notify, text="x")
        return "fine"

    async def longer(ctx: ActivationContext[Any], asked: RefundAsked) -> Any:
        try:
            await ctx.call_model("Is it?")
        except Exception:
            ctx.trace("never mind")
        return await short(ctx, asked)

    world.story(app_of(short), RefundAsked("o-1", 1))
    found = diverged(world, longer)
    assert (Kind.MISS, 1, 0) == (found.kind, found.version, found.step)
    assert found.recorded.startswith("intent.staged notify")


def test_a_changed_output_of_the_second_turn(recorded):
    found = diverged(recorded, code(output={"paid": True}))
    assert (Kind.EVENT, "activation.completed", 0, 1, -1, "output") == (found.kind, *where(found)[2:])


def test_an_exception_where_the_turn_had_ended(recorded):
    found = diverged(recorded, code(raising="oops"))
    assert (Kind.FAILURE, "refund.paid", 0, 1) == (found.kind, found.event, found.seq, found.turn)
    assert "KeyError: 'oops'" in found.decided


def test_a_failure_that_no_longer_happens_or_happens_otherwise(world):
    def failing(problem: Exception | None) -> Any:
        async def run(ctx: ActivationContext[Any], asked: RefundAsked) -> Any:
            await ctx.call_model("first")
            if problem is not None:
                raise problem

        return run

    world.story(app_of(failing(KeyError("x"))), RefundAsked("o-1", 1))
    assert Verdict.SAME == world.replay(app_of(failing(KeyError("y")))).verdict
    healed = diverged(world, failing(None))
    assert (Kind.FAILURE, 2, "activation.failed", "the turn ends without a failure") == (*where(healed)[:3], healed.decided)
    other = diverged(world, failing(ValueError("x")))
    assert ("failure.type", True) == (other.field, "ValueError" in other.decided)


def test_code_that_is_unknown_or_history_that_cannot_be_read_is_no_divergence(recorded):
    from intentlog.agents import App, agent

    async def nothing(ctx: ActivationContext[Any]) -> None:
        return None

    found = recorded.replay(App(agents=[agent("others")(nothing)]))
    assert (Verdict.CANNOT, "the app has no agent 'accounts'; it has: others") == (found.verdict, found.reason)
