"""A refund agent: a model says what to do, the money is paid back by somebody else, and the agent hears of it.

Imports are absolute because this file is also a program of its own: ``examples/refund/refunds.py`` is this very file, and
``eventlog demo`` runs a copy of it in a folder of its own.
"""

from __future__ import annotations

import os
from datetime import timedelta

import httpx

from intentlog.agents import ActivationContext, Aggregate, App, Complete, IntentInfo, OpenAICompatible, Suspend, agent, applies, tool
from intentlog.eventlog.registry import event

SERVERS = os.environ.get("REFUND_SERVERS", "http://127.0.0.1:8765")


@event("refund.asked", version=1)
class RefundAsked:
    """A customer wants money back."""

    order_id: str
    cents: int


@event("refund.paid", version=1)
class RefundPaid:
    """The bank's receipt."""

    order_id: str
    receipt: str


class Account(Aggregate):
    """What the agent remembers of one customer: orders that are being refunded, and receipts by order."""

    open_orders: frozenset[str] = frozenset()
    receipts: dict[str, str] = {}  # noqa: RUF012 - an attrs field: its default is never changed

    @applies(RefundAsked)
    def _(self, asked: RefundAsked) -> Account:
        return self.evolve(open_orders=self.open_orders | {asked.order_id})

    @applies(RefundPaid)
    def _(self, paid: RefundPaid) -> Account:
        return self.evolve(open_orders=self.open_orders - {paid.order_id}, receipts={**self.receipts, paid.order_id: paid.receipt})


@tool(side_effect=True, idempotent=True, timeout=timedelta(seconds=20))
async def refund(order_id: str, cents: int, *, intent: IntentInfo) -> str:
    """Pay money back. The bank de-duplicates on the intent id, so calling it again is safe: ``idempotent=True``."""
    async with httpx.AsyncClient() as bank:
        reply = await bank.post(f"{SERVERS}/payments", json={"order_id": order_id, "cents": cents}, headers={"Idempotency-Key": intent.intent_id})
    reply.raise_for_status()
    return str(reply.json()["receipt"])


@agent("accounts", state=Account)
async def accounts(ctx: ActivationContext[Account], asked: RefundAsked) -> Complete | Suspend:
    """Refund what the model lets pass, once for each order."""
    if ctx.is_resume:
        assert ctx.resume_result is not None
        receipt = ctx.resume_result.value  # raises unless the refund went through
        ctx.emit(RefundPaid(asked.order_id, receipt))
        return Complete(receipt)
    if asked.order_id in ctx.state.open_orders or asked.order_id in ctx.state.receipts:
        return Complete("asked before")
    verdict = await ctx.call_model(f"Refund {asked.cents / 100:.2f} for order {asked.order_id}? Answer yes or no.")
    if not verdict.text.lower().startswith("yes"):
        return Complete("refused")
    ctx.emit(asked)
    ctx.act(refund, order_id=asked.order_id, cents=asked.cents)
    return Suspend()


app = App(agents=[accounts], models=OpenAICompatible(base_url=SERVERS, model="demo", api_key_env=""))
