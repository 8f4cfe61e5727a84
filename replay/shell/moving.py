"""Commands that move the cursor: ``open``, ``next``, ``back``, ``goto``, ``until``; and what is looked at on the way."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import click

from ...eventlog.console import FOUND, MOST
from ...eventlog.names import check_stream
from ..diff import diff
from ..errors import NoSuchPath
from ..expressions import Expression, parse_expression
from ..paths import ABSENT, look, may_come, parse_path, path_text, what_there_is
from ..trees import EventTree
from .answers import Answer, answer
from .lines import number_of, unquoted
from .places import version_of
from .rendering import change_line, event_line, fitting, remark, watch_line, wrong
from .session import Break, Session
from .values import brief

_MOST_CHANGES: Final = 8
_NUMBER: Final = re.compile(r"[0-9]+\Z")
_UNTIL: Final = re.compile(r"until(?:\s+|\Z)")


def arrived(session: Session, before: dict[str, Any], *, of_all: bool = False) -> tuple[Any, ...]:
    """The event at the cursor, what it changed, and the watches. ``before`` is the tree where the cursor came from."""
    session.turn = None
    after = session.walk.tree
    parts: list[Any] = [*here(session)]
    changes = diff({"state": before["state"]}, {"state": after["state"]})
    parts += [change_line(each, indent=8) for each in changes[:_MOST_CHANGES]]
    if len(changes) > _MOST_CHANGES:
        parts.append(remark(f"        … and {len(changes) - _MOST_CHANGES:,} more changes: diff"))
    rows = diff({"view": session.rows_at(before["version"])}, {"view": session.rows_at(session.at)})
    parts += [change_line(each, indent=8) for each in rows[:_MOST_CHANGES]]
    for name, path in session.watched():
        was, now = look(before, path), look(after, path)
        if not any(each.path == path for each in changes[:_MOST_CHANGES]):
            parts.append(watch_line(name, was, now))
    return tuple(parts)


def here(session: Session) -> tuple[Any, ...]:
    """The event at the cursor; and why the history goes no further, where it cannot be folded."""
    walk = session.walk
    parts: list[Any] = [event_line(session.line(session.at), marked=True) if session.at >= 0 else remark("before the first event")]
    if walk.broken is not None and session.at == walk.last:
        parts.append(wrong(f"It cannot be folded beyond this: {walk.broken} See it as it lies there: raw {walk.last + 1}"))
    return tuple(parts)


def _moved(session: Session, move: Callable[[], object]) -> Answer:
    before = session.walk.tree
    move()
    return Answer(arrived(session, before))


def open_stream(session: Session, rest: str) -> Answer:
    """Look at another stream."""
    if not rest:
        raise click.UsageError("Name the stream: open accounts-acct-42")
    session.open(check_stream(unquoted(rest.strip())))
    return Answer(here(session))


def next_event(session: Session, rest: str) -> Answer:
    """Go on: by one event, by N, or to the next of a type."""
    walk = session.walk
    if rest and not _NUMBER.match(rest):
        found = _going(session, lambda: walk.next_of_type(rest))
        return found or Answer((remark(f"no {rest} after version {session.at}"),), FOUND)
    count = number_of(rest, default=1, most=MOST)
    if session.at >= walk.head and session.grown():  # somebody has gone on with it
        session.fold_again()
    if session.at >= session.walk.head:
        return Answer((remark(f"this is the end: {session.stream} has no version after {session.at}"),), FOUND)
    target = min(session.at + count, max(session.walk.last, session.at + 1))
    return _moved(session, lambda: session.walk.goto(target))


def _going(session: Session, move: Callable[[], object]) -> Answer | None:
    """The move, or ``None`` when there was nowhere to go; then the cursor is where it was."""
    before = session.walk.tree
    return Answer(arrived(session, before)) if move() is not None else None


def back(session: Session, rest: str) -> Answer:
    """Go back: by one event, by N, to the last of a type, or until an expression holds."""
    walk = session.walk
    if _UNTIL.match(rest):
        return _until(session, rest[len("until") :].strip(), backwards=True)
    if rest and not _NUMBER.match(rest):
        found = _going(session, lambda: walk.next_of_type(rest, backwards=True))
        return found or Answer((remark(f"no {rest} before version {session.at}"),), FOUND)
    count = number_of(rest, default=1, most=MOST)
    if session.at <= min(0, walk.last):
        return Answer((remark(f"this is the beginning of {session.stream}"),), FOUND)
    return _moved(session, lambda: walk.goto(max(session.at - count, 0)))


def goto(session: Session, rest: str) -> Answer:
    """Go to a version, a position, a moment, the start or the end."""
    if not rest:
        raise click.UsageError("Say where: goto 17, goto @1234, goto 2026-01-31T09:14:02, goto start, goto now")
    target = version_of(session, rest)
    return _moved(session, lambda: session.walk.goto(target))


def until(session: Session, rest: str) -> Answer:
    """Go on until an expression holds, or a break does."""
    return _until(session, rest, backwards=False)


def _until(session: Session, rest: str, *, backwards: bool) -> Answer:
    text = unquoted(rest)
    if not text and not session.breaks:
        raise click.UsageError("Say until when: until not st.open_orders   or set breaks first: break st.refunded_cents > 100")
    wanted = parse_expression(text) if text else None
    stop = _Stop(wanted, session.breaks, session.walk.tree, edges=not backwards)
    found = _going(session, lambda: session.walk.until(stop, backwards=backwards))
    if found is None:
        place = "before" if backwards else "after"
        said = remark(f"it holds at no version {place} {session.at}" if text else f"no break begins to hold {place} version {session.at}")
        broken = session.walk.broken if not backwards else None
        return Answer((said, wrong(f"It cannot be folded beyond version {session.walk.last}: {broken}")) if broken is not None else (said,), FOUND)
    reason = _broken_by(session, wanted)
    return Answer((*found.parts, remark(f"        stopped by the break {reason}"))) if reason else found


def _broken_by(session: Session, wanted: Expression | None) -> str:
    """The break that stopped it here; empty when what was asked for holds."""
    row, tree = EventTree(session.walk.row(session.at), session.walk.codec), session.walk.tree
    if wanted is not None and wanted.holds(tree, row):
        return ""
    return next((each.text for each in session.breaks if each.expression.holds(tree, row)), "")


class _Stop:
    """The expression asked for, and the breaks; with ``edges`` each of those only where it begins to hold."""

    def __init__(self, wanted: Expression | None, breaks: list[Break], tree: dict[str, Any], *, edges: bool) -> None:
        self._wanted = wanted
        self._breaks = breaks
        self._edges = edges
        self._held = [each.expression.holds(tree, None) for each in breaks] if edges else [False] * len(breaks)

    def holds(self, tree: Mapping[str, Any], event: Mapping[str, Any] | None = None) -> bool:
        """Whether to stop here."""
        if self._wanted is not None and self._wanted.holds(tree, event):
            return True
        stopped = False
        for place, each in enumerate(self._breaks):
            held, holds = self._held[place], each.expression.holds(tree, event)
            stopped = stopped or (holds and not held)
            self._held[place] = holds and self._edges
        return stopped


def watch(session: Session, rest: str) -> Answer:
    """Show a part of the state after each move; without a path, list what is watched; ``watch off`` forgets."""
    if not rest:
        tree = session.walk.tree
        shown = [fitting_pair(name, _standing(look(tree, path))) for name, path in session.watched()]
        return Answer(tuple(shown) or (remark("nothing is watched; watch refunded_cents"),))
    word, _, behind = rest.partition(" ")
    if word == "off":
        gone = [behind.strip()] if behind.strip() else list(session.watches)
        for name in gone:
            session.watches.pop(name, None)
        return answer(remark(f"{len(session.watches)} watched"))
    path = parse_path(rest)
    tree = session.walk.tree
    found = look(tree, path)
    if found is ABSENT and not may_come(tree, path):
        raise NoSuchPath(f"{what_there_is(tree, path)}. Nothing is watched there.")
    session.watches[path_text(path)] = path
    return answer(fitting_pair(path_text(path), _standing(found)))


def _standing(value: Any) -> str:
    return "nothing there yet" if value is ABSENT else brief(value)


def fitting_pair(name: str, shown: str) -> Any:
    """A name and a value on one line."""
    from rich.text import Text

    return fitting(Text.assemble("  ", (f"{name}  ", "cyan"), shown))


def set_break(session: Session, rest: str) -> Answer:
    """Have ``until`` stop where an expression begins to hold; without one, list them; ``break off N`` forgets."""
    if not rest:
        shown = [fitting_pair(str(place), each.text) for place, each in enumerate(session.breaks, 1)]
        return Answer(tuple(shown) or (remark("no breaks; break st.refunded_cents > 100"),))
    word, _, behind = rest.partition(" ")
    if word == "off":
        if behind.strip():
            place = number_of(behind.strip(), default=1, most=MOST)
            if place > len(session.breaks):
                raise click.UsageError(f"There is no break {place}: there are {len(session.breaks)}.")
            del session.breaks[place - 1]
        else:
            session.breaks.clear()
        return answer(remark(f"{len(session.breaks)} breaks"))
    text = unquoted(rest)
    session.breaks.append(Break(text, parse_expression(text)))
    return answer(fitting_pair(str(len(session.breaks)), text))
