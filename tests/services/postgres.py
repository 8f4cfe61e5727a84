"""A real PostgreSQL for tests. Each pytest worker starts its own on first use: it takes a second, and no worker waits for, or stops, another's.

A test that needs databases takes the fixture ``postgres_url`` (or ``postgres_server``); one that stops or breaks the server starts its own::

    with PostgresServer() as server:
        server.start(fsync=True)
        url = server.create_database()
        server.stop_immediately()
        server.start(fsync=True)
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import psycopg

from tests.services.watching import Watched, free_port

#: A server on which the tests may create databases, as a role that may; used instead of one of their own.
VARIABLE = "EVENTLOG_TEST_POSTGRES_URL"
# Prepared transactions are off by default; they are one of the ways in which a test holds the horizon of transactions back.
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "log_line_prefix": "%m [%p] %a: ",
    "max_connections": "200",
    "max_prepared_transactions": "20",
    "timezone": "UTC",
}
PATIENCE_S = 60.0


class NoPostgres(Exception):
    """There is no PostgreSQL server on this machine; the message says where it was looked for, and the way out."""


class Databases:
    """A running server, as far as tests share it: databases are made on it and dropped.

    ``url`` leads to any of its databases, as a role that may create others.
    """

    def __init__(self, url: str) -> None:
        self._url = url

    def url(self, database: str) -> str:
        """The ``postgresql://…`` of one database."""
        return urlsplit(self._url)._replace(path=f"/{database}").geturl()

    def create_database(self) -> str:
        """Make an empty database; its URL. Some 50 ms."""
        name = f"intentlog_test_{secrets.token_hex(6)}"
        # template0: nobody can be connected to it, which would be a reason to refuse the copy.
        self._execute(f'CREATE DATABASE "{name}" TEMPLATE template0')
        return self.url(name)

    def drop_database(self, url: str) -> None:
        """Drop what :meth:`create_database` made, closing whatever connections still use it."""
        self._execute(f'DROP DATABASE IF EXISTS "{urlsplit(url).path.removeprefix("/")}" WITH (FORCE)')

    def _execute(self, statement: str) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(statement.encode())


class PostgresServer(Databases):
    """A server of the caller's own, for its context: to be stopped, killed and started again. Ends with the process, however that ends.

    Trusts every role on 127.0.0.1; ``postgres`` is the superuser. Raises :class:`NoPostgres` where none is installed.
    """

    def __init__(self) -> None:
        self._bin = binaries()
        self._watched = Watched("postgres", ended_by="QUIT")
        self._process: subprocess.Popen[bytes] | None = None
        self.folder = self._watched.folder
        self.data = self.folder / "data"
        self._listen(free_port())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The postmaster, while it runs."""
        return self._process.pid if self._process is not None else None

    @property
    def log(self) -> str:
        """What the server has written since it was made."""
        path = self.folder / "server.log"
        return path.read_text("utf-8", errors="replace") if path.exists() else ""

    def start(self, fsync: bool = False) -> Self:
        """Start, recovering if need be, and return when queries are answered. The port stays the same from the second start on.

        Without ``fsync`` commits survive the death of every process but not of the machine. Kill tests of durability and
        every measurement want it on.
        """
        assert self._process is None, "the server runs already"
        first = not self.data.exists()
        if first:
            self._initialise()
        for _ in range(5 if first else 1):
            if self._launch({**SETTINGS, "fsync": "on" if fsync else "off"}):
                return self
            # Somebody took the port since it was found free.
            if first and "could not bind" in self.log:
                self._listen(free_port())
        raise RuntimeError(f"PostgreSQL in {self._bin} did not start; the end of its log:\n{self.log[-2000:]}")

    def stop(self) -> None:
        """Refuse new connections, break those there are, write a checkpoint, end."""
        self._end(signal.SIGINT)

    def stop_immediately(self) -> None:
        """As ``pg_ctl stop -m immediate``: a crash. No checkpoint; the next start recovers from the write-ahead log."""
        self._end(signal.SIGQUIT)

    def restart(self, fsync: bool = False) -> None:
        """Stop in good order and start."""
        self.stop()
        self.start(fsync)

    def close(self) -> None:
        """End the server if it runs, and remove its folder."""
        if self._process is not None:
            self.stop_immediately()
        self._watched.close()

    def _listen(self, port: int) -> None:
        self.port = port
        super().__init__(f"postgresql://postgres@127.0.0.1:{port}/postgres")

    def _initialise(self) -> None:
        options = ["-D", str(self.data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        done = subprocess.run(
            [self._bin / "initdb", *options], cwd=self.folder, env=_environment(), capture_output=True, text=True, timeout=PATIENCE_S, **self._watched.account
        )
        if done.returncode != 0:
            raise RuntimeError(f"{self._bin}/initdb failed: {done.stderr or done.stdout}")

    def _launch(self, settings: dict[str, str]) -> bool:
        """Whether the server came up; False when it ended by itself."""
        given = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._bin / "postgres", "-D", self.data, "-k", self.folder, "-p", str(self.port), *given],
                cwd=self.folder,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **self._watched.account,
            )
        self._watched.tell(self._process.pid)
        until = time.monotonic() + PATIENCE_S
        while self._process.poll() is None:
            try:
                self._execute("SELECT 1")
                return True
            except psycopg.OperationalError:
                if time.monotonic() > until:
                    self.stop_immediately()
                    return False
                time.sleep(0.02)
        self._ended()
        return False

    def _end(self, how: signal.Signals) -> None:
        assert self._process is not None, "the server does not run"
        self._process.send_signal(how)
        try:
            self._process.wait(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise
        finally:
            self._ended()

    def _ended(self) -> None:
        self._process = None
        self._watched.tell(None)


def binaries() -> Path:
    """The folder with ``postgres`` and ``initdb``; of several the one that pg_config names, else the newest. Raises :class:`NoPostgres`."""
    tried: list[Path] = []
    if command := shutil.which("pg_config"):
        tried.append(Path(subprocess.run([command, "--bindir"], check=True, capture_output=True, text=True).stdout.strip()))
    tried += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version, reverse=True)
    if command := shutil.which("postgres"):
        tried.append(Path(command).resolve().parent)
    for folder in tried:
        if all(os.access(folder / name, os.X_OK) for name in ("postgres", "initdb")):
            return folder
    raise NoPostgres(
        "there is no PostgreSQL server here: neither pg_config, nor /usr/lib/postgresql/*/bin, nor PATH leads to `postgres` and `initdb`; "
        f"run .ci/services as root on Debian or Ubuntu, or install the server, or set {VARIABLE} to one on which databases may be created"
    )


def _version(folder: Path) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", folder.parent.name)))


def _environment() -> dict[str, str]:
    """The caller's, without what libpq and the server would take from it."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_"))} | {"LC_ALL": "C"}
