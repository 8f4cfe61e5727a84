"""``eventlog send``, ``streams`` and ``dead-letters``: putting inputs in, and looking at what became of the keys."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ..eventlog.console import (
    MOST,
    OK,
    CouldNot,
    answering,
    app_option,
    complete_streams,
    json_option,
    log_option,
    reading,
    stream_argument,
    writing,
)
from ..eventlog.printing import Column, iso, length, moment, one_line, print_json, say, styled, table

if TYPE_CHECKING:
    from ..eventlog.events import NewEvent
    from .dead_letters import DeadLetter, Opened
    from .facts import Failure
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


@click.group("dead-letters")
def dead_letters() -> None:
    """Inputs that were given up for now: list, show, redrive.

    Streams that hold an event their code cannot read are among them.
    """


@dead_letters.command("list")
@log_option
@json_option
def list_(url: str, as_json: bool) -> None:
    """List them all, oldest first."""
    from .dead_letters import dead_letters as found_in

    with reading(url) as log:
        found = found_in(log)
    if as_json:
        for each in found:
            print_json(_as_object(each))
    elif not found:
        say("No dead letters.")
    else:
        table(_COLUMNS, [_row(each) for each in found])


_COLUMNS: Final = (
    Column("stream", gives=True),
    Column("seq", right=True),
    Column("input id", gives=True),
    Column("tries", right=True),
    Column("since"),
    Column("why", gives=True),
)


def _why(failure: Failure) -> str:
    return f"{failure.type}: {failure.message}" if failure.message else failure.type


def _row(letter: DeadLetter) -> tuple[object, ...]:
    from .dead_letters import ParkedInput

    why = _why(letter.failure)
    if isinstance(letter, ParkedInput):
        return letter.stream, letter.seq, letter.input_id, letter.attempts, moment(letter.parked_at)[5:16], why
    return letter.stream, "", "blocked", "", moment(letter.blocked_at)[5:16], why


def _as_object(letter: DeadLetter) -> dict[str, Any]:
    from .dead_letters import ParkedInput

    shared = {"stream": letter.stream, "version": letter.version, "position": letter.position}
    if isinstance(letter, ParkedInput):
        own = {"kind": "parked", "seq": letter.seq, "id": letter.input_id, "at": iso(letter.parked_at), "attempts": letter.attempts, "holds": letter.holds}
    else:
        own = {"kind": "blocked", "at": iso(letter.blocked_at), "at_version": letter.at_version}
    return shared | own | {"failure": letter.failure}


@dead_letters.command()
@stream_argument
@click.option("--seq", metavar="N", type=click.IntRange(0, MOST), help="Which input, when several are parked.")
@log_option
@json_option
def show(stream: str, seq: int | None, url: str, as_json: bool) -> None:
    """Show one: its input, every failed try, and what can be done."""
    from .dead_letters import BlockedStream, opened
    from .dead_letters import dead_letters as found_in
    from .errors import InputRefused

    with reading(url) as log:
        blocked = [each for each in found_in(log, stream) if isinstance(each, BlockedStream)]
        try:
            found = opened(log, stream, seq)
        except InputRefused as problem:
            if not blocked or seq is not None:
                raise CouldNot(str(problem)) from problem
            _show_blocked(blocked[0], as_json)
            return
    if as_json:
        print_json(_as_object(found.letter) | {"received_at": iso(found.received_at), "type": found.type, "payload": found.payload, "failures": _tries(found)})
        return
    _show_parked(found)


def _tries(found: Opened) -> list[dict[str, Any]]:
    return [{"attempt": each.attempt, "at": iso(each.at), "failure": each.failure} for each in found.failures]


def _show_parked(found: Opened) -> None:
    letter = found.letter
    say(styled(f"{one_line(letter.stream)}  input {letter.seq}  {one_line(letter.input_id)}", bold=True))
    say(f"  received  {moment(found.received_at)} UTC  {one_line(found.type) or 'a plain value'}")
    say(f"  payload   {one_line(found.payload, 2_000)}")
    tries = "1 try" if letter.attempts == 1 else f"{letter.attempts} tries"
    say(f"  parked    {moment(letter.parked_at)} UTC, {length(letter.parked_at - found.received_at)} later, after {tries}")
    if letter.holds:
        say("  later inputs of this key wait for it")
    for each in found.failures:
        say(f"  try {each.attempt}     {moment(each.at)}  " + styled(one_line(_why(each.failure), 2_000), fg="red"))
        if each.failure.detail:
            say(f"            in {one_line(each.failure.detail, 200)}")
    say(f"Once the cause is gone: eventlog dead-letters redrive {one_line(letter.stream)} --seq {letter.seq}")


def _show_blocked(letter: Any, as_json: bool) -> None:
    if as_json:
        print_json(_as_object(letter))
        return
    say(styled(f"{one_line(letter.stream)}  blocked", bold=True))
    say(f"  since     {moment(letter.blocked_at)} UTC" + (f", at version {letter.at_version}" if letter.at_version >= 0 else ""))
    say("  why       " + styled(one_line(_why(letter.failure), 2_000), fg="red"))
    say(f"Once a worker runs code that reads the event: eventlog dead-letters redrive {one_line(letter.stream)}")


@dead_letters.command()
@stream_argument
@click.option("--seq", metavar="N", type=click.IntRange(0, MOST), help="Only this input.  [default: all that are parked in the stream]")
@click.option("--by", metavar="NAME", help="Who does it, for the record.  [default: the user's name]")
@click.option("--reason", metavar="TEXT", default="", help="Why, for the record.")
@log_option
@json_option
def redrive(stream: str, seq: int | None, by: str | None, reason: str, url: str, as_json: bool) -> None:
    """Put parked inputs back in line; have a blocked stream looked at again."""
    from .dead_letters import redrive as put_back
    from .errors import InputRefused

    with writing(url, create=False) as log:
        try:
            done = put_back(log, stream, seq, by=by if by is not None else user_name(), reason=reason)
        except InputRefused as problem:
            raise CouldNot(str(problem)) from problem
    with answering(f"The redrive of {one_line(stream)} is recorded"):
        if as_json:
            print_json({"stream": done.stream, "inputs": [{"seq": each, "id": input_id} for each, input_id in done.inputs], "woken": done.woken})
            return
        for each, input_id in done.inputs:
            say(f"{one_line(stream)}  input {each}  {one_line(input_id)} is in line again")
        if done.woken:
            say(f"{one_line(stream)} will be looked at again")


def user_name() -> str:
    """Who is at the terminal, for the record."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without a name for the user
        return "unknown"
