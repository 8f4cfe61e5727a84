"""``eventlog fork`` and ``merge``: what-if on a copy, and the way back. Both say what they will do before they write to a log."""

from __future__ import annotations

import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..eventlog.console import FOUND, OK, CouldNot, app_option, json_option, stream_argument, writing
from ..eventlog.printing import note, one_line, print_json, say, styled, width
from .cli_options import at_option
from .sources import bundle_path, reading_source, source_option

if TYPE_CHECKING:
    from ..agents.app import App
    from .forking.edits import Edits
    from .forking.going_on import WhatIf
    from .forking.writing import Written


@click.command(
    epilog="\b\nExamples:\n  eventlog fork accounts-acct-42 --edit 2 response.text=no --app refunds:app\n"
    "  eventlog fork accounts-acct-42 --at 11 --drop 8 --to case.bundle --app refunds:app\n"
    "  eventlog fork accounts-acct-42 --at 11 --live --app refunds:app"
)
@stream_argument
@at_option("Copy everything up to there")
@click.option("--edit", "edits", nargs=2, multiple=True, type=(click.IntRange(0), str), metavar="EVENT FIELD=VALUE", help="Tell the code something else.")
@click.option("--drop", "drops", multiple=True, type=click.IntRange(0), metavar="EVENT", help="Leave out what it was told.")
@click.option("--insert", "inserts", multiple=True, type=click.Path(exists=True, dir_okay=False), metavar="FILE", help="Events as JSON to put in.")
@click.option("--to", "to", metavar="LOG|BUNDLE", help="Where the fork is written.  [default: a bundle in the current folder; with --live: the log itself]")
@click.option("--dry-run", is_flag=True, help="Write nothing; only show how it goes on.")
@click.option("--live", is_flag=True, help="Let it go on for real, under a new name, with effects.")
@click.option("--yes", is_flag=True, help="Do not ask before --live.")
@click.option("--by", metavar="NAME", help="Who does it, for the record.  [default: the user's name]")
@source_option
@app_option
@json_option
def fork(
    stream: str, at: Any, to: str | None, dry_run: bool, live: bool, yes: bool, by: str | None, url: str, app: str | None, as_json: bool, **changes: Any
) -> int:
    """Copy STREAM, change what it was told, and see how the code goes on.

    From the first change on the code is run again, answered by what is recorded; a step without a recorded answer stops it.
    The source is only read. Nothing in a fork is due and no effect of it is carried out, unless --live lets it go on for
    real: under a new name, with intents of its own, and with approvals asked again. Exits with 1 when the fork differs.
    """
    from .forking.differences import fork_lines, fork_tree
    from .forking.going_on import what_if
    from .forking.writing import check_live
    from .users_code import load_app

    known = load_app(app)
    edits = _edits(**changes)
    if live and dry_run:
        raise click.UsageError("--live writes, --dry-run does not: give one of them.", click.get_current_context())
    with reading_source(url) as log:
        made = what_if(log, known, stream, at, edits, approvals=not live)
        tree = fork_tree(log, known, made)
        if not as_json:
            say(styled(f"{one_line(stream)} forked at version {made.upto}", bold=True) + (f": {one_line(str(made.edits))}" if made.edits.as_texts() else ""))
            for line in fork_lines(log, known, made, width=width()):
                say(line)
    if live:
        check_live(made, known)
        _ask(made, yes)
    written = None if dry_run else _write(made, known, url, to, by, live)
    _told(tree, written, as_json)
    return FOUND if tree["differs"] else OK


def _edits(edits: tuple[tuple[int, str], ...], drops: tuple[int, ...], inserts: tuple[str, ...]) -> Edits:
    from .errors import ForkRefused
    from .forking.edits import Edits, parse_edit, parse_inserts

    texts = [Path(each).read_text("utf-8") for each in inserts]
    try:
        return Edits(tuple(parse_edit(version, text) for version, text in edits), drops, tuple(each for text in texts for each in parse_inserts(text)))
    except ForkRefused as problem:
        raise click.UsageError(str(problem), click.get_current_context()) from None


