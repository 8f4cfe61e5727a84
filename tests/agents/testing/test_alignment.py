"""Two lists side by side."""

from __future__ import annotations

import operator
from typing import Any

import pytest

from intentlog.agents.testing.alignment import Line, align, table


@pytest.mark.parametrize(
    ("expected", "actual"),
    [([], []), ([1], [1]), ([...], []), ([...], [1, 2]), ([..., 2], [1, 2]), ([1, ...], [1]), ([1, ..., 3, ...], [1, 2, 3, 3]), ([..., 1, ..., 1], [1, 1])],
)
def test_what_matches(expected: list[Any], actual: list[Any]):
    assert all(line.fits for line in align(expected, actual, operator.eq))


@pytest.mark.parametrize(
    ("expected", "actual"), [([], [1]), ([1], []), ([1], [2]), ([1, 2], [2, 1]), ([..., 3], [1, 2]), ([1, ..., 1], [1]), ([...], None), ([1, ...], [2, 1])]
)
def test_what_does_not(expected: list[Any], actual: list[Any] | None):
    assert actual is None or not all(line.fits for line in align(expected, actual, operator.eq))


def test_the_longest_common_part_is_found():
    lines = align([1, 2, 4], [1, 3, 2, 4], operator.eq)
    assert [Line(1, 1, True), Line(None, 3, False), Line(2, 2, True), Line(4, 4, True)] == lines


def test_long_lines_are_wrapped():
    shown = table([Line("a " * 60, "b " * 60, False)], str, str).splitlines()
    assert 3 == len(shown)
    assert max(map(len, shown)) < 160
    assert "> a a" in shown[1]


def test_a_long_list_is_no_trouble():
    lines = align([..., *range(700)], list(range(-3, 700)), operator.eq)
    assert [Line(..., -3, True), Line(..., -2, True), Line(..., -1, True)] == lines[:3]
    assert all(line.fits for line in lines)
