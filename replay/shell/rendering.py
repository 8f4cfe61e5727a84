"""How things look in the shell: rich renderables that fit the screen. No log and no terminal here.

Whatever was recorded goes through ``one_line`` or ``repr``, so that no recorded control character reaches the terminal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from rich.cells import cell_len
from rich.text import Text

from ...eventlog.clock import Micros
from ...eventlog.printing import iso, moment, one_line, time_of_day
from ..diff import Change, ChangeKind
from ..paths import ABSENT, Path, path_text
from ..story import Line
from .values import Value, brief

_MOST_CHILDREN: Final = 40
_LONGEST: Final = 400
_BEFORE: Final = 28
"""Cells for what something was, so that what it became is seen as well."""
_WIDEST: Final = 40
"""Cells that names in front of values are given, the longest ones aside."""


def fitting(text: Text) -> Text:
    """``text`` on one line, cut with an ellipsis where the screen ends."""
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def remark(text: str, *, wraps: bool = False) -> Text:
    """A line that is not the answer itself."""
    said = Text(one_line(text), style="dim")
    return said if wraps else fitting(said)


def wrong(text: str) -> Text:
    """Why a command did nothing; may be several lines, which wrap."""
    return Text("\n".join(one_line(line) for line in text.splitlines()), style="red")


def event_line(line: Line, *, marked: bool = False, versions: int = 4, names: int = 16, day: bool = False) -> Text:
    """One event as in ``eventlog show``; ``marked``: it is where the cursor stands."""
    at = line.stored.recorded_at
    text = Text("▸ " if marked else "  ", style="bold cyan" if marked else "")
    text.append(f"{line.stored.version:>{versions}}  ", style="bold" if marked else "dim")
    text.append(f"{moment(at) if day else time_of_day(at)}  ", style="dim")
    name = one_line(line.name, names)
    text.append(f"{name:<{names}}  ", style=_rich(line.colour))
    text.append(one_line(line.summary, _LONGEST))
    return fitting(text)


def story_lines(lines: Sequence[Line], cursor: int) -> Iterator[Text]:
    """Events under each other, the one at ``cursor`` marked; the day where it begins."""
    names = min(max((len(line.name) for line in lines), default=16), 24)
    versions = max((len(str(line.stored.version)) for line in lines), default=1)
    day = ""
    for line in lines:
        today = moment(line.stored.recorded_at)[:10]
        if today != day:
            yield Text(f"  {' ' * versions}  {today}", style="dim")
            day = today
        yield event_line(line, marked=line.stored.version == cursor, versions=versions, names=names)


def _rich(colour: str | None) -> str:
    return colour or ""


def event_whole(line: Line, causes: Mapping[str, str]) -> Iterator[Any]:
    """Everything about an event: its columns, then its fields, coloured."""
    stored = line.stored
    head = Text(one_line(line.name), style=f"bold {_rich(line.colour)}".strip())
    head.append(f"  {one_line(stored.type)} v{one_line(stored.schema)}", style="dim")
    yield fitting(head)
    columns = {
        "version": f"{stored.version}",
        "position": f"{stored.position}",
        "recorded": iso_of(stored.recorded_at),
        "bytes": f"{len(stored.data):,}",
        **causes,
    }
    yield from two_columns(columns)
    if line.content is None:
        yield wrong(line.summary)
    else:
        yield Value(line.content)


def iso_of(at: Micros) -> str:
    """A moment whole."""
    return iso(at).replace("+00:00", "Z")


def two_columns(pairs: Mapping[str, str], *, style: str = "dim", indent: int = 2) -> Iterator[Text]:
    """Names on the left, values on the right; nothing wraps."""
    names = [one_line(name) for name in pairs]
    wide = min(max(map(cell_len, names), default=0), _WIDEST)  # one long name does not move all the values out of sight
    for name, shown in zip(names, pairs.values(), strict=True):
        yield fitting(Text.assemble(" " * indent, (f"{name}{' ' * (wide - cell_len(name))}  ", style), one_line(shown, _LONGEST)))


_ID: Final = re.compile(r"([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_SIGNS: Final = {ChangeKind.ADDED: ("+", "green"), ChangeKind.REMOVED: ("-", "red"), ChangeKind.CHANGED: ("~", "yellow")}


def change_line(change: Change, *, root: Path = (), indent: int = 2) -> Text:
    """One difference: what it was on the left, what it became on the right."""
    sign, colour = _SIGNS[change.kind]
    text = Text(" " * indent)
    text.append(f"{sign} ", style=f"bold {colour}")
    text.append(f"{_short(path_text((*root, *_shown_path(change))))}  ", style="cyan")
    if change.kind is not ChangeKind.ADDED:
        is_gone = change.kind is ChangeKind.REMOVED
        text.append(brief(change.before, _LONGEST if is_gone else _BEFORE), style="red" if is_gone else "")
    if change.kind is ChangeKind.CHANGED:
        text.append(" → ", style="dim")
    if change.kind is not ChangeKind.REMOVED:
        text.append(brief(change.after), style="green")
    return fitting(text)


def _short(path: str) -> str:
    """Ids of intents by their beginning, which a path may name them by."""
    return one_line(_ID.sub(r"\1…", path), 60)


def _shown_path(change: Change) -> Path:
    """Without the element of a set, which is its own key."""
    value = change.after if change.kind is ChangeKind.ADDED else change.before
    is_element = change.kind is not ChangeKind.CHANGED and len(change.path) > 1 and type(change.path[-1]) is type(value) and change.path[-1] == value
    return change.path[:-1] if is_element else change.path


def watch_line(name: str, was: Any, now: Any, *, indent: int = 8) -> Text:
    """A watched part of the state: what it is, and what it was when that is something else."""
    text = Text(" " * indent)
    text.append("◆ ", style="bold magenta")
    text.append(f"{_short(name)}  ", style="cyan")
    if was != now:
        text.append("nothing there" if was is ABSENT else brief(was, _BEFORE))
        text.append(" → ", style="dim")
    text.append("nothing there" if now is ABSENT else brief(now), style="green" if was != now else "")
    return fitting(text)


def numbered_source(file: str, number: int, source: str) -> Text:
    """A line of code with its place, coloured as Python."""
    from rich.syntax import Syntax

    text = Text("  ")
    text.append(f"{file}:{number}  ", style="dim")
    code = Syntax("", "python", theme="ansi_dark", background_color="default").highlight(source.strip())
    code.rstrip()
    return fitting(text + code)


def usages(rows: Iterable[tuple[str, str]], *, width: int = 0) -> Iterator[Text]:
    """Usage and what it does: a help page's lines."""
    for left, right in rows:
        yield fitting(Text.assemble("  ", (f"{left:<{width}}  ", "cyan"), right))
