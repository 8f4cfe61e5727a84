"""The stores that are measured: each gives fresh places to logs and to rivals. No bar module knows which one it has."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Final, Protocol

from tests.services.postgres import NoPostgres, PostgresServer


class NotHere(Exception):
    """The store cannot be measured on this machine; the message says why, and the way out."""


class Store(Protocol):
    """Places by label; the same label is the same place."""

    name: str

    def log(self, label: str) -> str:
        """The URL of a log; there is nothing behind it when the label is new."""
        ...

    def place(self, label: str) -> str:
        """Where a rival keeps its own: the path of an empty folder, or the URL of an empty database."""
        ...

    def about(self) -> dict[str, Any]:
        """What the figures depend on besides the code."""
        ...

    def close(self) -> None:
        """Remove what was made."""
        ...


class Sqlite:
    """Files below ``folder``."""

    name = "SQLite"

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "sqlite"
        self._folder.mkdir()

    def log(self, label: str) -> str:
        return f"sqlite:///{self._folder / label}.db"

    def place(self, label: str) -> str:
        place = self._folder / label
        place.mkdir(exist_ok=True)
        return str(place)

    def about(self) -> dict[str, Any]:
        return {}

    def close(self) -> None:
        shutil.rmtree(self._folder)


class Postgresql:
    """Databases of a server of our own, as it is installed: fsync on, its settings those of the package but for the number of connections.

    Its data stand in the folder for temporary files, because the server's account has to reach them.
    """

    name = "PostgreSQL"

    def __init__(self, folder: Path) -> None:
        try:
            self._server = PostgresServer()
        except NoPostgres as missing:
            raise NotHere(str(missing)) from missing
        self._server.start(fsync=True)
        self._places: dict[str, str] = {}

    def log(self, label: str) -> str:
        return self.place(label)

    def place(self, label: str) -> str:
        if label not in self._places:
            self._places[label] = self._server.create_database()
        return self._places[label]

    def about(self) -> dict[str, Any]:
        import psycopg

        with psycopg.connect(self._server.url("postgres")) as connection:
            version = connection.info.server_version
            found = {name: connection.execute(f"SHOW {name}").fetchone() for name in ("fsync", "synchronous_commit")}
        if {value for row in found.values() if row for value in row} != {"on"}:
            raise RuntimeError(f"the server does not flush its commits: {found}")
        return {"postgresql": f"{version // 10_000}.{version % 10_000}"}

    def close(self) -> None:
        self._server.close()


STORES: Final[dict[str, type[Sqlite | Postgresql]]] = {"sqlite": Sqlite, "postgresql": Postgresql}
"""By the names that ``--store`` takes."""
