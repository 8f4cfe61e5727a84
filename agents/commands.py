"""``eventlog signal`` and ``cancel``: speaking to keys that run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from ..eventlog.console import MOST, OK, CouldNot, answering, json_option, log_option, writing
from ..eventlog.printing import one_line, print_json, say, styled
from .commands_approvals import approvals as approvals  # noqa: PLC0414 - entry points find it here
from .options import by_option, who

if TYPE_CHECKING:
    from .client import Client


def _client(log: Any) -> Client:
    from .client import Client

    return Client(log)


@click.command()
@click.argument("agent")
@click.argument("key")
@click.argument("name")
@click.argument("payload", metavar="[JSON]", required=False)
@click.option("--id", "signal_id", metavar="ID", help="The same id is told once.  [default: a new one]")
@log_option
@json_option
def signal(agent: str, key: str, name: str, payload: str | None, signal_id: str | None, url: str, as_json: bool) -> int:
    """Tell a key something that it waits for, now or later.

    \b
    eventlog signal orders bob customer.reply '{"text": "yes"}'
    """
    from .errors import InputRefused

    try:
        value = None if payload is None else json.loads(payload)
    except ValueError as problem:
        raise click.UsageError(f"The payload is no JSON: {problem}: {payload!r:.80}. Text needs its JSON quotes: '\"yes\"'.") from problem
    with writing(url, create=False) as log:
        try:
            sent = _client(log).signal(agent, key, name, value, id=signal_id)
        except InputRefused as problem:
            raise CouldNot(f"{problem}. Nothing was written.") from problem
    with answering(f"The signal is recorded: {one_line(sent.stream)}  version {sent.version}  id {one_line(sent.signal_id)}"):
        if as_json:
            print_json({"stream": sent.stream, "version": sent.version, "id": sent.signal_id, "name": sent.name, "duplicate": sent.duplicate})
        else:
            say(f"{one_line(sent.stream)}  version {sent.version}  id {one_line(sent.signal_id)}{_before(sent.duplicate)}")
    return OK


def _before(duplicate: bool) -> str:
    return styled("  done before: nothing was written", fg="yellow") if duplicate else ""


@click.command()
@click.argument("agent")
@click.argument("key")
@click.option("--seq", metavar="N", type=click.IntRange(0, MOST), help="Which activation.  [default: the current one]")
@by_option
@click.option("--reason", metavar="TEXT", default="", help="Why, for the record.")
@log_option
@json_option
def cancel(agent: str, key: str, seq: int | None, by: str | None, reason: str, url: str, as_json: bool) -> int:
    """Ask an activation to end; it cleans up first.

    \b
    eventlog cancel orders o-1 --reason "sent by mistake"
    """
    from .errors import RequestRefused

    with writing(url, create=False) as log:
        try:
            asked = _client(log).cancel(agent, key, seq=seq, by=who(by), reason=reason)
        except RequestRefused as problem:
            raise CouldNot(str(problem)) from problem
    with answering(f"The request is recorded: {one_line(asked.stream)}  input {asked.seq}  {one_line(asked.input_id)} is asked to end"):
        if as_json:
            print_json({"stream": asked.stream, "seq": asked.seq, "id": asked.input_id, "duplicate": asked.duplicate})
            return OK
        say(f"{one_line(asked.stream)}  input {asked.seq}  {one_line(asked.input_id)} is asked to end{_before(asked.duplicate)}")
    return OK
