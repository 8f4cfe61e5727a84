"""What would not come back exactly is refused, naming the field (S-8.4); bytes that do not fit are refused, naming it too."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta, tzinfo
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Any, Literal

import attrs
import msgspec
import pytest

from intentlog.eventlog.codec import Codec
from intentlog.eventlog.errors import RegistrationError, Undecodable, Unencodable
from intentlog.eventlog.registry import EventRegistry, event
from tests.eventlog.values import Line, Tree


class Word(StrEnum):
    A = "a"


class Colour(Enum):
    RED = "red"


class Number(int):
    pass


class Odd(tzinfo):
    def utcoffset(self, moment: datetime | None) -> timedelta:
        return timedelta(0)


class Later(datetime):
    pass


@attrs.frozen
class Special(Line):
    pass


@event("refund.asked", version=1)
class RefundAsked:
    order_id: str
    lines: tuple[Line, ...] = ()
    ratios: list[float] = attrs.Factory(list)
    on: bool = False
    at: datetime | None = None
    extra: Any = None
    by_colour: dict[Colour, int] = attrs.Factory(dict)
    ids: frozenset[int] = frozenset()
    kind: Literal["a", 1] = "a"
    amount: float = 0.0


@event("other")
class Other:
    x: int


CODEC = Codec(EventRegistry(RefundAsked))
DEEP: Any = []
for _ in range(3000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("changes", "field", "reason"),
    [
        ({"order_id": 3}, "order_id", "expected str, got int 3"),
        ({"order_id": Word.A}, "order_id", "expected str, got Word"),
        ({"order_id": None}, "order_id", "expected str, got None"),
        ({"lines": (Line("a"), Line("b"), Line("c", True))}, "lines[2].cents", "expected int, got bool True"),
        ({"lines": (Line("a", Number(3)),)}, "lines[0].cents", "expected int, got Number"),
        ({"lines": (Line("a", 1.0),)}, "lines[0].cents", "expected int, got float 1.0"),  # type: ignore[arg-type]
        ({"lines": [Line("a")]}, "lines", "expected tuple"),
        ({"lines": (Special("a"),)}, "lines[0]", "expected Line, got Special"),
        ({"ratios": [1.0, 2]}, "ratios[1]", "expected float, got int 2"),
        ({"ratios": (1.0,)}, "ratios", "expected list"),
        ({"on": 1}, "on", "expected bool, got int 1"),
        ({"at": datetime(2024, 1, 1, tzinfo=Odd())}, "at", "time zone"),  # type: ignore[abstract]
        ({"at": Later(2024, 1, 1)}, "at", "expected datetime, got Later"),
        ({"extra": {"a": [1, {"b": bytearray(b"x")}]}}, "extra['a'][1]['b']", "bytearray"),
        ({"extra": {3: object}}, "extra[3]", "would not come back"),
        ({"extra": {Word.A: 1}}, "extra[key <Word.A: 'a'>]", "would not come back"),
        ({"extra": (1, Line("a"))}, "extra[1]", "would not come back"),
        ({"extra": [datetime(2024, 1, 1, tzinfo=Odd())]}, "extra[0]", "time zone"),  # type: ignore[abstract]
        ({"by_colour": {"red": 1}}, "by_colour[key]", "expected Colour, got str 'red'"),
        ({"by_colour": {Colour.RED: "x"}}, "by_colour[<Colour.RED: 'red'>]", "expected int"),
        ({"ids": {1}}, "ids", "expected frozenset"),
        ({"ids": frozenset({"x"})}, "ids{…}", "expected int"),
        ({"kind": True}, "kind", "expected Literal"),
        ({"amount": 10**400}, "amount", "expected float"),
        ({"amount": True}, "amount", "expected float, got bool True"),
    ],
)
def test_a_value_that_would_not_come_back_is_refused_naming_the_field(changes: dict[str, Any], field: str, reason: str):
    with pytest.raises(Unencodable) as caught:
        CODEC.encode(RefundAsked(**{"order_id": "o-1", **changes}))
    assert f"refund.asked.{field}" == caught.value.field
    assert f"refund.asked.{field} would not come back exactly: " in str(caught.value)
    assert reason in str(caught.value)


def test_a_nest_of_3000_levels_is_refused_with_a_clear_error():
    with pytest.raises(Unencodable, match="nested deeper than 100 levels") as caught:
        CODEC.encode(RefundAsked("o-1", extra=DEEP))
    assert caught.value.field.startswith("refund.asked.extra[0][0]")


def test_a_class_nested_3000_levels_in_itself_is_refused_with_a_clear_error():
    tree = Tree("0")
    for _ in range(3000):
        tree = Tree("x", (tree,))
    with pytest.raises(Unencodable, match="nested deeper than 100 levels"):
        CODEC.encode_value(tree, Tree)


def test_bytes_nested_too_deep_are_refused_with_a_clear_error():
    with pytest.raises(Undecodable, match="nested too deep"):
        CODEC.tree(b"\x91" * 100_000 + b"\xc0")


def test_what_fits_at_the_limit_is_read_from_deep_inside_a_program():
    value: Any = 1
    for _ in range(100):
        value = (value,)
    blob = CODEC.encode_value(value, Any)

    def deeper(levels: int) -> Any:
        return CODEC.decode_value(blob, Any) if levels == 0 else deeper(levels - 1)

    assert value == deeper(300)


def test_an_unregistered_class_is_refused_with_the_way_out():
    with pytest.raises(RegistrationError, match=r"Other \('other'\) is not registered; add it: EventRegistry\(\.\.\., Other\)"):
        CODEC.encode(Other(1))
    with pytest.raises(RegistrationError, match="has no event type name; put @event"):
        CODEC.encode({"x": 1})
    with pytest.raises(RegistrationError, match="is a class"):
        CODEC.encode(RefundAsked)


def test_a_value_of_an_unsupported_type_is_refused_with_the_way_out():
    with pytest.raises(RegistrationError, match="complex"):
        CODEC.encode_value(1j, complex)


@pytest.mark.parametrize(
    ("tree", "complaint"),
    [
        ({}, ".order_id: it is missing"),
        ({"order_id": 3}, ".order_id: expected str, got int 3"),
        ({"order_id": "o", "lines": [{"sku": "a"}, {"sku": b"x"}]}, ".lines[1].sku: expected str, got bytes"),
        ({"order_id": "o", "lines": {"a": 1}}, ".lines: expected tuple"),
        ({"order_id": "o", "by_colour": {"green": 1}}, ".by_colour"),
        ({"order_id": "o", "on": 0}, ".on: expected bool"),
        ({"order_id": "o", "kind": 2}, ".kind: expected Literal"),
        ([1], "expected RefundAsked as a map"),
        (None, "expected RefundAsked as a map"),
    ],
)
def test_bytes_that_do_not_fit_are_refused_naming_the_field(tree: Any, complaint: str):
    with pytest.raises(Undecodable) as caught:
        CODEC.decode("refund.asked", 1, msgspec.msgpack.encode(tree))
    assert f"refund.asked (schema 1){complaint}" in str(caught.value).replace("1): expected RefundAsked", "1)expected RefundAsked")


@pytest.mark.parametrize(
    "blob", [b"", b"\xc1", b"\x81", b"\x80\x00", b"\xa2\xff\xff", b"\xc7\x01\x63x", b"\xd4\x03x", b"\xd4\x04x", b"\xd4\x09\x01", b"\xd5\x0c\x91\x01"]
)
def test_bytes_that_are_no_value_are_refused(blob: bytes):
    with pytest.raises(Undecodable):
        CODEC.tree(blob)
    with pytest.raises(Undecodable, match=r"refund\.asked"):
        CODEC.decode("refund.asked", 1, blob)


def test_a_field_with_a_default_may_be_missing_and_a_stranger_is_left_out():
    blob = msgspec.msgpack.encode({"order_id": "o-1", "gone": 1})
    assert RefundAsked("o-1") == CODEC.decode("refund.asked", 1, blob)


def test_an_event_id_or_a_decimal_in_the_place_of_text_is_refused():
    for value in (uuid.UUID(int=1), Decimal(1)):
        blob = CODEC.encode_value({"order_id": value}, Any)
        with pytest.raises(Undecodable, match=r"order_id: expected str, got"):
            CODEC.decode("refund.asked", 1, blob)
