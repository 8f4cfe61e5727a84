"""The stores that the suite runs over. Only their makers tell them apart; no test asks for a name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from intentlog.eventlog.clock import Clock
from intentlog.eventlog.log import EventLog
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.testing import StoreMaker

if TYPE_CHECKING:
    from tests.services.postgres import Databases


def _memory(folder: Path, clock: Clock) -> EventLog:
    return open_log(f"memory://{folder.name}", clock=clock)


def _sqlite(folder: Path, clock: Clock) -> EventLog:
    return open_log(f"sqlite:///{folder}/log.db", clock=clock)


STORES = {
    "memory": StoreMaker("memory", _memory),
    "sqlite": StoreMaker("sqlite", _sqlite, reopen=_sqlite, shared=True, outside_memory=True),
}


@pytest.fixture(scope="session")
def postgres_maker(postgres_server: Databases) -> Iterator[StoreMaker]:
    """Logs in schemas of one database of the shared server."""
    from tests.services.logs import Schemas

    schemas = Schemas(postgres_server)

    def make(folder: Path, clock: Clock) -> EventLog:
        return open_log(schemas.url(folder), clock=clock)

    yield StoreMaker("postgres", make, reopen=make, shared=True, outside_memory=True)
    schemas.close()


@pytest.fixture(params=(*STORES, "postgres"), scope="session")
def maker(request: pytest.FixtureRequest) -> StoreMaker:
    """Each store in turn. The server is started, if need be, by the first test that is to run on it."""
    found = STORES.get(request.param) or request.getfixturevalue("postgres_maker")
    assert isinstance(found, StoreMaker)
    return found
