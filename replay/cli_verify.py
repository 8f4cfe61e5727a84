"""``eventlog verify``: whether a log is what a runtime could have written, and what it was when its chain was made."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ..agents.options import keys_option
from ..eventlog.console import FOUND, OK, CouldNot, app_option, json_option
from ..eventlog.printing import Column, note, one_line, print_json, say, styled, table
from .cli_options import optional_app, streams_argument
from .sources import reading_source, source_option

if TYPE_CHECKING:
    from ..agents.signing import KeyRing
    from ..eventlog.log import EventLog
    from .chaining import Chain
    from .verify import StreamReport

_MOST_OPEN: Final = 20
_NO_FILES: Final = ("/dev", "/dev/fd", "/proc/self/fd")
"""Where this process's own stdout may be named, which may be a file and must stay that very one."""


@click.command()
@streams_argument
@click.option("--chain", "shows", is_flag=True, help="Print a digest of everything that is recorded.")
@click.option("--chain-out", "out", metavar="FILE", type=click.Path(dir_okay=False, writable=True), help="Write a digest of each event, to be kept elsewhere.")
@click.option("--chain-from", "known_chain", metavar="FILE", type=click.File("r", encoding="utf-8"), help="Compare with what was recorded by then.")
@source_option
@app_option
@keys_option("Check signatures with these keys, the retired ones among them:")
@json_option
def verify(streams: list[str], shows: bool, out: str | None, known_chain: Any, url: str, app: str | None, keys: KeyRing | None, as_json: bool) -> int:
    """Check the whole log, or STREAMs: nothing missing, everything readable, nothing that no run can have written.

    Without --app only the runtime's own events are decoded; how many others there are is said. Exits with 1 when a
    fault is found. A chain finds what is possible and yet was changed: write it now, keep it elsewhere, compare later.

    \b
    eventlog verify --app refunds:app
    eventlog verify --chain-out monday.chain
    eventlog verify --chain-from monday.chain
    """
    from .progress import Progress
    from .reports import counted, fault_lines, report_tree
    from .verify import verify_all

    known = optional_app(app)
    counts = {"streams": 0, "events": 0, "unchecked": 0, "foreign": 0, "unsound": 0, "ignored": 0, "unsigned": 0}
    waiting: list[Any] = []
    open_intents = 0

    def tell(report: StreamReport) -> None:
        if as_json:
            progress.close()
            print_json(report_tree(report))
        elif not report.sound:
            progress.say(fault_lines(report))

    with reading_source(url) as log, closing(Progress(lambda: len(streams) or _count(log))) as progress:
        for report in verify_all(log, known, streams or None, keys=keys):
            counts["unsigned"] += report.unsigned
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
            tell(report)
        for report in _compared(log, known_chain, streams):
            counts["unsound"] += 1
            tell(report)
        sealed = _sealed(log, streams, out) if shows or out is not None else None
    if not as_json:
        _sum_up(counts, waiting, open_intents, counted)
    if sealed is not None:
        _tell_sealed(sealed, as_json)
    return FOUND if counts["unsound"] else OK


def _compared(log: EventLog, file: Any, streams: list[str]) -> Iterator[StreamReport]:
    """A report for each stream that is not what it was when the chain's file was made."""
    from .chaining import UNSEEN, Chain, chain_of, chain_of_unseen, differs_at, read_lines
    from .errors import BrokenChain
    from .verify import FaultKind, StreamReport

    if file is None:
        return
    known_unseen = Chain(UNSEEN, -1, b"", b"")
    try:
        for sealed in read_lines(file, file.name):
            if sealed.stream == UNSEEN:
                known_unseen = sealed
                continue
            if streams and sealed.stream not in streams:
                continue
            at = differs_at(sealed, chain_of(log, sealed.stream, upto=sealed.version))
            if at is not None:
                report = StreamReport(sealed.stream)
                head = log.head(sealed.stream)
                was = f"the stream ended at version {sealed.version} then, and ends at {head} now" if at > head else "an event was changed, taken out or put in"
                report.fault(FaultKind.CHAIN, at, f"{was}. The first that is not what it was has version {at}.")
                yield report
    except (BrokenChain, UnicodeDecodeError) as problem:
        raise click.UsageError(str(problem)) from problem
    found = chain_of_unseen(log)
    if not streams and (found.version, found.digest if found.marks else b"") != (known_unseen.version, known_unseen.digest):
        report = StreamReport("")
        text = f"{found.version + 1} rows belong to no stream for its readers, and {known_unseen.version + 1} did then; they are not the same"
        report.fault(FaultKind.CHAIN, 0, text)
        yield report


