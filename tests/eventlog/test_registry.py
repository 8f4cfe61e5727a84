"""Names are checked where they are given, and everything that could fail on reading fails when it is registered."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum, Flag
from typing import Any, Generic, Literal, NamedTuple, TypedDict, TypeVar

import attrs
import pytest

from intentlog.eventlog.codec import Codec
from intentlog.eventlog.errors import RegistrationError
from intentlog.eventlog.registry import EventRegistry, event, event_name

T = TypeVar("T")


@event("refund.asked", version=1)
class RefundAsked:
    order_id: str
    cents: int


@event("refund.asked")
class AlsoAsked:
    order_id: str


@event("measured")
class Measured:
    celsius: float
    wind: float | None = None
    exact: Decimal = Decimal(0)


@attrs.frozen
class Line:
    sku: str


@attrs.frozen
class OtherLine:
    __tag__ = "Line"
    sku: str


@attrs.frozen
class Box(Generic[T]):
    inner: T


@dataclass(frozen=True)
class Old:
    x: int


class Pair(NamedTuple):
    x: int


class Loose(TypedDict):
    x: int


class Rights(Flag):
    READ = 1


class Colour(Enum):
    RED = "red"


class Mixed(Enum):
    ONE = 1.5


def test_an_event_class_is_frozen_slotted_and_positional():
    asked = RefundAsked("o-1", 4200)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        asked.cents = 1  # type: ignore[misc]
    assert not hasattr(asked, "__dict__")
    assert "RefundAsked(order_id='o-1', cents=4200)" == repr(asked)
    assert ("refund.asked", 1) == event_name(RefundAsked)


def test_a_float_field_holds_a_float_from_the_start():
    held = Measured(20, 3)
    assert [float, float] == [type(held.celsius), type(held.wind)]
    assert None is Measured(20).wind
    assert True is Measured(True).celsius, "a bool is a mistake, which encoding names"


def test_a_class_frozen_by_attrs_is_only_marked():
    marked = event("line")(Line)
    assert marked is Line
    del Line.__event_type__, Line.__event_version__  # type: ignore[attr-defined]


def test_a_class_that_can_change_is_no_event():
    with pytest.raises(RegistrationError, match="can change"):
        event("x")(attrs.define(type("X", (), {})))


@pytest.mark.parametrize("name", ["", "Refund", "refund.", ".x", "a..b", "a-b", "1a", "a b", "é", "a\n", 3, None])
def test_a_name_outside_the_grammar_is_refused_at_decoration(name: Any):
    with pytest.raises(RegistrationError, match="event type name"):
        event(name)


@pytest.mark.parametrize("version", [0, -1, True, 1.0, "1", None])
def test_a_version_below_one_is_refused_at_decoration(version: Any):
    with pytest.raises(RegistrationError, match="version"):
        event("x", version=version)


def test_a_class_without_a_name_is_refused():
    with pytest.raises(RegistrationError, match="Line has no event type name"):
        EventRegistry(Line)


def test_a_name_is_not_inherited():
    child = type("Child", (RefundAsked,), {})
    with pytest.raises(RegistrationError, match="Child has no event type name"):
        EventRegistry(child)


def test_a_name_belongs_to_one_class():
    with pytest.raises(RegistrationError, match=r"'refund\.asked' is taken by .*RefundAsked; .*AlsoAsked needs another name"):
        EventRegistry(RefundAsked, AlsoAsked)


def test_the_same_class_again_changes_nothing():
    registry = EventRegistry(RefundAsked, RefundAsked)
    registry.freeze().add(RefundAsked)
    assert 1 == len(registry)
    assert RefundAsked in registry


def test_a_reloaded_class_takes_the_place_of_the_old_one():
    def load() -> type:
        module = types.ModuleType("reloaded")
        exec("from intentlog.eventlog.registry import event\n@event('x.y')\nclass X:\n    a: int\n", module.__dict__)
        made: type = module.X
        return made

    old, new = load(), load()
    registry = EventRegistry(old, new)
    assert [new] == [entry.cls for entry in registry]
    with pytest.raises(RegistrationError, match="was it reloaded"):
        Codec(registry).encode(old(1))


def test_a_registry_in_use_takes_no_more():
    registry = EventRegistry(RefundAsked)
    Codec(registry)
    with pytest.raises(RegistrationError, match="Measured came too late"):
        registry.add(Measured)


@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        (Sequence[int], "write tuple"),
        (Mapping[str, int], "write dict"),
        (bytearray, "write bytes"),
        (complex, "tuple"),
        (Old, "dataclass"),
        (Pair, "attrs class"),
        (Loose, "make it an attrs class"),
        (Box, "generic"),
        (Box[int], "generic"),
        (T, "not a supported type"),
        (Rights, "Flag"),
        (Mixed, "str or int values"),
        (type, "not a supported type"),
        (str | Colour, "ambiguous"),
        (list[int] | tuple[int, ...], "ambiguous"),
        (set[int] | list[int], "ambiguous"),
        (dict[str, int] | Line, "ambiguous"),
        (Line | OtherLine, "__tag__"),
        (Any | list[int], "ambiguous"),
        (dict[float, int], "list of pairs"),
        (dict[tuple[int, int], int], "list of pairs"),
        (set[list[int]], "hashed"),
        (Literal[Mixed.ONE], "Literal"),
        (Sequence, "write tuple"),
    ],
)
def test_a_type_that_would_not_come_back_is_refused_naming_class_and_field(kind: Any, advice: str):
    wanted: Any = list[kind] | None
    cls: Any = event("x")(attrs.make_class("Bad", {"inner": attrs.field(type=wanted)}, frozen=True))
    with pytest.raises(RegistrationError, match=rf"Bad\.inner: .*{advice}"):
        EventRegistry(cls)


def test_an_annotation_that_does_not_resolve_is_refused_naming_the_field():
    @event("x")
    class Local:
        fine: int
        when: NoSuchName  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(RegistrationError, match=r"Local\.when: its type cannot be resolved .*NoSuchName"):
        EventRegistry(Local)


def test_a_field_that_init_does_not_take_is_refused():
    @event("x")
    class Derived:
        x: int
        y: int = attrs.field(init=False, default=3)

    with pytest.raises(RegistrationError, match=r"Derived\.y: .*init=False"):
        EventRegistry(Derived)


def test_a_fault_deep_inside_names_the_way_to_it():
    outer = attrs.make_class("Outer", {"lines": attrs.field(type=tuple[Old, ...])}, frozen=True)
    top: Any = event("x")(attrs.make_class("Top", {"outer": attrs.field(type=outer), "at": attrs.field(type=datetime)}, frozen=True))
    with pytest.raises(RegistrationError, match=r"Top\.outer\.lines: .*dataclass"):
        EventRegistry(top)


def test_a_registry_on_top_of_another_knows_what_that_one_knows_and_leaves_it_as_it_is():
    base = EventRegistry(Measured).freeze()
    above = EventRegistry(RefundAsked, base=base)
    assert ([Measured], [Measured, RefundAsked]) == ([entry.cls for entry in base], [entry.cls for entry in above])
    assert base.get("measured") is not None
    assert [entry.shape for entry in base] == [entry.shape for entry in above][:1]
    assert Codec(EventRegistry(Measured)).encode(Measured(1.5)) == Codec(above).encode(Measured(1.5))
    with pytest.raises(RegistrationError, match=r"event type name 'refund.asked' is taken"):
        EventRegistry(AlsoAsked, base=above.freeze())
