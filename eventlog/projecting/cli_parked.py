"""``eventlog projections parked``: events that were stepped over, and why; and having them handled after all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..console import FOUND, OK, answering, app_option, json_option, log_option, reading, writing
from ..printing import Column, iso, moment, print_json, say, table
from .choosing import VERSION, chosen, declared_in

if TYPE_CHECKING:
    from ..events import StoredEvent
    from ..log import EventLog, ParkedEvent


@click.command()
@click.argument("name", required=False)
@click.option("--version", metavar="N", type=VERSION, help="Only this version.")
@click.option("--retry", is_flag=True, help="Give each to the handler once more; this needs --app. 1 when some failed again.")
@log_option
@app_option
@json_option
def parked(name: str | None, version: int | None, retry: bool, url: str, app: str | None, as_json: bool) -> int:
    """List, or retry, events stepped over.

    A retry hands an event to the handler out of turn. Where the order matters, rebuild instead.

    \b
    eventlog projections parked open-orders --retry --app shop:app
    """
    if retry:
        return _retry(name, version, url, app, as_json)
    with reading(url) as log:
        found = [(each, _event(log, each)) for each in _chosen_parked(log, name, version)]
    if as_json:
        for each, event in found:
            print_json(_as_object(each, event))
    elif not found:
        say("No parked events.")
    else:
        columns = (Column("view", gives=True), Column("stream", gives=True), Column("version", right=True), Column("position", right=True))
        rows = [(each.projection, each.stream, each.version, each.position, _id(event), moment(each.parked_at)[5:16], each.error) for each, event in found]
        table((*columns, Column("event id", whole=True), Column("since", below=True), Column("why", gives=True, below=True)), rows)
    return OK


def _chosen_parked(log: EventLog, name: str | None, version: int | None) -> list[ParkedEvent]:
    from .declared import version_in

    if name is None:
        return log.views.parked()
    return [each for each in log.views.parked() if (known := version_in(each.projection)) and known[0] == name and version in (None, known[1])]


def _event(log: EventLog, parked: ParkedEvent) -> StoredEvent | None:
    return next(iter(log.read(parked.stream, after=parked.version - 1, upto=parked.version, payloads=False)), None)


def _id(event: StoredEvent | None) -> str:
    from .advancing import shown_id

    return shown_id(event) if event is not None else "(not in this log)"


def _as_object(parked: ParkedEvent, event: StoredEvent | None) -> dict[str, Any]:
    place = {"view": parked.projection, "stream": parked.stream, "version": parked.version, "position": parked.position}
    return place | {"id": None if event is None else _id(event), "error": parked.error, "parked_at": iso(parked.parked_at)}


def _retry(name: str | None, version: int | None, url: str, app: str | None, as_json: bool) -> int:
    from .parking import retry_parked

    if name is None:
        raise click.UsageError("Which projection? eventlog projections parked NAME --retry --app module:attribute")
    declared = declared_in(app)
    wanted = [each for each in declared if each.name == name and version in (None, each.version)] or [chosen(declared, name, version)]
    with writing(url, create=False) as log:
        done = [(each, retry_parked(log, each, codec=declared.codec)) for each in wanted]
    left = sum(len(each.parked) for _, each in done)
    with answering(f"{sum(each.handled for _, each in done)} parked events were handled"):
        for projection, each in done:
            if as_json:
                print_json({"view": projection.view, "handled": each.handled, "parked": len(each.parked)})
            else:
                say(f"{projection.view}  {each.handled:,} handled, {len(each.parked):,} parked still")
    return FOUND if left else OK
