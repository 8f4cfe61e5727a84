"""From rows to a key's state: one pass, decoders resolved once, the same function live, on replay and from a snapshot (S-8.1)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs

from ..eventlog.errors import LogError, Undecodable
from ..eventlog.events import NewEvent, Row
from ..eventlog.fingerprint import fingerprint
from ..eventlog.log import Snapshot
from ..eventlog.registry import event_name
from . import facts
from .definitions import Definitions
from .errors import FoldFailed, ImpossibleHistory
from .evolve import APPLY
from .holes import hole
from .owning import Applier, in_place
from .run import LINEAR, Activation, RunState

_Entry = tuple[Callable[[bytes], Any], Callable[[RunState, Any, int], None] | None, bool, Applier | None, Applier | None]
"""Decoder, what a fact does to the run, whether it is a suspension, applier, the same in place."""
_FACTS = {event_name(fact)[0]: fact for fact in facts.FACTS}


@attrs.define
class StreamState:
    """The fold of one stream at ``version`` (-1: empty)."""

    stream: str
    run: RunState
    #: The agent's aggregate; ``None`` when it declares none.
    state: Any
    version: int = -1
    #: Version of the latest snapshot it was folded from.
    snapshot_version: int = -1
    #: The aggregate as it was when an open activation of linear code began: seq → state. It is re-run from there.
    bases: dict[int, Any] = attrs.field(factory=dict)
    #: The aggregate as it was before the append that is being taken in.
    before: Any = None

    def take_over(self, fresh: StreamState) -> None:
        """Become what ``fresh`` is."""
        self.run, self.state, self.version, self.bases = fresh.run, fresh.state, fresh.version, fresh.bases

    def begun_with(self, activation: Activation) -> Any:
        """The aggregate that the activation's code starts with."""
        return self.bases.get(activation.seq, self.state) if activation.is_linear else self.state


