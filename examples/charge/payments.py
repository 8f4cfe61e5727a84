"""The payment provider's client: one call, which carries an idempotency key.

``python -m intentlog.effector.demo.servers`` is a provider on a loopback port.
"""

from __future__ import annotations

import os

import httpx

PROVIDER = os.environ.get("CHARGE_PROVIDER", "http://127.0.0.1:8765")
#: Reading certificates takes longer than a charge on this machine, where there are none to look at.
TLS = PROVIDER.startswith("https:")


async def charge(customer_id: str, amount_cents: int, *, idempotency_key: str) -> str:
    """The receipt. A second request under the same key moves no money and gets the first one's receipt."""
    body = {"customer": customer_id, "cents": amount_cents}
    async with httpx.AsyncClient(verify=TLS) as provider:
        reply = await provider.post(f"{PROVIDER}/payments", json=body, headers={"Idempotency-Key": idempotency_key})
    reply.raise_for_status()
    return str(reply.json()["receipt"])
