"""``eventlog replay`` and ``eventlog preflight``: other code over recorded runs, before it is deployed."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import click

from ..eventlog.console import app_option, json_option
from ..eventlog.printing import Column, note, one_line, print_json, say, table, width
from .cli_options import streams_argument
from .sources import SCHEME, reading_source, source_option

if TYPE_CHECKING:
    from ..eventlog.log import EventLog
    from .against import TwoCodes
    from .allowing import Allowance
    from .looking import Looking
    from .progress import Progress

_JOBS: Final = click.IntRange(1, 256)
_CODE: Final = "Run this code instead of what is found from here: a folder, or a git revision of the repository around the current folder."


_since: Final = click.option("--since", metavar="WHEN", help="Streams with events since then: 36h, 7d, 2026-01-31T09:14, @POSITION.")
_category: Final = click.option("--category", metavar="AGENT", help="Only streams of one agent.")
_code: Final = click.option("--code", metavar="PATH|REV", help=_CODE)
_jobs: Final = click.option("--jobs", "-j", metavar="N", type=_JOBS, default=1, show_default=True, help="Processes that share the streams.")


@click.command()
@streams_argument
@click.option("--all", "everything", is_flag=True, help="Every stream of the log, and the projections.")
@_since
@_category
@click.option("--bundle", metavar="FILE", type=click.Path(exists=True, dir_okay=False), help="The streams of a bundle, instead of --log.")
@_code
@click.option("--against", metavar="PATH|REV", help="Compare the states with those that this code folds, too: the one that is live.")
@_jobs
@click.option("--allow", metavar="FILE", type=click.File("r", encoding="utf-8"), help="Divergences to let through: lines of STREAM [VERSION] [FIELD]  # why.")
@click.option("-v", "--verbose", is_flag=True, help="A line for every stream, and remarks.")
@source_option
@app_option
@json_option
def replay(
    streams: list[str],
    everything: bool,
    since: str | None,
    category: str | None,
    bundle: str | None,
    code: str | None,
    against: str | None,
    jobs: int,
    allow: Any,
    verbose: bool,
    url: str,
    app: str | None,
    as_json: bool,
) -> int:
    """Run the agents' code again over what is recorded, and compare.

    Every answer comes from the log; no model, tool or effector can be reached. Each stream is same, diverged (where, and
    which field) or cannot (why). Exits with 0 when all are the same, 1 when any diverged, 3 when one could not be replayed.

    \b
    eventlog replay --all --app refunds:app
    eventlog replay --since 7d --code main --jobs 4 --allow known.txt --app refunds:app
    """
    from .against import held_against
    from .progress import Progress
    from .reports import projection_lines, projection_tree, replay_lines, replay_tree, states_line, summary_line
    from .verdicts import Summary, Verdict

    fine = (Verdict.SAME, Verdict.ALLOWED)
    _check_choice(streams, everything or bundle is not None, since, category)
    source = f"{SCHEME}{bundle}" if bundle is not None else url
    allowances = _allowances(allow)
    total, used = Summary(), set[int]()
    with _interruptible(), ExitStack() as held:
        log = held.enter_context(reading_source(source))
        looking = held.enter_context(_looking("replay", log, source, app, code, jobs, only_runs=not streams, allow=allowances))
        chosen = _Chosen(log, streams, since, category)
        progress = held.enter_context(closing(Progress(chosen.count)))
        two = held.enter_context(_two_codes(log, source, app, code, against)) if against is not None else None
        for each in held.enter_context(closing(looking.replayed(chosen, only_runs=not streams, category=category))):
            replayed = each if two is None else held_against(two, each, allowances)
            total.add(replayed)
            used.update(excused.line for excused in replayed.excused)
            progress.advance(f"{total.diverged} diverged  {one_line(replayed.stream)}")
            full = verbose or bool(streams)
            _tell(progress, as_json, full or replayed.verdict not in fine, replay_tree(replayed), replay_lines(replayed, width=_columns(), notes=full))
        for view in looking.projections() if everything else ():
            total.add_projection(view.verdict)
            _tell(progress, as_json, verbose or view.verdict is not Verdict.SAME, projection_tree(view), projection_lines(view, width=_columns()))
    _tell_unused(allowances, used)
    if not as_json:
        named = f" of {category}" if category else ""
        say(summary_line(total) if total.streams else f"nothing to replay: {one_line(source)} has no stream{named}{f' since {since}' if since else ''}")
        if states := states_line(total):
            say(states)
    return total.exit_code


@click.command()
@streams_argument
@_since
@_category
@_code
@_jobs
@click.option("-v", "--verbose", is_flag=True, help="Safe runs as well.")
@source_option
@app_option
@json_option
def preflight(
    streams: list[str], since: str | None, category: str | None, code: str | None, jobs: int, verbose: bool, url: str, app: str | None, as_json: bool
) -> int:
    """Would the runs under way now go on under this code?

    Each is SAFE, WILL DIVERGE (where) or NEEDS PATCH: it leaves its path at a place that it had passed before, and a
    ctx.patched there keeps it on the old one. Exits with 0 when every run is safe, 1 when one is not, 3 when one could not be
    looked at.

    \b
    eventlog preflight --code feature-branch --app refunds:app
    """
    from .preflight import Outlook, PreflightSummary
    from .progress import Progress
    from .reports import outlook_lines, outlook_tree, preflight_line

    if sum((bool(streams), since is not None or category is not None)) > 1:
        raise click.UsageError("Name streams, or choose them with --since and --category; not both.", click.get_current_context())
    total = PreflightSummary()
    with _interruptible(), ExitStack() as held:
        log = held.enter_context(reading_source(url))
        looking = held.enter_context(_looking("preflight", log, url, app, code, jobs, only_runs=not streams))
        chosen = _Chosen(log, streams, since, category)
        progress = held.enter_context(closing(Progress(chosen.count)))
        for found in held.enter_context(closing(looking.outlooks(chosen, only_runs=not streams, category=category))):
            total.add(found)
            progress.advance(f"{total.diverges + total.patch} not safe  {one_line(found.stream)}")
            if as_json:
                progress.close()
                for tree in outlook_tree(found):
                    print_json(tree)
            elif found.reason or any(verbose or each.outlook is not Outlook.SAFE for each in found.runs):
                progress.say(outlook_lines(found, width=min(width(), 200), safe=verbose))
    if not as_json:
        if len(total.agents) > 1:
            columns = [Column("agent", gives=True), *(Column(name, right=True) for name in ("safe", "needs patch", "will diverge", "cannot"))]
            table(columns, [(name, of.safe, of.patch or "", of.diverges or "", of.cannot or "") for name, of in sorted(total.agents.items())])
        say(preflight_line(total))
    return total.exit_code


def _tell(progress: Progress, as_json: bool, wanted: bool, tree: Any, lines: Iterable[str]) -> None:
    if as_json:
        progress.close()
        print_json(tree)
    elif wanted:
        progress.say(lines)


def _columns() -> int:
    return min(width(), 200)


def _check_choice(streams: list[str], everything: bool, since: str | None, category: str | None) -> None:
    if bool(streams) + (everything or since is not None or category is not None) != 1:
        raise click.UsageError("Name what to replay: streams, or --category AGENT, or --since WHEN, or --bundle FILE, or --all.", click.get_current_context())


def _allowances(file: Any) -> tuple[Allowance, ...]:
    from .allowing import read_allowances
    from .errors import BadAllowList

    if file is None:
        return ()
    try:
        return read_allowances(file.read(), file.name)
    except (BadAllowList, UnicodeDecodeError) as problem:
        raise click.UsageError(str(problem)) from problem


def _tell_unused(allowances: Iterable[Allowance], used: set[int]) -> None:
    from .allowing import unused

    for each in unused(allowances, used):
        field = "" if each.field == "*" else f" {each.field}"
        note(f"eventlog: the allow-list's line {each.line} ({one_line(each.stream)}{field}) let nothing through; take it out, or mend it.")


@contextmanager
def _looking(
    verb: str, log: EventLog, source: str, app: str | None, code: str | None, jobs: int, *, only_runs: bool, allow: tuple[Allowance, ...] = ()
) -> Iterator[Looking]:
    """Who runs the code: others, for code that ends its process must not end the answer with it; or this one if it has loaded it already."""
    from .looking import Elsewhere, Here
    from .revisions import code_at
    from .sharing import UsageFault

    if not app:
        raise click.UsageError("This needs the app: --app module:attribute, for example --app refunds:app, or set EVENTLOG_APP.")
    if code is None and jobs == 1 and app.partition(":")[0] in sys.modules:
        from .users_code import load_app

        yield Here(log, load_app(app), allow)
        return
    debug = bool(click.get_current_context().find_root().params.get("debug"))
    with ExitStack() as held:
        found = held.enter_context(code_at(code)) if code is not None else None
        looking = held.enter_context(closing(Elsewhere.make(verb, source, app, found, jobs, allow, only_runs=only_runs, debug=debug)))
        try:
            beside = looking.check()
        except UsageFault as problem:
            raise click.UsageError(str(problem)) from problem
        if beside:
            note(f"eventlog: not of {code} but from the checkout itself: {', '.join(beside)}. Install the app elsewhere, or give --code a folder.")
        yield looking


@contextmanager
def _interruptible() -> Iterator[None]:
    """One line for ^C: an answer that ends there would look whole."""
    try:
        yield
    except KeyboardInterrupt:
        note("eventlog: interrupted; streams that were not told of were not looked at to their end")
        raise


@contextmanager
def _two_codes(log: EventLog, source: str, app: str | None, code: str | None, against: str) -> Iterator[TwoCodes]:
    """The code that is looked at, and the one it is held against, each in a process of its own."""
    from .against import TwoCodes
    from .child import Order
    from .revisions import code_at

    with ExitStack() as held:
        before, now = (held.enter_context(code_at(each)) if each is not None else None for each in (against, code))
        orders = [Order("state", source, app or "", found.paths if found else (), found.checkout if found else "") for found in (before, now)]
        yield held.enter_context(TwoCodes(log, *orders))


class _Chosen:
    """The streams that were asked for, in order of their names unless they were named."""

    def __init__(self, log: EventLog, named: list[str], since: str | None, category: str | None) -> None:
        from .errors import EmptyStream
        from .fold import head_of
        from .selecting import streams_since

        self._log, self._named, self._prefix = log, named, f"{category}-" if category else ""
        if since is not None:
            self._named = streams_since(log, since, category)
        self._listed = since is not None or bool(named)
        for stream in named:
            with suppress(EmptyStream):  # the replay says so
                head_of(log, stream)

    def __iter__(self) -> Iterator[str]:
        return iter(self._named) if self._listed else self._log.streams(self._prefix)

    def count(self) -> int:
        return len(self._named) if self._listed else sum(1 for _ in self._log.streams(self._prefix))
