"""The smallest part of a stream's inputs that still shows what a condition says.

An input stands for everything it led to: its activation's turns, answers, effects and their outcomes. Leaving it out leaves
all of that out, and the rest is folded again as it is recorded (delta debugging, *ddmin*): in the end none of the
inputs that are kept can be left out alone. What is kept is run again by its journal as well: that it is *same* means that these
inputs by themselves would have led there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import attrs

from ..agents import facts
from ..agents.errors import AgentError
from ..agents.intents import is_withdrawal
from ..agents.streams import Folder, StreamState
from ..eventlog.errors import LogError
from ..eventlog.events import Row
from ..eventlog.names import category_of
from .aggregates import aggregate_of, definitions_for
from .bisect import Found
from .errors import CannotBisect
from .streams import replay_rows
from .verdicts import StreamReplay
from .walking import Condition, Walk

MOST_EVENTS: Final = 3_000_000
"""Events folded before it is given up: a minute or two."""
_NOBODY: Final = -1
_RECEIVED: Final = "input.received"
_CLOSING: Final = (facts.Suspended, facts.Completed, facts.Continued)


@attrs.frozen
class KeptInput:
    """An input that cannot be left out."""

    seq: int
    version: int
    input_id: str


@attrs.frozen
class Minimal:
    """What is left of the inputs."""

    kept: tuple[KeptInput, ...]
    #: Inputs before the event that was found.
    of: int
    #: Part-histories that were folded.
    tries: int
    #: It ended by itself: none of ``kept`` can be left out alone. ``False``: it was given up, and this is the smallest so far.
    whole: bool
    #: The first version at which the smaller history shows it.
    version: int
    #: The smaller history, run again by its journal.
    replayed: StreamReplay


def minimize(walk: Walk, condition: Condition, found: Found, *, most_events: int = MOST_EVENTS) -> Minimal:
    """A smallest set of inputs with which ``condition`` still comes to what ``found`` says. Raises ``CannotBisect`` when nothing was found."""
    if found.version is None:
        raise CannotBisect(f"{found.stream}: the condition never changes, so there is nothing to make smaller")
    if aggregate_of(walk.app, category_of(walk.stream)) is not None:
        raise CannotBisect(
            f"{found.stream} has no inputs to leave out: it is an aggregate's, and turns of other streams decided what stands in it. "
            f"Which one did: eventlog trace {found.stream}@{found.version}"
        )
    history = _History.read(walk, found.version)
    smaller = _Smaller(walk, condition, found.holds, history, most_events)
    kept = smaller.ddmin(list(history.inputs))
    version = smaller.shown_at(kept)
    assert version is not None
    return Minimal(
        tuple(history.inputs[unit] for unit in kept),
        len(history.inputs),
        smaller.tries,
        not smaller.spent,
        version,
        _replayed(walk, history, kept, version),
    )


# ── whose events are whose ──────────────────────────────────────────────────────────────────────────────────────────


@attrs.frozen
class _History:
    rows: list[Row]
    #: Whose each row is: the seq of an input from outside, or -1 for what stays whatever is left out.
    owners: list[int]
    #: Versions that begin an activation.
    begins: frozenset[int]
    #: Those that may be left out, by seq: the ones received before it was shown.
    inputs: dict[int, KeptInput]
    #: Versions of settlements that stand within a turn's append.
    withdrawn: frozenset[int]

    @staticmethod
    def read(walk: Walk, version: int) -> _History:
        rows = [row for chunk in walk.rows(upto=walk.last) for row in chunk]
        owning = _Owning(walk.stream)
        owners = owning.of(walk, rows)
        inputs = {seq: each for seq, each in owning.inputs.items() if each.version <= version}
        end = max(place for place, (row, owner) in enumerate(zip(rows, owners, strict=True)) if owner in inputs or row[0] <= version) + 1
        rows, owners = rows[:end], owners[:end]
        return _History(rows, owners, frozenset(owning.begins), inputs, frozenset(owning.withdrawn))

    def part(self, kept: frozenset[int]) -> Iterator[Row]:
        """The rows of these inputs, and the first ones of the others, which only count."""
        for row, owner in zip(self.rows, self.owners, strict=True):
            if owner == _NOBODY or owner in kept:
                yield row
            elif row[0] in self.begins:
                yield (row[0], _RECEIVED, *row[2:])  # also where it was another's continuation: nothing else of that is left

    def part_until(self, kept: frozenset[int], version: int) -> Iterator[Row]:
        """``part`` up to ``version``, and to the end of the append that stands there."""
        for row in self.part(kept):
            between = row[1] in _BETWEEN and row[0] not in self.withdrawn
            if row[0] > version and between:
                return
            yield row
            if row[0] >= version and (between or row[1] in _CLOSES):
                return


_CLOSES: Final = frozenset({"activation.suspended", "activation.completed", "activation.continued"})
_BETWEEN: Final = facts.ARRIVALS | {"timer.fired", "model_call.cached", "tool_call.cached", "aggregate.loaded", "activation.failed"}
"""Types that stand outside of a turn's append."""


