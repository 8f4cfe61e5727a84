"""Commands that look at where the cursor stands: ``st``, ``ev``, ``prev``, ``log``, ``diff``, ``view``, ``help``."""

from __future__ import annotations

from typing import Any, Final

import click

from ...eventlog.console import FOUND, MOST, OK
from ...eventlog.masking import masked_url
from ..diff import diff
from ..errors import NoSuchPath
from ..paths import ABSENT, look, parse_path, what_there_is
from ..reports import counted
from .answers import Answer, answer
from .lines import number_of, words_of
from .moving import here
from .places import is_place, version_of
from .rendering import change_line, event_whole, fitting, remark, story_lines, two_columns
from .session import Session
from .values import Value, brief

_AROUND: Final = 6
_SOME: Final = 3
_ALL: Final = 2_000
"""Events on either side that ``log all`` shows; ``show`` tells longer stories, line by line."""
_MOST_CHANGES: Final = 60


def greeting(session: Session) -> Answer:
    """What a session begins with: what is open, and where the way on is told."""
    where = masked_url(session.url)
    if not session.stream:
        names = session.streams()
        some = ", ".join(names[:_SOME]) + (" …" if len(names) > _SOME else "")
        return answer(remark(f"{where}: {f'open one of its streams: {some}' if names else 'it has no streams'}   help"))
    parts: list[Any] = [remark(f"{counted(session.walk.head + 1, 'event')} of {session.stream} in {where}   help")]
    if session.walk.broken is not None:
        parts += here(session)
    return Answer(tuple(parts))


def state(session: Session, rest: str) -> Answer:
    """The aggregate at the cursor, or the part of state and run at a path."""
    folded = session.walk.tree
    if not rest:
        return answer(Value(folded["state"])) if folded["state"] is not None else answer(remark(_no_state(session)))
    return _part(folded, rest)


def _part(folded: Any, rest: str) -> Answer:
    path = parse_path(rest)
    found = look(folded, path)
    if found is ABSENT:
        return Answer((remark(what_there_is(folded, path)),), FOUND)
    return answer(Value(found))


def _no_state(session: Session) -> str:
    if session.known is None:
        return "without --app nobody knows how to fold users' events; the runtime's part is here: st run"
    return "this agent has no state of its own; the runtime's part is here: st run"


def event(session: Session, rest: str) -> Answer:
    """Everything about the event at the cursor, or at version N."""
    version = max(session.at, 0) if not rest else version_of(session, rest)
    line = session.line(version)
    stored = line.stored
    causes = {
        name: found for name, found in (("id", _id(stored.event_id)), ("caused by", _id(stored.causation)), ("begun by", _id(stored.correlation))) if found
    }
    return Answer(tuple(event_whole(line, causes)))


def _id(raw: Any) -> str:
    return raw.hex() if isinstance(raw, bytes) else ""


def previous(session: Session, rest: str) -> Answer:
    """The state before the event at the cursor, or the part of it at a path."""
    folded = session.tree_at(session.at - 1)
    return _part(folded, rest) if rest else answer(Value(folded["state"]))


def history(session: Session, rest: str) -> Answer:
    """The story around the cursor; ``log N`` shows N events on either side, ``log all`` everything."""
    head = session.walk.head
    if rest == "all":
        first, last = max(session.at - _ALL, 0), min(session.at + _ALL, head)
    else:
        around = number_of(rest.removeprefix("-n").strip(), default=_AROUND, most=MOST)
        first, last = max(session.at - around, 0), min(session.at + around, head)
    parts: list[Any] = list(story_lines(session.lines(first, last), session.at))
    if first:
        parts.insert(0, remark(f"  … {first:,} earlier"))
    if last < head:
        parts.append(remark(f"  … {head - last:,} later"))
    return Answer(tuple(parts))


def difference(session: Session, rest: str) -> Answer:
    """What the event at the cursor changed, run included; from version A to here; from A to B; with a path, only there."""
    words = words_of(rest)
    versions: list[int] = []
    while words and len(versions) < 2 and is_place(words[0]):
        versions.append(version_of(session, words.pop(0)))
    if len(words) > 1:
        odd = f"{words[0]!r:.80} is neither a version nor a time, and " if len(versions) < 2 else ""
        raise click.UsageError(f"{odd}{' '.join(words)!r:.80} is no path: diff takes at most two places and a path: diff 3 8 open_orders, diff 3 now")
    path = parse_path(words[0]) if words else ()
    first = versions[0] if versions else session.at - 1
    last = versions[1] if len(versions) > 1 else session.at
    before, after = session.tree_at(first), session.tree_at(last)
    left, right = (look(before, path), look(after, path)) if path else (_both(before), _both(after))
    if left is ABSENT and right is ABSENT:
        raise NoSuchPath(f"{what_there_is(after, path)} (at version {first} as at {last})")
    changes = diff(left, right)
    parts: list[Any] = [change_line(each, root=path) for each in changes[:_MOST_CHANGES]]
    if len(changes) > _MOST_CHANGES:
        parts.append(remark(f"  … and {len(changes) - _MOST_CHANGES:,} more; name a path"))
    return Answer(tuple(parts) or (remark(f"the same at {first} and {last}"),), FOUND if parts else OK)


def _both(folded: Any) -> dict[str, Any]:
    return {"state": folded["state"], "run": folded["run"]}


def view(session: Session, rest: str) -> Answer:
    """The rows of the loaded projection as of the cursor; ``view KEY`` those whose key begins so."""
    if session.loaded is None or session.loaded.projection is None:
        raise click.UsageError("No projection is loaded: load FILE:NAME")
    found = session.projected().at(session.at)
    rows = {key: each for key, each in sorted(found.readable().items()) if key.startswith(rest)}
    parts: list[Any] = list(two_columns({key: brief(each, 400) for key, each in rows.items()}, style="cyan")) or [remark("no rows")]
    if found.fault:
        parts.append(fitting(_fault(found.fault)))
    return Answer(tuple(parts), FOUND if found.fault else OK)


def _fault(text: str) -> Any:
    from rich.text import Text

    return Text(f"  it stopped: {text}", style="red")
