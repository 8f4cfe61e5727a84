"""The stores that the suite runs over. Only their makers tell them apart; no test asks for a name."""

from __future__ import annotations

from pathlib import Path

import pytest

from intentlog.eventlog.clock import Clock
from intentlog.eventlog.log import EventLog
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.testing import StoreMaker


def _memory(folder: Path, clock: Clock) -> EventLog:
    return open_log(f"memory://{folder.name}", clock=clock)


def _sqlite(folder: Path, clock: Clock) -> EventLog:
    return open_log(f"sqlite:///{folder}/log.db", clock=clock)


STORES = (
    StoreMaker("memory", _memory),
    StoreMaker("sqlite", _sqlite, reopen=_sqlite, shared=True, outside_memory=True),
)


@pytest.fixture(params=STORES, ids=lambda maker: maker.name, scope="session")
def maker(request: pytest.FixtureRequest) -> StoreMaker:
    """Each store in turn."""
    assert isinstance(request.param, StoreMaker)
    return request.param
