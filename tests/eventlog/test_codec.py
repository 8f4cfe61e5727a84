"""Every supported type comes back exactly, on both reading paths, and equal values have equal bytes."""

from __future__ import annotations

import copy
import sys
import uuid
from typing import Any, cast

import attrs
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intentlog.eventlog import codec as codec_module
from intentlog.eventlog.codec import Codec
from intentlog.eventlog.errors import Undecodable
from intentlog.eventlog.registry import EventRegistry, event
from tests.eventlog.values import SUPPORTED, Level, Line, Note, Plain, Tree, anything, exact, floats, ints, lines, text

sys.set_int_max_str_digits(0)
VALUES = Codec(EventRegistry())


@event("quick.seen", version=1)
class Quick:
    name: str
    count: int
    ratio: float
    on: bool
    blob: bytes
    note: str | None
    tags: tuple[str, ...]
    pair: tuple[int, str]
    by_name: dict[str, float]
    lines: list[Line]
    plain: Plain
    rest: Any
    some: frozenset[int] = frozenset()


@event("general.seen")
class General:
    name: str
    level: Level
    of: Note | Line | None


quicks = st.builds(
    Quick,
    text,
    ints,
    floats,
    st.booleans(),
    st.binary(max_size=5),
    st.none() | text,
    st.lists(text, max_size=3).map(tuple),
    st.tuples(ints, text),
    st.dictionaries(text, floats, max_size=3),
    st.lists(lines, max_size=3),
    st.sampled_from(Plain),
    anything,
    st.frozensets(ints, max_size=4),
)
CODEC = Codec(EventRegistry(Quick, General))


@pytest.mark.parametrize("kind", SUPPORTED, ids=str)
def test_every_supported_type_comes_back_exactly(kind: Any):
    @settings(max_examples=200, deadline=None, database=None)
    @given(SUPPORTED[kind])
    def check(value: Any) -> None:
        blob = VALUES.encode_value(value, kind)
        back = VALUES.decode_value(blob, kind)
        assert exact(value) == exact(back)
        assert blob == VALUES.encode_value(back, kind)

    check()


@settings(max_examples=300, deadline=None, database=None)
@given(quicks)
def test_the_quick_path_reads_what_the_general_path_reads(seen: Quick):
    name, schema, blob = CODEC.encode(seen)
    entry = CODEC.registry.get(name)
    assert entry is not None and entry.shape.native
    general = codec_module._general(name, entry.shape, ())
    assert exact(seen) == exact(CODEC.decode(name, schema, blob)) == exact(general(blob))


trees = st.recursive(st.none() | st.booleans() | ints | floats | text | st.binary(max_size=3), lambda inner: st.lists(inner, max_size=3), max_leaves=5)
QUICK_FIELDS = [field.name for field in attrs.fields(cast(Any, Quick))]
fields = st.fixed_dictionaries({}, optional=dict.fromkeys(QUICK_FIELDS, trees | anything) | {"stranger": trees})


@settings(max_examples=500, deadline=None, database=None)
@given(quicks, fields, st.sets(st.sampled_from(QUICK_FIELDS), max_size=2))
def test_both_paths_take_and_refuse_the_same_foreign_bytes(seen: Quick, changes: dict[str, Any], gone: set[str]):
    tree = {**CODEC.tree(CODEC.encode(seen)[2]), **changes}
    blob = VALUES.encode_value({key: value for key, value in tree.items() if key not in gone}, Any)
    entry = CODEC.registry.get("quick.seen")
    assert entry is not None

    def outcome(read: Any) -> Any:
        try:
            return exact(read(blob))
        except Undecodable:
            return "undecodable"

    assert outcome(codec_module._general("quick.seen", entry.shape, ())) == outcome(CODEC.decoder("quick.seen", 1))


@settings(max_examples=200, deadline=None, database=None)
@given(anything, st.randoms())
def test_equal_values_built_differently_have_equal_bytes(value: Any, random: Any):
    def rebuilt(value: Any) -> Any:
        if type(value) in (list, tuple):
            return type(value)([rebuilt(each) for each in value])
        if type(value) in (set, frozenset):
            elements = list(value)
            random.shuffle(elements)
            return type(value)(elements)
        if type(value) is dict:
            pairs = list(value.items())
            random.shuffle(pairs)
            return {key: rebuilt(each) for key, each in pairs}
        return copy.deepcopy(value)

    assert VALUES.encode_value(value, Any) == VALUES.encode_value(rebuilt(value), Any)


def test_values_that_differ_in_form_differ_in_bytes():
    from datetime import UTC, datetime, timedelta, timezone
    from decimal import Decimal

    noon = datetime(2024, 1, 1, 12, tzinfo=UTC)
    pairs: list[tuple[Any, Any]] = [
        (0.0, -0.0),
        (Decimal("1.0"), Decimal("1.00")),
        (1, True),
        (1, 1.0),
        ([1], (1,)),
        ({1}, frozenset({1})),
        (noon, noon.astimezone(timezone(timedelta(hours=1)))),
        (noon.replace(tzinfo=None), noon.replace(tzinfo=None, fold=1)),
    ]
    assert [] == [pair for pair in pairs if VALUES.encode_value(pair[0], Any) == VALUES.encode_value(pair[1], Any)]


def test_a_decimal_has_the_same_bytes_in_every_context():
    from decimal import Decimal, localcontext

    usual = VALUES.encode_value(Decimal("1E+40"), Decimal)
    with localcontext() as context:
        context.capitals = 0
        assert usual == VALUES.encode_value(Decimal("1E+40"), Decimal)


@pytest.mark.parametrize("value", ["x" * (1 << 20), "é\ud800" * (1 << 18), "a\0b" * 1000, b"\0\xff" * 10_000_000], ids=["1 MiB", "surrogates", "NUL", "20 MB"])
def test_large_and_odd_text_and_bytes_come_back(value: Any):
    assert value == VALUES.decode_value(VALUES.encode_value(value, type(value)), type(value))
    back: list[Any] = VALUES.decode_value(VALUES.encode_value([value], Any), list[Any])
    assert [value] == back


def test_a_class_that_holds_itself_comes_back():
    tree = Tree("0")
    for depth in range(1, 90):
        tree = Tree(str(depth), (tree,))
    assert tree == VALUES.decode_value(VALUES.encode_value(tree, Tree), Tree)


def test_what_a_validator_refuses_is_undecodable():
    from tests.eventlog.values import Guarded

    with pytest.raises(Undecodable, match="Guarded refused the values: ValueError"):
        VALUES.decode_value(msgspec.msgpack.encode({"count": -1}), Guarded)


def test_an_event_is_staged_under_the_id_it_is_given():
    made = General("n", Level.HIGH, Line("s", 3))
    staged = CODEC.stage(made, event_id=bytes(16), correlation=b"c" * 16, causation=b"d" * 16)
    assert (bytes(16), "general.seen", 1, b"c" * 16, b"d" * 16) == (staged.event_id, staged.type, staged.schema, staged.correlation, staged.causation)
    assert made == CODEC.decode(staged.type, staged.schema, staged.data)


def test_the_tree_shows_values_without_any_class():
    value = {"id": uuid.UUID(int=1), "big": 2**80, "pairs": {1: "x"}, "t": (1, {2}, "\ud800")}
    assert value == CODEC.tree(VALUES.encode_value(value, Any))
    assert {"level": 2**70, "name": "n", "of": {"": "Line", "cents": 3, "sku": "s"}} == CODEC.tree(CODEC.encode(General("n", Level.HIGH, Line("s", 3)))[2])
