"""The agent: linear code over a durable log. Every ``await ctx.…`` is a step that is taken once, whatever dies in between.

``ORDERS_DAY`` is how many seconds a day has; the demo's days are short. It belongs to a log: change it only with a new one.
"""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import attrs
import httpx

from intentlog.agents import ActivationContext, Aggregate, IntentInfo, agent, applies, tool
from intentlog.agents.errors import EffectTimedOut
from intentlog.eventlog import event

SERVERS = os.environ.get("ORDERS_SERVERS", "http://127.0.0.1:8766")
DAY = float(os.environ.get("ORDERS_DAY", "86400"))


def days(number: float) -> timedelta:
    return timedelta(seconds=number * DAY)


def hours(number: float) -> timedelta:
    return days(number / 24)


# ── what happens ────────────────────────────────────────────────────────────────────────────────────────────────────────


@event("order.placed", version=1)
class OrderPlaced:
    id: str
    customer: str
    cents: int


@event("order.charged", version=1)
class OrderCharged:
    receipt: str


@event("order.dispatched", version=1)
class OrderDispatched:
    parcel: str


@event("customer.replied", version=1)
class CustomerReplied:
    text: str


class Order(Aggregate):
    """What is remembered of one order."""

    receipt: str = ""
    parcel: str = ""
    reply: str = ""

    @applies(OrderCharged)
    def _(self, charged: OrderCharged) -> Order:
        return self.evolve(receipt=charged.receipt)

    @applies(OrderDispatched)
    def _(self, dispatched: OrderDispatched) -> Order:
        return self.evolve(parcel=dispatched.parcel)

    @applies(CustomerReplied)
    def _(self, replied: CustomerReplied) -> Order:
        return self.evolve(reply=replied.text)


@attrs.frozen
class Risk:
    """What the model answers, as JSON."""

    score: float


# ── what is done in the world ───────────────────────────────────────────────────────────────────────────────────────────


@attrs.frozen
class Receipt:
    id: str
    cents: int


async def _post(path: str, intent: IntentInfo, **body: Any) -> dict[str, Any]:
    """Whoever is asked twice under one key does it once; that is what makes a tool ``idempotent``."""
    async with httpx.AsyncClient() as client:
        reply = await client.post(f"{SERVERS}/{path}", json=body, headers={"Idempotency-Key": intent.intent_id})
    reply.raise_for_status()
    answer: dict[str, Any] = reply.json()
    return answer


@tool(side_effect=True, idempotent=True)
async def charge(order_id: str, cents: int, *, intent: IntentInfo) -> Receipt:
    """Take the money."""
    return Receipt((await _post("charges", intent, order=order_id, cents=cents))["id"], cents)


@tool(side_effect=True, idempotent=True)
async def ship(order_id: str, *, intent: IntentInfo) -> str:
    """Hand it to the carrier; the parcel's number."""
    return str((await _post("parcels", intent, order=order_id))["id"])


@tool(side_effect=True, idempotent=True)
async def email(order_id: str, to: str, text: str, *, intent: IntentInfo) -> str:
    """Write to the customer."""
    return str((await _post("mails", intent, order=order_id, to=to, text=text))["id"])


# ── what is decided ─────────────────────────────────────────────────────────────────────────────────────────────────────


@agent("orders", state=Order)
async def fulfil(ctx: ActivationContext[Order], order: OrderPlaced) -> str:
    """From placed to delivered, or refused."""
    risk = await ctx.call_model(f"How risky is order {order.id} of {order.cents} cents by {order.customer}?", reply=Risk)
    if risk.score > 0.8:
        verdict = await ctx.approval("release order?", channel="risk", timeout=hours(24), order=order.id, score=risk.score)
        if not verdict.approved:
            return "refused"
    receipt = await ctx.perform(charge, order_id=order.id, cents=order.cents)
    ctx.emit(OrderCharged(receipt.id))
    await ctx.sleep(days(2))
    parcel, _ = await ctx.gather(
        ctx.perform(ship, order_id=order.id),
        ctx.perform(email, order_id=order.id, to=order.customer, text="It is on its way. Is all well? Just answer."),
    )
    ctx.emit(OrderDispatched(parcel))
    try:
        reply = await ctx.signal("customer.reply", timeout=days(7))
    except EffectTimedOut:
        return f"{receipt.id}, no reply"
    ctx.emit(CustomerReplied(reply["text"]))
    return str(receipt.id)
