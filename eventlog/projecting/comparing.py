"""Two views side by side, in one walk through both: which rows are the same, which differ, which only one has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

import attrs

from ..errors import ProjectionRefused
from ..log import EventLog

Row: TypeAlias = "tuple[str, bytes | None, bytes | None]"
"""Key, value on the left, value on the right; None: it has no such row."""


@attrs.frozen
class Comparison:
    """What two views have in common, and what not."""

    left: str
    right: str
    left_position: int
    right_position: int
    same: int
    different: int
    only_left: int
    only_right: int
    #: The first rows that are not the same, in key order.
    examples: tuple[Row, ...]
    #: One of the views moved during the walk, so that a difference may be one of time alone.
    moved: bool

    @property
    def equal(self) -> bool:
        """Every row is the same; the checkpoints may differ."""
        return not (self.different or self.only_left or self.only_right)


def compare(log: EventLog, left: str, right: str, *, examples: int = 20) -> Comparison:
    """Compare two views by name (``sums``, ``sums@v2``), row by row; memory does not grow with them.

    Raises ``ProjectionRefused`` when one of them was never built, and ``LeaseLost`` when one is dropped meanwhile.
    """
    pointed = log.views.pointed()
    views = pointed.get(left, left), pointed.get(right, right)
    before = _positions(log, views)
    for view, position in zip(views, before, strict=True):
        if not position:
            raise ProjectionRefused(f"There is no view {view} to compare. eventlog projections list shows those there are.")
    counts = {"same": 0, "different": 0, "left": 0, "right": 0}
    found: list[Row] = []
    for kind, row in _walk(log.views.read(views[0]).items(), log.views.read(views[1]).items()):
        counts[kind] += 1
        if kind != "same" and len(found) < examples:
            found.append(row)
    after = _positions(log, views)
    return Comparison(
        views[0], views[1], after[0], after[1], counts["same"], counts["different"], counts["left"], counts["right"], tuple(found), after != before
    )


def _positions(log: EventLog, views: tuple[str, str]) -> tuple[int, int]:
    return log.checkpoints.load(views[0]), log.checkpoints.load(views[1])


def _walk(left: Iterator[tuple[str, bytes]], right: Iterator[tuple[str, bytes]]) -> Iterator[tuple[Literal["same", "different", "left", "right"], Row]]:
    mine, theirs = next(left, None), next(right, None)
    while mine is not None or theirs is not None:
        if theirs is None or (mine is not None and mine[0] < theirs[0]):
            assert mine is not None
            yield "left", (mine[0], mine[1], None)
            mine = next(left, None)
        elif mine is None or theirs[0] < mine[0]:
            yield "right", (theirs[0], None, theirs[1])
            theirs = next(right, None)
        else:
            yield "same" if mine[1] == theirs[1] else "different", (mine[0], mine[1], theirs[1])
            mine, theirs = next(left, None), next(right, None)
