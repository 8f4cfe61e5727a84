"""Who is charged: an agent with no more to decide than that. It stages the charge and hears the receipt."""

from __future__ import annotations

from typing import Any

from intentlog.agents import ActivationContext, App, agent

from .tools import charge


@agent("customers")
async def customers(ctx: ActivationContext[Any], amount_cents: int) -> list[Any]:
    """Charge the customer; tell how that ended, a charge of which nobody knows included."""
    paid = await ctx.outcome_of(ctx.act(charge, customer_id=ctx.key, amount_cents=amount_cents))
    return [paid.status, paid.value if paid.ok else None]


app = App(agents=[customers], tools=[charge])
