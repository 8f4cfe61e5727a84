"""The app that is killed: an order is priced by a model, reserved and paid for by the effector, then a note is sent under a business key.

Every effect exists in four kinds, by what may be done when it was interrupted: ``idempotent`` (call it again), ``plain`` (nobody
can tell), ``told`` (its reconcile function asks the bank), ``blind`` (its reconcile function cannot tell).
"""

from __future__ import annotations

import asyncio
import json
import os
from datetime import timedelta
from typing import Any

from intentlog.agents import (
    ActivationContext,
    Aggregate,
    App,
    Complete,
    IntentInfo,
    ModelRequest,
    ModelResponse,
    RetryPolicy,
    Suspend,
    Tool,
    agent,
    applies,
    tool,
)
from intentlog.eventlog import event

KINDS = ("idempotent", "plain", "told", "blind")
EFFECTS = ("reserve", "pay", "notify")


@event("order.placed", version=1)
class Placed:
    order: str
    kind: str


@event("wait.asked", version=1)
class WaitAsked:
    """Wait for a timer or for the suspension's own deadline, or for an effect no longer than that."""

    what: str
    milliseconds: int


@event("order.priced", version=1)
class Priced:
    order: str
    text: str


@event("order.paid", version=1)
class Paid:
    order: str
    receipt: str


@event("order.closed", version=1)
class Closed:
    order: str


@event("order.unclear", version=1)
class Unclear:
    """Some effect of the order did not come out OK; a person must look."""

    order: str
    outcomes: tuple[str, ...]


class Orders(Aggregate):
    priced: tuple[str, ...] = ()
    receipts: dict[str, str] = {}
    closed: tuple[str, ...] = ()
    unclear: dict[str, tuple[str, ...]] = {}

    @applies(Priced)
    def _(self, priced: Priced) -> Orders:
        return self.evolve(priced=(*self.priced, f"{priced.order}: {priced.text}"))

    @applies(Paid)
    def _(self, paid: Paid) -> Orders:
        return self.evolve(receipts={**self.receipts, paid.order: paid.receipt})

    @applies(Closed)
    def _(self, closed: Closed) -> Orders:
        return self.evolve(closed=(*self.closed, closed.order))

    @applies(Unclear)
    def _(self, unclear: Unclear) -> Orders:
        return self.evolve(unclear={**self.unclear, unclear.order: unclear.outcomes})


async def ask(**request: Any) -> dict[str, Any]:
    """One question to the world outside."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(os.environ["KILL_WORLD"]))
    try:
        writer.write(json.dumps({"caller": os.environ["KILL_CALLER"], **request}).encode() + b"\n")
        answer: dict[str, Any] = json.loads(await reader.readline())
        return answer
    finally:
        writer.close()


class Model:
    provider, model = "loopback", "pricer"

    async def complete(self, request: ModelRequest, *, idempotency_key: str) -> ModelResponse:
        answer = await ask(what="model", key=idempotency_key, prompt=request.messages[-1]["content"], stream=request.tenant)
        return ModelResponse(answer["text"])


@tool
def stock(order: str) -> int:
    """Read-only: what is left of it."""
    return len(order)


def effect(what: str, kind: str) -> Tool:
    """The tool ``what_kind``."""

    async def carry_out(order: str, *, intent: IntentInfo) -> str:
        answer = await ask(what=what, key=intent.intent_id, stream=intent.stream, idempotent=kind == "idempotent")
        return str(answer["receipt"])

    async def look(intent: IntentInfo, order: str) -> str | None:
        receipt: str | None = (await ask(what="look", key=intent.intent_id, stream=intent.stream))["receipt"]
        return receipt

    async def shrug(intent: IntentInfo, order: str) -> str | None:
        return None

    make = tool(
        name=f"{what}_{kind}",
        side_effect=True,
        idempotent=kind == "idempotent",
        timeout=timedelta(seconds=60),
        reconcile={"told": look, "blind": shrug}.get(kind),
    )
    return make(carry_out)


@agent("orders", state=Orders)
async def orders(ctx: ActivationContext[Orders], placed: Placed) -> Complete | Suspend:
    """Three turns when all goes well; one that is not sure of an effect says so and stops there."""
    order, kind = placed.order, placed.kind
    if not ctx.is_resume:
        left = await ctx.run_tool(stock, order=order)
        price = await ctx.call_model(f"the price of {order}, {left} left", tenant=ctx.stream)
        risk = await ctx.call_model(f"the risk of {order} at {price.text}", tenant=ctx.stream)
        ctx.emit(Priced(order, risk.text))
        ctx.act(f"reserve_{kind}", order=order)
        ctx.act(f"pay_{kind}", order=order)
        return Suspend(b"paying", timeout=timedelta(minutes=10))
    if not all(result.ok for result in ctx.resume_results):
        ctx.emit(Unclear(order, tuple(f"{result.tool} {result.status}" for result in ctx.resume_results)))
        return Complete("unclear")
    if ctx.snapshot == b"paying":
        ctx.emit(Paid(order, ctx.resume_results[1].value))
        await ctx.call_model(f"a note on {order}", tenant=ctx.stream)
        ctx.act(f"notify_{kind}", order=order, key=f"notify:{order}")
        return Suspend(b"notifying", timeout=timedelta(minutes=10))
    ctx.emit(Closed(order))
    return Complete("closed")


@agent("strict", state=Orders, retry=RetryPolicy(max_attempts=1))
async def strict(ctx: ActivationContext[Orders], placed: Placed) -> Complete | Suspend:
    """Takes it for granted that a payment comes out OK."""
    if not ctx.is_resume:
        ctx.act(f"pay_{placed.kind}", order=placed.order)
        return Suspend(timeout=timedelta(minutes=10))
    assert ctx.resume_result is not None
    ctx.emit(Paid(placed.order, ctx.resume_result.value))
    return Complete("paid")


@agent("waits", state=Orders)
async def waits(ctx: ActivationContext[Orders], asked: WaitAsked) -> Complete | Suspend:
    """Completes with what ended the wait."""
    length = timedelta(milliseconds=asked.milliseconds)
    if ctx.is_resume:
        assert ctx.resume_result is not None
        return Complete(f"{'timed out' if ctx.timed_out else 'in time'}: {ctx.resume_result.status}")
    if asked.what == "timer":
        ctx.arm(length)
        return Suspend(timeout=timedelta(minutes=10))
    if asked.what == "effect":
        ctx.act("pay_idempotent", order="late")
    return Suspend(timeout=length)


app = App([orders, strict, waits], models=Model(), tools=[effect(what, kind) for what in EFFECTS for kind in KINDS])
