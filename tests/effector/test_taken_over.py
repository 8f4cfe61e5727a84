"""A key that somebody else took over in the middle of an intent: the lease is lost, whatever the log refuses first."""

from __future__ import annotations

from typing import Any

import pytest

from intentlog.agents import facts
from intentlog.agents.appends import EFFECTS
from intentlog.agents.intents import attempt_event_id, settlement_event_id
from intentlog.eventlog.clock import SECOND, system_clock
from intentlog.eventlog.versions import ANY
from tests.effector.test_effector import CODEC, Outside


@pytest.fixture
def outside(log_url: str) -> Any:
    with Outside(log_url) as made:
        yield made


@pytest.mark.parametrize("settles", [False, True], ids=["it only has the key", "it has settled"])
def test_a_key_that_somebody_took_over_counts_as_lost_whatever_the_other_has_written(outside, settles):
    """S-6.4: the store refuses a second outcome for the first one's sake, whoever holds the key."""

    def robbed() -> str:
        outside.log.schedule.evict("e")
        now = system_clock()
        assert outside.log.schedule.acquire(EFFECTS, ["a-k"], "other", now=now, until=now + SECOND // 5)
        if settles:
            fact = facts.IntentSettled("x", "UNKNOWN", attempts=1, settled_by="other")
            outside.log.append("a-k", [CODEC.stage(fact, event_id=settlement_event_id("x", 1))], ANY)
        return "too late"

    outside.do = {"x": robbed}
    outside.stage("x", "y")
    (effector,) = outside.serve()
    assert (["UNKNOWN", "OK"], ["x", "y"]) == (outside.statuses(), outside.begun)
    assert (1, 0) == (effector.counts.stale, effector.counts.refused)


def test_an_attempt_that_whoever_took_the_key_over_has_made_as_well_counts_as_lost(outside):
    def robbed(name: str, stream: str) -> None:
        if name == "claimed" and not outside.of(facts.IntentAttempted):
            outside.log.schedule.evict("e")
            now = system_clock()
            assert outside.log.schedule.acquire(EFFECTS, ["a-k"], "other", now=now, until=now + SECOND // 5)
            outside.log.append("a-k", [CODEC.stage(facts.IntentAttempted("x", 1, "other", 9), event_id=attempt_event_id("x", 1))], ANY)

    outside.stage("x", tool="again")
    (effector,) = outside.serve(boundary=robbed)
    assert (["OK"], ["x"], 2) == (outside.statuses(), outside.begun, len(outside.of(facts.IntentAttempted)))
    assert (1, 0) == (effector.counts.stale, effector.counts.refused)
