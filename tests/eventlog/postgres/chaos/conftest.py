"""A server of the test's own, whose commits reach the disk, and a log on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from intentlog.eventlog.opening import open_log
from intentlog.eventlog.postgres import PostgresLog
from tests.services.postgres import NoPostgres, PostgresServer


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """To be stopped, filled and broken."""
    try:
        made = PostgresServer()
    except NoPostgres as reason:
        pytest.skip(str(reason))
    with made:
        yield made.start(fsync=True)


@pytest.fixture
def url(server: PostgresServer) -> str:
    """A log that is made already."""
    made = server.create_database()
    open_log(made).close()
    return made


@pytest.fixture
def log(url: str) -> Iterator[PostgresLog]:
    with closing(open_log(url)) as opened:
        assert isinstance(opened, PostgresLog)
        yield opened
