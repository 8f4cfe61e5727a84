"""An attempt that takes so long to record that its intent is past its deadline."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from intentlog.eventlog.clock import SECOND
from intentlog.eventlog.errors import LogUnavailable
from tests.effector.service.test_troubles import serving, stopped, until
from tests.effector.test_effector import Outside


@pytest.mark.parametrize("answers", [False, True], ids=["it is away", "it is slow"])
def test_an_attempt_that_the_store_took_only_after_the_deadline_is_not_made(monkeypatch, answers: bool):
    """S-6.3: the intent was in time when it was taken up, and the outage made it late."""
    with Outside() as outside:
        append, begun = outside.log.append_batch, time.monotonic()

        def unreachable(requests: Any) -> Any:
            if answers:
                time.sleep(max(0.0, begun + 1.2 - time.monotonic()))
            elif time.monotonic() < begun + 1.2:
                raise LogUnavailable("no route")
            return append(requests)

        outside.stage("x", "y", ttl=SECOND // 2)
        outside.stage("z")
        monkeypatch.setattr(outside.log, "append_batch", unreachable)
        monkeypatch.setattr("intentlog.agents.committer._TRIES", 2)

        async def run() -> None:
            effector, committer = serving(outside)
            running = asyncio.create_task(effector.run())
            await until(lambda: len(outside.statuses()) == 3)
            await stopped(effector, committer, running)

        asyncio.run(run())
        assert ("EXPIRED", "OK") == tuple(outside.statuses()[1:])
        assert outside.statuses()[0] in ("EXPIRED", "UNKNOWN")
        assert ["z"] == outside.begun
