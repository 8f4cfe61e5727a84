"""A stream told as a story: when, which version, what, and one line about it (``eventlog show``).

Works on any log without its app; then a user's event is named by its type and shown by the tree of its bytes. Nothing
here fails on an event it cannot read: that is when a story is needed most.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs

from ..agents import facts
from ..agents.app import App, runtime_codec
from ..agents.holes import missing
from ..eventlog.clock import Micros
from ..eventlog.errors import LogError, Undecodable
from ..eventlog.events import StoredEvent
from ..eventlog.log import EventLog
from ..eventlog.names import category_of
from ..eventlog.odd import odd_columns
from ..eventlog.printing import cut, iso, one_line, plain, styled, time_of_day
from .summaries import Telling, fields_of, value_of

_FACTS: Final = frozenset(facts.FACTS)
_LOOK_BACK: Final = 1_000
"""Events read before the first one told, so that durations and lateness are right."""

_COLOURS: Final[dict[type, str]] = {
    facts.InputReceived: "cyan",
    facts.ModelCallCached: "magenta",
    facts.ToolCallCached: "magenta",
    facts.IntentStaged: "blue",
    facts.IntentAttempted: "blue",
    facts.IntentDistrusted: "red",
    facts.IntentPostponed: "yellow",
    facts.IntentSettled: "blue",
    facts.Completed: "green",
    facts.Continued: "green",
    facts.BudgetReached: "red",
    facts.ActivationFailed: "red",
    facts.StreamBlocked: "red",
}
_USERS: Final = "yellow"
_FOREIGN: Final = object()


@attrs.frozen
class Line:
    """One event of a story."""

    stored: StoredEvent
    #: Its class's name, or its type when there is no class.
    name: str
    summary: str
    #: It was appended together with the one before.
    joined: bool
    colour: str | None = None
    #: The event, or the tree of its bytes, or ``None`` when not even that can be had.
    content: Any = None
    #: Which versions should stand before it and do not, in words; empty when none is missing.
    missing: str = ""

    def as_tree(self) -> dict[str, Any]:
        """The line as ``--json`` prints it."""
        stored = self.stored
        return {
            "stream": stored.stream,
            "version": stored.version,
            "position": stored.position,
            "time": iso(stored.recorded_at),
            "type": plain(stored.type),
            "schema": plain(stored.schema),
            "name": self.name,
            "summary": self.summary,
            "event_id": str(stored.id) if isinstance(stored.event_id, bytes) and len(stored.event_id) == 16 else plain(stored.event_id),
            "correlation": _hex(stored.correlation),
            "causation": _hex(stored.causation),
            "fields": plain(self.content),
            "missing": self.missing or None,
        }


def story(log: EventLog, stream: str, app: App | None = None, *, first: int = 0, last: int | None = None) -> Iterator[Line]:
    """The events of ``stream`` from version ``first`` to ``last`` as lines, oldest first. A stream without events is empty."""
    telling = Telling(app.codec if app is not None else runtime_codec(), app is not None and category_of(stream) in app.definitions)
    begin = max(first - _LOOK_BACK, 0)
    return _tell(log.read(stream, after=begin - 1, upto=last), telling, first, begin)


def _tell(events: Iterable[StoredEvent], telling: Telling, first: int, expected: int) -> Iterator[Line]:
    before: Micros = -1
    for stored in events:
        hole, expected = missing(max(expected, min(first, stored.version)), stored.version), stored.version + 1
        line = _line(telling, stored, joined=stored.recorded_at == before)
        before = stored.recorded_at
        if stored.version >= first:
            line = line if stored.version > first else attrs.evolve(line, joined=False)
            yield attrs.evolve(line, joined=False, missing=hole) if hole else line


def _line(telling: Telling, stored: StoredEvent, *, joined: bool) -> Line:
    codec = telling.codec
    if odd := "; ".join(odd_columns(stored)):
        return Line(stored, one_line(stored.type), f"was edited by hand: {odd}", joined, "red")
    try:
        if codec.registry.get(stored.type) is None:
            tree = _tree(telling, stored)
            if tree is _FOREIGN:
                return Line(stored, stored.type, f"not of this app: {_text(stored.data)}", joined, _USERS, stored.data)
            return Line(stored, stored.type, fields_of(tree) if isinstance(tree, dict) else value_of(tree), joined, _USERS, tree)
        telling.ours = True
        event = codec.decode(stored.type, stored.schema, stored.data)
        if type(event) in _FACTS:
            return Line(stored, type(event).__name__, telling.summary(event, stored.recorded_at), joined, _COLOURS.get(type(event)), event)
        values = {field.name: getattr(event, field.name) for field in attrs.fields(type(event))}
        return Line(stored, type(event).__name__, fields_of(values), joined, _USERS, event)
    except LogError as problem:
        return Line(stored, stored.type, f"cannot be read: {one_line(str(problem), 200)}  ({len(stored.data)} bytes)", joined, "red")


def _tree(telling: Telling, stored: StoredEvent) -> Any:
    """The tree of the bytes, or ``_FOREIGN`` for another program's. Raises ``Undecodable`` for damaged ones of our own."""
    try:
        tree = telling.codec.tree(stored.data)
    except Undecodable:
        if telling.ours:
            raise
        return _FOREIGN
    telling.ours = True
    return tree


def _text(data: bytes) -> str:
    """What another program wrote, as far as it is text."""
    try:
        return one_line(data.decode(), 200)
    except UnicodeDecodeError:
        return "1 byte" if len(data) == 1 else f"{len(data)} bytes"


def _hex(value: object) -> object:
    return value.hex() if isinstance(value, bytes) and value else plain(value) or None


def as_text(line: Line, *, versions: int, names: int, width: int) -> str:
    """``line`` for a terminal of ``width`` columns; ``versions`` and ``names`` are the widths of those columns."""
    time = " " * 12 if line.joined else time_of_day(line.stored.recorded_at)
    name = cut(one_line(line.name), names)
    head = f"  {time}  {line.stored.version:>{versions}}  "
    room = max(width - len(head) - names - 2, 10)
    return f"{styled(head, dim=True)}{styled(f'{name:<{names}}', fg=line.colour)}  {cut(one_line(line.summary, 4 * room), room)}".rstrip()
