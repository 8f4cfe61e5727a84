"""Old events are upcast whenever they are read (S-8.3), and a chain with a gap is found before anything is read."""

from __future__ import annotations

from typing import Any

import attrs
import msgspec
import pytest

from intentlog.eventlog.codec import Codec
from intentlog.eventlog.errors import NewerSchema, RegistrationError, Undecodable, UnknownEventType
from intentlog.eventlog.events import StoredEvent
from intentlog.eventlog.registry import EventRegistry, event
from intentlog.eventlog.upcasting import upcasts

OLDEST = msgspec.msgpack.encode({"order": "o-1", "amount": 42})


@event("refund.asked", version=3)
class RefundAsked:
    order_id: str
    cents: int
    reason: str


@upcasts("refund.asked", from_version=1)
def rename_order(fields: dict[str, Any]) -> dict[str, Any]:
    return {"order_id": fields["order"], "cents": fields["amount"] * 100}


@upcasts("refund.asked", from_version=2)
def add_reason(fields: dict[str, Any]) -> dict[str, Any]:
    return {**fields, "reason": "unknown"}


@upcasts("refund.asked", from_version=3)
def beyond(fields: dict[str, Any]) -> dict[str, Any]:
    return fields


def stored(type: str, schema: int, blob: bytes) -> StoredEvent:
    return StoredEvent(1, "refunds-acct-42", 7, bytes(16), type, schema, blob, 0, None, None)


@pytest.fixture
def codec() -> Codec:
    return Codec(EventRegistry(RefundAsked, upcasters=[add_reason, rename_order]))


def test_the_chain_runs_from_the_version_the_bytes_were_written_under(codec: Codec):
    today = RefundAsked("o-1", 4200, "unknown")
    assert today == codec.decode("refund.asked", 1, OLDEST)
    assert today == codec.decode("refund.asked", 2, msgspec.msgpack.encode({"order_id": "o-1", "cents": 4200}))
    assert today == codec.decode_stored(stored(*codec.encode(today)))


def test_a_registry_on_top_of_another_has_its_upcasters(codec: Codec):
    assert codec.decode("refund.asked", 1, OLDEST) == Codec(EventRegistry(base=codec.registry)).decode("refund.asked", 1, OLDEST)


def test_a_decoder_is_resolved_once(codec: Codec):
    assert codec.decoder("refund.asked", 1) is codec.decoder("refund.asked", 1)


def test_newer_bytes_are_a_typed_error_naming_stream_and_version(codec: Codec):
    with pytest.raises(NewerSchema, match=r"refunds-acct-42 version 7: refund\.asked was written under schema version 4") as caught:
        codec.decode_stored(stored("refund.asked", 4, OLDEST))
    assert ("refunds-acct-42", 7) == (caught.value.stream, caught.value.version)


def test_an_unknown_type_is_a_typed_error_naming_stream_and_version(codec: Codec):
    with pytest.raises(UnknownEventType, match=r"refunds-acct-42 version 7: No class is registered for the event type 'refund\.paid'"):
        codec.decode_stored(stored("refund.paid", 1, OLDEST))


def test_a_schema_below_one_does_not_exist(codec: Codec):
    with pytest.raises(Undecodable, match="versions begin with 1"):
        codec.decode("refund.asked", 0, OLDEST)


@pytest.mark.parametrize(
    ("upcasters", "complaint"),
    [
        ([], "from version 1, 2; write @upcasts"),
        ([rename_order], "from version 2; write @upcasts"),
        ([add_reason], "from version 1; write @upcasts"),
        ([rename_order, add_reason, beyond], "raise the class to version 4"),
    ],
)
def test_a_chain_with_a_gap_is_refused_when_the_codec_is_made(upcasters: list[Any], complaint: str):
    with pytest.raises(RegistrationError, match=complaint):
        Codec(EventRegistry(RefundAsked, upcasters=upcasters))


def test_an_upcaster_of_no_class_is_refused():
    with pytest.raises(RegistrationError, match=r"No class is registered for refund\.asked"):
        EventRegistry(upcasters=[rename_order]).freeze()


def test_a_step_has_one_upcaster():
    @upcasts("refund.asked", from_version=1)
    def other(fields: dict[str, Any]) -> dict[str, Any]:
        return fields

    registry = EventRegistry(RefundAsked, upcasters=[rename_order, rename_order])
    with pytest.raises(RegistrationError, match=r"upcast by .*rename_order already"):
        registry.add_upcaster(other)


def test_a_function_without_the_mark_is_refused():
    with pytest.raises(RegistrationError, match="put @upcasts"):
        EventRegistry(RefundAsked, upcasters=[lambda fields: fields])
    with pytest.raises(RegistrationError, match="plain function"):
        upcasts("x", from_version=1)(dict)
    with pytest.raises(RegistrationError, match="at least 1"):
        upcasts("x", from_version=0)


@pytest.mark.parametrize(
    ("function", "complaint"),
    [
        (lambda fields: fields["gone"], "raised KeyError: 'gone'"),
        (lambda fields: None, "must return a dict of fields, not None"),
        (lambda fields: {"x": "text"}, r"x\.y \(schema 1\)\.x: expected int, got str 'text'"),
        (lambda fields: {}, r"x\.y \(schema 1\)\.x: it is missing"),
    ],
)
def test_an_upcaster_that_fails_is_named(function: Any, complaint: str):
    cls = attrs.make_class("X", {"x": attrs.field(type=int)}, frozen=True)
    codec = Codec(EventRegistry(event("x.y", version=2)(cls), upcasters=[upcasts("x.y", from_version=1)(function)]))
    with pytest.raises(Undecodable, match=complaint):
        codec.decode("x.y", 1, b"\x80")
