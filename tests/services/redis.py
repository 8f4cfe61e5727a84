"""A real Redis for tests: one for each pytest worker, started on first use. Valkey serves as well.

A test that needs a store takes the fixture ``redis_url``; one that stops or kills the server starts its own::

    with RedisServer() as server:
        server.start(durable=True)
        server.kill()
        server.start(durable=True)
"""

from __future__ import annotations

import shutil
import signal
from typing import Self
from urllib.parse import urlsplit

import redis

from tests.services.server import Server, free_port

#: A server whose database, of the number in the URL, the tests may use and empty; used instead of one of their own.
VARIABLE = "EVENTLOG_TEST_REDIS_URL"


class NoRedis(Exception):
    """There is no Redis on this machine, or the one named is not free to be used; the message says the way out."""


class Keys:
    """A running server, as far as tests share it: ``url`` leads to a database that they may empty."""

    def __init__(self, url: str) -> None:
        self.url = url

    def count(self) -> int:
        """How many keys the database holds."""
        with redis.Redis.from_url(self.url) as client:
            held = client.dbsize()
        assert isinstance(held, int)
        return held

    def clear(self) -> None:
        """Remove every key of the database."""
        with redis.Redis.from_url(self.url) as client:
            client.flushdb()


class RedisServer(Server, Keys):
    """A server of the caller's own, for its context: to be stopped, killed and started again. Ends with the process, however that ends.

    Raises :class:`NoRedis` where none is installed.
    """

    def __init__(self) -> None:
        self._binary = binary()
        Server.__init__(self, "redis", ended_by=signal.SIGKILL)
        self._listen(free_port())

    def start(self, durable: bool = False) -> Self:
        """Start, and return when commands are answered. The port stays the same from the second start on.

        With ``durable`` every write is synced to the append-only file before it is answered, and each durable start reads
        it. Without, nothing is written: the next start finds the server empty.
        """
        kept = ("--appendonly", "yes", "--appendfsync", "always") if durable else ("--appendonly", "no")
        first = not self.log
        for _ in range(5 if first else 1):
            address = ("--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self.folder))
            if self._launch([self._binary, *address, "--save", "", *kept], self._answers):
                return self
            # Somebody took the port since it was found free.
            if first and "bind: Address already in use" in self.log:
                self._listen(free_port())
        raise RuntimeError(f"{self._binary} did not start; the end of its log:\n{self.log[-2000:]}")

    def stop(self) -> None:
        """End in good order."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End at once, as if the power had gone for this process alone."""
        self._end(signal.SIGKILL)

    def restart(self, durable: bool = False) -> None:
        """Stop in good order and start."""
        self.stop()
        self.start(durable)

    def _listen(self, port: int) -> None:
        self.port = port
        Keys.__init__(self, f"redis://127.0.0.1:{port}/0")

    def _answers(self) -> bool:
        try:
            with redis.Redis.from_url(self.url) as client:
                told = client.info("server")
                client.ping()
        except redis.ConnectionError:
            # Not listening yet, or still reading its file.
            return False
        assert isinstance(told, dict)
        # On a port that was taken since, another worker's server would answer.
        return bool(told["process_id"] == self.pid)


def shared(url: str, *, worker: str = "") -> Keys:
    """The database at ``url``, or for the pytest worker ``gw3`` the third after it. Raises :class:`NoRedis` if it already holds keys.

    The workers' databases are apart; channels of publish and subscribe belong to the whole server.
    """
    parts = urlsplit(url)
    number = int(parts.path.removeprefix("/") or 0) + int(worker.removeprefix("gw") or 0)
    keys = Keys(parts._replace(path=f"/{number}").geturl())
    if held := keys.count():
        raise NoRedis(f"database {number} of the server in {VARIABLE} holds {held} keys, which tests would remove: name a number from which on they are empty")
    return keys


def binary() -> str:
    """The server's program. Raises :class:`NoRedis`."""
    for name in ("redis-server", "valkey-server"):
        if found := shutil.which(name):
            return found
    raise NoRedis(
        "there is no Redis here: PATH leads neither to `redis-server` nor to `valkey-server`; "
        f"run .ci/services as root on Debian or Ubuntu, or install one, or set {VARIABLE} to a server whose keys may be removed"
    )
