"""A bus that several processes share: a ``MemoryBroker`` behind a loopback port, and the client. ``tcp://127.0.0.1:PORT/TOPIC?partitions=N``.

One request and one answer a line, as JSON. A member of a group lives as long as its connection::

    with BusServer() as server:
        serve(…, buses={"tcp": TcpBus})
        server.broker.messages("results")
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
import socket
import socketserver
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Self

import attrs

from intentlog.effector.bus import BadBusUrl, BusUnavailable, MemoryBroker, Message, MessageTooLarge, Outgoing, Polled
from intentlog.effector.bus.memory import partitions_of
from intentlog.eventlog.masking import masked_url

_URL = re.compile(r"tcp://127\.0\.0\.1:(\d{1,5})/([A-Za-z0-9_.-]+)(?:\?(.*))?\Z")
#: Beyond the longest poll.
_PATIENCE = 30.0


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _pack(message: Outgoing | Message) -> dict[str, Any]:
    packed = {"key": message.key, "value": _text(message.value), "headers": {name: _text(value) for name, value in message.headers.items()}}
    return packed | ({"partition": message.partition, "offset": message.offset} if isinstance(message, Message) else {})


def _unpack(packed: Mapping[str, Any]) -> dict[str, Any]:
    headers = {name: base64.b64decode(value) for name, value in packed["headers"].items()}
    return {**packed, "value": base64.b64decode(packed["value"]), "headers": headers}


class BusServer:
    """The broker, reachable by every process of this machine. To be stopped and started again, on the same port and with all that it holds."""

    def __init__(self, broker: MemoryBroker | None = None) -> None:
        self.broker = broker or MemoryBroker()
        #: Topics to which nothing can be published for now.
        self.refused: set[str] = set()
        self.port = 0
        self._server: socketserver.ThreadingTCPServer | None = None
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def url(self, topic: str, partitions: int = 4) -> str:
        """Of one topic."""
        return f"tcp://127.0.0.1:{self.port}/{topic}?partitions={partitions}"

    def start(self) -> Self:
        """Listen."""
        owner = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                owner._serve(self)

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address, daemon_threads, block_on_close = True, True, False

        self._server = Server(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def stop(self) -> None:
        """Break every connection, and take no other."""
        if self._server is None:
            return
        self._server.shutdown()
        self._server.server_close()
        self._server = None
        with self._lock:
            for each in self._connections:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def _serve(self, handler: socketserver.StreamRequestHandler) -> None:
        member: tuple[str, str, str] | None = None
        with self._lock:
            self._connections.add(handler.connection)
        try:
            for line in handler.rfile:
                asked = json.loads(line)
                if asked["do"] == "join":
                    member = (asked["topic"], asked["group"], self.broker.join(asked["topic"], asked["group"], asked["name"]))
                answer = self._answer(asked, member)
                handler.wfile.write(json.dumps(answer).encode() + b"\n")
        except (OSError, ValueError):  # the other side is gone, perhaps in the middle of a line
            pass
        finally:
            with self._lock:
                self._connections.discard(handler.connection)
            if member is not None:
                self.broker.leave(*member)

    def _answer(self, asked: dict[str, Any], member: tuple[str, str, str] | None) -> Any:
        do, broker = asked["do"], self.broker
        if do == "create":
            broker.create(asked["topic"], asked["partitions"])
            return broker.most_bytes
        if do == "publish":
            if asked["topic"] in self.refused:
                return {"unavailable": f"{asked['topic']} takes nothing for now"}
            try:
                broker.publish(asked["topic"], [Outgoing(**_unpack(each)) for each in asked["messages"]])
            except MessageTooLarge as problem:
                return {"too_large": str(problem)}
        if member is not None:
            if do == "poll":
                told = broker.poll(*member, asked["most"], asked["timeout"])
                return {"revoked": told.revoked, "assigned": told.assigned, "messages": [_pack(each) for each in told.messages]}
            if do == "acknowledge":
                broker.acknowledge(*member, asked["partition"], asked["offset"])
            if do == "pause":
                broker.pause(*member, asked["partition"], asked["paused"])
        return None


@attrs.define(eq=False)
class _Line:
    """A connection; made again after it broke."""

    port: int
    _file: Any = None
    _socket: Any = None
    _lock: Any = attrs.field(factory=threading.Lock)

    def ask(self, **question: Any) -> Any:
        with self._lock:
            try:
                if self._file is None:
                    self._socket = socket.create_connection(("127.0.0.1", self.port), _PATIENCE)
                    self._file = self._socket.makefile("rwb")
                self._file.write(json.dumps(question).encode() + b"\n")
                self._file.flush()
                line = self._file.readline()
                if not line.endswith(b"\n"):
                    raise OSError("the connection broke")
            except OSError as problem:
                self._drop()
                raise BusUnavailable(f"tcp://127.0.0.1:{self.port} cannot be reached: {problem}") from problem
        answer = json.loads(line)
        if isinstance(answer, dict) and "unavailable" in answer:
            raise BusUnavailable(answer["unavailable"])
        if isinstance(answer, dict) and "too_large" in answer:
            raise MessageTooLarge(answer["too_large"])
        return answer

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        for each in (self._file, self._socket):
            if each is not None:
                with contextlib.suppress(OSError):
                    each.close()
        self._file = self._socket = None


class TcpSource:
    """A member, for as long as its connection lives."""

    def __init__(self, port: int, topic: str, partitions: int, group: str, name: str) -> None:
        self._line, self._closed = _Line(port), False
        self._line.ask(do="create", topic=topic, partitions=partitions)
        self._line.ask(do="join", topic=topic, group=group, name=name)

    def poll(self, most: int, timeout: float) -> Polled:
        told = self._ask(do="poll", most=most, timeout=timeout)
        return Polled(tuple(told["revoked"]), tuple(told["assigned"]), tuple(Message(**_unpack(each)) for each in told["messages"]))

    def acknowledge(self, partition: int, offset: int) -> None:
        self._ask(do="acknowledge", partition=partition, offset=offset)

    def pause(self, partition: int) -> None:
        self._ask(do="pause", partition=partition, paused=True)

    def resume(self, partition: int) -> None:
        self._ask(do="pause", partition=partition, paused=False)

    def close(self) -> None:
        self._closed = True
        self._line.close()

    def _ask(self, **question: Any) -> Any:
        if self._closed:
            raise BusUnavailable("this member has left, or its connection broke: join again")
        try:
            return self._line.ask(**question)
        except BusUnavailable:
            self.close()
            raise


class TcpSink:
    """A topic to publish to."""

    most_bytes = 96 << 20

    def __init__(self, port: int, topic: str, partitions: int) -> None:
        self._line, self._topic, self._partitions = _Line(port), topic, partitions

    def publish(self, messages: Sequence[Outgoing]) -> None:
        self._line.ask(do="create", topic=self._topic, partitions=self._partitions)
        self._line.ask(do="publish", topic=self._topic, messages=[_pack(each) for each in messages])

    def close(self) -> None:
        self._line.close()


class TcpBus:
    """The client."""

    shared = True

    def check(self, url: str) -> None:
        self._parsed(url)

    def source(self, url: str, *, group: str, member: str) -> TcpSource:
        return TcpSource(*self._parsed(url), group, member)

    def sink(self, url: str) -> TcpSink:
        return TcpSink(*self._parsed(url))

    def close(self) -> None:
        """Every source and sink has a connection of its own."""

    def _parsed(self, url: str) -> tuple[int, str, int]:
        found = _URL.match(url)
        if found is None:
            raise BadBusUrl(f"{masked_url(url)!r} is not tcp://127.0.0.1:PORT/TOPIC?partitions=N")
        return int(found[1]), found[2], partitions_of(url, found[3])
