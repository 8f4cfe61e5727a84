"""How a fork goes on: the agent's code, run again from the first change by what is recorded, until something is missing.

Rules of this file: nothing is appended, asked or called; a fork lives in memory here. Up to the first change it is the
source, event by event. From there on every turn is decided anew, and what it asks for is looked up in what the source
had been told. A step without an answer stops it, and is shown.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from ...agents.app import App
from ...agents.appends import trigger
from ...agents.definitions import Definitions
from ...agents.errors import ImpossibleHistory
from ...agents.intents import fact_id, is_withdrawal, settlement_event_id
from ...agents.lifecycle import ActivationState, IntentState
from ...agents.requests import NeedRead
from ...agents.run import Activation
from ...agents.streams import Folder, StreamState
from ...eventlog.codec import Codec
from ...eventlog.errors import Undecodable
from ...eventlog.events import StoredEvent
from ...eventlog.log import EventLog
from ...eventlog.names import category_of
from ...eventlog.printing import one_line
from ..bundles.layout import FORMAT, VERSION, Manifest
from ..bundles.log import BundleLog
from ..errors import ForkRefused
from ..fold import At, folder_for, version_at
from ..holes import check_whole
from ..rerun import Rerun, describe_drift, describe_miss, rerun_turn
from .edits import Edits, edited
from .loaded import loaded_by, placed
from .pieces import CLOSING, FAILED, JOURNAL, Piece, append_around, is_told, likeness
from .pool import Pool

_RUNNABLE: Final = frozenset({ActivationState.QUEUED, ActivationState.RESUMABLE})
_NOT_BEYOND: Final = frozenset({"input.received", "cancel.requested", "input.redriven"})
"""What befalls a stream from outside; behind the version that is forked at it has not happened."""
_SPONTANEOUS: Final = frozenset({"input.received", "signal.received"})
_MOST_TURNS: Final = 10_000
_MOST_STEPS: Final = 10_000


class Why(enum.Enum):
    """Why a fork went no further."""

    DONE = "nothing is left to do"
    WAITS = "waits for what nobody has recorded"
    MISS = "takes a step without a recorded answer"
    FAILED = "the turn fails"
    LEFT = "the code leaves the recorded path"
    IMPOSSIBLE = "the changes make no possible history"


@attrs.frozen
class Stop:
    """Where and why."""

    why: Why
    text: str = ""
    step: int = -1


@attrs.frozen(eq=False)
class WhatIf:
    """A fork in memory."""

    stream: str
    #: Version of the source it is a copy of, before any change.
    upto: int
    #: From this version on its events are its own.
    first: int
    edits: Edits
    source: Sequence[StoredEvent]
    #: The source without what later inputs led to, which have not happened here.
    beside: tuple[Piece, ...]
    codec: Codec
    pieces: tuple[Piece, ...]
    state: StreamState
    stop: Stop
    #: Recorded outcomes behind ``first`` that found nothing open for them.
    unused: tuple[Piece, ...] = ()
    #: Streams of aggregates that its turns had loaded, as they stand in the source's log.
    loaded: Mapping[str, Sequence[StoredEvent]] = attrs.field(factory=dict)

    @property
    def log(self) -> BundleLog:
        """The fork as a log of its own, for everything that looks back."""
        events = [piece.stored(self.stream, version) for version, piece in enumerate(self.pieces)]
        return BundleLog(
            f"fork of {self.stream} at {self.upto}", Manifest(FORMAT, VERSION, "", "", "memory", (), {}), placed({self.stream: events, **self.loaded}), {}
        )

    @property
    def differs(self) -> bool:
        """Whether it is anything but the source's beginning."""
        both = zip(self.pieces, self.beside, strict=False)
        alike = all(self.like(mine) == self.like(theirs) for mine, theirs in both)
        return not alike or len(self.pieces) > len(self.beside)

    def like(self, event: Piece | StoredEvent) -> tuple[str, bytes]:
        """What it says, for comparing it with another."""
        return likeness(self.codec, event.type, event.schema, event.data)


