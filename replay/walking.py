"""A cursor over one stream's history: forth, back, to any version, as often as one likes.

The history is folded once from its beginning; every √n events a copy of the state is kept, from which any version is
folded again in √n steps. The larger the state, the further apart the copies are, so that making them costs less than the
folding between them. Its rows are kept, too, as far as they fit the memory they are given; beyond it they are read again.
Reads only, and holds nothing open between two calls.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from math import isqrt
from typing import Any, Final, Protocol, TypeAlias

import attrs

from ..agents.app import App
from ..agents.errors import AgentError
from ..agents.streams import StreamState
from ..eventlog.errors import LogError
from ..eventlog.events import Row, StoredEvent
from ..eventlog.log import EventLog
from .aggregates import folder_of
from .copying import Copier, copied
from .errors import BadExpression, NoSuchVersion
from .fold import At, state_as_tree, version_at
from .trees import EventTree, tree_of

MEMORY: Final = 256 * 2**20
"""Bytes of rows that are kept unless told otherwise."""
_ROW: Final = 300
"""What a row takes besides its bytes."""
SPACING: Final = 64
"""Events between two kept states, at the least, unless told otherwise."""
WORTH: Final = 2
"""Values that may be copied for one event that was folded: less than half of what folding it costs."""
_MOST_KEPT: Final = 3_000_000
"""Values in all kept states together; beyond it every other one is given up."""

Problem: TypeAlias = LogError | AgentError


class Condition(Protocol):
    """What ``until`` looks for; ``Expression`` is one."""

    def holds(self, tree: Mapping[str, Any], event: Mapping[str, Any] | None = None) -> bool: ...


@attrs.frozen
class Seen:
    """One event of the history, decoded as far as that goes."""

    stored: StoredEvent
    #: The event; the tree of its bytes when it has no class here; ``None`` when not even that can be had.
    fact: Any
    #: Why it cannot be decoded; empty when it can.
    problem: str = ""


class Walk:
    """Stands at ``version`` of ``stream``, at first at its end. -1 is before the first event.

    ``upto``: look at the history as it was then. ``memory``: bytes of rows to keep; ``spacing``: at least so many events lie
    between two kept states. A history that cannot be folded to its end can be walked up to there: ``broken`` tells why, and
    going further raises it. Raises ``NoSuchStream``, ``NoSuchVersion`` or ``UnknownAgent``.
    """

    def __init__(self, log: EventLog, app: App, stream: str, upto: At | int | None = None, *, memory: int = MEMORY, spacing: int = SPACING) -> None:
        self.log, self.app, self.stream = log, app, stream
        self.codec = app.codec
        self._folder = folder_of(app, stream)
        #: Version of the last event of the history.
        self.head = version_at(log, stream, upto)
        #: Why the history cannot be folded beyond ``last``.
        self.broken: Problem | None = None
        self._memory = memory
        self._kept: list[Row] = []
        self._all_kept = False
        self._spacing = max(spacing, isqrt(self.head + 1))
        #: Version at which the next state is kept.
        self._due = self._spacing - 1
        #: Values looked at for the states that were kept.
        self.copied = 0
        self._marks: list[int] = [-1]
        self._states: dict[int, tuple[StreamState, int]] = {-1: (self._folder.empty(stream), 1)}
        self._live = self._folder.empty(stream)
        self._handed: StreamState | None = None
        self.version = -1
        #: The last version that can be folded; ``head`` unless ``broken``.
        self.last = self.head
        self._load()

    # ── where it stands ─────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def state(self) -> StreamState:
        """The state here: the caller's own, however the walk goes on and whatever is done with it."""
        if self._handed is None:
            self._handed = copied(self._live)
        return self._handed

    @property
    def tree(self) -> dict[str, Any]:
        """``state_as_tree`` of the state here."""
        return state_as_tree(self.state)

    def event(self, version: int | None = None) -> Seen:
        """The event that led here, or any other one. Raises ``NoSuchVersion``."""
        wanted = self.version if version is None else version
        stored = next(iter(self.log.read(self.stream, after=wanted - 1, upto=wanted, limit=1)), None) if 0 <= wanted <= self.head else None
        if stored is None:
            raise self._no_version(wanted)
        try:
            return Seen(stored, self.codec.decode(stored.type, stored.schema, stored.data))
        except LogError as problem:
            try:
                return Seen(stored, self.codec.tree(stored.data), str(problem))
            except LogError:
                return Seen(stored, None, str(problem))

    def types(self) -> list[str]:
        """The types of the history's events."""
        return sorted({row[1] for rows in self.rows() for row in rows})

    # ── going ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def goto(self, version: int) -> None:
        """Stand at ``version``. Raises ``NoSuchVersion``, or what ``broken`` holds; then it stands where it stood."""
        if not -1 <= version <= self.head:
            raise self._no_version(version)
        if self.version < version <= self.last and self._mark_before(version) <= self.version:
            ahead = [row for rows in self.rows(self.version, version) for row in rows]
            self._stand(version, self._folder.fold(self._live, ahead))
        elif version != self.version:
            self._stand(version, self.at(version))

    def next(self, steps: int = 1) -> None:
        """Forth; raises ``NoSuchVersion`` at the end."""
        self.goto(self.version + steps)

    def back(self, steps: int = 1) -> None:
        """Back, as quickly as ``at``; raises ``NoSuchVersion`` at the beginning."""
        self.goto(self.version - steps)

    def until(self, condition: Condition, backwards: bool = False) -> int | None:
        """Go to the next version (or the one before) at which ``condition`` holds, and return it.

        ``None``: there is none, and it stands where it stood. Raises ``BadExpression`` with the version it cannot be evaluated at.
        """
        found = self._until_back(condition) if backwards else next(self.holding(condition, self.version + 1), None)
        if found is not None:
            self.goto(found)
        return found

    def next_of_type(self, name: str, backwards: bool = False) -> int | None:
        """Go to the next (or previous) event of this type, named by its type or its class, and return its version; ``None``: none."""
        types = {name, *(entry.name for entry in self.codec.registry if entry.cls.__name__ == name)}
        if backwards:
            found = next((row[0] for row in self.rows_back(self.version - 1) if row[1] in types), None)
        else:
            found = next((row[0] for rows in self.rows(self.version) for row in rows if row[1] in types), None)
        if found is not None:
            self.goto(found)
        return found

    # ── looking through many versions ───────────────────────────────────────────────────────────────────────────────

    def each(self, first: int = 0, last: int | None = None) -> Iterator[tuple[Row, StreamState]]:
        """Every event of ``first … last`` with the state behind it, oldest first, wherever the walk stands.

        The state is one object that moves on: look at it, keep nothing of it.
        """
        upto = self.last if last is None else min(last, self.last)
        if first > upto:
            return
        state = self.at(first - 1) if first > 0 else self._folder.empty(self.stream)
        fold = self._folder.fold
        for rows in self.rows(first - 1, upto):
            for row in rows:
                fold(state, (row,))
                yield row, state

    def holding(self, condition: Condition, first: int = 0, last: int | None = None) -> Iterator[int]:
        """The versions of ``first … last`` at which ``condition`` holds."""
        for row, state in self.each(first, last):
            if self.holds(condition, state, row):
                yield row[0]

    def holds(self, condition: Condition, state: StreamState, row: Row | None) -> bool:
        """Whether ``condition`` holds of a state and the event that led to it; its errors name the version."""
        try:
            return condition.holds(tree_of(state), EventTree(row, self.codec) if row is not None else None)
        except BadExpression as problem:
            where = f"at version {state.version}" if state.version >= 0 else "before the first event"
            raise BadExpression(f"{where} of {self.stream}, {problem}") from None

    def kept_between(self, low: int, high: int) -> int | None:
        """The middle one of the versions between these two (without them) whose state is kept; ``None``: there is none."""
        first, end = bisect_right(self._marks, low), bisect_left(self._marks, high)
        return self._marks[(first + end) // 2] if first < end else None

    def holds_at(self, condition: Condition, version: int) -> bool:
        """Whether ``condition`` holds at ``version``. Raises what ``at`` and ``holds`` raise."""
        kept = self._states.get(version)  # it is only looked at: no copy is needed
        return self.holds(condition, kept[0] if kept is not None else self.at(version), self.row(version) if version >= 0 else None)

    def blocks_back(self, last: int) -> Iterator[tuple[int, int]]:
        """The history up to ``last`` in pieces ``first … last`` that ``each`` begins quickly, the latest first."""
        end = min(last, self.last)
        for mark in reversed(self._marks[: bisect_right(self._marks, end - 1)]):
            yield mark + 1, end
            end = mark

    def rows(self, after: int = -1, upto: int | None = None) -> Iterator[Sequence[Row]]:
        """Rows with ``after < version <= upto``, oldest first, in chunks."""
        end = self.head if upto is None else min(upto, self.head)
        begin = bisect_right(self._kept, after, key=_version)
        held = self._kept[begin : bisect_right(self._kept, end, key=_version)]
        if held:
            yield held
        reached = self._kept[-1][0] if self._kept else -1
        if end > reached and not self._all_kept:
            yield from self.log.rows(self.stream, after=max(after, reached), upto=end)

    def rows_back(self, last: int) -> Iterator[Row]:
        """Rows up to version ``last``, the latest first."""
        end = min(last, self.head)
        while end >= 0:
            begin = max(end - self._spacing, -1)
            yield from reversed([row for rows in self.rows(begin, end) for row in rows])
            end = begin

    def row(self, version: int) -> Row:
        """One row. Raises ``NoSuchVersion``."""
        found = next((row for rows in self.rows(version - 1, version) for row in rows), None)
        if found is None:
            raise self._no_version(version)
        return found

    # ── how ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _load(self) -> None:
        """Fold everything once: the states to go back to, and the rows as far as they fit."""
        size = 0
        state, folding, reached = self._folder.empty(self.stream), True, -1
        self._all_kept = True
        for rows in self.log.rows(self.stream, upto=self.head):
            if self._all_kept:
                size += sum(len(row[3]) for row in rows) + _ROW * len(rows)
                if size > self._memory:
                    self._all_kept = False
                else:
                    self._kept += rows
            if folding:
                folding = self._take(state, rows)
                reached = rows[-1][0]
            elif not self._all_kept:
                break
        self._stand(reached, state) if folding else self._stand(self.last, self.at(self.last))

    def _take(self, state: StreamState, rows: Sequence[Row]) -> bool:
        """Fold ``rows`` and keep states on the way; false, and ``broken`` and ``last`` tell, when that is not possible."""
        begin = 0
        while begin < len(rows):
            end = bisect_left(rows, self._due, begin, key=_version) + 1
            part = rows[begin:end]
            try:
                self._folder.fold_next(state, part)
            except (LogError, AgentError) as problem:
                self.broken, self.last = problem, self._last_before(problem, part)
                return False
            begin = end
            if part[-1][0] >= self._due:
                self._keep(state)
        return True

    def _last_before(self, problem: Problem, part: Sequence[Row]) -> int:
        """The version of the last of ``part`` that can be folded, or what came before it."""
        state, last = copied(self._states[self._marks[-1]][0]), self._marks[-1]
        for rows in (self.rows(last, part[0][0] - 1), (part,)):
            for row in (each for chunk in rows for each in chunk):
                try:
                    self._folder.fold_next(state, (row,))
                except (LogError, AgentError):
                    return last
                last = row[0]
        return last

    def _keep(self, state: StreamState) -> None:
        copier = Copier()
        self._states[state.version] = (copier.copy(state), copier.weight)
        self._marks.append(state.version)
        if sum(weight for _, weight in self._states.values()) > _MOST_KEPT and len(self._marks) > 2:
            self._spacing *= 2
            for mark in self._marks[1:-1:2]:
                del self._states[mark]
            self._marks = sorted(self._states)
        self.copied += copier.weight
        self._due = state.version + max(self._spacing, copier.weight // WORTH)

    def at(self, version: int) -> StreamState:
        """The state at ``version``, the caller's own; the walk stays where it is. Raises what ``broken`` holds."""
        if version > self.last:
            assert self.broken is not None
            raise self.broken
        mark = self._mark_before(version)
        state: StreamState = copied(self._states[mark][0])
        for rows in self.rows(mark, version):
            self._folder.fold(state, rows)
        return state

    def _mark_before(self, version: int) -> int:
        return self._marks[bisect_right(self._marks, version) - 1]

    def _stand(self, version: int, state: StreamState) -> None:
        self.version, self._live, self._handed = version, state, None

    def _until_back(self, condition: Condition) -> int | None:
        for first, last in self.blocks_back(self.version - 1):
            found, problem = None, None
            for row, state in self.each(first, last):
                try:
                    if self.holds(condition, state, row):
                        found, problem = row[0], None
                except BadExpression as bad:  # it counts where nothing holds between there and here
                    problem = bad
            if problem is not None:
                raise problem
            if found is not None:
                return found
        return None

    def _no_version(self, version: int) -> NoSuchVersion:
        return NoSuchVersion(f"{self.stream} has no version {version} here: its versions are 0 to {self.head}, and -1 is before the first event")


def _version(row: Row) -> int:
    return row[0]
