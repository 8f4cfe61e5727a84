"""Two lists beside each other, best fit first: whether they match, and the table that shows where they do not."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from functools import cache
from types import EllipsisType
from typing import Any, Final

import attrs

_WIDTH: Final = 72


@attrs.frozen
class Line:
    """One line of the table; ``None``: that side has nothing here."""

    expected: Any
    actual: Any
    fits: bool


def align(expected: Sequence[Any], actual: Sequence[Any], fits: Callable[[Any, Any], bool]) -> list[Line]:
    """The alignment with the fewest lines that do not fit; ``...`` in ``expected`` takes up any number of actual ones."""

    @cache
    def best(i: int, j: int) -> tuple[int, tuple[Line, ...]]:
        if i == len(expected) and j == len(actual):
            return 0, ()
        ways: list[tuple[int, Line, int, int]] = []
        if i < len(expected) and isinstance(expected[i], EllipsisType):
            if j < len(actual):
                ways.append((0, Line(..., actual[j], True), i, j + 1))
            ways.append((0, Line(..., None, True), i + 1, j))
        else:
            if i < len(expected) and j < len(actual):
                good = fits(expected[i], actual[j])
                ways.append((0 if good else 3, Line(expected[i], actual[j], good), i + 1, j + 1))
            if i < len(expected):
                ways.append((2, Line(expected[i], None, False), i + 1, j))
            if j < len(actual):
                ways.append((2, Line(None, actual[j], False), i, j + 1))
        scored = [(cost + best(k, m)[0], line, k, m) for cost, line, k, m in ways]
        cost, line, k, m = min(scored, key=lambda way: way[0])
        return cost, (line, *best(k, m)[1])

    return [line for line in best(0, 0)[1] if line.expected is not ... or line.actual is not None]


def table(lines: Sequence[Line], show_expected: Callable[[Any], str], show_actual: Callable[[Any], str]) -> str:
    """The lines as text, the ones that do not fit marked with ``>``."""
    cells = [("  ", "expected", "staged")]
    for line in lines:
        left = "" if line.expected is None else "..." if line.expected is ... else show_expected(line.expected)
        right = "" if line.actual is None else show_actual(line.actual)
        cells.append(("  " if line.fits else "> ", left or "(nothing)", right or "(nothing)"))
    width = min(_WIDTH, max(len(left) for _, left, _ in cells))
    text = []
    for mark, left, right in cells:
        lefts, rights = textwrap.wrap(left, width), textwrap.wrap(right, _WIDTH)
        for place in range(max(len(lefts), len(rights))):
            here = lefts[place] if place < len(lefts) else ""
            there = rights[place] if place < len(rights) else ""
            text.append(f"  {mark if place == 0 else '  '}{here:<{width}}  │ {there}".rstrip())
    return "\n".join(text)
