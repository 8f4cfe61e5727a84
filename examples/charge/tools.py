"""The tool, and the two promises it may be registered with."""

from __future__ import annotations

from intentlog.agents.tools import IntentInfo, ToolSet, tool

from . import payments


@tool(side_effect=True)
async def charge(customer_id: str, amount_cents: int, *, intent: IntentInfo) -> str:
    # The same effect has the same intent id, whoever carries it out and however often: the provider charges once.
    return await payments.charge(customer_id, amount_cents, idempotency_key=intent.intent_id)


#: Nothing is promised. An effector that died in mid-call leaves an UNKNOWN: charged once, or not at all.
AS_WRITTEN = ToolSet([charge])

#: The provider keeps its promise, and the tool passes it on: after a crash it is called again, and charges exactly once.
TOOLS = ToolSet([tool(side_effect=True, idempotent=True)(charge.fn)])