def _ask(made: WhatIf, yes: bool) -> None:
    """Nothing goes on for real that nobody has said yes to."""
    open_intents = [each for each in made.state.run.intents.values() if each.settled is None]
    for each in open_intents:
        note(f"will be carried out: {each.tool} {one_line(each.args, 200)}")
    for activation in made.state.run.open.values():
        for asked in activation.approvals.values():
            if asked.decided is None:
                note(f'will be asked again: "{one_line(asked.requested.question, 200)}" (until then it waits; past its deadline it reads as denied)')
    _confirm("Let this fork go on for real?", yes)


def _confirm(question: str, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise CouldNot(f"nothing was written: there is no terminal to ask at ({question}). --yes answers.")
    if not click.confirm(question, default=False, err=True):
        raise CouldNot("nothing was written.")


def _write(made: WhatIf, known: App, url: str, to: str | None, by: str | None, live: bool) -> Written:
    from ..agents.options import who
    from .errors import NameTaken
    from .forking.writing import default_place, live_name, write_copy, write_live

    if not live:
        return write_copy(made, to or default_place(made.stream, made.upto, Path()), source_log=url, by=who(by))
    target = to or url
    if bundle_path(target) is not None:
        raise click.UsageError(f"{target} is a bundle, in which nothing can go on. Name a log with --to.", click.get_current_context())
    with writing(target, create=to is not None) as log:
        while True:  # each time round somebody else has made a fork of it
            with suppress(NameTaken):
                return write_live(made, known, log, live_name(log, made.stream), source_log=url, by=who(by))


def _told(tree: dict[str, Any], written: Written | None, as_json: bool) -> None:
    from ..eventlog.console import masked

    if as_json:
        place = None if written is None else {"log": masked(written.log), "stream": written.stream, "live": written.live}
        print_json(tree | {"written": place})
    elif written is not None:
        ends = "workers and effectors go on with it from now on" if written.live else "nothing there is due, and effects are off"
        say(f"written to {masked(written.log)} as {one_line(written.stream)}: {ends}")


@click.command(
    epilog="\b\nExamples:\n  eventlog merge 'accounts-acct-42~fork1' --app refunds:app --dry-run\n"
    "  eventlog merge accounts-acct-42 --log fork.bundle --into sqlite:///eventlog.db --app refunds:app"
)
@stream_argument
@click.option("--into", "into", metavar="LOG", help="The log of the source.  [default: the one that is recorded with the fork]")
@click.option("--dry-run", is_flag=True, help="Only say what it would do.")
@click.option("--yes", is_flag=True, help="Do not ask before it is done.")
@click.option("--by", metavar="NAME", help="Who does it, for the record.  [default: the user's name]")
@source_option
@app_option
@json_option
def merge(stream: str, into: str | None, dry_run: bool, yes: bool, by: str | None, url: str, app: str | None, as_json: bool) -> int:
    """Bring what the fork STREAM decided back into its source.

    An outcome on one side ends the same intent on the other, so nothing is carried out twice. Cancelled here and settled
    there, two outcomes, two payloads, or two different turns are conflicts: both sides are shown, nothing is written, and it
    exits with 1. What it will do is said first. --log names the log of the fork.
    """
    from ..agents.options import who
    from .forking.begun import begun
    from .forking.bringing_back import carry_out, plan_merge
    from .forking.differences import merge_lines, merge_tree
    from .users_code import load_app

    known = load_app(app)
    with reading_source(url) as fork_log:
        record = begun(fork_log, stream)
        target = into or record.source_log
        if bundle_path(target) is not None or "***" in target:
            raise click.UsageError(f"the source stands in {target}: name its log with --into, as one that can be written to.", click.get_current_context())
        with reading_source(target) as source_log:
            planned = plan_merge(source_log, fork_log, known, stream)
            if not as_json:
                for line in merge_lines(planned, known, width=width()):
                    say(line)
    tree = merge_tree(planned)
    nothing = not planned.plan.bring and not record.live
    if not planned.plan.conflicts and not dry_run and not nothing:
        _confirm("Do this?", yes)
        with ExitStack() as logs:
            source = logs.enter_context(writing(target, create=False))
            fork_side = source if target == url else logs.enter_context(writing(url, create=False)) if record.live else None
            tree["written"] = carry_out(planned, source, fork_side, known, by=who(by))
        if not as_json:
            say(f"done: {tree['written']} events brought to {one_line(record.source)}")
    if as_json:
        print_json(tree)
    return FOUND if planned.plan.conflicts else OK
