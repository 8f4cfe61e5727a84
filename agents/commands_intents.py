"""``eventlog intents``: what waits to be done in the world or ended unseen, and what a person does about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from ..eventlog.console import FOUND, OK, CouldNot, answering, json_option, log_option, reading, writing
from ..eventlog.names import check_stream
from ..eventlog.printing import Column, from_json, iso, length, moment, one_line, print_json, say, styled, table
from .operating import DISTRUSTED, STANDINGS
from .options import Age, by_option, keys_option, who
from .unreadable import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from .operating import Changed, Standing
    from .signing import KeyRing
    from .unreadable import Unreadable

_COLUMNS: Final = (
    Column("intent", whole=True),
    Column("stream", gives=True),
    Column("tool", gives=True, below=True),
    Column("status"),
    Column("tries", right=True),
    Column("age", right=True),
    Column("why", gives=True, below=True),
)


@click.group()
def intents() -> None:
    """Effects that are open or ended unseen: list, show, retry, cancel, settle."""


@intents.command("list")
@click.option("--status", "statuses", type=click.Choice(STANDINGS, case_sensitive=False), multiple=True, help="Only these; may be given again.")
@click.option("--all", "everything", is_flag=True, help="Those whose outcome is known, too.")
@click.option("--tool", metavar="NAME", help="Only those of this tool.")
@click.option("--key", metavar="KEY", help="Only those of this business key (ctx.act(…, key=KEY)).")
@click.option("--stream", metavar="STREAM", help="Only those of this stream.")
@click.option("--older-than", metavar="AGE", type=Age(), help="Only those staged longer ago: 90s, 10m, 2h, 1d.")
@log_option
@json_option
def list_(
    statuses: tuple[str, ...], everything: bool, tool: str | None, key: str | None, stream: str | None, older_than: int | None, url: str, as_json: bool
) -> int:
    """List what needs somebody, oldest first: open ones, and UNKNOWN ones that nobody has resolved.

    An event that cannot be read is a row of its own, whatever is asked for: it may be about any of its stream. The exit code is 1 then.

    \b
    eventlog intents list --status unknown --older-than 1h
    """
    from ..eventlog.held_back import held_back
    from .operating import standings

    unread: list[Unreadable] = []
    with reading(url) as log:
        now = log.clock()
        found = [
            each
            for each in standings(log, None if stream is None else check_stream(stream), settled=everything or bool(statuses), tell=unread.append)
            if tool in (None, each.intent.tool) and key in (None, each.intent.key) and (not statuses or each.status in statuses)
            if older_than is None or now - each.staged_at >= older_than
        ]
        partly = not found and stream is None and bool(held_back(log))
    if as_json:
        for each in found:
            print_json(_as_object(each))
        for event in unread:
            print_json(_unread_object(event))
    elif not found and not unread:
        every = "Of the intents that can be shown now every one" if partly else "Every intent"
        say("No such intent." if statuses or everything or tool or key or stream or older_than else f"{every} has its outcome, and none is UNKNOWN.")
    else:
        table(_COLUMNS, [*(_row(each, now) for each in found), *(_unread_row(event, now) for event in unread)])
    return FOUND if unread else OK


def _unread_row(event: Unreadable, now: int) -> tuple[object, ...]:
    age = length(max(now - event.recorded_at, 0))
    return f"(version {event.version})", event.stream, "", UNREADABLE, "", age, event.why


def _unread_object(event: Unreadable) -> dict[str, Any]:
    place = {"stream": event.stream, "version": event.version, "position": event.position, "type": event.type, "status": UNREADABLE}
    return place | {"recorded_at": iso(event.recorded_at), "why": event.why}


def _why(found: Standing) -> str:
    if found.resolution is not None:
        return f"resolved {found.resolution.status} by {found.resolution.by}"
    if found.status == DISTRUSTED and found.distrusted is not None:
        return found.distrusted.why
    failure = found.settled.failure if found.settled is not None else found.postponed.failure if found.postponed is not None else None
    return "" if failure is None else f"{failure.type}: {failure.message}"


def _row(found: Standing, now: int) -> tuple[object, ...]:
    age = length(max(now - found.staged_at, 0))
    return found.intent.intent_id, found.stream, found.intent.tool, found.status, found.attempts, age, _why(found)


def _as_object(found: Standing) -> dict[str, Any]:
    intent, settled, resolution = found.intent, found.settled, found.resolution
    shown = {"id": intent.intent_id, "stream": found.stream, "seq": intent.seq, "step": intent.step, "tool": intent.tool, "key": intent.key}
    shown |= {"args": intent.args, "digest": intent.digest.hex(), "status": found.status, "attempts": found.attempts}
    shown |= {"staged_at": iso(found.staged_at), "expires_at": iso(intent.expires_at)}
    if found.postponed is not None:
        shown |= {"retry_at": iso(found.postponed.retry_at), "failure": found.postponed.failure}
    if found.distrusted is not None:
        shown |= {"why": found.distrusted.why, "key_id": found.distrusted.key_id, "payload": found.distrusted.payload}
    if settled is not None:
        shown |= {"settled_at": iso(found.settled_at), "settled_by": settled.settled_by, "reason": settled.reason}
        shown |= {"value": settled.value, "failure": settled.failure}
    if resolution is not None:
        told = {"status": resolution.status, "value": resolution.value, "by": resolution.by, "reason": resolution.reason}
        shown |= {"resolution": told | {"at": iso(resolution.at)}}
    return shown


def _named_options(command: Any) -> Any:
    """``INTENT``, its id or how that begins, and where to look for it."""
    text = "Where it is; spares a look through the whole log."
    return click.argument("intent", metavar="INTENT")(click.option("--stream", metavar="STREAM", help=text)(command))


@intents.command()
@_named_options
@log_option
@json_option
def show(intent: str, stream: str | None, url: str, as_json: bool) -> int:
    """Show one with its arguments, how it stands, and what can be done.

    INTENT is its id, or how that begins: six characters or more, if no other one begins with them. What cannot be read of its stream
    is named, and the exit code is 1 then.

    \b
    eventlog intents show 25ddf24b
    """
    from .abbreviations import intent_named
    from .errors import RequestRefused
    from .operating import standing

    unread: list[Unreadable] = []
    with reading(url) as log:
        try:
            found = standing(log, intent_named(log, intent, stream), stream, tell=unread.append)
        except RequestRefused as problem:
            raise CouldNot(str(problem)) from problem
    if as_json:
        print_json(_as_object(found) | ({"unreadable": [_unread_object(event) for event in unread]} if unread else {}))
        return FOUND if unread else OK
    staged = found.intent
    say(styled(f"{one_line(staged.intent_id)}  {found.status}", bold=True))
    say(f"  stream    {one_line(found.stream)}, input {staged.seq}, step {staged.step}" + (f", key {one_line(staged.key)}" if staged.key else ""))
    say(f"  tool      {one_line(staged.tool)}")
    for name, value in staged.args.items():
        say(f"  {one_line(name):<9} {one_line(value, 2_000)}")
    say(f"  digest    {staged.digest.hex()}")
    until = f"to be done until {moment(staged.expires_at)} UTC" if staged.expires_at else "without a deadline, or with a ttl of zero or less: it is expired"
    say(f"  staged    {moment(found.staged_at)} UTC, {until}")
    say(f"  attempts  {found.attempts}")
    _show_end(found)
    for event in unread:
        say("  unread    " + styled(one_line(f"version {event.version}: {event.why}", 2_000), fg="red"))
    if unread:
        say(f"It may stand otherwise: not all of its stream can be read. See: {one_line(unread[0].looked_at)}")
        return FOUND
    for line in _what_can_be_done(found):
        say(line)
    return OK


def _show_end(found: Standing) -> None:
    settled, resolution = found.settled, found.resolution
    if settled is None and found.postponed is not None:
        say(f"  next try  {moment(found.postponed.retry_at)} UTC")
    if found.distrusted is not None:
        say("  why       " + styled(one_line(found.distrusted.why, 2_000), fg="red"))
        say(f"  bytes     {found.distrusted.payload.hex()}")
    if (failure := settled.failure if settled is not None else found.postponed.failure if found.postponed is not None else None) is not None:
        say("  why       " + styled(one_line(f"{failure.type}: {failure.message}", 2_000), fg="red"))
        if failure.detail:
            say(f"            {one_line(failure.detail, 2_000)}")
    if settled is not None:
        because = f": {one_line(settled.reason, 2_000)}" if settled.reason else ""
        say(f"  settled   {moment(found.settled_at)} UTC by {one_line(settled.settled_by)}{because}")
        if settled.value is not None:
            say(f"  value     {one_line(settled.value, 2_000)}")
    if resolution is not None:
        because = f": {one_line(resolution.reason, 2_000)}" if resolution.reason else ""
        say(f"  resolved  {resolution.status} at {moment(resolution.at)} UTC by {one_line(resolution.by)}{because}")
        if resolution.value is not None:
            say(f"  value     {one_line(resolution.value, 2_000)}")


def _what_can_be_done(found: Standing) -> list[str]:
    if not found.needs_somebody:
        return []
    intent_id = one_line(found.intent.intent_id)
    lines = {
        "STAGED": f"To take it back: eventlog intents cancel {intent_id}",
        DISTRUSTED: f"To tell its agent that nobody will carry it out: eventlog intents cancel {intent_id}. "
        f"To vouch for it: eventlog dead-letters redrive {one_line(found.stream)} --intent {intent_id}",
        "POSTPONED": f"To have it tried now: eventlog intents retry {intent_id}",
    }
    said = f"When you know how it ended: eventlog intents settle {intent_id} OK JSON, or ERROR"
    return [*([lines[found.status]] if found.status in lines else []), said]


def _changing(command: Any) -> Any:
    for option in (
        json_option,
        log_option,
        click.option(
            "--wait",
            "patience",
            metavar="SECONDS",
            type=click.FloatRange(0, 86400),
            default=5.0,
            help="Longest wait for an effector at work there.  [default: 5]",
        ),
        click.option("--reason", metavar="TEXT", default="", help="Why, for the record."),
        by_option,
    ):
        command = option(command)
    return command


def _change(url: str, as_json: bool, done: str, intent: str, stream: str | None, change: Callable[[Any, str], Changed]) -> None:
    """``change``: given the log and the whole id."""
    from .abbreviations import intent_named
    from .errors import InputRefused, RequestRefused

    with writing(url, create=False) as log:
        try:
            made = change(log, intent_named(log, intent, stream))
        except (InputRefused, RequestRefused) as problem:
            raise CouldNot(str(problem)) from problem
    found = made.intent
    text = f"{one_line(found.stream)}  {one_line(found.intent.intent_id)} {done}"
    with answering(f"It is recorded: {text}"):
        if as_json:
            print_json(_as_object(found) | {"duplicate": made.duplicate})
        else:
            say(text + (styled("  done before: nothing was written", fg="yellow") if made.duplicate else ""))


@intents.command()
@_named_options
@_changing
def retry(intent: str, stream: str | None, by: str | None, reason: str, patience: float, url: str, as_json: bool) -> None:
    """Have a postponed intent tried now instead of later. INTENT as for `show`.

    \b
    eventlog intents retry 25ddf24b
    """
    from .operating import retry as put_forward

    _change(url, as_json, "is due now", intent, stream, lambda log, whole: put_forward(log, whole, by=who(by), reason=reason, stream=stream, patience=patience))


_signing = keys_option("Sign the outcome, for workers that insist on it:")


@intents.command()
@_named_options
@_changing
@_signing
def cancel(intent: str, stream: str | None, by: str | None, reason: str, patience: float, keys: KeyRing | None, url: str, as_json: bool) -> None:
    """Take back an intent that nobody has attempted. INTENT as for `show`.

    \b
    eventlog intents cancel 25ddf24b --reason "sent by mistake"
    """
    from .operating import cancel as take_back

    named: dict[str, Any] = {"by": who(by), "reason": reason, "stream": stream, "patience": patience, "keys": keys}
    _change(url, as_json, "is CANCELLED", intent, stream, lambda log, whole: take_back(log, whole, **named))


@intents.command()
@_named_options
@click.argument("status", type=click.Choice(["OK", "ERROR"], case_sensitive=False))
@click.argument("value", metavar="[JSON]", required=False)
@_changing
@_signing
def settle(
    intent: str,
    status: str,
    value: str | None,
    stream: str | None,
    by: str | None,
    reason: str,
    patience: float,
    keys: KeyRing | None,
    url: str,
    as_json: bool,
) -> None:
    """Say how an intent ended: an open one, or one that was reported UNKNOWN. INTENT as for `show`.

    OK needs what the tool returned, as JSON: null for one that returns nothing. It is final.

    \b
    eventlog intents settle 25ddf24b-d820-53e2-acac-e3a9906b9fd8 OK '"re_91"' --reason "seen in their dashboard"
    """
    from .operating import settle as say_how

    if status.upper() == "OK" and value is None:
        raise click.UsageError("OK is final, and the agent goes on with what its tool returned: give that, as JSON. For a tool that returns nothing: OK null")
    try:
        given = None if value is None else from_json(value)
    except ValueError as problem:
        raise click.UsageError(f"The value is no JSON: {problem}: {value!r:.80}. Text needs its JSON quotes: '\"re_91\"'.") from problem
    named: dict[str, Any] = {"by": who(by), "reason": reason, "stream": stream, "patience": patience, "keys": keys}
    _change(url, as_json, f"is {status}", intent, stream, lambda log, whole: say_how(log, whole, status, given, **named))
