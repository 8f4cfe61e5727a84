from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intentlog.agents.compare import first_difference, shown

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@attrs.frozen
class Line:
    name: str
    cents: int


@attrs.frozen
class Order:
    id: str
    lines: list[Line]


@pytest.mark.parametrize(
    "left, right, path",
    [
        (1, 2, "value"),
        (1, "1", "value"),
        (1, True, "value"),
        ({"a": 1}, {}, "a"),
        ({}, {"b": 1}, "b"),
        ({"b": 1, "a": 2}, {"b": 2, "a": 3}, "a"),
        ({"a": [1, {"x": 2}]}, {"a": [1, {"x": 3}]}, "a[1].x"),
        ([1, 2], [1], "[1]"),
        ([], [None], "[0]"),
        ("hello", "help", "value (character 3)"),
        ("", "x", "value (character 0)"),
        (Order("o", [Line("a", 1)]), Order("o", [Line("a", 2)]), "lines[0].cents"),
        ({1: "a"}, {"1": "a"}, "1"),
    ],
)
def test_the_path_leads_to_the_first_place_that_differs(left, right, path):
    assert path == first_difference(left, right).path


@given(JSON)
def test_a_value_does_not_differ_from_itself(value):
    assert "" == first_difference(value, value).path


@given(JSON, JSON)
def test_values_that_differ_have_a_place_where_they_do(left, right):
    if repr(left) != repr(right) and type(left) is not type(right):
        assert "" != first_difference(left, right).path


def test_not_a_number_is_equal_to_itself_here():
    assert "" == first_difference({"x": float("nan")}, {"x": float("nan")}).path


def test_an_absent_key_is_said_to_be_absent():
    found = first_difference({"a": 1}, {})
    assert ("1", "(absent)") == (found.left, found.right)


def test_long_texts_are_shown_around_the_place_that_differs():
    found = first_difference("x" * 500 + "A" + "y" * 500, "x" * 500 + "B" + "y" * 500)
    assert "value (character 500)" == found.path
    assert "A" in found.left and "B" in found.right
    assert len(found.left) < 80


def test_what_cannot_be_shown_is_shown_as_its_type():
    class Shy:
        def __repr__(self) -> str:
            raise RuntimeError

    assert "<Shy, whose repr raised RuntimeError>" == shown(Shy())
    assert "40 bytes 0000000000000000…" == shown(bytes(40))
    assert 120 == len(shown("x" * 500))


def test_values_of_another_type_are_never_walked_into():
    class Odd(dict[str, Any]):
        pass

    assert "value" == first_difference(Odd(a=1), {"a": 1}).path
