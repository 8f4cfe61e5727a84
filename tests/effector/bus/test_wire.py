"""What a message holds, and everything that is none."""

from __future__ import annotations

import hashlib
import uuid

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intentlog.agents import facts
from intentlog.agents.signing import KeyRing
from intentlog.effector.bus import BadMessage, Message, NewerMessage, Outgoing, wire
from intentlog.effector.bus.wire import Envelope
from intentlog.effector.outbox import Pending
from intentlog.effector.phases import Outcome
from intentlog.eventlog.clock import system_clock
from intentlog.eventlog.events import StoredEvent
from tests.effector.bus.scene import CODEC, encoded, staged

KEYS = KeyRing({"may": b"m" * 32})
OTHERS = KeyRing({"june": b"j" * 32})


def delivered(message: Outgoing, offset: int = 7) -> Message:
    return Message(message.key, message.value, message.headers, 0, offset)


def changed(message: Outgoing, **fields: object) -> Message:
    """The same with other fields in its envelope."""
    envelope = CODEC.decode_value(message.value, Envelope)
    return delivered(attrs.evolve(message, value=CODEC.encode_value(attrs.evolve(envelope, **fields), Envelope)))  # type: ignore[arg-type]


def test_an_intent_comes_back_as_it_stood_on_the_log():
    fact = facts.IntentStaged(str(uuid.uuid4()), 3, 5, "work", {"name": "x"}, b"d" * 32, system_clock() + 1)
    name, schema, payload = CODEC.encode(fact)
    signature = KEYS.sign_intent("a-k", schema, payload)
    event = StoredEvent(11, "a-k", 2, b"e" * 16, name, schema, payload, 99, b"c" * 16, None)
    found = wire.decode_intent(CODEC, delivered(wire.encode_intent(CODEC, event, signature)))
    assert isinstance(found, Pending)
    assert ("a-k", 7, b"e" * 16, b"c" * 16, fact, 99) == (found.stream, found.position, found.event_id, found.correlation, found.intent, found.staged_at)
    assert (schema, payload, signature, 0) == (found.schema, found.data, found.signature, found.attempts)


def test_equal_intents_are_equal_bytes_and_the_key_is_the_stream():
    fact = facts.IntentStaged("i-1", 3, 5, "work", {"b": 1, "a": 2}, b"", 9)
    name, schema, payload = CODEC.encode(fact)
    event = StoredEvent(11, "a-k", 2, b"e" * 16, name, schema, payload, 99, None, None)
    first, second = (wire.encode_intent(CODEC, event) for _ in range(2))
    digest = hashlib.sha256(first.value).hexdigest().encode()
    assert (first, "a-k", {"type": b"intent.staged", "sha256": digest}) == (second, first.key, first.headers)


def test_an_unsigned_intent_has_no_signature():
    found = wire.decode_intent(CODEC, delivered(staged()[1]))
    assert isinstance(found, Pending)
    assert found.signature is None


