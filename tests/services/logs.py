"""Event logs in a shared PostgreSQL, one schema each. A schema is made in some 40 ms, so one whose test is over is emptied and used again."""

from __future__ import annotations

import threading
from pathlib import Path

import psycopg

from intentlog.eventlog.postgres.schema import TABLES
from tests.services.postgres import Databases


class Schemas:
    """A database of its own, whose schemas belong to folders: the log of a folder that is gone is over."""

    def __init__(self, databases: Databases) -> None:
        self._databases = databases
        self._database = databases.create_database()
        self._of: dict[Path, str] = {}
        self._made = 0
        self._lock = threading.Lock()

    def url(self, folder: Path) -> str:
        """The URL of the folder's log; the same for the same folder."""
        with self._lock:
            schema = self._of.get(folder)
            if schema is None:
                schema = self._of[folder] = self._emptied() or self._new()
        return f"{self._database}?schema={schema}"

    def close(self) -> None:
        """Drop all of them."""
        self._databases.drop_database(self._database)

    def _new(self) -> str:
        self._made += 1
        return f"log_{self._made}"

    def _emptied(self) -> str | None:
        over = next((folder for folder in self._of if not folder.exists()), None)
        if over is None:
            return None
        schema = self._of.pop(over)
        tables = ", ".join(f"{schema}.{table}" for table in TABLES if table != "meta")
        with psycopg.connect(self._database, autocommit=True) as connection:
            connection.execute(f"TRUNCATE {tables} RESTART IDENTITY".encode())
        return schema
