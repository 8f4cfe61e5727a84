"""A stream's history walked once, each of its turns run again where its append stands (S-9.1, S-9.2).

The walk folds as it goes, so that the state at any turn's beginning is at hand without a second read. A turn's journal
entries come before its append in the stream, and folding them fills the journal the turn is answered from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import attrs

from ..agents import facts
from ..agents.app import App
from ..agents.definitions import Definitions
from ..agents.errors import ImpossibleHistory
from ..agents.intents import is_withdrawal
from ..agents.lifecycle import ActivationState
from ..agents.requests import NeedModel
from ..agents.run import Activation
from ..agents.streams import Folder, StreamState
from ..eventlog.errors import Undecodable
from ..eventlog.events import Row
from ..eventlog.log import EventLog, Snapshot
from ..eventlog.names import category_of
from .allowing import Allowance, allowance_for
from .errors import BrokenHistory
from .judging import Judge, NothingToSay
from .kept import Kept
from .rerun import Rerun, rerun_turn
from .verdicts import Divergence, Excused, StreamReplay, Verdict
from .views import Arrivals

_ARRIVALS: Final = facts.ARRIVALS | {"timer.fired"}
_BESIDE: Final = frozenset({"intent.attempted", "intent.postponed", "intent.settled"})
_OF_INTENTS: Final = frozenset({"intent.attempted", "intent.settled"})
_JOURNAL: Final = frozenset({"model_call.cached", "tool_call.cached", "aggregate.loaded"})
_CLOSING: Final = frozenset({"activation.suspended", "activation.completed", "activation.continued"})
_FAILED: Final = "activation.failed"
_SIGNED: Final = frozenset({"intent.signed", "outcome.signed", "approval.signed"})
_RUNNABLE: Final = frozenset({ActivationState.QUEUED, ActivationState.RESUMABLE})
_MOST_NOTES: Final = 20
_MOST_EXCUSED: Final = 100
#: Rows that are folded at once.
_MANY: Final = 1_000
_BY_AGENT: Final = b"agent"
_PATCHED: Final = "patched"
_UNANSWERED: Final = "model_call.failed"
_NONE: Final[frozenset[str]] = frozenset()


class _Diverged(Exception):
    """How the walk stops at a divergence."""

    def __init__(self, divergence: Divergence) -> None:
        super().__init__()
        self.divergence = divergence


def replay_rows(
    app: App,
    folder: Folder,
    stream: str,
    chunks: Iterable[Sequence[Row]],
    log: EventLog,
    *,
    snapshot: Snapshot | None = None,
    allowances: Sequence[Allowance] = (),
) -> StreamReplay:
    """Walk a stream's whole history; ``chunks`` are its rows from version 0 on, ``log`` has what it loaded of others.

    With ``snapshot`` the aggregate is compared at its version. What ``allowances`` cover is noted, and the walk goes on.
    """
    definitions = app.definitions[category_of(stream)]
    walk = _Walk(definitions, folder, folder.empty(stream), log, Kept(definitions, snapshot), allowances)
    verdict, divergence, reason = Verdict.SAME, None, ""
    try:
        for rows in chunks:
            for row in rows:
                walk.take(row)
        walk.end()
    except _Diverged as found:
        verdict, divergence = Verdict.DIVERGED, found.divergence
    except (NothingToSay, BrokenHistory, Undecodable, ImpossibleHistory) as problem:
        verdict, reason = Verdict.CANNOT, str(problem)
    if verdict is Verdict.SAME and walk.excused:
        verdict = Verdict.ALLOWED
    return StreamReplay(stream, verdict, walk.events, walk.turns, walk.hits, divergence, reason, tuple(walk.notes), tuple(walk.excused), walk.kept.check)


@attrs.define(eq=False)
class _Walk:
    definitions: Definitions
    folder: Folder
    state: StreamState
    log: EventLog
    kept: Kept
    allowances: Sequence[Allowance]
    events: int = 0
    turns: int = 0
    hits: int = 0
    notes: list[str] = attrs.field(factory=list)
    #: Events of an append whose closing fact has not come yet.
    group: list[Row] = attrs.field(factory=list)
    arrivals: Arrivals = attrs.field(factory=Arrivals)
    excused: list[Excused] = attrs.field(factory=list)
    #: What happened to intents while nobody was in line, not folded yet.
    later: list[Row] = attrs.field(factory=list)
    judge: Judge = attrs.field(init=False, default=attrs.Factory(lambda self: Judge(self.definitions, self.state.stream, self._note), takes_self=True))

    def take(self, row: Row) -> None:
        kind = row[1]
        if kind in _BESIDE and not self.state.run.line and not self.group and _BY_AGENT not in row[3] and len(self.later) < _MANY:
            self.later.append(row)  # nobody is in line whom it could wake: folded with what comes next
            self.events += 1
            if self.kept.is_due(row[0]):
                self._catch_up()
                self._hold(row)
            return
        self._catch_up()
        if kind in _SIGNED:  # by whoever had keys then; a replay decides without
            if not self.group:
                self.folder.fold(self.state, (row,))
        elif kind in _ARRIVALS and not (kind == "intent.settled" and _BY_AGENT in row[3] and is_withdrawal(self.judge.decode(row))):
            self._arrival(row)
        elif kind in _JOURNAL:
            self._entry(row)
        elif kind == _FAILED:
            self._whole()
            self._failed(row)
        else:
            self.group.append(row)
            if kind in _CLOSING:
                self._closed()
        self.events += 1
        self._hold(row)

    def _catch_up(self) -> None:
        if self.later:
            later, self.later = self.later, []
            self.folder.fold(self.state, later)

    def _hold(self, row: Row) -> None:
        if self.kept.is_due(self.state.version) and (found := self.kept.compared(self.state, row)) is not None:
            self._report(found)

    def _report(self, divergence: Divergence) -> None:
        """Stop at ``divergence``, unless the allow-list lets it through."""
        allowance = allowance_for(self.allowances, divergence) if self.allowances else None
        if allowance is None:
            raise _Diverged(divergence)
        if len(self.excused) < _MOST_EXCUSED:
            self.excused.append(Excused(allowance.line, divergence))

    def end(self) -> None:
        """The history may stop anywhere but within an append."""
        self._whole()
        self._catch_up()

    def _whole(self) -> None:
        if self.group:
            version, kind = self.group[0][:2]
            raise NothingToSay(
                f"{self.state.stream} version {version}: {kind} stands outside of any turn's append, for no closing fact follows it. Was it appended by hand?"
            )

    # ── between turns ───────────────────────────────────────────────────────────────────────────────────────────────

    def _arrival(self, row: Row) -> None:
        self._whole()
        runnable = any(self._runnable(seq) is not None for seq in self.state.run.line)
        if runnable and row[1] in _OF_INTENTS:
            intent = self.state.run.intents.get(self.judge.decode(row).intent_id)
            if intent is not None:
                self.arrivals.note(intent)
        self.folder.fold(self.state, (row,))
        if not runnable:  # whatever made it runnable lies before the turn's load
            self.arrivals.clear()

    def _entry(self, row: Row) -> None:
        self._whole()
        self.folder.fold(self.state, (row,))
        self.arrivals.entry()
        self.judge.journal.append(row)

    def _runnable(self, seq: int) -> Activation | None:
        """Activation ``seq`` if a turn of it can be run: the closing fact tells whose turn it was, whatever the agent's policy is by now."""
        activation = self.state.run.open.get(seq)
        return activation if activation is not None and activation.state in _RUNNABLE and seq in self.state.run.line else None

    # ── turns ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _closed(self) -> None:
        closing = self.judge.decode(self.group[-1])
        activation = self._runnable(closing.seq)
        if activation is None:
            self.folder.fold(self.state, self.group)  # says itself why this cannot follow
            raise NothingToSay(f"{self.state.stream} version {self.group[-1][0]}: activation {closing.seq} was not to be run then")
        now, seen = activation.turn_now or closing.now, activation.turn_seen if activation.turn_now else closing.seen
        try:
            turn, place = self._reproduced(activation, now, seen, closing)
        except _Diverged as found:
            self._report(found.divergence)
        else:
            if turn.thrown is not None:
                self._note(self.group[-1][0], "a step without a recorded answer, whose failure the agent's code had handled, failed again")
            if place:
                self._note(self.group[-1][0], "outcomes had arrived while the turn ran; it came out as recorded as of another moment of its load")
            self._done(turn)
        self.folder.fold(self.state, self.group)
        self.group.clear()
        self.arrivals.clear()
        if not isinstance(closing, facts.Suspended):
            self.judge.forget(self.state.run.open)

    def _reproduced(self, activation: Activation, now: int, seen: int, closing: Any) -> tuple[Rerun, int]:
        """The turn as it was committed, and how many views it took; raises when no view reproduces it."""
        first: Divergence | None = None
        closed_at = closing.step, closing.index
        begun_with, kinds = self.state.begun_with(activation), [row[1] for row in self.group]
        guards = frozenset(self.judge.decode(row).name for row in self.group if row[1] == _PATCHED) if _PATCHED in kinds else _NONE
        told = [self.judge.decode(row) for row in self.group if row[1] == _UNANSWERED] if _UNANSWERED in kinds else ()
        failures = {failed.step: failed.failure for failed in told}
        for place, run in enumerate(self.arrivals.views(self.state.run)):
            turn = rerun_turn(self.definitions, run, activation, begun_with, self.state.stream, now, seen, closed_at, self.log, guards, closing.code, failures)
            found = self.judge.committed(activation, self.group, turn)
            if found is None:
                return turn, place
            first = first or found
        assert first is not None
        raise _Diverged(first)

    def _failed(self, row: Row) -> None:
        """A turn that left nothing but its failure: it must fail again, unless the cause lay outside of its code."""
        failed = self.judge.decode(row)
        activation = self._runnable(failed.seq)
        if activation is not None:
            try:
                self._done(self._best_failure(activation, failed, row))
            except _Diverged as found:
                self._report(found.divergence)
        self.folder.fold(self.state, (row,))
        self.arrivals.clear()

    def _best_failure(self, activation: Activation, failed: facts.ActivationFailed, row: Row) -> Rerun:
        first: Divergence | None = None
        begun_with, now = self.state.begun_with(activation), activation.turn_now or failed.now or row[5]
        seen = activation.turn_seen if activation.turn_now else failed.seen if failed.now else self.state.version
        for run in self.arrivals.views(self.state.run):
            turn = rerun_turn(self.definitions, run, activation, begun_with, self.state.stream, now, seen, None, self.log)
            found = self.judge.failed(activation, failed, row, turn)
            if found is not None and isinstance(turn.miss, NeedModel) and turn.miss.step < failed.step - 1:
                # It may have gone on from a provider's failure before it failed itself, which left nothing of either.
                again = rerun_turn(self.definitions, run, activation, begun_with, self.state.stream, now, seen, (failed.step, failed.index), self.log)
                if self.judge.failed(activation, failed, row, again) is None:
                    self._note(row[0], "a step without a recorded answer, whose failure the agent's code had handled, failed again")
                    return again
            if found is None:
                return turn
            first = first or found
        assert first is not None
        raise _Diverged(first)

    # ── findings ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _done(self, turn: Rerun) -> None:
        self.turns += 1
        self.hits += turn.hits

    def _note(self, version: int, text: str) -> None:
        if len(self.notes) < _MOST_NOTES:
            self.notes.append(f"version {version}: {text}")
