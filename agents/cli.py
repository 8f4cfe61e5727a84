"""``eventlog send`` and ``streams``: putting inputs in, and looking at what became of the keys."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..eventlog.console import (
    OK,
    CouldNot,
    answering,
    app_option,
    complete_streams,
    json_option,
    log_option,
    reading,
    writing,
)
from ..eventlog.printing import Column, iso, moment, one_line, print_json, say, styled, table
from .commands_dead_letters import dead_letters as dead_letters  # noqa: PLC0414 - entry points find it here

if TYPE_CHECKING:
    from ..eventlog.events import NewEvent
    from .sending import Receipt


@click.command()
@click.argument("agent")
@click.argument("key")
@click.argument("kind", metavar="[TYPE]")
@click.argument("payload", metavar="JSON", required=False)
@click.option("--id", "input_id", metavar="ID", help="The same id with the same payload is accepted once.  [default: a new one]")
@log_option
@app_option
@json_option
def send(agent: str, key: str, kind: str, payload: str | None, input_id: str | None, url: str, app: str | None, as_json: bool) -> int:
    """Give an agent an input; it is durable when this returns.

    \b
    eventlog send accounts acct-42 refund.asked '{"order_id": "o-1", "cents": 4200}' --id order-o-1
    eventlog send greeter bob '"hello"'          a plain value: no TYPE, or - for it
    eventlog send accounts acct-42 refund.asked @order.json
    echo '{"a": 1}' | eventlog send greeter bob -

    With --app the input is checked now, without it when it is handled.
    """
    from uuid import uuid4

    from .errors import InputRefused
    from .sending import deliver

    if payload is None:
        kind, payload = "", kind
    chosen = input_id if input_id is not None else str(uuid4())
    stream, event = _checked(app, agent, key, "" if kind == "-" else kind, _read_payload(payload), chosen)
    with writing(url, create=False) as log:
        (receipt,) = deliver(log, [(stream, event)], [chosen])
    if isinstance(receipt, InputRefused):
        raise CouldNot(f"{receipt}. Nothing was written.")
    with answering(f"The input is recorded: {one_line(receipt.stream)}  version {receipt.version}  id {one_line(receipt.input_id)}"):
        if as_json:
            print_json(_receipt_as_object(receipt))
        else:
            before = "  accepted before: nothing was written" if receipt.duplicate else ""
            say(f"{one_line(receipt.stream)}  version {receipt.version}  id {one_line(receipt.input_id)}{styled(before, fg='yellow')}")
    return OK


def _receipt_as_object(receipt: Receipt) -> dict[str, Any]:
    """A receipt as JSON gives it."""
    return {"stream": receipt.stream, "version": receipt.version, "position": receipt.position, "id": receipt.input_id, "duplicate": receipt.duplicate}


def _checked(app: str | None, agent: str, key: str, kind: str, text: bytes, input_id: str) -> tuple[str, NewEvent]:
    from .doors import checked_json, plain_json
    from .errors import InputRefused

    if app:
        from .loading import load_app

        return checked_json(load_app(app), agent, key, kind, text, input_id)
    try:
        return plain_json(None, agent, key, kind, text, input_id)
    except InputRefused as problem:
        hint = "" if kind else " Text needs its JSON quotes: '\"hello\"'. A TYPE goes before the JSON."
        raise click.UsageError(f"{problem}.{hint}") from problem


def _read_payload(given: str) -> bytes:
    if given == "-":
        return sys.stdin.buffer.read()
    if given.startswith("@"):
        try:
            return Path(given[1:]).read_bytes()
        except OSError as problem:
            raise click.UsageError(f"{given!r}: the payload cannot be read from {given[1:]!r}: {problem.strerror}.") from problem
    return given.encode("utf-8", "surrogateescape")


@click.command()
@click.argument("prefix", default="", shell_complete=complete_streams)
@log_option
@json_option
def streams(prefix: str, url: str, as_json: bool) -> None:
    """List streams and how things stand in each.

    PREFIX: only those whose names begin with it.

    \b
    eventlog streams
    eventlog streams orders- --json
    """
    from .listing import listed

    with reading(url) as log:
        if as_json:
            for each in listed(log, prefix):
                print_json(
                    {
                        "stream": each.stream,
                        "events": each.events,
                        "state": each.state,
                        "last_type": each.last_type,
                        "last_at": iso(each.last_at) if each.events else None,
                    }
                )
            return
        found = list(listed(log, prefix))
    if not found:
        say(f"No stream begins with {one_line(prefix)!r}." if prefix else "No stream yet. The first input makes one: eventlog send AGENT KEY TYPE JSON")
        return
    columns = [Column("stream", gives=True), Column("events", right=True), Column("state"), Column("last event"), Column("at (UTC)")]
    table(columns, [(each.stream, each.events, each.state, each.last_type, moment(each.last_at) if each.events else "") for each in found])
