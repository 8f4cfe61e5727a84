"""Servers on a loopback port, for stories in which somebody dies in the middle of a call."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

Asked: TypeAlias = Callable[[str, str, bytes], tuple[int, dict[str, Any]]]
"""What becomes of a POST: ``(path, idempotency key, body) -> (status, answer)``."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    asked: Asked

    def do_POST(self) -> None:  # http.server's name
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        status, answer = self.asked(self.path, self.headers.get("Idempotency-Key", ""), body)
        text = json.dumps(answer).encode()
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


def _server(asked: Asked, port: int) -> ThreadingHTTPServer:
    return _Server(("127.0.0.1", port), type("Handler", (_Handler,), {"asked": staticmethod(asked)}))


@contextmanager
def serving(asked: Asked) -> Iterator[str]:
    """A server on a free port, for as long as the block lasts; gives the URL."""
    server = _server(asked, 0)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def serve(asked: Asked, port: int, who: str) -> None:
    """A server on that port until ^C, having said who is there."""
    with _server(asked, port) as server:
        print(f"{who} on http://127.0.0.1:{port}; ^C stops")  # noqa: T201 - a program of its own
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return
