"""Health and metrics over HTTP, from a thread of its own: it answers while the event loop stands still, and says so.

``/healthz``: 200 while nothing is stuck; 503 is for whoever restarts. ``/readyz``: 200 while every part does its work.
Both answer with the same JSON. ``/metrics``: for Prometheus.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, TypeAlias

_SECONDS: Final = 5.0
"""For a client to send its request."""
_NO_METRICS: Final = "There are no metrics: prometheus-client is not installed. pip install 'intentlog[metrics]'\n"
TEXT: Final = "text/plain; charset=utf-8"

Report: TypeAlias = Callable[[], dict[str, Any]]
Metrics: TypeAlias = Callable[[], tuple[bytes, str]]
Page: TypeAlias = tuple[HTTPStatus, bytes, str]
Trouble: TypeAlias = Callable[[str, BaseException], None]


class HealthServer:
    """Serves ``report()``, whose ``live`` and ``ready`` decide the status, and ``metrics()``: bytes and their content type.

    ``on_error`` hears of pages that could not be made, and not of clients that hang up, which they may.
    """

    def __init__(self, report: Report, metrics: Metrics | None = None, on_error: Trouble = lambda doing, problem: None) -> None:
        self._report, self.metrics, self._on_error = report, metrics, on_error
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None

    @property
    def alive(self) -> bool:
        """Whether it answers."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, host: str, port: int) -> str:
        """Serve on ``port``, 0 for any free one; the URL it is reached at. Raises ``OSError`` when that cannot be."""
        self.stop()
        report = self._report

        pages: dict[str, Callable[[], Page]] = {
            "/healthz": lambda: _health(report(), "live"),
            "/readyz": lambda: _health(report(), "ready"),
            "/metrics": lambda: _metered(self.metrics),
        }
        server = _Server((host, port), type("Handler", (_Handler,), {"pages": pages}))
        server.on_error = self._on_error
        self._server = server
        self._thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, name="intentlog-health", daemon=True)
        self._thread.start()
        name, number = server.server_address[:2]
        return f"http://{name.decode() if isinstance(name, bytes) else name}:{number}"

    def stop(self) -> None:
        """Serve no more."""
        if self._server is not None:
            if self.alive:
                self._server.shutdown()
            self._server.server_close()
            self._server = None


def _health(report: dict[str, Any], what: str) -> Page:
    status = HTTPStatus.OK if report[what] else HTTPStatus.SERVICE_UNAVAILABLE
    return status, json.dumps(report, indent=1).encode() + b"\n", "application/json"


def _metered(metrics: Metrics | None) -> Page:
    if metrics is None:
        return HTTPStatus.NOT_IMPLEMENTED, _NO_METRICS.encode(), TEXT
    body, kind = metrics()
    return HTTPStatus.OK, body, kind


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    on_error: Trouble

    def handle_error(self, request: Any, client_address: Any) -> None:
        """In place of a traceback on stderr, among lines of JSON."""
        problem = sys.exc_info()[1]
        if problem is not None and not isinstance(problem, OSError):
            self.on_error("answering at " + str(self.server_address[1]), problem)


class _Handler(BaseHTTPRequestHandler):
    """GET and HEAD of a few pages."""

    timeout = _SECONDS
    server_version = "intentlog"
    sys_version = ""
    pages: dict[str, Callable[[], Page]]

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def _answer(self, *, body: bool) -> None:
        page = self.pages.get(self.path.partition("?")[0])
        known = f"There is {', '.join(self.pages)}.\n".encode()
        status, text, kind = page() if page is not None else (HTTPStatus.NOT_FOUND, known, TEXT)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if body:
            self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: probes come every few seconds."""
