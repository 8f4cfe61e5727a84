"""One strategy a supported type, and what "came back exactly" means: the same types and the same representation all the way down."""

from __future__ import annotations

import math
import uuid
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Annotated, Any, Literal, NewType
from zoneinfo import ZoneInfo

import attrs
from hypothesis import strategies as st

OrderId = NewType("OrderId", str)


class Colour(Enum):
    RED = "red"
    BLUE = "blué"
    LONE = "\ud800"


class Plain(StrEnum):
    A = "a"
    B = "b"


class Level(IntEnum):
    LOW = -1
    HIGH = 2**70


@attrs.frozen
class Line:
    sku: str
    cents: int = 0


@attrs.define
class Note:
    text: str
    tags: frozenset[str] = frozenset()


@attrs.frozen
class Tree:
    name: str
    below: tuple[Tree, ...] = ()


@attrs.frozen
class Guarded:
    count: int = attrs.field(validator=attrs.validators.ge(0))
    _secret: str = "x"


text = st.text(st.characters(exclude_categories=[]), max_size=8)  # lone surrogates and NUL included
ints = st.one_of(st.integers(), st.sampled_from([2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10**5000]))
floats = st.floats(allow_nan=True, allow_infinity=True)
decimals = st.one_of(st.decimals(), st.sampled_from([Decimal(x) for x in ("sNaN", "-NaN12", "-0", "1.00", "1E+5", "1E-400", "-Infinity")]))
zones = st.one_of(
    st.none(),
    st.just(UTC),
    st.sampled_from(["Europe/Berlin", "UTC", "Asia/Kolkata"]).map(ZoneInfo),
    st.timedeltas(timedelta(hours=-23), timedelta(hours=23)).map(timezone),
    st.builds(timezone, st.timedeltas(timedelta(hours=-23), timedelta(hours=23)), text),
)
folds = st.integers(0, 1)
datetimes = st.builds(lambda at, zone, fold: at.replace(tzinfo=zone, fold=fold), st.datetimes(), zones, folds)
times = st.builds(lambda at, zone, fold: at.replace(tzinfo=zone, fold=fold), st.times(), zones, folds)
lines = st.builds(Line, text, ints)
notes = st.builds(Note, text, st.frozensets(text, max_size=3))
trees: st.SearchStrategy[Tree] = st.recursive(st.builds(Tree, text), lambda inner: st.builds(Tree, text, st.lists(inner, max_size=3).map(tuple)), max_leaves=6)

scalars = st.one_of(st.none(), st.booleans(), ints, floats, text, st.binary(max_size=6), decimals, datetimes, st.dates(), times, st.timedeltas(), st.uuids())
hashables = st.one_of(st.booleans(), ints, text, st.binary(max_size=6), st.dates(), st.uuids(), st.tuples(ints, text))
anything = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.sets(hashables, max_size=3),
        st.frozensets(hashables, max_size=3),
        st.dictionaries(text, inner, max_size=3),
        st.dictionaries(hashables, inner, max_size=3),
    ),
    max_leaves=8,
)

SUPPORTED: dict[Any, st.SearchStrategy[Any]] = {
    str: text,
    bytes: st.binary(max_size=20),
    int: ints,
    float: floats,
    bool: st.booleans(),
    None: st.none(),
    Decimal: decimals,
    datetime: datetimes,
    date: st.dates(),
    time: times,
    timedelta: st.timedeltas(),
    uuid.UUID: st.uuids(),
    Colour: st.sampled_from(Colour),
    Plain: st.sampled_from(Plain),
    Level: st.sampled_from(Level),
    OrderId: text,
    Annotated[int, "cents"]: ints,
    Literal["a", 1, True] | None: st.sampled_from(["a", 1, None, True]),
    list[int]: st.lists(ints),
    tuple[str, ...]: st.lists(text).map(tuple),
    tuple[int, str, float]: st.tuples(ints, text, floats),
    tuple[()]: st.just(()),
    set[int]: st.sets(ints),
    frozenset[Decimal]: st.frozensets(st.decimals(allow_nan=False)),
    frozenset[tuple[str, int]]: st.frozensets(st.tuples(text, ints)),
    dict[str, float]: st.dictionaries(text, floats),
    dict[int, str]: st.dictionaries(ints, text),
    dict[uuid.UUID, int]: st.dictionaries(st.uuids(), ints),
    dict[Colour, int]: st.dictionaries(st.sampled_from(Colour), ints),
    dict[Literal["a", "b"], int]: st.dictionaries(st.sampled_from(["a", "b"]), ints),
    dict[str, dict[str, list[int | None]]]: st.dictionaries(text, st.dictionaries(text, st.lists(st.one_of(st.none(), ints)))),
    Line: lines,
    Note: notes,
    Tree: trees,
    Guarded: st.builds(Guarded, st.integers(0), text),
    str | None: st.one_of(st.none(), text),
    int | float | None: st.one_of(st.none(), ints, floats),
    int | str | datetime | date: st.one_of(ints, text, datetimes, st.dates()),
    list[int] | dict[int, int]: st.one_of(st.lists(ints), st.dictionaries(ints, ints)),
    Line | None: st.one_of(st.none(), lines),
    Line | Note | Tree | int: st.one_of(lines, notes, trees, ints),
    list[Line | Note]: st.lists(st.one_of(lines, notes), max_size=4),
    Any: anything,
    object: anything,
    dict[str, Any]: st.dictionaries(text, anything, max_size=3),
    list[Any]: st.lists(anything, max_size=3),
    dict: st.dictionaries(hashables, anything, max_size=3),
}


def exact(value: Any) -> Any:
    """A form that is equal for two values only if they have the same types and representations all the way down."""
    kind = type(value)
    if kind is float:
        return ("float", "nan" if math.isnan(value) else value.hex())
    if kind is Decimal:
        return ("Decimal", str(value))
    if kind in (datetime, time):
        return (kind, value.replace(tzinfo=None).isoformat(), value.fold, exact(value.tzinfo))
    if kind is timezone:
        return (kind, *value.__getinitargs__()) if value is not UTC else "utc"
    if kind is ZoneInfo:
        return (kind, value.key)
    if kind in (list, tuple):
        return (kind, [exact(each) for each in value])
    if kind in (set, frozenset):
        return (kind, sorted((exact(each) for each in value), key=repr))
    if kind is dict:
        return (kind, sorted(((exact(key), exact(each)) for key, each in value.items()), key=repr))
    if attrs.has(kind):
        return (kind, [exact(getattr(value, field.name)) for field in attrs.fields(kind)])
    return (kind, value)