@attrs.define
class _Owning:
    """Walks a history and says whose each event is."""

    stream: str
    begins: list[int] = attrs.field(factory=list)
    withdrawn: list[int] = attrs.field(factory=list)
    inputs: dict[int, KeptInput] = attrs.field(factory=dict)
    #: seq of an activation → the input from outside that it goes back to.
    units: dict[int, int] = attrs.field(factory=dict)
    #: An intent, approval, or input sent to another key → its unit.
    things: dict[Any, int] = attrs.field(factory=dict)
    seqs: int = 0

    def of(self, walk: Walk, rows: Sequence[Row]) -> list[int]:
        owners: list[int] = []
        pending: list[int] = []  # domain events, whose append's closing fact tells
        for place, row in enumerate(rows):
            fact = _decoded(walk, row)
            owner = self._owner(fact, row[0])
            if isinstance(fact, facts.IntentSettled) and is_withdrawal(fact):
                self.withdrawn.append(row[0])
            if type(fact) not in _FACTS:
                pending.append(place)
            elif isinstance(fact, _CLOSING):
                for each in pending:
                    owners[each] = owner
                pending.clear()
            owners.append(owner)
        return owners

    def _owner(self, fact: Any, version: int) -> int:
        if isinstance(fact, facts.InputReceived):
            return self._begun(fact, version, self.things.get((self.stream, fact.input_id), _NOBODY))
        if isinstance(fact, facts.ReplyReceived):
            return self.things.get((fact.stream, fact.input_id), _NOBODY)
        seq = getattr(fact, "seq", None) if type(fact) in _FACTS else None
        thing = next((value for name in ("intent_id", "approval_id") if (value := getattr(fact, name, None))), None) if type(fact) in _FACTS else None
        unit = self.units.get(seq, _NOBODY) if seq is not None else self.things.get(thing, _NOBODY)
        if thing is not None and seq is not None:
            self.things[thing] = unit
        if isinstance(fact, facts.InputSent):
            self.things[fact.stream, fact.input_id] = unit
        elif isinstance(fact, facts.Continued):
            self._begun(fact.input, version, unit)
        return unit

    def _begun(self, received: facts.InputReceived, version: int, unit: int) -> int:
        seq = self.seqs
        self.seqs += 1
        self.begins.append(version)
        if unit == _NOBODY:
            unit = seq
            self.inputs[seq] = KeptInput(seq, version, received.input_id)
        self.units[seq] = unit
        return unit


_FACTS: Final = frozenset(facts.FACTS)


def _decoded(walk: Walk, row: Row) -> Any:
    try:
        return walk.codec.decode(row[1], row[2], row[3])
    except LogError:
        return None


class _Counting(Folder):
    """Folds a part of a history in which some activations never began; the others keep their seqs, and so their intents' ids."""

    def __init__(self, definitions: Any, skipped: frozenset[int]) -> None:
        super().__init__(definitions)
        self._skipped = skipped

    def fold(self, into: StreamState, rows: Iterable[Row]) -> StreamState:
        """The same; of the skipped rows only the count of inputs is taken."""
        for row in rows:
            if row[0] in self._skipped:
                into.run.inputs += 1
                into.version = row[0]
            else:
                super().fold(into, (row,))
        return into


# ── fewer and fewer ─────────────────────────────────────────────────────────────────────────────────────────────────


@attrs.define(eq=False)
class _Smaller:
    walk: Walk
    condition: Condition
    wanted: bool
    history: _History
    most_events: int
    tries: int = 0
    events: int = 0

    @property
    def spent(self) -> bool:
        """No more is tried."""
        return self.events >= self.most_events

    def ddmin(self, units: list[int]) -> list[int]:
        """Zeller's ddmin: halves, quarters, … and what is left without them, as long as that still shows it."""
        pieces = 2
        if self.shown_at([]) is not None:
            return []
        while len(units) >= 2:
            size = -(-len(units) // pieces)
            chunks = [units[begin : begin + size] for begin in range(0, len(units), size)]
            rests = [[unit for unit in units if unit not in chunk] for chunk in map(frozenset, chunks)]
            smaller = next((each for each in (chunks if len(chunks) > 2 else ()) if self._shows(each)), None)
            if smaller is not None:
                units, pieces = smaller, 2
                continue
            smaller = next((each for each in rests if self._shows(each)), None)
            if smaller is not None:
                units, pieces = smaller, max(pieces - 1, 2)
            elif pieces >= len(units):
                break
            else:
                pieces = min(len(units), pieces * 2)
            if self.spent:
                break
        return units

    def _shows(self, units: list[int]) -> bool:
        if self.spent:
            return False
        self.tries += 1
        return self.shown_at(units) is not None

    def shown_at(self, units: Sequence[int]) -> int | None:
        """The first version at which these inputs alone show it; ``None``: they do not, or nothing can have happened like that."""
        kept = frozenset(units)
        folder = _folder(self.walk, self.history, kept)
        state = folder.empty(self.walk.stream)
        try:
            for row in self.history.part(kept):
                self.events += 1
                folder.fold(state, (row,))
                if self.walk.holds(self.condition, state, row) is self.wanted:
                    return row[0]
        except (LogError, AgentError):
            return None
        return None


def _folder(walk: Walk, history: _History, kept: frozenset[int]) -> _Counting:
    skipped = (row[0] for row, owner in zip(history.rows, history.owners, strict=True) if row[0] in history.begins and owner not in kept)
    definitions = definitions_for(walk.app, category_of(walk.stream))
    assert definitions is not None  # the walk folds by it
    return _Counting(definitions, frozenset(skipped))


def _replayed(walk: Walk, history: _History, kept: Sequence[int], version: int) -> StreamReplay:
    """Whether today's code, given these inputs and their journal, decides what is recorded until it is shown."""
    units = frozenset(kept)
    folder = _folder(walk, history, units)

    async def run() -> StreamReplay:  # agent code may ask for the running loop
        return replay_rows(walk.app, folder, walk.stream, [list(history.part_until(units, version))], walk.log)

    return _in_own_loop(run)


def _in_own_loop(run: Callable[[], Any]) -> StreamReplay:
    with asyncio.Runner() as runner:
        replayed: StreamReplay = runner.run(run())
    return replayed
