"""The model and the bank around one log, on loopback, in the process that kills: they outlive every child and count what it asked."""

from __future__ import annotations

import json
import select
import socketserver
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import attrs


@attrs.frozen
class Call:
    """One request that arrived."""

    what: str
    caller: str
    #: The idempotency key.
    key: str
    stream: str = ""


@attrs.define(eq=False)
class World:
    """Everything the children asked of it, in the order in which it arrived."""

    port: int = 0
    calls: list[Call] = attrs.field(factory=list)
    #: Idempotency keys of the payments that were made, repetitions included: money that moved.
    moved: list[str] = attrs.field(factory=list)
    #: (what, caller) whose answers are held back, and whether the effect happens before the wait.
    held: dict[tuple[str, str], bool] = attrs.field(factory=dict)
    arrived: threading.Event = attrs.field(factory=threading.Event)
    released: threading.Event = attrs.field(factory=threading.Event)
    _lock: threading.Lock = attrs.field(factory=threading.Lock)

    def count(self, *what: str) -> Counter[str]:
        """How often each key was asked for."""
        return Counter(call.key for call in self.calls if call.what in what)

    def callers_of(self, *what: str) -> Counter[tuple[str, str]]:
        """How often each caller asked for each key."""
        return Counter((call.caller, call.key) for call in self.calls if call.what in what)

    def wait_for(self, calls: int, ended: Callable[[], bool]) -> None:
        """Until so many calls have arrived, or whoever makes them has ended."""
        while len(self.calls) < calls and not ended():
            time.sleep(0.001)

    def answer(self, request: dict[str, Any], connection: Any) -> dict[str, Any] | None:
        """What ``request`` gets; ``None`` when nobody is there any more."""
        call = Call(request["what"], request["caller"], request["key"], request.get("stream", ""))
        with self._lock:
            self.calls.append(call)
        effect_first = self.held.get((call.what, call.caller))
        if effect_first is True:
            self._carry_out(call, request)
        if effect_first is not None:
            self.arrived.set()
            while not self.released.wait(0.02):
                if _gone(connection):
                    return None
        if effect_first is not True:
            self._carry_out(call, request)
        if call.what == "look":
            return {"receipt": f"receipt-{call.key[:8]}" if call.key in self.moved else None}
        return {"text": f"answer to {request['prompt']}"} if call.what == "model" else {"receipt": f"receipt-{call.key[:8]}"}

    def _carry_out(self, call: Call, request: dict[str, Any]) -> None:
        if call.what in ("model", "look"):
            return
        with self._lock:  # a bank that takes idempotency keys pays once under each; one that does not pays every time
            if not (request["idempotent"] and call.key in self.moved):
                self.moved.append(call.key)


def _gone(connection: Any) -> bool:
    readable, _, _ = select.select([connection], [], [], 0)
    return bool(readable) and connection.recv(1) == b""


@contextmanager
def world() -> Iterator[World]:
    """A fresh one on a free port; lines of JSON in, lines of JSON out."""
    around = World()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            try:
                for line in self.rfile:
                    reply = around.answer(json.loads(line), self.connection)
                    if reply is not None:
                        self.wfile.write(json.dumps(reply).encode() + b"\n")
            except (ConnectionError, ValueError):  # it was killed while we were talking
                return

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        request_queue_size = 128

    with Server(("127.0.0.1", 0), Handler) as server:
        around.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield around
        finally:
            around.released.set()
            server.shutdown()
            thread.join()
