"""The agent's tools: one that reads, two that change the world. The intent id is the provider's idempotency key.

They block (``http.client``), so the runtime calls them in a thread; nothing here is retried, for that is the runtime's affair.
"""

from __future__ import annotations

import http.client
import json
import os
from datetime import timedelta
from typing import Any
from urllib.parse import quote, urlsplit

from intentlog.agents import IntentInfo, tool


@tool
def known_labels(repository: str) -> list[str]:
    """The labels a repository offers."""
    labels: list[str] = _github("GET", f"/repos/{quote(repository)}/labels")
    return labels


@tool(side_effect=True, idempotent=True, timeout=timedelta(seconds=10))
def add_label(repository: str, number: int, label: str, *, intent: IntentInfo) -> str:
    """Put a label on an issue or a pull request."""
    added: str = _github("POST", f"/repos/{quote(repository)}/issues/{number}/labels", {"label": label}, intent.intent_id)["label"]
    return added


@tool(side_effect=True, idempotent=True, timeout=timedelta(seconds=10))
def post_comment(repository: str, number: int, text: str, *, intent: IntentInfo) -> str:
    """Write a comment; returns its id."""
    posted: str = _github("POST", f"/repos/{quote(repository)}/issues/{number}/comments", {"text": text}, intent.intent_id)["id"]
    return posted


def _github(method: str, path: str, body: dict[str, Any] | None = None, idempotency_key: str = "") -> Any:
    base = urlsplit(os.environ.get("TRIAGE_GITHUB_URL", "http://127.0.0.1:8102"))
    connection = http.client.HTTPConnection(base.hostname or "127.0.0.1", base.port or 80, timeout=10)
    try:
        headers = {"Content-Type": "application/json"} | ({"Idempotency-Key": idempotency_key} if idempotency_key else {})
        connection.request(method, base.path.rstrip("/") + path, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    if answer.status >= 400:
        raise RuntimeError(f"{method} {path} was answered {answer.status}: {text[:500]!r}")
    return json.loads(text)
