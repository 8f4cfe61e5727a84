"""The bytes of some events, fixed for ever: a change here would make every log written so far unreadable."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import attrs
import pytest

from intentlog.eventlog.codec import Codec
from intentlog.eventlog.registry import EventRegistry, event
from tests.eventlog.values import Colour, Level, Line, Note


@event("golden.flat")
class Flat:
    order_id: str
    cents: int
    ratio: float
    on: bool
    note: str | None
    blob: bytes


@event("golden.scalars")
class Scalars:
    wide: str
    big: int
    price: Decimal
    at: datetime
    local: datetime
    offset: datetime
    named: datetime
    day: date
    clock: time
    length: timedelta
    id: uuid.UUID
    colour: Colour
    level: Level


@event("golden.nested")
class Nested:
    lines: tuple[Line, ...]
    either: list[Line | Note]
    by_id: dict[uuid.UUID, int]
    by_name: dict[str, float]
    tags: frozenset[str]
    rest: Any


CASES = {
    "flat": Flat("o-1", 4200, 1, True, None, b"\0\xff"),
    "scalars": Scalars(
        "a\ud800\0",
        2**64,
        Decimal("-1.50"),
        datetime(2024, 2, 29, 23, 59, 59, 999999, UTC),
        datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1),
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5, minutes=30))),
        datetime(9999, 12, 31, tzinfo=timezone(-timedelta(hours=3), "BRT")),
        date(1970, 1, 1),
        time(12, 30, 0, 1),
        timedelta(days=-1, microseconds=1),
        uuid.UUID(int=0x0123456789ABCDEF0123456789ABCDEF),
        Colour.BLUE,
        Level.LOW,
    ),
    "nested": Nested(
        (Line("a", 1), Line("b", 2)),
        [Line("c"), Note("n", frozenset({"y", "x"}))],
        {uuid.UUID(int=2): 2, uuid.UUID(int=1): 1},
        {"b": 2.0, "a": 1.0},
        frozenset({"z", "a"}),
        {"t": (1, None), "s": {3, 1, 2}, "f": frozenset(), "d": {1: "x"}},
    ),
}
GOLDEN = {
    "flat": "86a4626c6f62c40200ffa563656e7473cd1068a46e6f7465c0a26f6ec3a86f726465725f6964a36f2d31a5726174696fcb3ff0000000000000",
    "scalars": (
        "8da26174c70d0407e8021d173b3b000f423f005aa3626967c70902010000000000000000a5636c6f636bd7060c1e000000000100a6636f6c6f7572a5"
        "626c75c3a9a3646179d60507b20101a26964d8080123456789abcdef0123456789abcdefa66c656e677468c70c07ffffffff0000000000000001a56c"
        "6576656cffa56c6f63616cc71a0407e80a1b021e0000000000014b4575726f70652f4265726c696ea56e616d6564c71c04270f0c1f00000000000000"
        "004effffffff0001275000000000425254a66f6666736574c71904000101010000000000000000460000000000004d5800000000a57072696365c705"
        "032d312e3530a477696465c7050161eda08000"
    ),
    "nested": (
        "86a562795f6964c7290c9292d808000000000000000000000000000000010192d8080000000000000000000000000000000202a762795f6e616d6582"
        "a161cb3ff0000000000000a162cb4000000000000000a66569746865729283a0a44c696e65a563656e747300a3736b75a16383a0a44e6f7465a47461"
        "677392a178a179a474657874a16ea56c696e65739282a563656e747301a3736b75a16182a563656e747302a3736b75a162a47265737484a164c7050c"
        "919201a178a166d40b90a173d60a93010203a174c703099201c0a47461677392a161a17a"
    ),
}
CODEC = Codec(EventRegistry(Flat, Scalars, Nested))


@pytest.mark.parametrize("name", CASES)
def test_the_bytes_are_the_ones_of_every_release(name: str):
    made = CASES[name]
    kind, schema, blob = CODEC.encode(made)
    assert GOLDEN[name] == blob.hex()
    assert made == CODEC.decode(kind, schema, bytes.fromhex(GOLDEN[name]))


def test_a_map_is_in_the_order_of_its_keys():
    named: Any = Flat
    assert sorted(field.name for field in attrs.fields(named)) == list(CODEC.tree(CODEC.encode(CASES["flat"])[2]))
