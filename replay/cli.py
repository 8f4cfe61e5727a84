"""``eventlog show``, ``state`` and ``verify``: looking back. None of them can write, call a tool or ask a model."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

import click

from ..eventlog.console import FOUND, MOST, OK, app_option, complete_streams, json_option, stream_argument
from ..eventlog.printing import Column, moment, note, one_line, print_json, say, styled, table, width
from .sources import reading_source, source_option

if TYPE_CHECKING:
    from ..agents.app import App
    from ..eventlog.log import EventLog
    from .story import Line

_MEASURED: Final = 500
_NAMES: Final = range(16, 25)
_MOST_OPEN: Final = 20


def _optional_app(spec: str | None) -> App | None:
    if not spec:
        return None
    from ..agents.loading import load_app

    return load_app(spec)


def _streams_argument(ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> list[str]:
    from ..eventlog.names import check_stream

    return [check_stream(each) for each in value]


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
    """
    from .errors import NoSuchVersion
    from .fold import head_of
    from .story import story

    known = _optional_app(app)
    with reading_source(url) as log:
        head = head_of(log, stream)
        upto = head if last is None else min(last, head)
        if first > head:
            raise NoSuchVersion(f"{stream} has no version {first}: its versions are 0 to {head}")
        begin = max(first, upto - count + 1) if count is not None else first
        lines = story(log, stream, known, first=begin, last=upto)
        if as_json:
            for line in lines:
                print_json(line.as_tree())
        else:
            _tell(stream, lines)
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
        say(as_text(line, versions=versions, names=names, width=width()))


@click.command()
@stream_argument
@click.option("--at", "at", metavar="VERSION|@POSITION|TIME", help="As of then: 17, @1234, 2026-01-31T09:14:02.  [default: now]")
@source_option
@app_option
@json_option
def state(stream: str, at: str | None, url: str, app: str | None, as_json: bool) -> int:
    """Fold STREAM to any version and print its state.

    What is printed is what the agent's code would see: the aggregate under `state`, the runtime's own part under `run`.
    """
    from ..agents.loading import load_app
    from .fold import parse_at, state_as_tree, state_at
    from .reports import tree_lines

    known = load_app(app)
    place = parse_at(at) if at is not None else None
    with reading_source(url) as log:
        tree = state_as_tree(state_at(log, known, stream, place))
    if as_json:
        print_json(tree)
        return OK
    say(styled(f"{one_line(stream)} at version {tree['version']}", bold=True))
    for line in tree_lines({"state": tree["state"], "run": tree["run"]}, width=width()):
        say(line)
    return OK


@click.command()
@click.argument("streams", metavar="[STREAM]...", nargs=-1, shell_complete=complete_streams, callback=_streams_argument)
@source_option
@app_option
@json_option
def verify(streams: list[str], url: str, app: str | None, as_json: bool) -> int:
    """Check the whole log, or STREAMs: nothing missing, everything readable, nothing that no run can have written.

    Without --app only the runtime's own events are decoded; how many others there are is said. Exits with 1 when a
    fault is found.
    """
    from .progress import Progress
    from .reports import counted, fault_lines, report_tree
    from .verify import verify_all

    known = _optional_app(app)
    counts = {"streams": 0, "events": 0, "unchecked": 0, "foreign": 0, "unsound": 0, "ignored": 0}
    waiting: list[Any] = []
    open_intents = 0
    with reading_source(url) as log, closing(Progress(lambda: len(streams) or _count(log))) as progress:
        for report in verify_all(log, known, streams or None):
            counts["streams"] += report.stream != ""
            counts["events"] += report.events
            counts["unchecked"] += report.unchecked
            counts["foreign"] += report.foreign
            counts["unsound"] += not report.sound
            counts["ignored"] += bool(report.snapshot_ignored) and known is not None
            open_intents += len(report.open_intents)
            waiting += report.open_intents[: max(_MOST_OPEN - len(waiting), 0)]
            if report.stream:
                progress.advance(one_line(report.stream))
            if as_json:
                progress.close()
                print_json(report_tree(report))
            elif not report.sound:
                progress.say(fault_lines(report))
    if not as_json:
        _sum_up(counts, waiting, open_intents, counted)
    return FOUND if counts["unsound"] else OK


def _count(log: EventLog) -> int:
    return sum(1 for _ in log.streams())


def _sum_up(counts: dict[str, int], waiting: list[Any], open_intents: int, counted: Any) -> None:
    if waiting:
        say(styled(f"{counted(open_intents, 'intent')} without an outcome", bold=True))
        columns = [Column("stream", gives=True), Column("version", right=True), Column("intent"), Column("tool", gives=True), Column("attempts", right=True)]
        table(columns, [(each.stream, each.version, each.intent_id, each.tool, each.attempts) for each in waiting])
        if open_intents > len(waiting):
            say(f"… and {open_intents - len(waiting):,} more; --json lists them all")
    if counts["unchecked"]:
        note(f"{counted(counts['unchecked'], 'event')} of types that only an app knows: not checked beyond their bytes. Give --app to check them.")
    if counts["foreign"]:
        note(f"{counted(counts['foreign'], 'event')} not of this app: of types it does not know, in streams of another program. Not looked into.")
    if counts["ignored"]:
        note(f"{counted(counts['ignored'], 'snapshot')} ignored, as when it is loaded: other code made it, or the history before it cannot be folded.")
    found = f"{counts['unsound']:,} with faults" if counts["unsound"] else "sound"
    say(f"{counted(counts['streams'], 'stream')}, {counted(counts['events'], 'event')}: {styled(found, fg='red' if counts['unsound'] else 'green', bold=True)}")
