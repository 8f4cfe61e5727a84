"""The model, the bank, the carrier and the mail on one loopback port, with a ledger of everything they were asked.

``python -m examples.orders.servers [PORT]`` keeps them running for whoever plays with the example by hand.
"""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import attrs

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


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    ledger: Ledger

    def do_POST(self) -> None:  # http.server's name
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        key, what = self.headers.get("Idempotency-Key", ""), self.path.strip("/")
        if what == "chat/completions":
            self._answer(200, self.ledger.assess(key, body["messages"][-1]["content"]))
        elif what in EFFECTS and key:
            self._answer(200, self.ledger.carry_out(what, key, body["order"]))
        else:
            self._answer(404, {"error": f"nothing at {self.path}, or no Idempotency-Key"})

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        text = json.dumps(body).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
        except ConnectionError:  # it was killed while we were talking
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the story is told elsewhere."""


def _server(ledger: Ledger, port: int) -> ThreadingHTTPServer:
    server = ThreadingHTTPServer(("127.0.0.1", port), type("Handler", (_Handler,), {"ledger": ledger}))
    server.daemon_threads = True
    return server


@contextmanager
def servers(ledger: Ledger) -> Iterator[str]:
    """All of them on one free port, for as long as the block lasts; gives their URL."""
    server = _server(ledger, 0)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def main(port: int = 8766) -> None:
    """Serve until ^C."""
    with _server(Ledger(), port) as server:
        print(f"model, bank, carrier and mail on http://127.0.0.1:{port}; ^C stops")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 8766)
