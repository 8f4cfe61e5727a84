"""A model and a bank on a loopback port: small, deterministic, and with a ledger of everything they were asked.

``python -m intentlog.effector.demo.servers [PORT]`` keeps them running for whoever plays with the example by hand.
"""

from __future__ import annotations

import sys
import threading
from contextlib import AbstractContextManager
from typing import Any

import attrs

from .loopback import serve, serving


@attrs.define
class Ledger:
    """What the outside world saw."""

    #: Idempotency key of every model call that was answered, and billed.
    model_calls: list[str] = attrs.field(factory=list)
    #: Idempotency key of every request to pay.
    payment_requests: list[str] = attrs.field(factory=list)
    #: Idempotency key → receipt: the money that moved.
    receipts: dict[str, str] = attrs.field(factory=dict)
    lock: threading.Lock = attrs.field(factory=threading.Lock, repr=False)

    def model(self, key: str) -> dict[str, Any]:
        """An answer in the OpenAI wire format."""
        with self.lock:
            self.model_calls.append(key)
        message = {"role": "assistant", "content": "yes, within policy"}
        return {"model": "demo-1", "choices": [{"message": message, "finish_reason": "stop"}], "usage": {"prompt_tokens": 21, "completion_tokens": 5}}

    def pay(self, key: str) -> dict[str, Any]:
        """A receipt: the first one for every later request under the same key."""
        with self.lock:
            self.payment_requests.append(key)
            receipt = self.receipts.setdefault(key, f"re_{981 + len(self.receipts)}")
        return {"receipt": receipt}

    def asked(self, path: str, key: str, body: bytes) -> tuple[int, dict[str, Any]]:
        """The answer to a request of either."""
        if path == "/chat/completions":
            return 200, self.model(key)
        if path == "/payments" and key:
            return 200, self.pay(key)
        return 404, {"error": f"nothing at {path}, or no Idempotency-Key"}


def servers(ledger: Ledger) -> AbstractContextManager[str]:
    """Both on one free port, for as long as the block lasts; gives their URL."""
    return serving(ledger.asked)


def main(port: int = 8765) -> None:
    """Serve until ^C."""
    serve(Ledger().asked, port, "model and bank")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 8765)
