"""Why a part of a state is as it is: the last event that changed it, the earlier ones, and what led to the last.

An event *changed* a part when the part is different behind it. Whether the part would be different *now* without that event
is looked at, too: a later event may have set what it had set already, and then each of them alone can be missed.
"""

from __future__ import annotations

import enum
from typing import Any, Final

import attrs

from ..agents import facts
from ..agents.app import App
from ..agents.errors import AgentError
from ..agents.streams import StreamState
from ..eventlog.errors import LogError
from ..eventlog.log import EventLog
from ..eventlog.names import category_of
from .aggregates import aggregate_of, folder_of
from .causes import Cause, causes_of
from .diff import same
from .emitting import causes_elsewhere
from .errors import NoSuchPath
from .fold import At
from .paths import ABSENT, Path, look, what_there_is
from .trees import tree_of, whole
from .walking import Walk

MOST: Final = 10
"""Changes that are told of unless more are asked for."""
_ROUNDS: Final = 8


class Without(enum.Enum):
    """What the part would be without the event."""

    CHANGED = "changed"
    #: The rest of the history cannot be folded then.
    REFUSED = "refused"
    #: It would be the same: others set it as well.
    SAME = "same"


@attrs.frozen(eq=False)
class Touch:
    """An event that changed the part."""

    version: int
    type: str
    before: Any
    after: Any
    recorded_at: int


@attrs.frozen(eq=False)
class Why:
    """The answer. Everything is as of version ``at``."""

    stream: str
    path: Path
    at: int
    #: What stands there; ``ABSENT`` when nothing does any more.
    value: Any
    #: Newest first; empty when it is still what it was before the first event.
    changes: tuple[Touch, ...]
    #: There are earlier changes that are not among them.
    more: bool
    without: Without | None
    #: Without the last change it would be the same, and without it and these it would not.
    also: tuple[int, ...]
    causes: tuple[Cause, ...]
    #: The stream that the causes stand in: of an aggregate's event that of the turn that emitted it.
    causes_in: str
    #: Id of the input at the end of the chain when another run sent it: there ``eventlog trace`` goes on. Else empty.
    beyond: str = ""

    @property
    def last(self) -> Touch | None:
        """The last event that changed it."""
        return self.changes[0] if self.changes else None


def why(log: EventLog, app: App, stream: str, path: Path, at: At | int | None = None, *, most: int = MOST) -> Why:
    """Why ``path`` is as it is at ``at`` (``None``: now). Raises ``NoSuchPath`` when nothing ever stood there, and what ``Walk`` raises."""
    walk = Walk(log, app, stream, at)
    if walk.broken is not None:
        raise walk.broken
    return why_here(walk, path, walk.head, most=most)


def why_here(walk: Walk, path: Path, at: int, *, most: int = MOST) -> Why:
    """``why`` for a walk that is there already, wherever it stands. At most ``most`` changes are looked for."""
    value = _value(walk.at(at), path)
    changes = _changes(walk, path, at, most + 1)
    if not changes and value is ABSENT:
        raise NoSuchPath(f"{walk.stream}: {what_there_is(tree_of(walk.at(at)), path)}")
    without, also = _without(walk, path, at, changes[0].version, value) if changes else (None, ())
    there, causes = _led(walk, changes[0].version) if changes else (walk, ())
    beyond = _beyond(there, _begin(causes, changes[0].version)) if changes else ""
    return Why(walk.stream, path, at, value, tuple(changes[:most]), len(changes) > most, without, also, causes, there.stream, beyond)


def _led(walk: Walk, version: int) -> tuple[Walk, tuple[Cause, ...]]:
    """What led to the event, and a walk over the stream in which that stands."""
    of_an_aggregate = aggregate_of(walk.app, category_of(walk.stream)) is not None
    return (causes_elsewhere(walk, version) if of_an_aggregate else None) or (walk, causes_of(walk, version))


def _begin(causes: tuple[Cause, ...], version: int) -> int:
    """The input at the end of the chain; a signal may have come even before it."""
    inputs = [cause.version for cause in causes if isinstance(cause.event, facts.InputReceived)]
    return inputs[-1] if inputs else causes[-1].version if causes else version


def _beyond(walk: Walk, version: int) -> str:
    seen = walk.event(version)
    return seen.fact.input_id if isinstance(seen.fact, facts.InputReceived) and seen.stored.causation is not None else ""


def _value(state: StreamState, path: Path) -> Any:
    return whole(look(tree_of(state), path))


def _changes(walk: Walk, path: Path, at: int, most: int) -> list[Touch]:
    """The last ``most`` changes, newest first: pieces of the history from the end on, each folded forth."""
    found: list[Touch] = []
    for first, last in walk.blocks_back(at):
        begin = walk.at(first - 1)
        before, aggregate = _value(begin, path), begin.state
        here: list[Touch] = []
        for row, state in walk.each(first, last):
            if path[0] == "state" and state.state is aggregate:  # the same object: nothing was applied
                continue
            aggregate = state.state
            after = _value(state, path)
            if not same(before, after):
                here.append(Touch(row[0], row[1], before, after, row[5]))
            before = after
        found += reversed(here)
        if len(found) >= most:
            break
    return found[:most]


def _without(walk: Walk, path: Path, at: int, version: int, value: Any) -> tuple[Without, tuple[int, ...]]:
    """What the part would be without the event at ``version``, and which later ones would have to be gone as well."""
    dropped = [version]
    for _ in range(_ROUNDS):
        found = _fold_without(walk, path, at, dropped)
        if found is None:
            return (Without.SAME if len(dropped) > 1 else Without.REFUSED), tuple(dropped[1:])
        after, last = found
        if not same(after, value):
            return (Without.SAME if len(dropped) > 1 else Without.CHANGED), tuple(dropped[1:])
        if last is None:
            break
        dropped.append(last)
    return Without.SAME, tuple(dropped[1:])


def _fold_without(walk: Walk, path: Path, at: int, dropped: list[int]) -> tuple[Any, int | None] | None:
    """What stands there at ``at`` without these events, and which one changed it last; ``None`` when that is no history."""
    folder, state, gone = folder_of(walk.app, walk.stream), walk.at(min(dropped) - 1), frozenset(dropped)
    before, last = _value(state, path), None
    try:
        for rows in walk.rows(min(dropped) - 1, at):
            for row in rows:
                if row[0] not in gone:
                    folder.fold(state, (row,))
                    after = _value(state, path)
                    if not same(before, after):
                        before, last = after, row[0]
    except (LogError, AgentError):
        return None
    return before, last
