"""A model and a bank on a loopback port: small, deterministic, and with a ledger of everything they were asked.

``python -m intentlog.effector.demo.servers [PORT]`` keeps them running for whoever plays with the example by hand.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import attrs


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


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    ledger: Ledger

    def do_POST(self) -> None:  # http.server's name
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        key = self.headers.get("Idempotency-Key", "")
        if self.path == "/chat/completions":
            self._answer(200, self.ledger.model(key))
        elif self.path == "/payments" and key:
            self._answer(200, self.ledger.pay(key))
        else:
            self._answer(404, {"error": f"nothing at {self.path}, or no Idempotency-Key"})

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the story is told elsewhere."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # Of five, which is the default, the sixth client at once is left to wait for seconds.
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Who asks here may be killed before the answer: that is the story, and no trouble of ours."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def _server(ledger: Ledger, port: int) -> ThreadingHTTPServer:
    return _Server(("127.0.0.1", port), type("Handler", (_Handler,), {"ledger": ledger}))


@contextmanager
def servers(ledger: Ledger) -> Iterator[str]:
    """Both on one free port, for as long as the block lasts; gives their URL."""
    server = _server(ledger, 0)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def main(port: int = 8765) -> None:
    """Serve until ^C."""
    with _server(Ledger(), port) as server:
        print(f"model and bank on http://127.0.0.1:{port}; ^C stops")  # noqa: T201 - a program of its own
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 8765)
