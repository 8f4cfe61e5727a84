"""``eventlog projections list``, ``lag`` and ``compare``: they read, and nothing more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..console import FOUND, MOST, OK, CouldNot, app_option, json_option, log_option, reading
from ..printing import Column, length, note, one_line, print_json, say, table
from .choosing import VERSION, declared_in

if TYPE_CHECKING:
    from ..log import EventLog
    from .standing import Standing


@click.command("list")
@log_option
@app_option
@json_option
def list_all(url: str, app: str | None, as_json: bool) -> int:
    """List every version, and how it stands.

    With --app those that were never run as well.

    \b
    eventlog projections list
    """
    from .standing import standings

    declared = declared_in(app) if app else ()
    with reading(url) as log:
        found = standings(log, declared)
    if as_json:
        for each in found:
            print_json(_as_object(each, bool(app)))
    elif not found:
        say("No projections.")
    else:
        columns = (Column("projection", gives=True), Column("version", right=True), Column("state"), Column("position", right=True))
        rows = [(each.name, each.version, state_of(each), each.position, each.behind, each.parked) for each in found]
        table((*columns, Column("behind", right=True), Column("parked", right=True)), rows)
    return OK


def state_of(standing: Standing) -> str:
    """In one word or a few: what stands in the way of trusting it, or who reads it."""
    if standing.behind < 0:
        return "ahead of the log"
    if standing.live:
        return "live"
    return "beside" if standing.position else "not built"


def _as_object(standing: Standing, app: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "name": standing.name,
        "version": standing.version,
        "view": standing.view,
        "live": standing.live,
        "state": state_of(standing),
        "position": standing.position,
        "end": standing.end,
        "parked": standing.parked,
    }
    return shown | ({"declared": standing.declared is not None} if app else {})


@click.command()
@click.argument("name", required=False)
@click.option("--most", metavar="N", type=click.IntRange(0, MOST), help="Exit with 1 when a live view has more than N events to go.")
@log_option
@app_option
@json_option
def lag(name: str | None, most: int | None, url: str, app: str | None, as_json: bool) -> int:
    """Tell how far each view is behind.

    Counted are the events that it has yet to see, and how old the oldest of them is. With --app only the types that a
    projection wants are counted. A view that is ahead of the log ends in 1, too.

    \b
    eventlog projections lag
    """
    from .standing import lag_of, standings

    declared = declared_in(app) if app else ()
    with reading(url) as log:
        found = [(each, lag_of(log, each)) for each in standings(log, declared, name)]
    if name is not None and not found:
        raise CouldNot(f"There is no projection {one_line(name)}. eventlog projections list shows those there are.")
    if as_json:
        for each, left in found:
            print_json(_as_object(each, bool(app)) | {"events": left.events, "more": left.more, "age_seconds": left.age / 1_000_000})
    else:
        columns = (Column("projection", gives=True), Column("version", right=True), Column("state"), Column("events behind", right=True))
        rows = [
            (each.name, each.version, state_of(each), f"{left.events:,}{'+' if left.more else ''}", length(left.age) if left.events else "")
            for each, left in found
        ]
        table((*columns, Column("oldest", right=True)), rows)
    late = any(each.live and most is not None and left.events > most for each, left in found)
    return FOUND if late or any(each.behind < 0 for each, _ in found) else OK


@click.command()
@click.argument("name")
@click.argument("left", metavar="[VERSION]", type=VERSION, required=False)
@click.argument("right", metavar="[VERSION]", type=VERSION, required=False)
@click.option("-n", "count", metavar="N", type=click.IntRange(0, 10_000), default=20, show_default=True, help="Rows shown that are not the same.")
@log_option
@json_option
def compare(name: str, left: int | None, right: int | None, count: int, url: str, as_json: bool) -> int:
    """Compare two versions row by row.

    The live one and the newest other, unless they are given. The exit code is 1 when they differ.

    \b
    eventlog projections compare open-orders 1 2
    """
    from .comparing import compare as compared

    with reading(url) as log:
        views = _two_views(log, name, left, right)
        found = compared(log, *views, examples=count)
    if as_json:
        from attrs import asdict

        print_json(asdict(found) | {"equal": found.equal})
    else:
        where = [f"{one_line(found.left)} at {found.left_position}", f"{one_line(found.right)} at {found.right_position}"]
        said = "are the same" if found.equal else f"differ: rows of both {found.different:,}, only left {found.only_left:,}, only right {found.only_right:,}"
        say(f"{where[0]} and {where[1]} {said}; rows the same: {found.same:,}")
        if found.examples:
            columns = (Column("key", gives=True), Column(found.left, gives=True), Column(found.right, gives=True))
            table(columns, [(key, _value(mine), _value(theirs)) for key, mine, theirs in found.examples])
    if found.moved or found.left_position != found.right_position:
        note("The two have not seen the same events, so a difference may be one of time alone.")
    return OK if found.equal else FOUND


def _two_views(log: EventLog, name: str, left: int | None, right: int | None) -> tuple[str, str]:
    from .declared import view_of
    from .standing import standings

    there = [each for each in standings(log, name=name) if each.position]
    if left is None:
        left = next((each.version for each in there if each.live), None)
    if right is None:
        right = max((each.version for each in there if each.version != left), default=None)
    if left is None or right is None:
        raise CouldNot(f"There are no two versions of {one_line(name)} to compare; it has: {', '.join(each.view for each in there) or 'none'}.")
    return view_of(name, left), view_of(name, right)


def _value(value: bytes | None) -> str:
    if value is None:
        return "(none)"
    try:
        return one_line(value.decode(), 60)
    except UnicodeDecodeError:
        from hashlib import sha256

        return f"{len(value)} bytes, sha256 {sha256(value).hexdigest()[:12]}"
