"""``eventlog projections rebuild``, ``swap`` and ``drop``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from ..console import FOUND, OK, answering, app_option, json_option, log_option, writing
from ..printing import length, one_line, print_json, say, styled
from .choosing import VERSION, chosen, declared_in, version_option

if TYPE_CHECKING:
    from .advancing import Progress
    from .declared import Projection


@click.command()
@click.argument("name")
@version_option
@click.option("--in-place", is_flag=True, help="Clear this version's view and build it again; readers of a live one see it grow.")
@click.option("--restart", is_flag=True, help="Begin anew instead of carrying on with what was built before.")
@click.option("--batch", metavar="N", type=click.IntRange(1, 100_000), default=2_000, show_default=True, help="Events a transaction.")
@log_option
@app_option
@json_option
def rebuild(name: str, version: int | None, in_place: bool, restart: bool, batch: int, url: str, app: str | None, as_json: bool) -> int:
    """Build a version beside the live one.

    Appends, readers and the live version go on. Killed half way, the same command carries on where it was. The exit
    code is 1 when it had to park events: the view is there, and lacks them.

    \b
    eventlog projections rebuild open-orders --app shop:app
    """
    from .beside import rebuild_beside
    from .keeping_up import rebuild as rebuild_in_place
    from .showing import shown

    declared = declared_in(app)
    projection = chosen(declared, name, version)
    began = time.monotonic()
    with writing(url, create=False) as log:
        start = 0 if in_place or restart else log.checkpoints.load(projection.view)
        with shown(projection.view, start, log.last_position()) as told:
            if in_place:
                done = rebuild_in_place(log, projection, codec=declared.codec, batch=batch, progress=told)
            else:
                done = rebuild_beside(log, projection, codec=declared.codec, batch=batch, restart=restart, progress=told)
        parked = len(log.views.parked(projection.view))
        live = log.views.pointed().get(name) == projection.view
    with answering(f"{projection.view} is built to position {done.position}"):
        _say_built(projection, done, parked, live, time.monotonic() - began, as_json)
    return FOUND if parked else OK


def _say_built(projection: Projection, done: Progress, parked: int, live: bool, seconds: float, as_json: bool) -> None:
    if as_json:
        counts = {"position": done.position, "handled": done.handled, "parked": done.parked, "lacks": parked}
        print_json({"view": projection.view, **counts, "live": live, "seconds": round(seconds, 3)})
        return
    say(f"{projection.view} is at position {done.position}: {done.handled:,} events in {length(int(seconds * 1_000_000))}")
    if parked:
        say(styled(f"It lacks {parked:,} parked events: eventlog projections parked {projection.name}", fg="yellow"))
    if not live:
        say(f"Make it live: eventlog projections swap {projection.name} --version {projection.version}")


@click.command()
@click.argument("name")
@version_option
@click.option("--lacking", is_flag=True, help="Although it lacks parked events that the live one has.")
@log_option
@app_option
@json_option
def swap(name: str, version: int | None, lacking: bool, url: str, app: str | None, as_json: bool) -> int:
    """Make a version the live one.

    It catches up, then every reader sees it at once. The old view is kept until it is dropped. Without the code for the version (--app) it must not be behind.

    \b
    eventlog projections swap open-orders --app shop:app
    """
    from .beside import swap as swap_in
    from .beside import swap_as_it_is
    from .showing import shown

    declared = declared_in(app) if app or version is None else None
    known = declared is not None and (version is None or declared.find(name, version) is not None)
    with writing(url, create=False) as log:
        if declared is not None and known:
            projection = chosen(declared, name, version)
            with shown(projection.view, log.checkpoints.load(projection.view), log.last_position()) as told:
                done = swap_in(log, projection, codec=declared.codec, lacking=lacking, progress=told)
        else:
            assert version is not None
            done = swap_as_it_is(log, name, version, lacking=lacking)
    with answering(f"{done.new} is live"):
        if as_json:
            print_json({"name": done.name, "old": done.old, "new": done.new, "position": done.position})
        elif done.old == done.new:
            say(f"{one_line(done.new)} is live already, at position {done.position}")
        else:
            say(f"{one_line(done.new)} is live from now on, at position {done.position}")
            if done.old is not None:
                say(f"{one_line(done.old)} is kept until: eventlog projections drop {one_line(name)} {done.old.rpartition('@v')[2]}")
    return OK


@click.command()
@click.argument("name")
@click.argument("version", type=VERSION)
@log_option
@json_option
def drop(name: str, version: int, url: str, as_json: bool) -> int:
    """Remove a version that is not live.

    Stop what still runs that version first, or it builds the view again.

    \b
    eventlog projections drop open-orders 1
    """
    from .beside import drop as drop_view
    from .declared import view_of

    with writing(url, create=False) as log:
        drop_view(log, name, version)
    view = view_of(name, version)
    with answering(f"{view} is dropped"):
        if as_json:
            print_json({"dropped": view})
        else:
            say(f"{one_line(view)} is dropped")
    return OK
