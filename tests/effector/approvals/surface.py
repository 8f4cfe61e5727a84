"""A chat surface on a loopback port: keeps what it is sent, and answers as it is told."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from intentlog.agents import facts
from intentlog.agents.app import runtime_codec
from intentlog.agents.signing import KeyRing
from intentlog.eventlog.clock import SECOND, system_clock
from intentlog.eventlog.ids import id_maker
from intentlog.eventlog.log import EventLog
from intentlog.eventlog.versions import ANY

RING = KeyRing({"may": bytes(range(32))})
CODEC, NEW_ID = runtime_codec(), id_maker(system_clock)


class Delivery:
    """One request that came."""

    def __init__(self, path: str, headers: dict[str, str], body: bytes) -> None:
        self.path, self.headers, self.body = path, headers, body

    @property
    def id(self) -> str:
        return self.headers["intentlog-id"]

    @property
    def said(self) -> dict[str, Any]:
        read: dict[str, Any] = json.loads(self.body)
        return read


class Surface:
    """``answers(delivery)`` gives the status of each; 200 without one. A status of 0 hangs up without an answer."""

    def __init__(self, answers: Callable[[Delivery], int] = lambda delivery: 200) -> None:
        self.came: list[Delivery] = []
        surface = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                body = self.rfile.read(length)
                if len(body) < length:  # its sender died in the middle of it: it never came
                    return
                delivery = Delivery(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
                surface.came.append(delivery)
                status = answers(delivery)
                if not status:
                    self.connection.close()
                    return
                said = b"SECRET of the other side"
                self.send_response(status)
                if 300 <= status < 400:
                    self.send_header("Location", f"http://127.0.0.1:{surface.port}/elsewhere")
                self.send_header("Content-Length", str(len(said)))
                with contextlib.suppress(OSError):  # whoever asked has gone
                    self.end_headers()
                    self.wfile.write(said)

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"webhook+http://ann:hunter2@127.0.0.1:{self.port}/hooks/s3cr3t?token=t0k3n"

    def asked(self) -> list[tuple[str, str]]:
        """Stream and approval of each delivery."""
        return [(each.said["stream"], each.said["approval"]) for each in list(self.came)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def ask(log: EventLog, key: str, number: int = 0, *, expires_in: int = 3600 * SECOND, **details: Any) -> facts.ApprovalRequested:
    """A question on the log, as a turn writes it."""
    fact = facts.ApprovalRequested(
        f"approval-{number}-0", number, 0, f"Pay {key} {number}?", "support", details, bytes([number]) * 32, log.clock() + expires_in
    )
    log.append(f"desk-{key}", [CODEC.stage(fact, event_id=NEW_ID())], ANY)
    return fact


def decide(log: EventLog, key: str, number: int = 0) -> None:
    """A person's answer to it."""
    log.append(f"desk-{key}", [CODEC.stage(facts.ApprovalDecided(f"approval-{number}-0", bytes([number]) * 32, True, "ann"), event_id=NEW_ID())], ANY)
