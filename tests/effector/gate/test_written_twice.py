"""A staging that somebody writes to its own stream a second time, when it is over: signed, it is authentic, and still nothing is done again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from intentlog.agents import facts
from intentlog.agents.intents import attempt_event_id, fact_id
from intentlog.agents.signing import KeyRing, verifier
from intentlog.eventlog.clock import SECOND
from intentlog.eventlog.log import EventLog
from intentlog.eventlog.versions import ANY
from tests.effector.service.test_troubles import serving, stopped, until
from tests.effector.test_effector import CODEC, Outside
from tests.effector.test_signed import NEW_ID, Shop

KEYS = KeyRing({"k": bytes(range(32))})


def written_again(log: EventLog, stream: str, *kinds: str) -> int:
    """Write these events of a stream once more, under ids of their own; how many those were."""
    again = [CODEC.stage(CODEC.decode_stored(each), event_id=NEW_ID()) for each in log.read(stream) if each.type in kinds]
    log.append(stream, again, ANY)
    return len(again)


def test_a_signed_pair_that_is_replayed_on_its_own_stream_after_its_outcome_drives_nothing():
    """Show 3: no call, no attempt, no outcome, and the run ends."""
    shop, trusting = Shop("memory://"), verifier("require", KEYS)
    shop.stage(KEYS)
    shop.serve(keys=KEYS, verifies=trusting)
    assert 4 == written_again(shop.log, "orders-ann", "intent.staged", "intent.signed")
    last = shop.log.last_position()
    process = shop.serve(keys=KEYS, verifies=trusting)
    assert ([5, 6], []) == (shop.paid, list(shop.log.read_all(after=last)))
    assert (0, 2) == (process._effector.counts.attempts, process._effector.counts.refused)
    shop.log.close()


def carried_out(outside: Outside) -> None:
    outside.serve()


def interrupted(outside: Outside) -> None:
    attempt = facts.IntentAttempted("x", 1, "somebody", 1)
    outside.log.append("a-k", [CODEC.stage(attempt, event_id=attempt_event_id("x", 1))], ANY)
    outside.serve()


def withdrawn(outside: Outside) -> None:
    fact = facts.IntentSettled("x", "CANCELLED", settled_by="a person")
    outside.log.append("a-k", [CODEC.stage(fact, event_id=fact_id("begun", "x"))], ANY)


ENDS: dict[str, tuple[str, str, int, Callable[[Outside], None]]] = {
    "carried out": ("OK", "work", 3600, carried_out),
    "carried out by an idempotent tool": ("OK", "again", 3600, carried_out),
    "interrupted": ("UNKNOWN", "work", 3600, interrupted),
    "withdrawn": ("CANCELLED", "work", 3600, withdrawn),
    "expired": ("EXPIRED", "work", -1, carried_out),
}


@pytest.mark.parametrize("case", ENDS)
def test_whatever_its_outcome_was_it_is_refused_and_counted_and_its_key_goes_on(case: str):
    status, tool, ttl, end = ENDS[case]
    with Outside() as outside:
        outside.stage("x", tool=tool, ttl=ttl * SECOND)
        end(outside)
        begun = list(outside.begun)
        assert 1 == written_again(outside.log, "a-k", "intent.staged")
        outside.stage("y", tool=tool)
        outside.stage("z", key="other")

        async def run() -> int:
            effector, committer = serving(outside)
            running = asyncio.create_task(effector.run())
            await until(lambda: outside.statuses()[1:] == ["OK"] and outside.statuses("other") == ["OK"])
            await until(lambda: effector.open == 0)
            await stopped(effector, committer, running)
            return effector.counts.refused

        assert 1 == asyncio.run(run())
        assert ([status, "OK"], sorted([*begun, "y", "z"])) == (outside.statuses(), sorted(outside.begun))
