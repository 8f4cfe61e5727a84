"""Issue triage on real webhook traffic: a model proposes labels, the effector puts them on the issue, every delivery counts.

``eventlog run examples.triage:app --input …/github-webhooks.jsonl.gz`` needs the two loopback servers of ``servers.py``,
whose addresses come from ``TRIAGE_MODEL_URL`` and ``TRIAGE_GITHUB_URL``.
"""

from __future__ import annotations

import os

from intentlog.agents import App, OpenAICompatible

from .agent import triage
from .deliveries import intake

__all__ = ["app"]

app = App(
    agents=[triage],
    models=OpenAICompatible(base_url=os.environ.get("TRIAGE_MODEL_URL", "http://127.0.0.1:8101/v1"), model="triage-small", timeout=10.0),
    intake=intake,
)
