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
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import psycopg

from tests.services.server import Server, free_port

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


class PostgresServer(Server, Databases):
    """A server of the caller's own, for its context: to be stopped, killed and started again. Ends with the process, however that ends.

    Trusts every role on 127.0.0.1; ``postgres`` is the superuser. Raises :class:`NoPostgres` where none is installed.
    ``below``: see :class:`Server`.
    """

    def __init__(self, *, below: str | None = None) -> None:
        self._bin = binaries()
        Server.__init__(self, "postgres", ended_by=signal.SIGQUIT, below=below)
        self.data = self.folder / "data"
        self._listen(free_port())

    def start(self, fsync: bool = False) -> Self:
        """Start, recovering if need be, and return when queries are answered. The port stays the same from the second start on.

        Without ``fsync`` commits survive the death of every process but not of the machine. Kill tests of durability and
        every measurement want it on.
        """
        first = not self.data.exists()
        if first:
            options = ("-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
            self._run(str(self._bin / "initdb"), "-D", str(self.data), *options)
        settings = {**SETTINGS, "fsync": "on" if fsync else "off"}
        given = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        for _ in range(5 if first else 1):
            address = ("-k", str(self.folder), "-p", str(self.port))
            if self._launch([str(self._bin / "postgres"), "-D", str(self.data), *address, *given], self._answers):
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

    def _listen(self, port: int) -> None:
        self.port = port
        Databases.__init__(self, f"postgresql://postgres@127.0.0.1:{port}/postgres")

    def _answers(self) -> bool:
        try:
            with psycopg.connect(self._url) as connection:
                # On a port that was taken since, another worker's server would answer.
                return connection.execute("SHOW data_directory").fetchone() == (str(self.data),)
        except psycopg.OperationalError:
            return False


def binaries(installed: Path = Path("/usr/lib/postgresql")) -> Path:
    """The folder with ``postgres`` and ``initdb``; of several the one that pg_config names, else the newest. Raises :class:`NoPostgres`."""
    tried: list[Path] = []
    if command := shutil.which("pg_config"):
        # Debian's stand-in for it fails where only clients are installed.
        asked = subprocess.run([command, "--bindir"], check=False, capture_output=True, text=True)
        tried += [Path(asked.stdout.strip())] if asked.returncode == 0 else []
    tried += sorted(installed.glob("*/bin"), key=_version, reverse=True)
    if command := shutil.which("postgres"):
        tried.append(Path(command).resolve().parent)
    for folder in tried:
        if all(os.access(folder / name, os.X_OK) for name in ("postgres", "initdb")):
            return folder
    raise NoPostgres(
        f"there is no PostgreSQL server here: neither pg_config, nor {installed}/*/bin, nor PATH leads to `postgres` and `initdb`; "
        f"run .ci/services as root on Debian or Ubuntu, or install the server, or set {VARIABLE} to one on which databases may be created"
    )


def _version(folder: Path) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", folder.parent.name)))
