"""An order from placed to delivered: a model weighs the risk, a person may have to say yes, two days pass, a customer answers.

``make demo-orders`` tells it, with a kill at every bad moment. The agent is ``agent.py``; ``servers.py`` stands in for the
model, the bank, the carrier and the mail, at the address in ``ORDERS_SERVERS``.
"""

from __future__ import annotations

import os

from intentlog.agents import App, OpenAICompatible, Price

from .agent import fulfil

__all__ = ["app"]

app = App(
    agents=[fulfil],
    models=OpenAICompatible(base_url=os.environ.get("ORDERS_SERVERS", "http://127.0.0.1:8766"), model="risk-1", api_key_env=""),
    prices={"risk-1": Price(input="0.15", output="0.60")},
)
