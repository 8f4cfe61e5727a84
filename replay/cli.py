"""``eventlog show`` and ``state``: looking back. None of them can write, call a tool or ask a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

import click

from ..eventlog.console import MOST, OK, app_option, json_option, stream_argument
from ..eventlog.printing import moment, note, one_line, print_json, say, styled, width
from .cli_options import at_option, optional_app
from .sources import reading_source, source_option

if TYPE_CHECKING:
    from .story import Line

_MEASURED: Final = 500
_NAMES: Final = range(16, 25)


@click.command()
@stream_argument
@click.option("--from", "first", type=click.IntRange(0, MOST), default=0, metavar="VERSION", help="Begin with this version.")
@click.option("--to", "last", type=click.IntRange(0, MOST), metavar="VERSION", help="End with this version.")
@click.option("-n", "count", type=click.IntRange(1, MOST), metavar="N", help="Only the last N events.")
@source_option
@app_option
@json_option
def show(stream: str, first: int, last: int | None, count: int | None, url: str, app: str | None, as_json: bool) -> int:
    """Tell the story of STREAM: time, version, event, and a line about it.

    Times are UTC; events of one append share theirs. With --app, users' events are named by their classes and upcast.

    \b
    eventlog show accounts-acct-42
    eventlog show accounts-acct-42 -n 20 --app refunds:app
    """
    from ..agents.holes import missing
    from .errors import NoSuchVersion
    from .fold import head_of
    from .story import story

    known = optional_app(app)
    with reading_source(url) as log:
        head = head_of(log, stream)
        upto = head if last is None else min(last, head)
        if first > head:
            raise NoSuchVersion(f"{stream} has no version {first}: its versions are 0 to {head}")
        begin = max(first, upto - count + 1) if count is not None else first
        last_told = begin - 1

        def noted() -> Iterator[Line]:
            nonlocal last_told
            for line in story(log, stream, known, first=begin, last=upto):
                last_told = line.stored.version
                yield line

        if as_json:
            for line in noted():
                print_json(line.as_tree())
        else:
            _tell(stream, noted())
        if end := missing(last_told + 1, upto + 1):
            note(f"eventlog: {one_line(stream)} {end}: see eventlog verify.")
    return OK


def _tell(stream: str, lines: Iterable[Line]) -> None:
    from .story import as_text

    ahead = list(islice(lines, _MEASURED))
    if not ahead:
        return
    names = min(max(_NAMES.start, *(len(one_line(line.name)) for line in ahead)), _NAMES.stop)
    versions = len(str(ahead[-1].stored.version)) + (len(ahead) == _MEASURED)
    day = ""
    for line in chain(ahead, lines):
        today = moment(line.stored.recorded_at)[:10]
        if today != day:
            say(styled(f"  {today}" if day else f"{one_line(stream)}  {today}", bold=True))
            day = today
        if line.missing:
            say(styled(f"  {'…':>12}  {line.missing}: see eventlog verify", fg="red"))
        say(as_text(line, versions=versions, names=names, width=width()))


@click.command()
@stream_argument
@at_option()
@source_option
@app_option
@json_option
def state(stream: str, at: Any, url: str, app: str | None, as_json: bool) -> int:
    """Fold STREAM to any version and print its state.

    What is printed is what the agent's code would see: the aggregate under `state`, the runtime's own part under `run`.

    \b
    eventlog state accounts-acct-42 --at 9 --app refunds:app
    eventlog state accounts-acct-42 --at 2026-01-31T09:14:02.113 --app refunds:app
    """
    from .fold import state_as_tree, state_at
    from .reports import tree_lines
    from .users_code import load_app

    known = load_app(app)
    with reading_source(url) as log:
        tree = state_as_tree(state_at(log, known, stream, at))
    if as_json:
        print_json(tree)
        return OK
    say(styled(f"{one_line(stream)} at version {tree['version']}", bold=True))
    for line in tree_lines({"state": tree["state"], "run": tree["run"]}, width=width()):
        say(line)
    return OK
