"""Each store once, as a log to put recorders over."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from intentlog.eventlog.log import EventLog
from intentlog.eventlog.opening import open_log


@pytest.fixture(params=["memory", "sqlite"])
def log(request, tmp_path) -> Iterator[EventLog]:
    opened = open_log("memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/log.db")
    yield opened
    opened.close()