def _sealed(log: EventLog, streams: list[str], out: str | None) -> list[Chain]:
    """The chains of the streams, written to ``out``; without their marks."""
    import attrs

    from .chaining import chain_of, chain_of_unseen, written_lines

    kept: list[Chain] = []

    def chains() -> Iterator[Chain]:
        unseen = chain_of_unseen(log, streams)
        for found in itertools.chain([unseen] if unseen.marks else [], (chain_of(log, stream) for stream in sorted(streams) or log.streams())):
            kept.append(attrs.evolve(found, marks=b""))
            yield found

    if out is None:
        for _ in chains():
            pass
    else:
        _write_whole(out, written_lines(chains()))
    return kept


def _write_whole(out: str, lines: Iterator[str]) -> None:
    """Into the file ``out``: what stood there stays as it was until the new one is whole. What is no file, as /dev/stdout, is written to."""
    given = Path(out)
    is_file = (given.is_file() or not given.exists()) and str(given.absolute().parent) not in _NO_FILES
    place = Path(os.path.realpath(out)) if is_file else given
    beside = place.with_name(f".{place.name}.{os.getpid()}") if is_file else place
    try:
        with beside.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for line in lines)
        if beside != place:
            beside.replace(place)
    except BaseException as problem:
        if beside != place:
            beside.unlink(missing_ok=True)
        if isinstance(problem, OSError):
            raise CouldNot(f"{out} cannot be written: {problem.strerror or problem}.") from problem
        raise


def _tell_sealed(sealed: list[Chain], as_json: bool) -> None:
    from .chaining import UNSEEN, total_of

    total = total_of(sealed).hex()
    if as_json:
        print_json({"chain": total, "streams": sum(each.stream != UNSEEN for each in sealed), "events": sum(each.version + 1 for each in sealed)})
    else:
        say(f"chain {total}")


def _count(log: EventLog) -> int:
    return sum(1 for _ in log.streams())


def _sum_up(counts: dict[str, int], waiting: list[Any], open_intents: int, counted: Any) -> None:
    if waiting:
        say(styled(f"{counted(open_intents, 'intent')} without an outcome", bold=True))
        columns = [Column("stream", gives=True), Column("version", right=True), Column("intent", whole=True)]
        columns += [Column("tool", gives=True), Column("attempts", right=True)]
        table(columns, [(each.stream, each.version, each.intent_id, each.tool, each.attempts) for each in waiting])
        if open_intents > len(waiting):
            say(f"… and {open_intents - len(waiting):,} more; --json lists them all")
    if counts["unchecked"]:
        note(f"{counted(counts['unchecked'], 'event')} of types that only an app knows: not checked beyond their bytes. Give --app to check them.")
    if counts["unsigned"]:
        note(f"{counts['unsigned']:,} intents, outcomes and answers are not signed; those of the time before there were keys are among them.")
    if counts["foreign"]:
        note(f"{counted(counts['foreign'], 'event')} not of this app: of types it does not know, in streams of another program. Not looked into.")
    if counts["ignored"]:
        note(f"{counted(counts['ignored'], 'snapshot')} ignored, as when it is loaded: other code made it, or the history before it cannot be folded.")
    found = f"{counts['unsound']:,} with faults" if counts["unsound"] else "sound"
    say(f"{counted(counts['streams'], 'stream')}, {counted(counts['events'], 'event')}: {styled(found, fg='red' if counts['unsound'] else 'green', bold=True)}")
