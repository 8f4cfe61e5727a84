"""Other aggregates in a turn: loaded as a durable step, changed in memory, saved in the turn's one append.

What the turn saw (stream and version) is on record, so a re-run and a replay see the same. Each changed aggregate goes
into the append with its own expected version; when somebody else changed it meanwhile, nothing of the turn is committed
and it is run again with what is there now. A handle is good for the turn it was loaded in: after a wait, load again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload

import attrs

from ..eventlog.clock import Micros
from ..eventlog.names import stream_name
from . import facts
from .aggregate import Aggregate, events_of_command
from .errors import DefinitionError, StaleAggregate, StepDrift, TurnOver
from .intents import content_digest
from .linear import LinearSteps
from .reading_streams import Encoded, Loaded, is_library_class, plain_reader
from .requests import Change, NeedStream, ask

A = TypeVar("A", bound=Aggregate)
T = TypeVar("T")
P = ParamSpec("P")


class Held(Protocol):
    """An aggregate that a turn may change."""

    #: The turn it was loaded in is over.
    closed: bool

    def collect(self, now: Micros) -> list[Encoded]:
        """The events that were emitted since it was loaded, which are then no longer pending."""
        ...


class Other(Generic[A]):
    """Another aggregate as this turn sees it. ``state`` shows what the turn emitted to it already."""

    def __init__(self, ctx: OtherSteps, stream: str, version: int, state: A) -> None:
        self.stream = stream
        #: Of the last event it was folded from; -1 when nothing has happened to it yet.
        self.version = version
        self.state = state
        self.closed = False
        self._ctx = ctx
        self._pending: list[object] = []

    @property
    def key(self) -> str:
        """The entity it stands for."""
        return self.stream.partition("-")[2]

    def emit(self, *events: object) -> None:
        """Stage domain events for its stream and apply them to ``state``: all of them, or none when one is refused."""
        self._ctx._check_open(self)
        state = self.state
        for event in events:
            self._ctx._definitions.check_domain_event(event)
            state = state.apply(event) if self._ctx._in_past else state.admit(event)
        self.state = state
        self._pending += events

    def do(self, command: Callable[Concatenate[A, P], Any], /, *args: P.args, **kwargs: P.kwargs) -> tuple[object, ...]:
        """Run a command of the aggregate and emit what it decides on; the events."""
        self._ctx._check_open(self)
        events = events_of_command(self.state, command, args, kwargs, checked=not self._ctx._in_past)
        self.emit(*events)
        return events

    def collect(self, now: Micros) -> list[Encoded]:
        """See ``Held``."""
        encoded = [self._ctx._definitions.codec.encode(event) for event in self._pending]
        self._pending.clear()
        return encoded

    def __repr__(self) -> str:
        return f"<{self.stream} at version {self.version}: {self.state!r}>"


@attrs.define(eq=False)
class _Entry:
    kind: type
    #: What agent code was given.
    value: Any
    held: Held
    #: The version its next event is expected behind.
    version: int
    is_new: bool = False


class OtherSteps(LinearSteps):
    """What an agent can do with aggregates, its own and others."""

    #: Loaded and not yet written down.
    loads: tuple[facts.AggregateLoaded, ...] = ()
    #: For other streams, by the turn's append.
    changes: tuple[Change, ...] = ()
    #: Look at the streams as they are now, whatever the turn under way had recorded.
    reload = False
    _others: dict[str, _Entry] | None = None
    _earlier: tuple[Held, ...] = ()
    _saves = 0

    def do(self, command: Callable[Concatenate[Any, P], Any], /, *args: P.args, **kwargs: P.kwargs) -> tuple[object, ...]:
        """Run a command of the agent's own aggregate, ``ctx.do(Account.withdraw, 5)``, and emit what it decides on; the events.

        The method is named through its class, so that editors and type checkers see its parameters. All of its events are
        staged, or none when one is refused. Raises ``CommandNotAllowed``, ``EventNotAllowed``, and what the command raises.
        """
        events = events_of_command(self.state, command, args, kwargs, checked=not self._in_past)
        state = self.state
        if not self._in_past:
            for event in events:
                self._definitions.check_domain_event(event)
                state = state.admit(event)
        for event in events:
            self.emit(event)
        return events

    @overload
    async def load(self, aggregate: type[A], key: str, *, category: str = "") -> Other[A]: ...
    @overload
    async def load(self, aggregate: type[T], key: Any, *, category: str = "") -> T: ...
    async def load(self, aggregate: type[Any], key: Any, *, category: str = "") -> Any:
        """Another aggregate as it is now; ``category`` unless its class names one. Asked for again in one turn, it is the same handle.

        An aggregate of the `eventsourcing` library comes as itself, and its pending events are collected when the turn ends.
        Raises ``DefinitionError`` for the agent's own stream and for streams of agents, ``AggregateNotFound`` for a library
        aggregate without events.
        """
        if self.sealed:
            raise TurnOver
        if is_library_class(aggregate):
            from . import library

            reader: Any = library.reader(self._definitions, aggregate, key, category)
        else:
            plain = plain_reader(self._definitions, aggregate)
            self._check_category(category or aggregate.__category__, aggregate)
            reader = attrs.evolve(plain, stream=stream_name(category or aggregate.__category__, key))
        self._check_category(reader.stream.partition("-")[0], aggregate)
        entry = (self._others or {}).get(reader.stream)
        if entry is not None:  # two handles of one stream would not know of each other's events
            if entry.kind is not aggregate:
                raise DefinitionError(f"{reader.stream} was loaded as {entry.kind.__name__} in this turn already; it cannot be {aggregate.__name__} as well")
            return entry.value
        loaded: Loaded = await self._loaded(reader)
        held = reader.held(self, loaded)
        return self._keep(reader.stream, _Entry(aggregate, getattr(held, "aggregate", held), held, loaded.version))

    async def _loaded(self, reader: Any) -> Loaded:
        step = self._step("load", reader.stream)
        recorded = self._activation.loads.get(step)
        if recorded is None:
            self._refuse_new(step, "load", reader.stream)
        elif recorded.stream != reader.stream:
            self._fail(StepDrift(f"{self._place(step)} (load)", recorded.stream, reader.stream, "stream"))
        version = recorded.version if recorded is not None and not (self.reload and step >= self._frontier[0]) else None
        loaded: Loaded = await ask(NeedStream(step, reader.stream, version, reader.read))
        if version is None:
            self.loads = (*self.loads, facts.AggregateLoaded(self.seq, step, self._index, reader.stream, loaded.version))
        return loaded

    def add(self, aggregate: Any, *, category: str = "") -> None:
        """Save a new aggregate of the `eventsourcing` library in the turn's append. Raises ``AggregateExists`` when its id is taken."""
        if self.sealed:
            raise TurnOver
        if not is_library_class(type(aggregate)):
            raise DefinitionError(f"ctx.add({aggregate!r:.60}): only aggregates of the eventsourcing library are made this way; others are there once loaded")
        from . import library

        reader = library.reader(self._definitions, type(aggregate), aggregate.id, category)
        self._check_category(reader.stream.partition("-")[0], type(aggregate))
        if reader.stream in (self._others or {}):
            raise DefinitionError(f"ctx.add: {reader.stream} is in this turn's hands already")
        self._keep(reader.stream, _Entry(type(aggregate), aggregate, reader.new(aggregate), -1, is_new=True))

    def _keep(self, stream: str, entry: _Entry) -> Any:
        if self._others is None:
            self._others = {}
        self._others[stream] = entry
        return entry.value

    def _check_category(self, category: str, aggregate: type) -> None:
        if not category:
            raise DefinitionError(
                f"where do the streams of {aggregate.__name__} stand? Say class {aggregate.__name__}(Aggregate, category='…'), or ctx.load(…, category='…')"
            )
        if category in self._definitions.agents:
            raise DefinitionError(
                f"{category!r} is an agent of this app: its streams hold its runs. Ask it with ctx.call, tell it with ctx.send; ctx.load is for plain ones."
            )

    def _check_open(self, other: Held) -> None:
        if self.sealed:
            raise TurnOver
        if other.closed:
            self._refuse_stale(other)

    def _refuse_stale(self, other: Held) -> None:
        raise StaleAggregate(f"{other!r} was loaded before a wait, and may have changed since: load it again with ctx.load before you change it")

    # ── the end of a turn ───────────────────────────────────────────────────────────────────────────────────────────

    @property
    def made_new(self) -> frozenset[str]:
        """Streams that this turn is to begin."""
        return frozenset(stream for stream, entry in (self._others or {}).items() if entry.is_new)

    def save_others(self) -> None:
        """Stage what was emitted to other aggregates."""
        if self._others is not None or self._earlier:
            for fact, change in self._collect():
                self.staged.append(fact)
                self.changes = (*self.changes, change)

    def _collect(self) -> list[tuple[facts.AggregateSaved, Change]]:
        for held in self._earlier:  # only library aggregates, which are changed without a word to us
            if held.collect(self.now_us):
                self._refuse_stale(held)
        found = []
        for stream, entry in (self._others or {}).items():
            encoded = entry.held.collect(self.now_us)
            if encoded:
                digest = content_digest(stream, self._definitions.codec.encode_value([list(each) for each in encoded], list[Any]))
                fact = facts.AggregateSaved(self.seq, stream, entry.version + 1, tuple(kind for kind, _, _ in encoded), digest)
                found.append((fact, Change(stream, entry.version, tuple(encoded))))
        return found

    def next_epoch(self, waits: Sequence[str]) -> bool:
        """See ``Script``; what a committed turn saved must be saved again, and what it loaded is no longer to be changed."""
        if self._in_past and (self._others is not None or self._earlier or self._activation.saves):
            self._match_saves([fact for fact, _ in self._collect()])
        went_on = super().next_epoch(waits)
        if went_on and self._others is not None:
            for entry in self._others.values():
                entry.held.closed = True
                self._earlier = (*self._earlier, entry.held)
            self._others = None
        return went_on

    def _match_saves(self, decided: list[facts.AggregateSaved]) -> None:
        upto = self._activation.epochs[self._epoch].saved
        recorded = self._activation.saves[self._saves : upto]
        self._saves = upto
        if decided != recorded:
            was = next((a for place, a in enumerate(recorded) if decided[place : place + 1] != [a]), None)
            now = next((b for place, b in enumerate(decided) if recorded[place : place + 1] != [b]), None)
            self._fail(StepDrift(f"{self.stream}, activation {self.seq}, turn {self._epoch}", _shown(was), _shown(now), "the events of other aggregates"))


def _shown(fact: facts.AggregateSaved | None) -> str:
    return f"saves {fact.stream} version {fact.version}: {', '.join(fact.types)} ({fact.digest.hex()[:12]})" if fact else "saves nothing more"
