"""A log in a database of its own, a second object on it, and a session beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from intentlog.eventlog.opening import open_log
from intentlog.eventlog.postgres import PostgresLog
from tests.eventlog.postgres_reading.helping import Session


@pytest.fixture
def url(postgres_url: str) -> str:
    return f"{postgres_url}?schema=readings"


@pytest.fixture
def log(url: str) -> Iterator[PostgresLog]:
    with closing(open_log(url)) as opened:
        assert isinstance(opened, PostgresLog)
        yield opened


@pytest.fixture
def other(url: str, log: PostgresLog) -> Iterator[PostgresLog]:
    """The same log as another process has it."""
    with closing(open_log(url)) as opened:
        assert isinstance(opened, PostgresLog)
        yield opened


@pytest.fixture
def psql(postgres_url: str, log: PostgresLog) -> Iterator[Session]:
    """Somebody who works in the log's schema by hand, in autocommit mode."""
    with psycopg.connect(postgres_url, autocommit=True, options="-c search_path=readings", application_name="somebody's psql") as session:
        yield session
