"""``eventlog bisect``: the first event after which a condition holds, or the first commit that decides otherwise. Reads only."""

from __future__ import annotations

from typing import Any

import click

from ..eventlog.console import FOUND, OK, app_option, json_option, stream_argument
from ..eventlog.printing import note, print_json, say
from .cli_options import at_option, expression, line_width
from .sources import reading_source, source_option


@click.command()
@stream_argument
@click.argument("condition", metavar="[EXPR]", required=False, callback=expression)
@at_option()
@click.option("--trust", is_flag=True, help="EXPR is known to change only once: look at a few states instead of all.")
@click.option("--minimize", is_flag=True, help="Find a smallest part of the inputs that still shows it.")
@click.option("--over", type=(click.Choice(["code"]), str), metavar="code REV1..REV2", help="Search the commits of the app's repository instead.")
@source_option
@app_option
@json_option
def bisect(stream: str, condition: Any, at: Any, trust: bool, minimize: bool, over: tuple[str, str] | None, url: str, app: str | None, as_json: bool) -> int:
    """Find the first event of STREAM after which EXPR holds, or stops holding.

    EXPR is a condition in Python's syntax on `st` (the state), `run`, `ev` (the event) and `version`; what is not there
    yet does not hold. It is evaluated here, never run as Python. With --over code: the first commit with which STREAM
    no longer replays as before, or, with EXPR, with which EXPR changes for the state at its end. Exits with 1 when
    something was found, 0 when nothing changes.

    \b
    eventlog bisect accounts-acct-42 "st.refunded_cents > 4000" --minimize
    eventlog bisect accounts-acct-42 "ev.type == 'intent.settled' and ev.status != 'OK'"
    eventlog bisect accounts-acct-42 --over code v1.2..HEAD
    """
    context = click.get_current_context()
    if over is not None:
        if minimize or trust or at is not None:
            raise click.UsageError("--over code goes with EXPR, --log and --app only.", context)
        return _over_code(stream, condition, over[1], url, app, as_json)
    if condition is None:
        raise click.UsageError('Say what to look for: EXPR, for example "st.refunded_cents > 4000", or --over code REV1..REV2.', context)
    return _over_events(stream, condition, at, trust, minimize, url, app, as_json)


def _over_events(stream: str, condition: Any, at: Any, trust: bool, minimize: bool, url: str, app: str | None, as_json: bool) -> int:
    from .bisect import bisect_here
    from .bisect_lines import found_lines, found_tree, minimal_lines
    from .minimizing import minimize as smallest
    from .users_code import load_app
    from .walking import Walk

    known = load_app(app)
    with reading_source(url) as log:
        walk = Walk(log, known, stream, at)
        if walk.broken is not None:
            raise walk.broken
        found = bisect_here(walk, condition, trusted=trust)
        minimal = smallest(walk, condition, found) if minimize and found.version is not None else None
        if as_json:
            print_json(found_tree(found, condition.text, minimal))
        else:
            shown = line_width()
            for line in found_lines(found, condition.text, log, known, width=shown):
                say(line)
            for line in minimal_lines(minimal, width=shown) if minimal is not None else ():
                say(line)
    return FOUND if found.version is not None else OK


def _over_code(stream: str, condition: Any, revisions: str, url: str, app: str | None, as_json: bool) -> int:
    from .bisect_lines import commit_lines, commit_tree
    from .errors import CannotBisect
    from .fold import head_of
    from .over_code import bisect_code, commits_of, parse_range, trial_of

    if not app:
        raise click.UsageError("This needs the app: --app module:attribute, for example --app refunds:app, or set EVENTLOG_APP.")
    try:
        first, second = parse_range(revisions)
    except CannotBisect as problem:
        raise click.UsageError(str(problem), click.get_current_context()) from None
    with reading_source(url) as log:
        head_of(log, stream)
    found = bisect_code(commits_of(first, second), trial_of(url, app, stream, condition.text if condition is not None else ""), stream)
    if beside := sorted({name for each in found.trials for name in each.beside}):
        note(f"eventlog: not of each commit but from the checkout itself: {', '.join(beside)}. Install the app elsewhere.")
    if as_json:
        print_json(commit_tree(found))
    else:
        for line in commit_lines(found, width=line_width()):
            say(line)
    return FOUND if found.first is not None else OK
