"""Folding a plain aggregate from its stream: what the worker does for a load, what replay does for a recorded one.

Rules of this file: nothing is decided and nothing is written, apart from a snapshot that spares the next reader the work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs

from ..eventlog.codec import Codec
from ..eventlog.errors import LogError, Undecodable
from ..eventlog.events import Row
from ..eventlog.fingerprint import fingerprint
from ..eventlog.log import EventLog, Snapshot
from ..eventlog.registry import event_name
from . import facts
from .aggregate import Aggregate, check_aggregate
from .errors import DefinitionError, FoldFailed
from .owning import Applier, in_place

if TYPE_CHECKING:
    from .definitions import Definitions
    from .others import Other, OtherSteps

Encoded: TypeAlias = "tuple[str, int, bytes]"
"""``(type, schema, bytes)`` of an event."""
_Entry = tuple[Callable[[bytes], Any], Applier, Applier | None]
_FACTS: Final = frozenset(event_name(fact)[0] for fact in facts.FACTS)


@attrs.frozen
class Loaded:
    """An aggregate as it was at ``version`` of its stream (-1: nothing has happened to it)."""

    state: Any
    version: int


class PlainFolder:
    """Folds streams of one aggregate class, domain events only. ``runs``: the streams are an agent's; its facts are passed over."""

    def __init__(self, codec: Codec, aggregate: type[Aggregate], *, runs: bool = False) -> None:
        self.aggregate = aggregate
        self._codec, self._runs = codec, runs
        #: (type, schema) → (decoder, applier, the same in place), or ``None`` for what the aggregate does not listen to.
        self._table: dict[tuple[str, int], _Entry | None] = {}
        self._fingerprint = ""

    @property
    def fingerprint(self) -> str:
        """Of the appliers and the schemas they read; a snapshot under another one is ignored (S-8.2)."""
        appliers = self.aggregate.__appliers__
        self._fingerprint = self._fingerprint or fingerprint(self.aggregate, *appliers, *appliers.values())
        return self._fingerprint

    def fold(self, stream: str, at: Loaded, rows: Iterable[Row]) -> Loaded:
        """``at`` with ``rows`` taken in. Raises ``Undecodable``, ``FoldFailed``, or ``DefinitionError`` for an agent's stream."""
        state, version = at.state, at.version
        owned = False  # whether nobody else holds ``state``
        for version, kind, schema, data, _, _ in rows:
            try:
                entry = self._table[kind, schema]
            except KeyError:
                entry = self._table[kind, schema] = self._resolve(stream, version, kind, schema)
            if entry is None:
                continue
            decode, applier, here = entry
            try:
                if owned and here is not None:
                    state = here(state, decode(data))
                else:
                    before, state = state, applier(state, decode(data))
                    owned = here is not None and state is not before
            except Undecodable as problem:
                raise problem.at(stream, version) from problem
            except Exception as problem:  # a user's applier
                raise FoldFailed(f"{stream} version {version}: the applier of {kind} raised {type(problem).__name__}: {problem}") from problem
        return Loaded(state, version)

    def _resolve(self, stream: str, version: int, kind: str, schema: int) -> _Entry | None:
        if kind in _FACTS:
            if self._runs:
                return None
            raise DefinitionError(f"{stream} version {version} is {kind}: this is the stream of an agent, not of a plain {self.aggregate.__name__}")
        try:
            decode, applier = self._codec.decoder(kind, schema), self.aggregate.__appliers__.get(self._codec.class_of(kind))
        except Undecodable as problem:
            raise problem.at(stream, version) from problem
        return (decode, applier, in_place(applier, self.aggregate)) if applier is not None else None

    def snapshot(self, at: Loaded) -> Snapshot:
        """``at`` as a snapshot."""
        return Snapshot(at.version, self.fingerprint, self._codec.encode_value(at.state, self.aggregate))

    def restore(self, snapshot: Snapshot | None, upto: int | None) -> Loaded:
        """Where a fold may begin: at the snapshot if it fits and is not too new, else at nothing (S-8.2)."""
        if snapshot is not None and snapshot.fingerprint == self.fingerprint and (upto is None or snapshot.version <= upto):
            try:
                return Loaded(self._codec.decode_value(snapshot.data, self.aggregate), snapshot.version)
            except LogError:
                pass  # whatever is wrong with it, the events are there
        return Loaded(self.aggregate(), -1)


@attrs.frozen(eq=False)
class PlainReader:
    """Reads one stream."""

    folder: PlainFolder
    stream: str = ""

    def read(self, log: EventLog, upto: int | None, snapshot_every: int) -> Loaded:
        """The aggregate at version ``upto`` (``None``: now). ``snapshot_every``: use snapshots, and leave one after folding so many events."""
        held = log.snapshots.load([self.stream]).get(self.stream) if snapshot_every else None
        start = found = self.folder.restore(held, upto)
        for rows in _chunks(log, self.stream, start.version, upto):
            found = self.folder.fold(self.stream, found, rows)
        if snapshot_every and upto is None and found.version - start.version >= snapshot_every:
            log.snapshots.save(self.stream, self.folder.snapshot(found))
        return found

    def held(self, ctx: OtherSteps, loaded: Loaded) -> Other[Any]:
        """What agent code gets."""
        from .others import Other

        return Other(ctx, self.stream, loaded.version, loaded.state)


def _chunks(log: EventLog, stream: str, after: int, upto: int | None) -> Iterable[Sequence[Row]]:
    return log.rows(stream, after=after, upto=upto) if upto is None or upto > after else ()


def plain_reader(definitions: Definitions, aggregate: Any) -> PlainReader:
    """The reader of an aggregate class; raises ``DefinitionError`` for anything else."""
    reader: PlainReader | None = definitions.readers.get(aggregate)
    if reader is None:
        check_aggregate(aggregate)
        reader = definitions.readers[aggregate] = PlainReader(PlainFolder(definitions.codec, aggregate))
    return reader


def is_library_class(kind: object) -> bool:
    """Whether ``kind`` is an aggregate class of the `eventsourcing` library, found out without importing it."""
    return isinstance(kind, type) and any(base.__module__ == "eventsourcing.domain" and base.__name__ == "BaseAggregate" for base in kind.__mro__)
