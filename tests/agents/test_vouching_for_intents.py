"""What whoever has keys vouches for, on each store: intents that were distrusted, outcomes that nobody signed."""

from __future__ import annotations

from typing import Any

import pytest

from intentlog.agents import facts
from intentlog.agents.errors import RequestRefused
from intentlog.agents.operating import cancel, readmit, standing, vouch
from intentlog.agents.queues import EFFECTS
from intentlog.agents.signing import KeyRing, Signature
from intentlog.eventlog.clock import SECOND
from intentlog.eventlog.log import EventLog
from tests.agents.test_operating import CODEC, STREAM, attempt, due, end, log, record, settle_ok, stage, unheld, written

__all__ = ["log"]

RING = KeyRing({"may": bytes(range(32))})


def distrust_as_found(log: EventLog) -> None:
    """As an effector does."""
    (staged,) = [each for each in log.read(STREAM) if each.type == "intent.staged"]
    record(log, facts.IntentDistrusted("x", "it is not signed", "e", staged.schema, staged.data))


def test_what_a_person_vouches_for_is_in_line_again_with_its_bytes_and_a_signature(log):
    stage(log)
    distrust_as_found(log)
    for number in (1, 2):
        done = readmit(log, "x", RING, by="ada", reason="seen", patience=0.0)
        assert ("STAGED", number, True) == (done.intent.status, done.intent.readmissions, unheld(log))
        fact: Any = CODEC.decode_stored(list(log.read(STREAM))[-1])
        said = (fact.number, fact.by, fact.reason, fact.attempts, fact.schema, fact.payload)
        assert (number, "ada", "seen", 0, done.intent.schema, done.intent.payload) == said
        assert RING.verify_readmission(Signature(fact.key_id, fact.signature), STREAM, *said) is None
        before = written(log)
        with pytest.raises(RequestRefused, match="is STAGED; only one that is DISTRUSTED"):
            readmit(log, "x", RING, by="bob", reason="me, too", patience=0.0)
        assert before == written(log)
        distrust_as_found(log)
    assert "DISTRUSTED" == standing(log, "x").status


def test_nobody_vouches_for_an_intent_while_an_effector_holds_its_key(log):
    stage(log)
    distrust_as_found(log)
    now = log.clock()
    log.schedule.acquire(EFFECTS, [STREAM], "e", now=now, until=now + 60 * SECOND)
    with pytest.raises(RequestRefused, match="an effector is at work on this key"):
        readmit(log, "x", RING, by="ada", reason="seen", patience=0.0)


@pytest.mark.parametrize("change", [settle_ok, cancel])
def test_what_a_person_says_is_signed_in_the_same_append(log, change):
    stage(log)
    change(log, "x", by="ada", patience=0.0, keys=RING)
    settled, signed = list(log.read(STREAM))[-2:]
    fact: Any = CODEC.decode_stored(signed)
    assert ("intent.settled", "outcome.signed", settled.recorded_at) == (settled.type, signed.type, signed.recorded_at)
    assert RING.verify_outcome(Signature(fact.key_id, fact.signature), STREAM, settled.schema, settled.data) is None
    before = written(log)
    assert change(log, "x", by="ada", patience=0.0, keys=RING).duplicate
    assert before == written(log)


def test_an_outcome_is_vouched_for_once_a_key_and_its_stream_is_looked_at_again(log):
    stage(log)
    attempt(log)
    end(log, "OK")
    other = KeyRing({"june": bytes(32)})
    assert [False, True, False] == [vouch(log, STREAM, ring, intent_id="x", by="ada") for ring in (RING, RING, other)]
    assert ([2], True) == ([sum(each.type == "outcome.signed" for each in log.read(STREAM))], due(log))


def test_an_outcome_that_was_signed_when_it_was_written_is_not_signed_again_with_that_key(log):
    stage(log)
    settle_ok(log, "x", by="ada", patience=0.0, keys=RING)
    before = written(log)
    assert [True, True] == [vouch(log, STREAM, RING, intent_id="x", by="ada") for _ in range(2)]
    assert before == written(log)


def test_a_forged_signature_by_the_name_of_a_key_keeps_nobody_from_vouching(log):
    stage(log)
    settle_ok(log, "x", by="ada", patience=0.0)
    record(log, facts.OutcomeSigned("x", RING.signing_id, b"forged"))
    assert [False, True] == [vouch(log, STREAM, RING, intent_id="x", by="ada") for _ in range(2)]
