"""``eventlog bundle`` and ``raw``: a history in one file, and an event as it lies there. Neither writes to a log."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

import click

from ..eventlog.console import FOUND, MOST, OK, app_option, json_option, stream_argument
from ..eventlog.printing import Column, cut, note, one_line, print_json, say, table, width
from .cli_options import optional_app, streams_argument
from .sources import reading_source, source_option

if TYPE_CHECKING:
    from ..eventlog.events import StoredEvent
    from ..eventlog.log import EventLog


@click.command(
    epilog="\b\nExamples:\n  eventlog bundle accounts-acct-42 -o case-7.bundle\n"
    "  eventlog bundle --category accounts -o accounts.bundle --redact 'refund.asked:order_id'\n"
    "  eventlog replay --all --log case-7.bundle --app refunds:app"
)
@streams_argument
@click.option("-o", "--out", "out", required=True, type=click.Path(dir_okay=False), metavar="FILE", help="The file to write; end it in .bundle.")
@click.option("--all", "everything", is_flag=True, help="Every stream of the log.")
@click.option("--category", metavar="AGENT", help="Every stream of one agent.")
@click.option("--redact", "redact", multiple=True, metavar="PATH", help="Replace what is at [TYPE:]FIELD.FIELD… by a mark; see above.")
@source_option
@app_option
@json_option
def bundle(streams: list[str], out: str, everything: bool, category: str | None, redact: tuple[str, ...], url: str, app: str | None, as_json: bool) -> int:
    """Put STREAMs into one file that opens anywhere.

    With their events go what their turns had loaded of other streams, snapshots, and hashes of all of it; with --app also
    how the classes looked and the state at each stream's end, which replay compares with what other code folds. Every
    command that looks at one history takes the file for a log: --log FILE. Nothing runs when it is opened.

    A path to --redact is written as search shows it: comments[0].body, or comments.*.body for each of them; * also stands for
    a part of a name. Fields of an input may be written with payload. in front or without. Equal values get equal marks.
    """
    from .bundles.writing import write_bundle

    if sum((bool(streams), everything, category is not None)) != 1:
        raise click.UsageError("Name what to bundle: streams, or --category AGENT, or --all.", click.get_current_context())
    known = optional_app(app)
    with reading_source(url) as log:
        names = streams or list(log.streams(f"{category}-" if category is not None else ""))
        manifest = write_bundle(log, names, out, known, redact)
    events, hidden = sum(each.events for each in manifest.streams), sum(len(each.redacted) for each in manifest.streams)
    if as_json:
        print_json({"file": out, "streams": [each.name for each in manifest.streams], "events": events, "redacted_events": hidden})
        return OK
    redacted = f", {hidden:,} events redacted" if redact else ""
    say(f"{one_line(out)}: {len(manifest.streams):,} {'stream' if len(manifest.streams) == 1 else 'streams'}, {events:,} events{redacted}")
    if not out.endswith(".bundle"):
        note(f"Name it as bundle:{out} where a log is asked for: its name does not end in .bundle.")
    return OK


@click.command(epilog="\b\nExamples:\n  eventlog raw accounts-acct-42\n  eventlog raw accounts-acct-42 17 --app refunds:app")
@stream_argument
@click.argument("number", metavar="[VERSION]", required=False, type=click.IntRange(0, MOST))
@click.option("--whole", is_flag=True, help="Print all bytes of the event, however many.")
@source_option
@app_option
@json_option
def raw(stream: str, number: int | None, whole: bool, url: str, app: str | None, as_json: bool) -> int:
    """Show events of STREAM as they lie in the log: bytes, type, schema version, and each upcast on the way to the class.

    Works when the class is gone and when decoding fails, and says at which stage it does. Without VERSION: a line an event.
    Exits with 1 when an event cannot be read; a type that only an app knows is no such event unless --app is given.
    """
    from .errors import NoSuchVersion
    from .forking.begun import codec_for
    from .raw import as_bytes, cell, raw_event, raw_lines

    known = optional_app(app)
    codec = codec_for(stream, known)
    found = 0
    with reading_source(url) as log:
        events = _lying(log, stream, number)
        first = next(events, None)
        if first is None:
            raise NoSuchVersion(
                f"{stream} has no version {number}, though it has later ones: it was deleted or changed behind the log's back. See: eventlog verify {stream}"
            )
        rows = []
        for stored in chain([first], events):
            each = raw_event(stored, codec)
            found += bool(each.problem) and (known is not None or not each.unknown)
            if as_json:
                print_json(each.as_tree())
            elif number is not None:
                for line in raw_lines(each, width=width(), whole=whole):
                    say(line)
            else:
                size = len(as_bytes(stored.data)[0])
                rows.append((cell(stored.version), one_line(cell(stored.type)), cell(stored.schema), size, _reading(each.problem, len(each.stages) - 2)))
    if rows:
        table([Column("version", right=True), Column("type"), Column("schema", right=True), Column("bytes", right=True), Column("reads as", gives=True)], rows)
    return FOUND if found else OK


def _lying(log: EventLog, stream: str, number: int | None) -> Iterator[StoredEvent]:
    """The events of a stream, or those at one version; behind them the rows that a hand gave a version that is none."""
    from ..eventlog.errors import StoreSchemaError
    from ..eventlog.inspecting import unseen_in
    from .errors import NoSuchVersion
    from .fold import head_of

    try:
        head = head_of(log, stream)
    except StoreSchemaError:  # the last version is no number
        found = None if number is None else list(log.read(stream, after=number - 1, upto=number))
        yield from log.read(stream) if found is None else found
        if not found:
            yield from (stored for stored in unseen_in(log) if stored.stream == stream)
        return
    if number is not None and number > head:
        raise NoSuchVersion(f"{stream} has no version {number}: its versions are 0 to {head}")
    yield from log.read(stream) if number is None else log.read(stream, after=number - 1, upto=number)


def _reading(problem: str, steps: int) -> str:
    if problem:
        return cut(one_line(problem), 200)
    return f"its class, after {steps} {'upcast' if steps == 1 else 'upcasts'}" if steps else "its class"