def what_if(log: EventLog, app: App, stream: str, at: At | int | None = None, edits: Edits | None = None, *, approvals: bool = True) -> WhatIf:
    """Fork ``stream`` at ``at`` (``None``: its head), make ``edits``, and go on by what is recorded.

    ``approvals=False`` leaves out the decisions of people that open activations have got, so that they are asked again
    (S-7.5). Raises ``ForkRefused``, ``BrokenHistory``, ``NoSuchStream``, ``NoSuchVersion``, ``UnknownAgent``, ``Undecodable`` or
    ``ImpossibleHistory``. Not to be called while an event loop runs in the same thread.
    """
    folder, upto = folder_for(app, stream), version_at(log, stream, at)
    source = list(log.read(stream))
    check_whole(stream, source, "it cannot be forked")
    first, last = append_around(app.codec, source, upto)
    if last != upto:
        way = f"--at {first - 1} or --at {last}" if first else f"--at {last}"
        raise ForkRefused(f"Version {upto} stands inside of one append, versions {first} to {last}: nobody has ever seen the stream like that. Fork it {way}.")
    edits = edits or Edits()
    if not approvals:
        edits = attrs.evolve(edits, drops=tuple(dict.fromkeys((*edits.drops, *_decided(app, folder, source[: upto + 1])))))
    pieces, changed = edited(app.codec, source, upto, edits)
    later = _behind(source, upto, approvals)
    pool = _pool(app, source, [piece for piece in pieces if piece.origin >= changed] + later)
    walk = _Going(app.definitions[category_of(stream)], folder, folder.empty(stream), log, pool, _moments(app, source), upto)
    with asyncio.Runner() as runner:  # agent code may ask for the running loop, as it can in the worker
        runner.run(walk.go(pieces, changed, later))
    if not walk.pieces:
        raise ForkRefused(f"Nothing is left of {stream} when this is dropped: there is no fork without an event.")
    assert walk.stop is not None
    beside = (*(Piece.of(event) for event in source[: upto + 1]), *_behind(source, upto, True))
    loaded = loaded_by(log, app.codec, walk.pieces)
    return WhatIf(stream, upto, changed, edits, source, beside, app.codec, tuple(walk.pieces), walk.state, walk.stop, tuple(walk.pool.outcomes), loaded)


def _decided(app: App, folder: Folder, source: Sequence[StoredEvent]) -> list[int]:
    """Versions of the decisions that activations got which are still open."""
    state = folder.fold(folder.empty(source[0].stream), [Piece.of(event).row(event.version) for event in source])
    asked = {approval_id for each in state.run.open.values() for approval_id in each.approvals}
    decisions = ((event.version, app.codec.decode_stored(event)) for event in source if event.type == "approval.decided")
    return [version for version, decision in decisions if decision.approval_id in asked]


def _behind(source: Sequence[StoredEvent], upto: int, approvals: bool) -> list[Piece]:
    """What the source recorded behind the fork, without what inputs led to that have not happened there."""
    later = {event.event_id for event in source[upto + 1 :] if event.type in _NOT_BEYOND}
    left_out = _NOT_BEYOND if approvals else _NOT_BEYOND | {"approval.decided"}
    return [Piece.of(event) for event in source[upto + 1 :] if event.type not in left_out and event.correlation not in later]


def _pool(app: App, source: Sequence[StoredEvent], answering: Sequence[Piece]) -> Pool:
    """The answers among ``answering``, and what the source's effects were, by which their outcomes are found."""
    staged = [(app.codec.decode_stored(event), event.correlation) for event in source if event.type == "intent.staged"]
    pool = Pool(app.codec, {fact.intent_id: fact.digest for fact, _ in staged}, {fact.intent_id: correlation for fact, correlation in staged})
    for piece in answering:
        if piece.type in JOURNAL:
            pool.keep(piece)
    return pool


