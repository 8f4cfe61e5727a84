"""An event can be looked at whatever is wrong with it."""

from __future__ import annotations

from typing import Any

from intentlog.agents.app import runtime_codec
from intentlog.eventlog.codec import Codec
from intentlog.eventlog.events import NewEvent
from intentlog.eventlog.registry import EventRegistry, event
from intentlog.eventlog.upcasting import upcasts
from intentlog.eventlog.versions import ANY
from intentlog.replay.raw import raw_event, raw_lines
from tests.replay.world import STREAM, RefundAsked, app_of, paying


@event("order.placed", version=1)
class PlacedFirst:
    total: int


@event("order.placed", version=3)
class Placed:
    cents: int
    currency: str


@upcasts("order.placed", from_version=1)
def renamed(fields: dict[str, Any]) -> dict[str, Any]:
    fields["cents"] = fields.pop("total")
    return fields


@upcasts("order.placed", from_version=2)
def in_euros(fields: dict[str, Any]) -> dict[str, Any]:
    if fields["cents"] < 0:
        raise ValueError("negative")
    return {**fields, "currency": "EUR"}


NOW = Codec(EventRegistry(Placed, upcasters=[renamed, in_euros]))


def stored(world: Any, total: int) -> Any:
    new = Codec(EventRegistry(PlacedFirst)).stage(PlacedFirst(total), event_id=bytes(16))
    world.log.append("orders-1", [new], ANY)
    return next(world.log.read("orders-1"))


def test_every_upcast_is_shown_on_the_way_to_the_class(world):
    found = raw_event(stored(world, 5), NOW)
    assert [
        ("tree", {"total": 5}),
        (f"upcast 1 → 2 by {__name__}.renamed", {"cents": 5}),
        (f"upcast 2 → 3 by {__name__}.in_euros", {"cents": 5, "currency": "EUR"}),
        (f"{__name__}.Placed (schema 3)", {"cents": 5, "currency": "EUR"}),
    ] == [(stage.name, stage.content) for stage in found.stages]
    assert ("", False) == (found.problem, found.unknown)


def test_the_stage_at_which_reading_ends_is_named(world):
    found = raw_event(stored(world, -5), NOW)
    assert [{"total": -5}, {"cents": -5}, None] == [stage.content for stage in found.stages]
    assert "in_euros from version 2 raised ValueError: negative" in found.problem


def test_an_event_is_shown_when_its_class_is_gone(world):
    found = raw_event(stored(world, 5), runtime_codec())
    assert ([{"total": 5}, None], True) == ([stage.content for stage in found.stages], found.unknown)
    lines = "\n".join(raw_lines(found, width=100))
    assert "order.placed, schema 1" in lines
    assert "no class is registered under 'order.placed'" in lines


def test_bytes_that_are_nothing_are_shown_as_bytes(world):
    world.log.append(STREAM, [NewEvent(bytes(16), "refund.asked", 1, b"\xc1 not ours " * 100)], ANY)
    found = raw_event(next(world.log.read(STREAM)), app_of(paying).codec)
    assert ["tree"] == [stage.name for stage in found.stages]
    lines = list(raw_lines(found, width=100))
    assert any("c1 20 6e 6f 74 20 6f 75 72 73" in line and ". not ours ." in line for line in lines)
    assert any("more bytes; --whole" in line for line in lines)
    assert not any("more bytes" in line for line in raw_lines(found, width=100, whole=True))


def test_a_newer_schema_and_a_wrong_field_end_at_the_class(world):
    app = app_of(paying)
    kind, _, blob = app.codec.encode(RefundAsked("o-1", 5))
    for n, (schema, data, said) in enumerate(
        ((9, blob, "schema version 9"), (1, app.codec.encode_value({"order_id": 7, "cents": 5}, dict[str, Any]), ".order_id"))
    ):
        world.log.append(STREAM, [NewEvent(bytes([n]) * 16, kind, schema, data)], ANY)
        found = raw_event(list(world.log.read(STREAM))[-1], app.codec)
        assert (2, True) == (len(found.stages), said in found.problem)


def test_columns_that_no_append_writes_are_told(world):
    odd = stored(world, 5)._replace(data="text", recorded_at="soon")
    found = raw_event(odd, NOW)
    assert ("columns", True) == (found.stages[0].name, "data is 'text'" in found.problem)
    assert list(raw_lines(found, width=80))
    assert found.as_tree()
