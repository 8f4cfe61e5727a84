"""Each store once, as a log to put recorders over."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from intentlog.eventlog.log import EventLog
from intentlog.eventlog.testing.maker import StoreMaker, fresh


@pytest.fixture
def log(maker: StoreMaker) -> Iterator[EventLog]:
    with fresh(maker) as opened:
        yield opened