class Folder:
    """Folds streams of one agent."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._codec = definitions.codec
        self._state = definitions.agent.state
        self._appliers: dict[type, Applier] = dict(self._state.__appliers__) if self._state else {}
        #: (type, schema) → what it takes; filled as types are met.
        self._table: dict[tuple[str, int], _Entry] = {}

    @functools.cached_property
    def fingerprint(self) -> str:
        """Of the folding code and every schema it reads; a snapshot under another one is ignored (S-8.2)."""
        return fingerprint(_fingerprint_of_runs(), self._state, *self._appliers, *self._appliers.values())

    def empty(self, stream: str) -> StreamState:
        """The state of a stream in which nothing has happened."""
        return StreamState(stream, RunState(while_suspended=self._definitions.agent.while_suspended), self._state() if self._state else None)

    def fold_next(self, into: StreamState, rows: Sequence[Row]) -> StreamState:
        """``fold`` of what a log has next. Versions are contiguous (S-1.3): a state folded over a hole would be wrong and say nothing of it."""
        if rows and (rows[0][0] != into.version + 1 or rows[-1][0] - into.version != len(rows)):
            raise _hole(into, rows)
        return self.fold(into, rows)

    def fold(self, into: StreamState, rows: Iterable[Row]) -> StreamState:
        """Take ``rows`` in, in order. Raises ``Undecodable`` or ``ImpossibleHistory`` naming stream and version."""
        table, state, version = self._table, into.state, into.version
        run, line, bases, emitting = into.run, into.run.line, into.bases, into.run.emitting
        owned = False  # whether nobody else holds ``state``
        try:
            for version, kind, schema, data, _, recorded_at in rows:
                entry = table.get((kind, schema)) or self._resolve(kind, schema)
                decode, take, suspends, applier, here = entry
                if take is not None:
                    run.at = version
                    fact = decode(data)
                    if suspends and fact.mode == LINEAR and fact.seq not in bases:  # its code is re-run from here
                        bases[fact.seq], owned = into.before if emitting else state, False
                    take(run, fact, recorded_at)
                    continue
                if line:  # a domain event is the work of the activation whose append it stands in
                    if not emitting:
                        into.before, owned = state, False
                    emitting.append((kind, schema, data))
                if applier is None:
                    continue
                if owned and here is not None:
                    state = here(state, decode(data))
                else:
                    before, state = state, applier(state, decode(data))
                    owned = here is not None and state is not before
        except Undecodable as problem:
            raise problem.at(into.stream, version) from problem
        except ImpossibleHistory as problem:
            raise ImpossibleHistory(f"{into.stream} version {version}: {problem}") from problem
        except Exception as problem:  # a user's applier; it stops this stream, not the worker
            raise FoldFailed(f"{into.stream} version {version}: the applier of {kind} raised {type(problem).__name__}: {problem}") from problem
        into.state, into.version = state, version
        if bases:
            into.bases = {seq: base for seq, base in bases.items() if seq in run.open}
        return into

    def fold_staged(self, into: StreamState, events: Sequence[NewEvent], read: Sequence[Any]) -> None:
        """``fold`` over events that are about to be appended: the same result (S-8.1).

        ``read`` holds those that were read back when they were encoded, so that they need not be once more, else ``None``.
        """
        version, run = into.version, into.run
        if None in read or run.emitting or into.bases or (type(read[-1]) is facts.Suspended and read[-1].mode == LINEAR):
            first = version + 1
            self.fold(into, [(first + place, event.type, event.schema, event.data, event.event_id, 0) for place, event in enumerate(events)])
            return
        try:
            for fact in read:
                version += 1
                run.at = version
                APPLY[type(fact)](run, fact, 0)
        except ImpossibleHistory as problem:
            raise ImpossibleHistory(f"{into.stream} version {version}: {problem}") from problem
        into.version = version

    def _resolve(self, kind: str, schema: int) -> _Entry:
        decode = self._codec.decoder(kind, schema)
        fact = _FACTS.get(kind)
        entry: _Entry
        if fact is not None:
            entry = decode, APPLY[fact], fact is facts.Suspended, None, None
        else:
            applier = self._appliers.get(self._codec.class_of(kind))
            entry = decode, None, False, applier, in_place(applier, self._state) if applier and self._state else None
        self._table[kind, schema] = entry
        return entry

    def snapshot(self, folded: StreamState) -> Snapshot:
        """``folded`` as a snapshot."""
        held = {"run": self._codec.encode_value(folded.run, RunState)}
        if self._state is not None:
            held["state"] = self._codec.encode_value(folded.state, self._state)
            held["bases"] = self._codec.encode_value(folded.bases, dict[int, self._state])  # type: ignore[name-defined]
        return Snapshot(folded.version, self.fingerprint, self._codec.encode_value(held, dict[str, bytes]))

    def restore(self, stream: str, snapshot: Snapshot | None) -> StreamState:
        """The state a snapshot holds; an empty one when there is none, it does not fit, or it cannot be read (S-8.2)."""
        if snapshot is None or snapshot.fingerprint != self.fingerprint:
            return self.empty(stream)
        try:
            held = self._codec.decode_value(snapshot.data, dict[str, bytes])
            state = self._codec.decode_value(held["state"], self._state) if self._state is not None else None
            bases = self._codec.decode_value(held["bases"], dict[int, self._state]) if self._state is not None else {}  # type: ignore[name-defined]
            run = self._codec.decode_value(held["run"], RunState)
            run.while_suspended = self._definitions.agent.while_suspended
            return StreamState(stream, run, state, snapshot.version, snapshot.version, bases)
        except (LogError, KeyError):
            return self.empty(stream)


@functools.cache
def _fingerprint_of_runs() -> str:
    """Of the runtime's own part, which is the same for every agent and takes longer than an agent's: once a process."""
    return fingerprint(*APPLY.values(), RunState, *facts.FACTS)


def _hole(into: StreamState, rows: Sequence[Row]) -> ImpossibleHistory:
    version, wanted = next((row[0], wanted) for wanted, row in enumerate(rows, into.version + 1) if row[0] != wanted)
    return ImpossibleHistory(hole(into.stream, wanted, version))
