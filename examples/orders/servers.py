"""The model, the bank, the carrier and the mail on one loopback port, with a ledger of everything they were asked.

``python -m examples.orders.servers [PORT]`` keeps them running for whoever plays with the example by hand.
"""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from contextlib import AbstractContextManager
from typing import Any

import attrs

from intentlog.effector.demo.loopback import serve, serving

EFFECTS = ("charges", "parcels", "mails")
RISKY = 100_000
"""Cents from which the model thinks an order risky."""


@attrs.define
class Ledger:
    """What the outside world saw, and did."""

    #: How often each model call was answered, and billed, by idempotency key.
    model_calls: Counter[str] = attrs.field(factory=Counter)
    #: (what, idempotency key) → how often it was asked for.
    requests: Counter[tuple[str, str]] = attrs.field(factory=Counter)
    #: (what, idempotency key) → what was done, once, and the order it was for.
    done: dict[tuple[str, str], tuple[str, str]] = attrs.field(factory=dict)
    lock: threading.Lock = attrs.field(factory=threading.Lock, repr=False)

    def effects(self, what: str, order: str | None = None) -> list[str]:
        """What was done of one kind: the ids that were given for it."""
        return [made for (kind, _), (made, of) in self.done.items() if kind == what and order in (None, of)]

    def assess(self, key: str, question: str) -> dict[str, Any]:
        """An answer in the OpenAI wire format."""
        with self.lock:
            self.model_calls[key] += 1
        cents = next(int(word) for word, unit in zip(question.split(), question.split()[1:], strict=False) if unit == "cents")
        content = json.dumps({"score": 0.93 if cents >= RISKY else 0.12})
        choice = {"message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
        return {"model": "risk-1", "choices": [choice], "usage": {"prompt_tokens": 24, "completion_tokens": 6}}

    def carry_out(self, what: str, key: str, order: str) -> dict[str, Any]:
        """Once under each key; the same answer ever after."""
        with self.lock:
            self.requests[what, key] += 1
            made, _ = self.done.setdefault((what, key), (f"{what[:-1]}-{sum(kind == what for kind, _ in self.done) + 1}", order))
        return {"id": made}

    def asked(self, path: str, key: str, body: bytes) -> tuple[int, dict[str, Any]]:
        """The answer to a request of any of them."""
        said, what = json.loads(body or b"{}"), path.strip("/")
        if what == "chat/completions":
            return 200, self.assess(key, said["messages"][-1]["content"])
        if what in EFFECTS and key:
            return 200, self.carry_out(what, key, said["order"])
        return 404, {"error": f"nothing at {path}, or no Idempotency-Key"}


def servers(ledger: Ledger) -> AbstractContextManager[str]:
    """All of them on one free port, for as long as the block lasts; gives their URL."""
    return serving(ledger.asked)


def main(port: int = 8766) -> None:
    """Serve until ^C."""
    serve(Ledger().asked, port, "model, bank, carrier and mail")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 8766)
