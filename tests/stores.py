"""The stores that the tests of agents, effector, replay and commands run over. Nothing outside of this file tells them apart.

A test takes ``log_url``, one log on each store in turn; or ``shared_url``, which leaves out the one that ends with its process.
One that needs more logs, or kills who uses them, takes ``store`` or ``shared_store`` and asks it for a URL by folder.

``EVENTLOG_TEST_STORE=postgresql`` (or ``sqlite``) makes that store the one of all tests to which it makes no difference, and
has every case tried on it; otherwise those run in memory, and PostgreSQL gets a chosen part of the longest tests.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import parse_qs, urlsplit

import attrs

from intentlog.eventlog import open_log
from intentlog.eventlog.owners import is_dead

T = TypeVar("T")
VARIABLE = "EVENTLOG_TEST_STORE"
USUAL = os.environ.get(VARIABLE, "memory")
STORES = ("memory", "sqlite", "postgresql")
SHARED = ("sqlite", "postgresql")
#: Seconds within which a server notices that a client is dead.
PATIENCE = 30.0


class Store(Protocol):
    """Logs by folder, and what a test must know of those who use them."""

    @property
    def name(self) -> str: ...

    @property
    def thorough(self) -> bool:
        """Whether every case of a long test is tried on it (``part_of``)."""
        ...

    def url(self, folder: Path) -> str:
        """The URL of the folder's log, which is empty; the same for the same folder. A folder that is gone has none any more."""
        ...

    def over(self, folder: Path) -> None:
        """The test that asked for the folder's log has ended."""
        ...

    def after_a_death(self, url: str) -> None:
        """Return when nothing that a dead process had sent can reach the log any more, and its leases are ended."""
        ...

    def in_a_commit(self, url: str) -> bool:
        """Whether somebody is writing at this moment, and would keep others waiting if he were stopped."""
        ...

    def edit(self, url: str, sql: str, *values: Any) -> int:
        """Change what is stored behind the log's back; how many rows that were. ``?`` stands for a value."""
        ...


@attrs.frozen
class Memory:
    """Ends with its process."""

    name: str = "memory"
    thorough: bool = True

    def url(self, folder: Path) -> str:
        return "memory://"

    def over(self, folder: Path) -> None:
        """Nobody knew it by its URL."""

    def after_a_death(self, url: str) -> None:
        raise NotImplementedError("it dies too")

    def in_a_commit(self, url: str) -> bool:
        return False

    def edit(self, url: str, sql: str, *values: Any) -> int:
        raise NotImplementedError("it understands no SQL")


@attrs.frozen
class Sqlite:
    """A file in the folder. All who use it are on this machine, so whoever begins ends the leases of the dead."""

    name: str = "sqlite"
    thorough: bool = True

    def url(self, folder: Path) -> str:
        folder.mkdir(parents=True, exist_ok=True)
        return f"sqlite:///{folder / 'log.db'}"

    def over(self, folder: Path) -> None:
        """It stays beside what else is left of the test."""

    def after_a_death(self, url: str) -> None:
        """The operating system has seen to it."""

    def in_a_commit(self, url: str) -> bool:
        import sqlite3

        with closing(sqlite3.connect(urlsplit(url).path, timeout=0.2, isolation_level=None)) as file:
            try:
                file.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return True
            return False

    def edit(self, url: str, sql: str, *values: Any) -> int:
        import sqlite3

        with closing(sqlite3.connect(urlsplit(url).path)) as file, file:
            return file.execute(sql, values).rowcount


@attrs.frozen
class Postgres:
    """A schema in the session's database, whose connections bear its name."""

    schemas: Any
    name: str = "postgresql"
    thorough: bool = USUAL == "postgresql"

    def url(self, folder: Path) -> str:
        folder.mkdir(parents=True, exist_ok=True)
        url = self.schemas.url(folder)
        return f"{url}&application_name={_schema(url)}"

    def over(self, folder: Path) -> None:
        """The schema may be emptied and used again, unless somebody holds on to it: then it stays until the session ends."""
        if not self._connected(self.url(folder), patience=1.0):
            shutil.rmtree(folder, ignore_errors=True)

    def after_a_death(self, url: str) -> None:
        """The server ends what it was asked for before it looks whether anybody is there to hear of it.

        Users of such a log may be on many machines, so that none takes another for dead: leases run out, unless somebody who
        saw the end gives them up.
        """
        connected = self._connected(url, PATIENCE)
        assert not connected, f"still connected to {url}: {connected}"
        if self._rows(url, "SELECT 1 FROM pg_namespace WHERE nspname = %s", _schema(url)):
            with closing(open_log(url, create=False)) as log:
                for owner in filter(is_dead, log.schedule.owners()):
                    log.schedule.evict(owner)

    def in_a_commit(self, url: str) -> bool:
        return bool(self._rows(url, "SELECT 1 FROM pg_stat_activity WHERE application_name = %s AND state <> 'idle'", _schema(url)))

    def edit(self, url: str, sql: str, *values: Any) -> int:
        with self._connection(url) as connection:
            connection.execute(f"SET search_path TO {_schema(url)}".encode())
            return int(connection.execute(sql.replace("?", "%s").encode(), values).rowcount)

    def _connected(self, url: str, patience: float) -> list[Any]:
        """Who is, when so many seconds have passed; returns as soon as nobody is."""
        begun = time.monotonic()
        with self._connection(url) as connection:
            while found := connection.execute("SELECT pid, state, query FROM pg_stat_activity WHERE application_name = %s", [_schema(url)]).fetchall():
                if time.monotonic() - begun > patience:
                    break
                time.sleep(0.005)
            return list(found)

    def _rows(self, url: str, sql: str, *values: Any) -> list[Any]:
        with self._connection(url) as connection:
            return list(connection.execute(sql.encode(), values).fetchall())

    @contextmanager
    def _connection(self, url: str) -> Iterator[Any]:
        import psycopg

        with psycopg.connect(urlsplit(url)._replace(query="").geturl(), autocommit=True) as connection:
            yield connection


def part_of(store: Store, cases: Iterable[T], every: int, first: int = 0) -> list[T]:
    """The cases of a long test that are tried on this store: all of them, or each ``every``-th from the ``first`` on."""
    return list(cases) if store.thorough else list(cases)[first::every]


def _schema(url: str) -> str:
    return parse_qs(urlsplit(url).query)["schema"][0]


@attrs.define
class Usual:
    """Logs for tests to which the store makes no difference; each is over with the test that asked for it."""

    store: Store = attrs.field(factory=Memory)
    _folders: list[Path] = attrs.field(factory=list)

    def url(self) -> str:
        """A log that nobody has used."""
        self._folders.append(Path(tempfile.mkdtemp(prefix="intentlog-")))
        return self.store.url(self._folders[-1])

    def over(self) -> None:
        """The test has ended."""
        for folder in self._folders:
            self.store.over(folder)
            shutil.rmtree(folder, ignore_errors=True)
        self._folders.clear()


#: The session's; ``tests/conftest.py`` gives it its store.
usual = Usual()
