"""A difference leads from one state to the other, names every part that differs, and nothing else."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intentlog.replay.change_lines import blobs_shown, change_lines, change_tree
from intentlog.replay.diff import Change, ChangeKind, apply, diff, same
from intentlog.replay.paths import ABSENT, look
from tests.replay.world import Account


@attrs.frozen
class Order:
    cents: Any
    lines: Any = ()


leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(0, 3),
    st.floats(),
    st.text("ab", max_size=3),
    st.binary(max_size=2),
    st.sampled_from([Decimal("1.0"), Decimal("1.00"), datetime(2026, 1, 2, tzinfo=UTC)]),
)
keys = st.one_of(st.text("abc", max_size=2), st.integers(0, 3), st.tuples(st.integers(0, 2), st.text("ab", max_size=1)))
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(keys, inner, max_size=4),
        st.sets(keys, max_size=4),
        st.frozensets(keys, max_size=4),
        st.builds(Order, inner, inner),
    ),
    max_leaves=12,
)


@given(trees, trees)
def test_a_difference_applied_to_a_gives_b_and_leaves_a_as_it_was(a, b):
    before = deepcopy(a)
    found = apply(diff(a, b), a)
    assert same(b, found), found
    assert same(before, a)


@given(trees)
def test_nothing_differs_from_its_own_copy(tree):
    assert () == diff(tree, deepcopy(tree))


@given(trees, trees)
def test_every_side_of_a_change_stands_where_its_path_says(a, b):
    for change in diff(a, b):
        for tree, side, sides in ((a, change.before, ChangeKind.ADDED), (b, change.after, ChangeKind.REMOVED)):
            if change.kind is not sides:
                assert same(side, look(tree, change.path)), change


@given(trees, trees)
def test_a_line_is_printed_for_anything_and_fits(a, b):
    from rich.cells import cell_len

    for line in change_lines(diff({"x": a}, {"x": b}), width=60, most=3):
        assert cell_len(line) <= 60 or line.startswith("…"), line


@pytest.mark.parametrize(
    ("a", "b", "changes"),
    [
        ({"a": 1}, {"a": 2}, [("changed", ("a",), 1, 2)]),
        ({"a": 1}, {"a": True}, [("changed", ("a",), 1, True)]),
        ([1, 2, 3, 4], [1, 4], [("removed", (1,), 2, ABSENT), ("removed", (2,), 3, ABSENT)]),
        ([1, 4], [1, 2, 3, 4], [("added", (1,), ABSENT, 2), ("added", (2,), ABSENT, 3)]),
        ({"s": {1, 2}}, {"s": {2, 3}}, [("removed", ("s", 1), 1, ABSENT), ("added", ("s", 3), ABSENT, 3)]),
        (Account(), Account(refunded_cents=4), [("changed", ("refunded_cents",), 0, 4)]),
        (Decimal("1.0"), Decimal("1.00"), [("changed", (), Decimal("1.0"), Decimal("1.00"))]),
        (0.0, -0.0, [("changed", (), 0.0, -0.0)]),
        (float("nan"), float("nan"), []),
        ([1], (1,), [("changed", (), [1], (1,))]),
    ],
)
def test_what_differs_is_named(a, b, changes):
    found = [(change.kind.value, change.path, change.before, change.after) for change in diff(a, b)]
    assert repr(changes) == repr(found)


def test_what_is_printed_is_bounded():
    a, b = {"n": list(range(500))}, {"n": [n + 1 for n in range(500)]}
    lines = list(change_lines(diff(a, b), width=80, most=10))
    assert (11, "… and 490 more: name a PATH, or give --most or --json") == (len(lines), lines[-1])


def test_bytes_are_shown_as_size_and_digest():
    change = Change(ChangeKind.CHANGED, ("state", "blob"), b"x" * 100_000, b"")
    assert ["~ blob  100,000 bytes sha256 d69e689881578332 → 0 bytes sha256 e3b0c44298fc1c14"] == list(change_lines([change], width=100))
    assert {"$blob": "0 bytes sha256 e3b0c44298fc1c14"} == change_tree(change)["after"]
    assert {"deep": [{"$blob": "1 byte sha256 2d711642b726b044"}]} == blobs_shown({"deep": (b"x",)})


def test_two_long_texts_are_shown_around_what_differs():
    a, b = "word " * 40 + "one" + " word" * 40, "word " * 40 + "two" + " word" * 40
    lines = list(change_lines(diff({"t": a}, {"t": b}), width=60))
    assert "~ t" == lines[0]
    assert (True, True) == ("one" in lines[1], "two" in lines[2])
    assert lines[2].index("two") == lines[3].index("^")
