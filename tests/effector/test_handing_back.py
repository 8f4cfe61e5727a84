"""How a key goes back: with the append of its last outcome, or apart from it, and never leaving a lane behind."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from intentlog.agents import facts
from intentlog.agents.appends import EFFECTS
from intentlog.agents.committer import Committer
from intentlog.agents.intents import fact_id
from intentlog.eventlog.clock import SECOND, system_clock
from intentlog.eventlog.versions import ANY
from tests.effector.test_effector import CODEC, Outside


def test_a_lease_that_is_lost_while_its_key_is_handed_back_leaves_no_lane_behind():
    """A cancellation may meet a lane in its last wait; the effector must still become idle."""
    with Outside() as outside:
        schedule = outside.log.schedule
        release, returning, lost = schedule.release, threading.Event(), threading.Event()

        def slow_release(claims: Any, *more: Any, **options: Any) -> None:
            returning.set()
            assert lost.wait(5)
            release(claims, *more, **options)

        schedule.release = slow_release  # type: ignore[method-assign]
        renew = schedule.renew

        def renewed(claims: Any, **options: Any) -> Any:
            if not returning.is_set():
                return renew(claims, **options)
            threading.Timer(0.05, lost.set).start()  # the lane has been told by then
            return list(claims)

        schedule.renew = renewed  # type: ignore[method-assign]

        def somebody_else() -> str:  # settles first, so that the key is handed back apart from an outcome
            fact = facts.IntentSettled("x", "CANCELLED", settled_by="a person")
            outside.log.append("a-k", [CODEC.stage(fact, event_id=fact_id("settled", "x"))], ANY)
            return "mine"

        outside.do = {"x": somebody_else}
        outside.stage("x")

        async def serve() -> int:
            committer = Committer(outside.log)
            effector = outside.effector(committer, lease=0.1)
            running = asyncio.create_task(effector.run())
            async with asyncio.timeout(5):
                while not await effector.idle():  # noqa: ASYNC110 - it is on the log
                    await asyncio.sleep(0.005)
            effector.stop()
            await running
            committer.close()
            return effector.active

        assert 0 == asyncio.run(serve())
        assert (["CANCELLED"], True) == (outside.statuses(), lost.is_set())


def test_the_last_outcome_of_a_key_hands_it_back_in_the_same_append(log_url):
    outside = Outside(log_url)
    schedule = outside.log.schedule
    released: list[Any] = []
    schedule.release = released.append  # type: ignore[method-assign, assignment]
    outside.stage("x", "y")
    (effector,) = outside.serve()
    assert (["OK", "OK"], [], 0) == (outside.statuses(), released, effector.counts.stale)
    now = system_clock()
    assert ["a-k"] == list(schedule.acquire(EFFECTS, ["a-k"], "next", now=now, until=now + SECOND))
    outside.log.close()
