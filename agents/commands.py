"""``eventlog signal``, ``cancel``, ``approvals`` and ``stats``: speaking to keys that run, and a log in figures."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import click

from ..eventlog.console import MOST, OK, CouldNot, answering, complete_streams, json_option, log_option, reading, stream_argument, writing
from ..eventlog.printing import Column, iso, moment, one_line, print_json, say, styled, table

if TYPE_CHECKING:
    from .asking import PendingApproval
    from .client import Client


def by_option(command: Any) -> Any:
    """``--by`` as the parameter ``by``."""
    return click.option("--by", metavar="NAME", help="Who does it, for the record.  [default: the user's name]")(command)


def who(by: str | None) -> str:
    """``by``, or whoever is at the terminal."""
    from .cli import user_name

    return by if by is not None else user_name()


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
    """Ask an activation to end; it cleans up first."""
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


@click.group()
def approvals() -> None:
    """Questions that wait for a person: list, show, approve, deny."""


@approvals.command("list")
@click.option("--channel", metavar="NAME", help="Only those asked on this channel.")
@log_option
@json_option
def list_(channel: str | None, url: str, as_json: bool) -> None:
    """List them all, oldest first."""
    with reading(url) as log:
        found = _client(log).pending_approvals(channel=channel)
    if as_json:
        for each in found:
            print_json(_as_object(each))
    elif not found:
        say("Nothing waits for a person.")
    else:
        columns = [Column("stream"), Column("approval"), Column("channel"), Column("until (UTC)"), Column("question", gives=True)]
        table(columns, [(each.stream, each.approval_id, each.channel, moment(each.expires_at)[5:16], each.question) for each in found])


def _as_object(asked: PendingApproval) -> dict[str, Any]:
    place = {"stream": asked.stream, "seq": asked.seq, "id": asked.approval_id}
    return place | {
        "question": asked.question,
        "channel": asked.channel,
        "details": asked.details,
        "digest": asked.digest.hex(),
        "expires_at": iso(asked.expires_at),
    }


@approvals.command()
@stream_argument
@click.argument("approval", required=False)
@log_option
@json_option
def show(stream: str, approval: str | None, url: str, as_json: bool) -> None:
    """Show what a stream asks, with all its details."""
    from ..eventlog.names import split_stream

    with reading(url) as log:
        found = [each for each in _client(log).pending_approvals(*split_stream(stream)) if approval in (None, each.approval_id)]
    if not found:
        raise CouldNot(f"{stream} has no open approval{'' if approval is None else f' {approval!r}'}. See what there is: eventlog approvals list")
    for each in found:
        if as_json:
            print_json(_as_object(each))
            continue
        say(styled(f"{one_line(each.stream)}  {one_line(each.approval_id)}", bold=True))
        say(f"  question  {one_line(each.question, 2_000)}")
        say(f"  channel   {one_line(each.channel)}")
        for name, value in each.details.items():
            say(f"  {one_line(name):<9} {one_line(value, 2_000)}")
        say(f"  digest    {each.digest.hex()}")
        say(f"  until     {moment(each.expires_at)} UTC; after that it reads as denied")
        say(f"To answer: eventlog approvals approve {one_line(each.stream)} {one_line(each.approval_id)}")


def _answering(approved: bool, text: str) -> click.Command:
    @click.command("approve" if approved else "deny", help=text)
    @stream_argument
    @click.argument("approval")
    @by_option
    @click.option("--reason", metavar="TEXT", default="", help="Why, for the record.")
    @log_option
    @json_option
    def command(stream: str, approval: str, by: str | None, reason: str, url: str, as_json: bool) -> None:
        from ..eventlog.names import split_stream
        from .errors import RequestRefused

        with writing(url, create=False) as log:
            client = _client(log)
            try:
                told = (client.approve if approved else client.deny)(*split_stream(stream), approval, by=who(by), reason=reason)
            except RequestRefused as problem:
                raise CouldNot(str(problem)) from problem
        word = "approved" if approved else "denied"
        with answering(f"The answer is recorded: {one_line(told.stream)}  {one_line(told.approval_id)} is {word} by {one_line(told.by)}"):
            if as_json:
                print_json({"stream": told.stream, "id": told.approval_id, "approved": told.approved, "by": told.by, "duplicate": told.duplicate})
                return
            say(f"{one_line(told.stream)}  {one_line(told.approval_id)} is {word} by {one_line(told.by)}{_before(told.duplicate)}")

    return command


approvals.add_command(_answering(True, "Say yes. The first answer is final."))
approvals.add_command(_answering(False, "Say no. The first answer is final."))

_COLUMNS: Final = ("agent", "streams", "events", "open", "suspended", "parked", "blocked")


@click.command()
@click.argument("prefix", default="", shell_complete=complete_streams)
@click.option("--warn-history", metavar="N", type=click.IntRange(1, MOST), help="Mark activations with so many events.  [default: 10000]")
@log_option
@json_option
def stats(prefix: str, warn_history: int | None, url: str, as_json: bool) -> None:
    """A log in figures: its agents, what is open, and the longest histories.

    PREFIX: only streams whose names begin with it.
    """
    from .stats import WARN_HISTORY
    from .stats import stats as counted

    with reading(url) as log:
        found = counted(log, prefix, warn_history=warn_history or WARN_HISTORY)
    rows = [(each.agent, each.streams, each.events, each.open, each.suspended, each.parked, each.blocked) for each in found.agents.values()]
    if as_json:
        agents = [dict(zip(_COLUMNS, row, strict=True)) for row in rows]
        longest = [{"stream": each.stream, "events": each.events, "history": each.history, "warned": each.warned} for each in found.longest]
        print_json({"streams": found.streams, "events": found.events, "agents": agents, "longest": longest})
        return
    say(f"{found.streams} streams, {found.events} events")
    if not rows:
        return
    say("")
    table([Column(name, right=name != "agent", gives=name == "agent") for name in _COLUMNS], rows)
    say("")
    columns = [Column("longest streams", gives=True), Column("events", right=True), Column("of the open activation", right=True), Column("")]
    table(columns, [(each.stream, each.events, each.history or "", "! goes on afresh with ctx.continue_with" if each.warned else "") for each in found.longest])
