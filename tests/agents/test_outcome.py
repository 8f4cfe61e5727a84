from __future__ import annotations

from datetime import timedelta

import pytest

from intentlog.agents import errors
from intentlog.agents.facts import Failure, IntentSettled
from intentlog.agents.intents import STATUSES, TIMED_OUT
from intentlog.agents.outcome import EffectResult, Suspend, result_of
from intentlog.agents.run import Intent

KINDS = {
    "ERROR": errors.EffectErrored,
    "REJECTED": errors.EffectRejected,
    "EXPIRED": errors.EffectExpired,
    "CANCELLED": errors.EffectCancelled,
    "UNKNOWN": errors.EffectUnknown,
    "TIMED_OUT": errors.EffectTimedOut,
}


@pytest.mark.parametrize("status", [*STATUSES, TIMED_OUT])
def test_only_an_ok_result_gives_its_value_and_each_other_status_its_own_error(status):
    result = EffectResult("i-1", status, "pay", Failure("ValueError", "no such card"), 1, "re_1")
    if status == "OK":
        assert (True, "re_1", b'"re_1"') == (result.ok, result.value, result.payload)
        return
    assert not result.ok
    for use in (lambda: result.value, lambda: result.payload):
        with pytest.raises(KINDS[status], match=f"pay i-1 ended {status}: ValueError: no such card"):
            use()


def test_a_payload_is_canonical_json_and_bytes_as_they_are():
    assert b'{"a":2,"b":1}' == EffectResult("i", "OK", value={"b": 1, "a": 2}).payload
    assert b"\x00raw" == EffectResult("i", "OK", value=b"\x00raw").payload


def intent(settled: IntentSettled | None = None) -> Intent:
    return Intent("i-1", 0, 0, "pay", {}, b"", 0, "", settled=settled)


def test_an_intent_without_an_outcome_reads_timed_out():
    assert TIMED_OUT == result_of(intent()).status


def test_a_failure_without_a_text_is_told_by_its_type_alone():
    told = str(EffectResult("i-1", "ERROR", "pay", Failure("ReadError", "")).error())
    assert "ended ERROR: ReadError. Look at" in told


def test_an_intents_outcome_is_its_settlement():
    result = result_of(intent(IntentSettled("i-1", "OK", 7, attempts=2)))
    assert ("OK", 7, 2, "pay") == (result.status, result.value, result.attempts, result.tool)


@pytest.mark.parametrize("given, micros", [({}, 9), ({"timeout_ms": 5}, 5_000), ({"timeout": timedelta(seconds=1)}, 1_000_000)])
def test_how_long_a_suspension_waits(given, micros):
    assert micros == Suspend(**given).length(9)


@pytest.mark.parametrize("given", [{"snapshot": "text"}, {"wait": "some"}, {"adapter": 1}])
def test_a_suspension_that_makes_no_sense_is_refused_where_it_is_made(given):
    with pytest.raises((TypeError, ValueError)):
        Suspend(**given)