def _moments(app: App, source: Sequence[StoredEvent]) -> dict[tuple[bytes | None, int], int]:
    """``ctx.now`` of the source's turns, by input and turn: a fork's turns are taken at the same moments, for answers may depend on them."""
    moments: dict[tuple[bytes | None, int], int] = {}
    turns: dict[bytes | None, int] = {}
    for event in source:
        if event.type in CLOSING:
            closing = app.codec.decode_stored(event)
            turn = turns.get(event.correlation, 0)
            turns[event.correlation] = turn + 1
            moments[event.correlation, turn] = closing.now
    return moments


@attrs.define(eq=False)
class _Going:
    definitions: Definitions
    folder: Folder
    state: StreamState
    log: EventLog
    pool: Pool
    #: (event id of the input, turn) → ``ctx.now``
    moments: dict[tuple[bytes | None, int], int]
    #: The version that is forked at.
    upto: int
    pieces: list[Piece] = attrs.field(factory=list)
    stop: Stop | None = None

    async def go(self, pieces: Sequence[Piece], changed: int, later: Sequence[Piece]) -> None:
        """Never waits. The source's beginning as it is, then what it was told in its order with the turns decided anew, then the rest."""
        copied = _copied(pieces, changed)
        self._take(*pieces[:copied])
        try:
            for piece in (*pieces[copied:], *later):
                self._next(piece)
                if self.stop is not None:
                    return
            turns = 0
            while self.stop is None and turns < _MOST_TURNS:
                turns += 1
                if not self._turn(self._now()):
                    outcome = self.pool.take_outcome(self.state.run)
                    if outcome is None:
                        self.stop = self._rest()
                    else:
                        self._take(outcome)
            self.stop = self.stop or Stop(Why.LEFT, f"{_MOST_TURNS:,} turns, and no end")
        except (ImpossibleHistory, Undecodable) as problem:
            self.stop = Stop(Why.IMPOSSIBLE, str(problem))
        finally:
            for started in asyncio.all_tasks() - {asyncio.current_task()}:
                started.cancel()  # before their first step: what agent code starts on the side does not run here

    def _next(self, piece: Piece) -> None:
        """One piece behind the first change: taken in, kept for later, or the place where a turn was decided."""
        if piece.type in CLOSING or piece.type == FAILED:
            fact = self.definitions.codec.decode(piece.type, piece.schema, piece.data)
            self._turn(fact.now or piece.recorded_at)
        elif piece.type in JOURNAL:
            self._begin(piece)
        elif is_told(self.definitions.codec, piece.type, piece.schema, piece.data):
            fitting = piece if piece.type in _SPONTANEOUS and piece.origin <= self.upto else self.pool.fitting(self.state.run, piece)
            if fitting is not None:
                self._take(fitting)
            else:
                self.pool.outcomes.append(piece)

    def _take(self, *pieces: Piece) -> None:
        first = len(self.pieces)
        self.folder.fold(self.state, [piece.row(first + place) for place, piece in enumerate(pieces)])
        self.pieces += pieces

    def _now(self) -> int:
        return max((piece.recorded_at for piece in self.pieces[-1:]), default=0)

    def _begin(self, piece: Piece) -> None:
        """Where the source was given this answer, the fork's turn gets it too, if that is what it asks for there: it sees no more than that turn did."""
        activation = self._runnable()
        if activation is not None:
            now, seen = self._moment(activation, self._now())
            turn = self._rerun(activation, now, seen)
            answer = self.pool.answer(turn.miss, activation, now, seen, piece) if turn.miss is not None else None
            if answer is not None:
                self._take(answer)

    # ── a turn ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _runnable(self) -> Activation | None:
        run = self.state.run
        activation = run.current
        if activation is None or activation.state not in _RUNNABLE or activation.seq not in run.line or run.blocked:
            return None
        return activation

    def _moment(self, activation: Activation, now: int) -> tuple[int, int]:
        """``ctx.now`` of its turn, and the version it has seen."""
        if activation.turn_now:
            return activation.turn_now, activation.turn_seen
        return self.moments.get((activation.input_event_id, activation.turns), now), self.state.version

    def _turn(self, now: int) -> bool:
        """Decide one turn, if one can be decided; whether anything came of it."""
        activation = self._runnable()
        if activation is None:
            return False
        now, seen = self._moment(activation, now)
        turn = self._run(activation, now, seen)
        if turn.ended:
            self._commit(activation, turn, now)
        elif turn.miss is not None:
            step = turn.miss.index if isinstance(turn.miss, NeedRead) else turn.miss.step
            place = "" if isinstance(turn.miss, NeedRead) else f"step {step}, "  # a read's name holds its number
            self.stop = Stop(Why.MISS, f"activation {activation.seq}, {place}{describe_miss(turn.miss, '').decided}", step)
        elif turn.drift is not None:
            left = describe_drift(turn.drift)
            where = f"activation {activation.seq}, step {left.step} ({left.subject}) {left.field}"
            self.stop = Stop(Why.LEFT, f"{where}: recorded {left.recorded}, decided {left.decided}", left.step)
        else:
            self.stop = Stop(Why.FAILED, f"activation {activation.seq}, step {turn.position[0]}: {type(turn.raised).__name__}: {turn.raised}", turn.position[0])
        return True

    def _run(self, activation: Activation, now: int, seen: int) -> Rerun:
        for _ in range(_MOST_STEPS):
            turn = self._rerun(activation, now, seen)
            answer = self.pool.answer(turn.miss, activation, now, seen) if turn.miss is not None else None
            if answer is None:
                return turn
            self._take(answer)
        raise ForkRefused(f"activation {activation.seq} takes more than {_MOST_STEPS:,} steps in one turn")

    def _rerun(self, activation: Activation, now: int, seen: int) -> Rerun:
        begun_with = self.state.begun_with(activation)
        return rerun_turn(self.definitions, self.state.run, activation, begun_with, self.state.stream, now, seen, None, self.log)

    def _commit(self, activation: Activation, turn: Rerun, now: int) -> None:
        """The turn's append, as a worker would make it at this moment."""
        made: list[Piece] = []
        correlation, causation = activation.input_event_id, trigger(activation)
        moment = max(now, self._now())
        for kind, schema, blob in turn.staged:
            event_id = fact_id("fork", self.state.stream, len(self.pieces) + len(made), kind)
            if kind == "intent.settled":
                fact = self.definitions.codec.decode(kind, schema, blob)
                intent = self.state.run.intents.get(fact.intent_id)
                if is_withdrawal(fact) and intent is not None and intent.state is not IntentState.STAGED:
                    continue  # it was begun meanwhile
                event_id = settlement_event_id(fact.intent_id, 0)
            made.append(Piece(kind, schema, blob, event_id, moment, correlation, causation))
        self._take(*made)

    # ── the end ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _rest(self) -> Stop:
        run = self.state.run
        activation = run.current
        if activation is None:
            return Stop(Why.DONE)
        if activation.state is not ActivationState.SUSPENDED:
            return Stop(Why.DONE, f"activation {activation.seq} is {activation.state.value}")
        waits = [self._described(wait) for wait in activation.waits if run.resolved_at(activation, wait) is None]
        return Stop(Why.WAITS, f"activation {activation.seq}: {'; '.join(waits) or 'its deadline'}", activation.step)

    def _described(self, wait: str) -> str:
        intent = self.state.run.intents.get(wait)
        if intent is None:
            return wait
        recorded = self.pool.digests.get(wait, intent.digest)
        other = "; the source has another one there" if recorded != intent.digest else ""
        return f"{intent.tool} {one_line(intent.args, 160)} has no recorded outcome{other}"


def _copied(pieces: Sequence[Piece], changed: int) -> int:
    """How many of ``pieces`` stand before the first change."""
    return next((place for place, piece in enumerate(pieces) if not 0 <= piece.origin < changed), len(pieces))
