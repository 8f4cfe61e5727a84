"""What a turn that was run again differs in from what stands in the log of it: the first difference, placed where somebody can look.

A turn that committed left an append, whose rows are its ``group``; one that failed left its failure alone.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any, Final

import attrs

from ..agents import facts
from ..agents.definitions import Definitions
from ..agents.requests import NeedModel, Request
from ..agents.run import Activation
from ..eventlog.errors import LogError, Undecodable
from ..eventlog.events import Row
from .compare import Mismatch, compare_staged, describe
from .rerun import Described, Rerun, describe_drift, describe_failure, describe_miss
from .verdicts import Divergence, Kind

_ENTRIES: Final = {"model": "model_call.cached", "read": "tool_call.cached", "load": "aggregate.loaded"}
_STAGED_STEPS: Final = frozenset({"intent.staged", "timer.armed"})
_MANY_ENTRIES: Final = 1_000
_OUTSIDE: Final = frozenset(
    {"TurnTimedOut", "ModelFailed", "ModelRefused", "LogUnavailable", "StoreSchemaError", "AggregateContended", "AggregateExists", "InputConflict"}
)
"""Failures by their type's name whose cause is never in the log: clocks, providers, stores."""


class NothingToSay(Exception):
    """Nothing can be said of a turn, nor of what follows it."""


@attrs.define(eq=False)
class Judge:
    """Judges the turns of one stream."""

    definitions: Definitions
    stream: str
    #: Told, by version, of what is no difference and worth a word.
    note: Callable[[int, str], None]
    #: Journal entries of the open activations; looked into only when a divergence is to be placed.
    journal: list[Row] = attrs.field(factory=list)
    most_entries: int = _MANY_ENTRIES

    def decode(self, row: Row) -> Any:
        """The row's event; raises ``Undecodable`` with its place."""
        try:
            return self.definitions.codec.decode(row[1], row[2], row[3])
        except Undecodable as problem:
            raise problem.at(self.stream, row[0]) from problem

    def forget(self, still_open: Container[int]) -> None:
        """The entries of activations that are over; looked through ever more seldom where many stay open."""
        if not still_open:
            self.journal.clear()
        elif len(self.journal) > self.most_entries:
            self.journal = [row for row in self.journal if self.decode(row).seq in still_open]
            self.most_entries = max(_MANY_ENTRIES, 2 * len(self.journal))

    def committed(self, activation: Activation, group: Sequence[Row], turn: Rerun) -> Divergence | None:
        """What differs in a turn that was committed: in the order the code did it, staged events before the step it stopped at."""
        found = self._compare(group, turn)
        thrown = turn.thrown is not None and (found is not None or not turn.ended)
        if found is not None and not (thrown and found.version - group[0][0] >= turn.staged_before):
            return self._divergence(activation, Kind.EVENT, found)
        if thrown and turn.thrown is not None:  # it asked for what was never recorded, and failing it did not explain the rest
            return self._at_entry(activation, group[0], Kind.MISS, describe_miss(turn.thrown, self._recorded_at(group, turn.thrown)))
        if turn.drift is not None:
            return self._at_entry(activation, group[0], Kind.DRIFT, describe_drift(turn.drift))
        if turn.miss is not None:
            return self._at_entry(activation, group[0], Kind.MISS, describe_miss(turn.miss, self._recorded_at(group, turn.miss)))
        if turn.raised is not None:
            row = group[min(len(turn.staged), len(group) - 1)]
            decided = f"the turn fails with {type(turn.raised).__name__}: {turn.raised!s:.300}"
            return self._divergence(
                activation, Kind.FAILURE, Mismatch(row[0], row[1], turn.position[0], "", f"{row[1]}: the turn ended without a failure", decided)
            )
        return None

    def failed(self, activation: Activation, failed: facts.ActivationFailed, row: Row, turn: Rerun) -> Divergence | None:
        """What differs in a turn that left nothing but its failure, ``failed``, in ``row``."""
        at = (failed.step, failed.index)
        if turn.raised is not None and type(turn.raised).__name__ == failed.failure.type and turn.position == at:
            return None
        outside = failed.failure.type in _OUTSIDE
        if turn.miss is not None and (turn.position == at or (outside and turn.position >= at)):
            self.note(
                row[0], f"{failed.failure.type} at step {failed.step} came from outside the code; the turn reaches that step and nothing more can be said"
            )
            return None
        if turn.drift is not None and failed.failure.type != type(turn.drift).__name__:
            return self._at_entry(activation, row, Kind.DRIFT, describe_drift(turn.drift))
        if outside and turn.ended:
            self.note(row[0], f"{failed.failure.type} came from outside the code; the turn now ends without it")
            return None
        if turn.miss is not None:
            return self._at_entry(activation, row, Kind.MISS, describe_miss(turn.miss, ""))
        if turn.raised is not None and type(turn.raised).__name__ == failed.failure.type:
            found = Mismatch(
                row[0],
                row[1],
                failed.step,
                "",
                f"{failed.failure.type} at {_at(at)}",
                f"{failed.failure.type} at {_at(turn.position)}",
                "step" if turn.position[0] != at[0] else "index",
            )
        else:
            recorded, decided, field = describe_failure(failed.failure, turn.raised)
            found = Mismatch(row[0], row[1], failed.step, "", recorded, decided, field)
        return self._divergence(activation, Kind.FAILURE, found)

    def _recorded_in(self, activation: Activation, entry: tuple[str, int]) -> int:
        """Version of the activation's journal entry, or -1."""
        for row in reversed(self.journal):
            if _ENTRIES.get(entry[0]) == row[1]:
                cached = self.decode(row)
                if (cached.seq, cached.index if isinstance(cached, facts.ToolCallCached) else cached.step) == (activation.seq, entry[1]):
                    return row[0]
        return -1

    def _recorded_at(self, group: Sequence[Row], request: Request) -> str:
        """The event that the recorded turn staged at the step of ``request``, in words; empty when there is none."""
        step = request.step if isinstance(request, NeedModel) else -1
        staged = (self.decode(row) for row in group if row[1] in _STAGED_STEPS)
        return next((describe(event) for event in staged if event.step == step), "")

    def _compare(self, group: Sequence[Row], turn: Rerun) -> Mismatch | None:
        try:
            return compare_staged(self.definitions.codec, group, turn.staged)
        except Undecodable as problem:
            raise NothingToSay(f"{self.stream}, versions {group[0][0]} to {group[-1][0]}: {problem}") from problem
        except LogError as problem:
            raise NothingToSay(f"{self.stream}, versions {group[0][0]} to {group[-1][0]} cannot be compared: {problem}") from problem

    def _at_entry(self, activation: Activation, closing: Row, kind: Kind, found: Described) -> Divergence:
        recorded = self._recorded_in(activation, found.entry) if kind is Kind.DRIFT else -1
        version, event = (recorded, _ENTRIES[found.entry[0]]) if recorded >= 0 else (closing[0], closing[1])
        return self._divergence(activation, kind, Mismatch(version, event, found.step, found.subject, found.recorded, found.decided, found.field))

    def _divergence(self, activation: Activation, kind: Kind, found: Mismatch) -> Divergence:
        return Divergence(
            self.stream,
            found.version,
            found.event,
            kind,
            activation.seq,
            activation.turns,
            found.step,
            found.recorded,
            found.decided,
            found.field,
            found.subject,
        )


def _at(position: tuple[int, int]) -> str:
    return f"step {position[0]}, read {position[1]}"
