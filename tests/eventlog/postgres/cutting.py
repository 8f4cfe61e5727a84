"""A loopback proxy in front of a server that can lose the server's answer, as a network does."""

from __future__ import annotations

import socket
import threading
from types import TracebackType
from typing import Self


class Proxy:
    """Hands bytes on both ways, until a client sends ``mark`` for the first time: what the server answers to that is swallowed, and both are cut off."""

    def __init__(self, port: int, mark: bytes) -> None:
        self._server = port
        self._mark = mark
        self._guard = threading.Lock()
        #: Whether an answer was swallowed.
        self.lost = False
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        # Wakes the thread that accepts, which closing alone does not.
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._server))
            losing = threading.Event()
            threading.Thread(target=self._hand_on, args=(client, server, losing), daemon=True).start()
            threading.Thread(target=self._hand_back, args=(server, client, losing), daemon=True).start()

    def _hand_on(self, client: socket.socket, server: socket.socket, losing: threading.Event) -> None:
        with client, server:
            try:
                while read := client.recv(1 << 20):
                    with self._guard:
                        if self._mark in read and not self.lost:
                            self.lost = True
                            losing.set()
                    server.sendall(read)
                server.shutdown(socket.SHUT_WR)
            except OSError:
                return

    def _hand_back(self, server: socket.socket, client: socket.socket, losing: threading.Event) -> None:
        try:
            while read := server.recv(1 << 20):
                if losing.is_set():
                    break
                client.sendall(read)
            client.shutdown(socket.SHUT_RDWR)
        except OSError:
            return
