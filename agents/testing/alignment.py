"""Two lists beside each other, best fit first: whether they match, and the table that shows where they do not."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
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
    rows, columns = len(expected), len(actual)
    # costs[i][j] and steps[i][j]: the best way from the i-th expected and the j-th actual thing to the end of both.
    costs = [[0] * (columns + 1) for _ in range(rows + 1)]
    steps: list[list[tuple[int, int, bool]]] = [[(0, 0, True)] * (columns + 1) for _ in range(rows + 1)]
    for i in range(rows, -1, -1):
        for j in range(columns, -1, -1):
            ways = _ways(expected, actual, i, j, fits)
            if ways:
                costs[i][j], *step = min(((price + costs[i + down][j + right], down, right, fit) for price, down, right, fit in ways), key=_first)
                steps[i][j] = (int(step[0]), int(step[1]), bool(step[2]))
    lines, i, j = [], 0, 0
    while i < rows or j < columns:
        down, right, fit = steps[i][j]
        if right or expected[i] is not ...:
            left = expected[i] if down or (i < rows and expected[i] is ... and fit) else None
            lines.append(Line(left, actual[j] if right else None, fit))
        i, j = i + down, j + right
    return lines


def _ways(expected: Sequence[Any], actual: Sequence[Any], i: int, j: int, fits: Callable[[Any, Any], bool]) -> list[tuple[int, int, int, bool]]:
    """(price, steps down, steps right, whether it fits) of every line that may come next."""
    down, right = i < len(expected), j < len(actual)
    if down and expected[i] is ...:
        return [*([(0, 0, 1, True)] if right else []), (0, 1, 0, True)]
    ways = []
    if down and right:
        good = fits(expected[i], actual[j])
        ways.append((0 if good else 3, 1, 1, good))
    return [*ways, *([(2, 1, 0, False)] if down else []), *([(2, 0, 1, False)] if right else [])]


def _first(way: tuple[int, ...]) -> int:
    return way[0]


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
