"""Aggregates of the `eventsourcing` library in a turn: read and written as its own applications read and write them.

Imported only when such a class is given, because importing the library patches ``dataclasses`` for the whole process.
The streams are those of ``PERSISTENCE_MODULE=intentlog.eventlog.recorders.…`` (see ``eventlog.recorders.layout``).

The library stamps events with the wall clock. A turn has one moment, the same in every re-run (S-3.5), so the events are
stamped with ``ctx.now`` when they are collected; ``modified_on`` of an aggregate that was changed is no durable value before.
"""

from __future__ import annotations

from typing import Any, Final, Literal
from uuid import UUID

import attrs
from eventsourcing.domain import BaseAggregate
from eventsourcing.persistence import DataError, DatetimeAsISO, DecimalAsStr, JSONTranscoder, Mapper, UUIDAsHex

from ..eventlog.clock import Micros, to_datetime
from ..eventlog.log import EventLog
from ..eventlog.recorders.layout import DEFAULT_CATEGORY, Layout
from .definitions import Definitions
from .errors import AggregateNotFound, DefinitionError, FoldFailed
from .reading_streams import Encoded, Loaded

_NO_ID: Final = b"\0" * 16
"""Stands for an event id where only type, schema and bytes are wanted."""


@attrs.frozen(eq=False)
class LibraryReader:
    """Reads one stream."""

    kind: type[BaseAggregate[Any]]
    layout: Layout
    mapper: Mapper[Any]
    stream: str

    def read(self, log: EventLog, upto: int | None, snapshot_every: int) -> Loaded:
        """The aggregate at version ``upto`` (``None``: now), from its events. Raises ``FoldFailed`` for events that do not follow one another."""
        aggregate: Any = None
        version = -1
        for event in log.read(self.stream, upto=upto):
            try:
                happened: Any = self.mapper.to_domain_event(self.layout.stored_event(event))
                aggregate = happened.mutate(aggregate)
            except Exception as problem:  # the aggregate's own code, or a class that is gone
                raise FoldFailed(f"{self.stream} version {event.version}: {event.type} raised {type(problem).__name__}: {problem}") from problem
            version = event.version
        return Loaded(aggregate, version)

    def held(self, ctx: Any, loaded: Loaded) -> LibraryHeld:
        """What agent code gets, wrapped. Raises ``AggregateNotFound``."""
        if loaded.state is None:
            raise AggregateNotFound(f"{self.stream} has no events: make the aggregate and ctx.add(…) it, or load another id")
        if not isinstance(loaded.state, self.kind):
            raise DefinitionError(f"{self.stream} holds a {type(loaded.state).__name__}, not a {self.kind.__name__}")
        return LibraryHeld(self, loaded.state, loaded.state.version - loaded.version)

    def new(self, aggregate: BaseAggregate[Any]) -> LibraryHeld:
        """A new aggregate, all of whose events are still pending."""
        pending = aggregate.pending_events
        if not pending or pending[0].originator_version != self.kind.INITIAL_VERSION:
            raise DefinitionError(f"ctx.add({aggregate!r:.80}): it is not new. Load it with ctx.load and change it; its events are saved with the turn.")
        return LibraryHeld(self, aggregate, self.kind.INITIAL_VERSION)


class LibraryHeld:
    """See ``others.Held``."""

    def __init__(self, reader: LibraryReader, aggregate: Any, start: int) -> None:
        self.aggregate = aggregate
        self.closed = False
        self._reader, self._start = reader, start

    def collect(self, now: Micros) -> list[Encoded]:
        """See ``Held``; stamps the events."""
        moment, reader, aggregate = to_datetime(now), self._reader, self.aggregate
        events = aggregate.collect_events()
        encoded = []
        for event in events:
            object.__setattr__(event, "timestamp", moment)
            staged = reader.layout.new_event(reader.mapper.to_stored_event(event), self._start, _NO_ID)
            encoded.append((staged.type, staged.schema, staged.data))
        if events:
            aggregate.modified_on = moment
            if events[0].originator_version == self._start:
                aggregate._created_on = moment
        return encoded

    def __repr__(self) -> str:
        return f"<{self._reader.stream}: {self.aggregate!r}>"


def reader(definitions: Definitions, kind: type[Any], aggregate_id: Any, category: str) -> LibraryReader:
    """The reader of one aggregate; raises ``DefinitionError`` for an id that is neither text nor UUID, ``InvalidName`` (S-1.1)."""
    id_type: Literal["uuid", "text"] = "uuid" if isinstance(aggregate_id, UUID) else "text"
    layout = Layout(category or DEFAULT_CATEGORY, id_type)
    mapper = definitions.mapper or definitions.readers.get(Mapper)
    if mapper is None:
        mapper = definitions.readers[Mapper] = default_mapper()
    if not isinstance(aggregate_id, str | UUID):
        raise DefinitionError(f"{kind.__name__} {aggregate_id!r:.80}: the id of an aggregate is a str or a UUID")
    try:
        return LibraryReader(kind, layout, mapper, layout.checked_stream(aggregate_id))
    except DataError as problem:
        raise DefinitionError(str(problem)) from problem


def default_mapper() -> Mapper[Any]:
    """The mapper that an application of the library has when it says nothing else."""
    transcoder = JSONTranscoder()
    for each in (UUIDAsHex(), DecimalAsStr(), DatetimeAsISO()):
        transcoder.register(each)
    return Mapper(transcoder)
