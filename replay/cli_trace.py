"""``eventlog trace`` and ``eventlog search``: what led to what across streams, and where something stands."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from ..eventlog.console import MOST, OK, app_option, json_option
from ..eventlog.printing import cut, iso, moment, note, one_line, plain, print_json, say, styled, time_of_day, width
from .sources import reading_source, source_option

if TYPE_CHECKING:
    from ..agents.app import App
    from .searching import Hit, Search
    from .tracing import Trace, Traced


def _optional_app(spec: str | None) -> App | None:
    if not spec:
        return None
    from .users_code import load_app

    return load_app(spec)


@click.command()
@click.argument("wanted", metavar="ID")
@click.option("--limit", metavar="N", type=click.IntRange(1, 1_000_000), default=2_000, show_default=True, help="Follow so many events.")
@source_option
@app_option
@json_option
def trace(wanted: str, limit: int, url: str, app: str | None, as_json: bool) -> int:
    """What an input led to, across streams, as a tree of causes.

    ID is an input's id, an intent's (its beginning will do), an event's or a correlation's; or a place: @POSITION,
    STREAM@VERSION. Whatever is named, the tree begins with the input that nobody else had sent.

    \b
    eventlog trace order-o-1
    """
    from .finding import find_event
    from .tracing import trace as traced

    known = _optional_app(app)
    with reading_source(url) as log:
        found = traced(log, find_event(log, wanted), known, most=limit)
    if as_json:
        for tree in _as_trees(found):
            print_json(tree)
        return OK
    for line in _tree_lines(found):
        say(line)
    if found.cut:
        note(f"Only the first {found.events:,} events were followed; --limit follows more.")
    return OK


def _as_trees(found: Trace) -> Iterator[dict[str, Any]]:
    ids: dict[int, int] = {}
    for place, (depth, each) in enumerate(found.root.walk()):
        ids[id(each)] = place
        parent = ids[id(each.parent)] if each.parent is not None else None
        yield {"n": place, "parent": parent, "depth": depth, "asked": each is found.asked} | each.line.as_tree()


def _tree_lines(found: Trace) -> Iterator[str]:
    rails: list[bool] = []
    day = ""
    for depth, each in found.root.walk():
        today = moment(each.stored.recorded_at)[:10]
        del rails[depth:]
        last = each.parent is None or each is each.parent.children[-1]
        drawn = "".join("│  " if more else "   " for more in rails[1:]) + ("└─ " if last else "├─ ") if depth else ""
        rails.append(not last)
        if today != day:
            say(styled(today, bold=True))
            day = today
        yield _tree_line(each, drawn, each is found.asked)


def _tree_line(each: Traced, drawn: str, asked: bool) -> str:
    stored = each.stored
    other = each.parent is None or each.parent.stored.stream != stored.stream
    where = f"{styled(one_line(stored.stream), bold=True)} " if other else ""
    head = f"{styled(time_of_day(stored.recorded_at), dim=True)}  {drawn}{where}{styled(str(stored.version), dim=True)} "
    taken = 14 + len(drawn) + (len(one_line(stored.stream)) + 1 if other else 0) + len(str(stored.version)) + 1
    name = one_line(each.line.name)
    room = max(width() - taken - len(name) - 2 - 2 * asked, 8)
    shown = styled(name, fg=each.line.colour, bold=asked)
    return f"{head}{shown}  {cut(one_line(each.line.summary, 4 * min(room, 1_000)), room)}{' ◀' if asked else ''}".rstrip()


@click.command()
@click.argument("text", required=False, default="")
@click.option("--type", "types", metavar="TYPE", multiple=True, help="Events of this type; may be given again.")
@click.option("--field", "fields", metavar="PATH=VALUE", multiple=True, help="With this value there (args.cents=4200); all of them, if given again.")
@click.option("--key", "keys", metavar="PATTERN", multiple=True, help="Of this key, with * and ?; any of them, if given again.")
@click.option("--category", "categories", metavar="AGENT", multiple=True, help="Of this agent; may be given again.")
@click.option("--since", metavar="WHEN", help="Recorded since then: 36h, 7d, 2026-01-31T09:14, @POSITION.")
@click.option("--until", metavar="WHEN", help="Recorded until then, that second or day included.")
@click.option("--limit", metavar="N", type=click.IntRange(1, MOST), default=100, show_default=True, help="End with the N-th that is found.")
@source_option
@app_option
@json_option
def search(
    text: str,
    types: tuple[str, ...],
    fields: tuple[str, ...],
    keys: tuple[str, ...],
    categories: tuple[str, ...],
    since: str | None,
    until: str | None,
    limit: int,
    url: str,
    app: str | None,
    as_json: bool,
) -> int:
    """Find events: by TEXT anywhere in them, and by type, field, key and time.

    TEXT in small letters finds large ones too. Everything that is given must hold. The log is read from its beginning, or
    from --since, and the search ends with --limit. With --app users' events are upcast before they are looked into.

    \b
    eventlog search "spelling error" --type model_call.cached
    eventlog search --type intent.staged --field args.cents=4200 --since 7d
    """
    from .searching import search as searched

    known = _optional_app(app)
    if not (text or types or fields or keys or categories or since or until):
        raise click.UsageError("Say what to look for: TEXT, --type, --field, --key, --category, --since or --until.", click.get_current_context())
    paths = tuple(_field(each) for each in fields)
    with reading_source(url) as log:
        wanted = _search(log, text, types, paths, keys, categories, since, until)
        count = 0
        hits = searched(log, wanted, known)
        for hit in islice(hits, limit):
            count += 1
            if as_json:
                print_json(_hit_tree(hit))
            else:
                say(_hit_line(hit))
        more = count == limit and next(hits, None) is not None
    if more:
        note(f"There are more; --limit shows them, or narrow it: --since @{hit.stored.position + 1}")
    elif not count:
        note("No such event.")
    return OK


def _field(said: str) -> tuple[Any, str]:
    from .errors import BadPath
    from .paths import parse_path

    path, equals, value = said.partition("=")
    if not equals:
        raise click.UsageError(f"--field {said!r:.80}: it must be PATH=VALUE, for example args.cents=4200.")
    try:
        keys = parse_path(f"state.{path}")
    except BadPath as problem:
        raise click.UsageError(str(problem)) from problem
    return keys[1:], value


def _search(
    log: Any, text: str, types: tuple[str, ...], fields: Any, keys: tuple[str, ...], categories: tuple[str, ...], since: str | None, until: str | None
) -> Search:
    from ..eventlog.since import parse_moment, position_before
    from .searching import Search

    begin, position = parse_moment(since, log.clock()) if since else (0, 0)
    end, last = parse_moment(until, log.clock(), ends=True) if until else (0, 0)
    after = position - 1 if position else position_before(log, begin) if begin else 0
    return Search(text, types, categories, keys, fields, max(after, 0), last or None, begin, end or None)


def _hit_tree(hit: Hit) -> dict[str, Any]:
    stored = hit.stored
    found = {"place": hit.place, "excerpt": hit.excerpt} if hit.place else {}
    return {
        "stream": stored.stream,
        "version": stored.version,
        "position": stored.position,
        "time": iso(stored.recorded_at),
        "type": stored.type,
        "event_id": str(stored.id) if isinstance(stored.event_id, bytes) and len(stored.event_id) == 16 else plain(stored.event_id),
        "fields": plain(hit.fields),
        **found,
    }


def _hit_line(hit: Hit) -> str:
    from .summaries import fields_of

    stored = hit.stored
    head = f"{moment(stored.recorded_at)}  {one_line(stored.stream)} {stored.version}  {one_line(stored.type)}  "
    said = f"{hit.place}: {hit.excerpt}" if hit.place else fields_of(hit.fields)
    shown = styled(moment(stored.recorded_at), dim=True), styled(one_line(stored.stream), bold=True), stored.version, styled(one_line(stored.type), fg="cyan")
    return f"{shown[0]}  {shown[1]} {shown[2]}  {shown[3]}  {cut(one_line(said), max(width() - len(head), 20))}"
