"""Commands over one turn: ``run`` it again by the journal, ``step`` through what its code did."""

from __future__ import annotations

import linecache
import os
from typing import Any

import click
from rich.text import Text

from ...agents.app import App
from ...eventlog.console import FOUND, MOST, OK
from ...eventlog.names import category_of
from ...eventlog.printing import one_line
from ..reports import counted, divergence_lines
from ..verdicts import Verdict
from .answers import Answer
from .lines import number_of
from .rendering import fitting, numbered_source, remark, two_columns, wrong
from .session import Session
from .stepping import Turn, run_again
from .watched import Seen


def run(session: Session, rest: str) -> Answer:
    """Run the turn at the cursor again, answered from the journal, and list what its code did."""
    if rest:
        raise click.UsageError("run takes nothing: it runs the turn of the event at the cursor. Go there first: goto 17")
    turn = _turn(session)
    if turn is None:
        return Answer((remark(f"no turn to run: nothing has begun after version {session.at}, and nothing is due"),), FOUND)
    session.turn = turn
    parts = [*_verdict(turn, session.width()), *(_in_short(place, each) for place, each in enumerate(turn.seen, 1))]
    if turn.seen:
        parts.append(remark("  step goes through it"))
    return Answer(tuple(parts), OK if turn.replayed is None or turn.replayed.verdict is Verdict.SAME else FOUND)


def _turn(session: Session) -> Turn | None:
    return run_again(session.log, _acting(session), session.stream, session.at, session.folded_at)


def _acting(session: Session) -> App:
    """The app whose agent's code is run: the loaded one if it has any."""
    loaded = session.loaded
    app = loaded.app if loaded is not None and loaded.runs else session.app
    category = category_of(session.stream)
    if app is None or category not in app.agents:
        raise click.UsageError(f"Running a turn takes the agent's code: start the shell with --app module:attribute, or load FILE with the agent {category!r}.")
    return app


def _verdict(turn: Turn, width: int) -> list[Any]:
    versions = f"version {turn.first}" if turn.first == turn.last else f"versions {turn.first} to {turn.last}"
    if turn.replayed is None:
        return [remark(f"a turn that was not committed, {versions}: {turn.stops}", wraps=True)]
    match turn.replayed.verdict:
        case Verdict.DIVERGED if turn.replayed.divergence is not None:
            return [Text.from_ansi(line) for line in divergence_lines(turn.replayed.divergence, width=width)]
        case Verdict.CANNOT:
            return [wrong(f"it cannot be run again: {turn.replayed.reason}")]
    notes = [remark(f"  note: {each}", wraps=True) for each in turn.replayed.notes]
    return [fitting(Text.assemble(f"{versions}: ", ("same", "bold green"), " as recorded")), *notes]


def _in_short(place: int, seen: Seen) -> Text:
    text = Text(f"  {place:>2}  ", style="dim")
    text.append(f"{seen.place:<8} ", style="cyan")
    text.append(f"{one_line(seen.what)}  ", style="bold")
    text.append(one_line(seen.asked))
    if seen.given:
        text.append("  → ", style="dim")
        text.append(one_line(seen.given), style="green")
    return fitting(text)


def step(session: Session, rest: str) -> Answer:
    """Go to the next thing the turn's code did, to number N, or ``back``; the turn is run first when it was not."""
    fresh = session.turn is None
    if fresh:
        session.turn = _turn(session)
    turn = session.turn
    if turn is None or not turn.seen:
        return Answer((remark(f"no turn to step through at version {session.at}"),), FOUND)
    if rest == "back":
        place = turn.place - 1
    elif rest:
        place = number_of(rest, default=1, most=MOST) - 1
    else:
        place = turn.place + 1 if turn.begun else 0
    if not 0 <= place < len(turn.seen):
        return Answer((*_verdict(turn, session.width()), remark(f"that is all: {counted(len(turn.seen), 'step')}")), FOUND)
    turn.place, turn.begun = place, True
    return Answer(tuple(_in_full(turn.seen[place])))


def _in_full(seen: Seen) -> list[Any]:
    parts: list[Any] = []
    if seen.file:
        parts.append(numbered_source(_near(seen.file), seen.line, linecache.getline(seen.file, seen.line)))
    text = Text("  ")
    text.append(f"{seen.place}  ", style="bold cyan")
    text.append(one_line(seen.what), style="bold")
    parts.append(fitting(text))
    said = {name: shown for name, shown in (("with", seen.asked), ("gets", seen.given)) if shown}
    if said:
        parts += two_columns(said, indent=4)
    if seen.names:
        parts += two_columns({f"{name} =": shown for name, shown in seen.names.items()}, style="cyan", indent=4)
    return parts


def _near(file: str) -> str:
    """A path as short as it can be from here."""
    relative = os.path.relpath(file)
    return file if relative.startswith("..") else relative
