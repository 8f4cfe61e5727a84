"""The app of these tests: the refunds of the design, an order that takes days, and an agent in the explicit style."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs

from intentlog.agents import ActivationContext, Aggregate, App, Complete, IntentInfo, Suspend, agent, applies, tool
from intentlog.agents.errors import EffectFailed
from intentlog.agents.testing import ScriptedModel
from intentlog.eventlog import event


@event("refund.asked", version=1)
class RefundAsked:
    order_id: str
    cents: int


@event("refund.paid", version=1)
class RefundPaid:
    receipt: str


@attrs.frozen
class Verdict:
    needs_a_person: bool = False


class Account(Aggregate):
    open_orders: frozenset[str] = frozenset()
    receipts: tuple[str, ...] = ()

    @applies(RefundAsked)
    def _(self, e: RefundAsked) -> Account:
        return self.evolve(open_orders=self.open_orders | {e.order_id})

    @applies(RefundPaid)
    def _(self, e: RefundPaid) -> Account:
        return self.evolve(receipts=(*self.receipts, e.receipt))


class Payments:
    """A provider that de-duplicates on the intent id."""

    def __init__(self) -> None:
        self.by_intent: dict[str, str] = {}

    def refund(self, idempotency_key: str) -> str:
        return self.by_intent.setdefault(idempotency_key, f"re_{len(self.by_intent) + 1}")


payments = Payments()


@tool(side_effect=True, idempotent=True, timeout=timedelta(seconds=20))
async def refund(order_id: str, cents: int, *, intent: IntentInfo) -> str:
    """Pay money back. The provider de-duplicates on the intent id."""
    return payments.refund(intent.intent_id)


@tool(side_effect=True)
def ship(order_id: str) -> str:
    """Not idempotent, and it blocks."""
    return f"shipped {order_id}"


@tool
def stock(order_id: str) -> dict[str, int]:
    """A read."""
    return {"items": len(order_id)}


@agent("accounts", state=Account)
async def accounts(ctx: ActivationContext[Account], asked: RefundAsked) -> str:
    if asked.order_id in ctx.state.open_orders:
        return "already asked"
    ctx.emit(asked)
    verdict = await ctx.call_model(f"Refund {asked.cents} for {asked.order_id}?", reply=Verdict)
    if verdict.needs_a_person and not await ctx.approval("Pay this refund?", channel="support", timeout=timedelta(hours=4)):
        return "refused"
    receipt: str = await ctx.perform(refund, order_id=asked.order_id, cents=asked.cents)
    ctx.emit(RefundPaid(receipt))
    return receipt


@agent("orders")
async def orders(ctx: ActivationContext[Any], order: str) -> Any:
    found = await ctx.run_tool(stock, order_id=order)
    ctx.trace("counted", items=found["items"])
    await ctx.sleep(timedelta(days=2))
    shipped = await ctx.perform(ship, order_id=order)
    place, said = await ctx.first(ctx.signal("customer.reply"), ctx.sleep(timedelta(days=7)))
    return [found["items"], shipped, said if place == 0 else "no reply"]


@agent("explicit", state=Account)
async def explicit(ctx: ActivationContext[Account], order: str) -> Any:
    if not ctx.is_resume:
        ctx.act(ship, order_id=order)
        return Suspend(timeout=timedelta(minutes=5))
    assert ctx.resume_result is not None
    try:
        ctx.emit(RefundPaid(ctx.resume_result.value))
    except EffectFailed as problem:
        return Complete(type(problem).__name__)
    return Complete(ctx.resume_result.value)


app = App(agents=[accounts, orders, explicit], models=ScriptedModel(lambda request: Verdict(needs_a_person=False)))