GOOD = staged()[1]
NOT_ASKED = facts.Failure("x", "y")
BAD: dict[str, Message] = {
    "nothing": delivered(Outgoing("a-k", b"")),
    "text": delivered(Outgoing("a-k", b"hello")),
    "noise": delivered(Outgoing("a-k", bytes(range(256)))),
    "a number": delivered(Outgoing("a-k", b"\x01")),
    "a deep nest": delivered(Outgoing("a-k", b"\x91" * 100_000 + b"\x01")),
    "a huge announcement": delivered(Outgoing("a-k", b"\xdf\xff\xff\xff\xff")),
    "cut short": delivered(attrs.evolve(GOOD, value=GOOD.value[:-1])),
    "cut in the middle": delivered(attrs.evolve(GOOD, value=GOOD.value[: len(GOOD.value) // 2])),
    "one byte too many": delivered(attrs.evolve(GOOD, value=GOOD.value + b"\x00")),
    "too large": delivered(attrs.evolve(GOOD, value=GOOD.value + b"\x00" * wire.MOST_BYTES)),
    "no key": delivered(attrs.evolve(GOOD, key=None)),
    "another stream's key": delivered(attrs.evolve(GOOD, key="a-other")),
    "no stream": changed(attrs.evolve(GOOD, key="nonsense"), stream="nonsense"),
    "another type": changed(GOOD, type="intent.settled"),
    "a type that nobody knows": changed(GOOD, type="intent.dreamt"),
    "a payload of another type": changed(GOOD, type="approval.requested"),
    "a payload that is none": changed(GOOD, payload=b"\xc1"),
    "version 0": changed(GOOD, version=0),
    "schema 0": changed(GOOD, schema=0),
    "a short event id": changed(GOOD, event_id=b"e"),
    "an empty intent id": delivered(encoded(facts.IntentStaged("", 0, 0, "work", {}, b"", 1), "a-k")),
    "an endless intent id": delivered(encoded(facts.IntentStaged("i" * 401, 0, 0, "work", {}, b"", 1), "a-k")),
    "an intent id with a NUL": delivered(encoded(facts.IntentStaged("i\0", 0, 0, "work", {}, b"", 1), "a-k")),
    "a type that is no text": delivered(Outgoing("a-k", CODEC.encode_value({"version": 1, "type": 7}, dict[str, object]))),
}
NEWER = {
    "a newer envelope": changed(GOOD, version=2),
    "a newer envelope of another shape": delivered(Outgoing("a-k", CODEC.encode_value({"version": 3, "more": True}, dict[str, object]))),
    "a newer payload": changed(GOOD, schema=99),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_intent_is_refused_and_nothing_else_happens(case: str):
    with pytest.raises(BadMessage) as refused:
        wire.decode_intent(CODEC, BAD[case])
    assert not isinstance(refused.value, NewerMessage)
    assert len(str(refused.value)) < 1000


@pytest.mark.parametrize("case", NEWER)
def test_what_a_newer_release_wrote_is_called_that(case: str):
    with pytest.raises(NewerMessage, match="eploy"):
        wire.decode_intent(CODEC, NEWER[case])


def pending(message: Outgoing = GOOD) -> Pending:
    found = wire.decode_intent(CODEC, delivered(message))
    assert isinstance(found, Pending)
    return found


def test_a_result_is_a_settlement_that_says_which_intent_it_answers():
    value = wire.encode_result(CODEC, pending(), Outcome("ERROR", failure=facts.Failure("Odd", "so")), "me", 5)
    envelope, fact = wire.decode_result(CODEC, value)
    assert ("a-k", wire.intent_digest(pending()), 5, None) == (envelope.stream, envelope.answers, envelope.recorded_at, wire.signature_of(envelope))
    assert facts.IntentSettled(pending().intent.intent_id, "ERROR", None, facts.Failure("Odd", "so"), 0, "me") == fact


def test_an_outcome_is_signed_and_no_changed_byte_other_stream_or_intents_signature_passes_for_it():
    value = wire.encode_result(CODEC, pending(), Outcome("OK", "x"), "me", 5, KEYS)
    envelope, fact = wire.decode_result(CODEC, value)
    assert None is wire.verify_result(KEYS, envelope)
    _, _, other = CODEC.encode(attrs.evolve(fact, status="ERROR"))  # type: ignore[misc]
    forged = KEYS.sign_intent(envelope.stream, envelope.schema, envelope.payload)
    for wrong in (
        attrs.evolve(envelope, payload=other),
        attrs.evolve(envelope, stream="a-other"),
        attrs.evolve(envelope, schema=2),
        attrs.evolve(envelope, signature=forged.signature),
        attrs.evolve(envelope, key_id="", signature=b""),
    ):
        assert wire.verify_result(KEYS, wrong)
    assert "june" in str(wire.verify_result(OTHERS, envelope))


@pytest.mark.parametrize("value", [b"", b"junk", GOOD.value])
def test_what_is_no_result_is_refused(value: bytes):
    with pytest.raises(BadMessage):
        wire.decode_result(CODEC, value)


@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=8), st.integers(0, 400))
def test_whatever_becomes_of_its_bytes_a_message_is_an_intent_or_is_refused(changes, cut):
    value = bytearray(GOOD.value)
    for place, byte in changes:
        value[place % len(value)] = byte
    for each in (bytes(value), bytes(value[:-cut] if cut else value), bytes(value[cut:])):
        for read in (lambda found: wire.decode_intent(CODEC, delivered(Outgoing("a-k", found))), lambda found: wire.decode_result(CODEC, found)):
            try:
                read(each)
            except BadMessage:
                continue


@given(st.binary(max_size=300))
def test_noise_is_refused(noise):
    with pytest.raises(BadMessage):
        wire.decode_intent(CODEC, delivered(Outgoing("a-k", noise)))
