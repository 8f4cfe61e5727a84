"""``eventlog approvals``: what waits for a person's word, and saying it: by name, to exactly what was shown, once."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from ..eventlog.console import FOUND, OK, CouldNot, answering, json_option, log_option, reading, stream_argument, writing
from ..eventlog.printing import Column, iso, length, moment, one_line, print_json, say, styled, table
from .options import Age, by_option, keys_option, reason_option, who

if TYPE_CHECKING:
    from collections.abc import Callable

    from .asking import Answered, Closed, PendingApproval
    from .client import Client
    from .signing import KeyRing
    from .unreadable import Unreadable

F = TypeVar("F", bound="Callable[..., Any]")
_COLUMNS: Final = (
    Column("stream", whole=True),
    Column("approval", whole=True),
    Column("channel", gives=True, below=True),
    Column("age", right=True),
    Column("until (UTC)", below=True),
    Column("question", gives=True, below=True),
)
_MOST_READ: Final = 1 << 20
"""Bytes of a signed answer that are looked at; one is a few hundred."""
_MOST_NAMED: Final = 5
_DIGITS: Final = re.compile(r"[0-9a-fA-F]{8,64}")


def _client(log: Any, keys: KeyRing | None = None) -> Client:
    from .client import Client

    return Client(log, keys=keys)


@click.group()
def approvals() -> None:
    """Questions that wait for a person: list, show, approve, deny, answer."""


@approvals.command("list")
@click.option("--channel", metavar="NAME", help="Only those asked on this channel.")
@click.option("--agent", metavar="AGENT", help="Only those of this agent.")
@click.option("--key", metavar="KEY", help="Only those of this key.")
@click.option("--older-than", metavar="AGE", type=Age(), help="Only those asked longer ago: 90s, 10m, 2h, 1d.")
@click.option("--expires-within", metavar="TIME", type=Age(), help="Only those whose deadline is nearer than this.")
@log_option
@json_option
def list_(channel: str | None, agent: str | None, key: str | None, older_than: int | None, expires_within: int | None, url: str, as_json: bool) -> int:
    """List them all, oldest first. Those of a stream that cannot be read are named by the event, and the exit code is 1 then.

    \b
    eventlog approvals list --channel support --older-than 1h
    """
    from .app import runtime_codec
    from .asking import pending

    unread: list[Unreadable] = []
    with reading(url) as log:
        now = log.clock()
        found = [
            each
            for each in pending(log, runtime_codec(), channel=channel, tell=unread.append)
            if agent in (None, each.agent) and key in (None, each.key)
            if older_than is None or now - each.asked_at >= older_than
            if expires_within is None or each.expires_at - now <= expires_within
        ]
    if as_json:
        for each in found:
            print_json(_as_object(each))
        for event in unread:
            print_json(_unread_object(event))
    elif not found and not unread:
        filtered = channel or agent or key or older_than is not None or expires_within is not None
        say("No such question waits for a person." if filtered else "Nothing waits for a person.")
    else:
        table(_COLUMNS, [*(_row(each, now) for each in found), *(_unread_row(event, now) for event in unread)])
    return FOUND if unread else OK


def _unread_row(event: Unreadable, now: int) -> tuple[object, ...]:
    return event.stream, f"(version {event.version})", "", length(max(now - event.recorded_at, 0)), "", f"unreadable: {event.why}"


def _unread_object(event: Unreadable) -> dict[str, Any]:
    place = {"stream": event.stream, "version": event.version, "position": event.position, "type": event.type, "unreadable": True}
    return place | {"recorded_at": iso(event.recorded_at), "why": event.why}


def _row(asked: PendingApproval, now: int) -> tuple[object, ...]:
    age = length(max(now - asked.asked_at, 0))
    return asked.stream, asked.approval_id, asked.channel, age, moment(asked.expires_at)[5:16], asked.question


def _as_object(asked: PendingApproval) -> dict[str, Any]:
    place = {"stream": asked.stream, "seq": asked.seq, "id": asked.approval_id}
    return place | {
        "question": asked.question,
        "channel": asked.channel,
        "details": asked.details,
        "digest": asked.digest.hex(),
        "asked_at": iso(asked.asked_at),
        "expires_at": iso(asked.expires_at),
    }


def _open_ones(client: Client, stream: str, approval: str | None) -> list[PendingApproval]:
    from ..eventlog.names import split_stream

    return [each for each in client.pending_approvals(*split_stream(stream)) if approval in (None, each.approval_id)]


@approvals.command()
@stream_argument
@click.argument("approval", required=False)
@log_option
@json_option
def show(stream: str, approval: str | None, url: str, as_json: bool) -> None:
    """Show what a stream asks, with all its details and the digest that an answer is bound to.

    An APPROVAL that is over is shown with its answer: who, when and why.

    \b
    eventlog approvals show orders-o-1
    eventlog approvals show orders-o-1 approval-0-1 --json
    """
    from .app import runtime_codec
    from .asking import on_record

    with reading(url) as log:
        found, now = _open_ones(_client(log), stream, approval), log.clock()
        over = on_record(log, runtime_codec(), stream) if not found else {}
    if approval is not None and approval in over:
        _tell_closed(over[approval], now, as_json)
        return
    if not found:
        raise CouldNot(_none_open(stream, approval, list(over.values()), now))
    for each in found:
        if as_json:
            print_json(_as_object(each))
            continue
        _tell(each)
        say(f"To answer: eventlog approvals approve {one_line(each.stream)} {one_line(each.approval_id)} --digest {each.digest.hex()[:16]}")


def _tell(asked: PendingApproval) -> None:
    say(styled(f"{one_line(asked.stream)}  {one_line(asked.approval_id)}", bold=True))
    say(f"  question  {one_line(asked.question, 2_000)}")
    say(f"  channel   {one_line(asked.channel)}")
    for name, value in asked.details.items():
        say(f"  {one_line(name):<9} {one_line(value, 2_000)}")
    say(f"  digest    {asked.digest.hex()}")
    say(f"  asked     {moment(asked.asked_at)} UTC")
    say(f"  until     {moment(asked.expires_at)} UTC; after that it reads as denied")


def _none_open(stream: str, approval: str | None, over: list[Closed], now: int) -> str:
    none = f"{one_line(stream)} has no open approval{'' if approval is None else f' {approval!r:.80}'}. "
    if not over:
        return none + "See what there is: eventlog approvals list"
    shown = ", ".join(f"{one_line(each.asked.approval_id)} ({_became(each, now)})" for each in over[-_MOST_NAMED:])
    more = "" if len(over) <= _MOST_NAMED else f", and {len(over) - _MOST_NAMED} before"
    return none + f"No longer open: {shown}{more}. See one: eventlog approvals show {one_line(stream)} {one_line(over[-1].asked.approval_id)}"


def _became(over: Closed, now: int) -> str:
    if over.decided is not None:
        return f"{'approved' if over.decided.approved else 'denied'} by {one_line(over.decided.by)}"
    return f"expired at {moment(over.asked.expires_at)[:19]} UTC" if over.asked.expires_at <= now else "nobody waits for an answer"


def _tell_closed(over: Closed, now: int, as_json: bool) -> None:
    decided = over.decided
    if as_json:
        said = {} if decided is None else {"approved": decided.approved, "by": decided.by, "reason": decided.reason, "decided_at": iso(over.decided_at)}
        print_json(_as_object(over.asked) | {"decided": said or None})
        return
    _tell(over.asked)
    if decided is None:
        none = f"it expired at {moment(over.asked.expires_at)} UTC and reads as denied" if over.asked.expires_at <= now else "nobody waits for one any more"
        say(f"  answer    none; {none}")
        return
    because = f": {one_line(decided.reason, 2_000)}" if decided.reason else ""
    say(f"  answer    {'approved' if decided.approved else 'denied'} at {moment(over.decided_at)} UTC by {one_line(decided.by)}{because}")


def _digest(ctx: click.Context, parameter: click.Parameter, value: str | None) -> bytes | None:
    """The digest, or how it begins; an odd digit at the end is left out."""
    if value is None:
        return None
    if not _DIGITS.fullmatch(value):
        raise click.BadParameter(f"{value!r:.80} must be the digest that `eventlog approvals show` prints, or at least its first 8 digits", ctx, parameter)
    return bytes.fromhex(value[: len(value) // 2 * 2])


_signing = keys_option("Sign the answer, for workers that insist on it:")


def _digest_option(text: str) -> Callable[[F], F]:
    return click.option("--digest", metavar="HEX", callback=_digest, help=text)


@approvals.command()
@stream_argument
@click.argument("approval")
@_digest_option("What is approved: the digest that `show` prints, 8 digits of it or more. Needed but on a terminal, which asks.")
@by_option
@reason_option
@_signing
@log_option
@json_option
def approve(stream: str, approval: str, digest: bytes | None, by: str | None, reason: str, keys: KeyRing | None, url: str, as_json: bool) -> None:
    """Say yes to exactly what was shown. The first answer is final.

    \b
    eventlog approvals approve orders-o-1 approval-0-1 --digest 1f0c22ab --reason "a known customer"
    """
    if digest is None and not sys.stdin.isatty():
        raise click.UsageError(
            f"Nothing was approved: say what, with --digest and what this prints of it, 8 digits or all: eventlog approvals show {stream} {approval}",
            click.get_current_context(),
        )
    with writing(url, create=False) as log:
        client = _client(log, keys)
        if digest is None:
            digest = _asked_for(client, stream, approval)
        _answer(client, stream, approval, True, digest, by, reason, as_json)


def _asked_for(client: Client, stream: str, approval: str) -> bytes | None:
    """The digest of what was shown, once somebody at the terminal has said yes to it."""
    found = _open_ones(client, stream, approval)
    if not found:  # decided, expired or unknown: the refusal says which
        return None
    _tell(found[0])
    if not click.confirm("Approve this?", default=False):
        raise CouldNot(f"Nothing was approved, and nothing was written. To refuse it: eventlog approvals deny {stream} {approval}")
    return found[0].digest


@approvals.command()
@stream_argument
@click.argument("approval")
@_digest_option("Only if this is what is asked; 8 digits or more.")
@by_option
@reason_option
@_signing
@log_option
@json_option
def deny(stream: str, approval: str, digest: bytes | None, by: str | None, reason: str, keys: KeyRing | None, url: str, as_json: bool) -> None:
    """Say no. The first answer is final.

    \b
    eventlog approvals deny orders-o-1 approval-0-1 --reason "not a customer"
    """
    with writing(url, create=False) as log:
        _answer(_client(log, keys), stream, approval, False, digest, by, reason, as_json)


def _answer(client: Client, stream: str, approval: str, approved: bool, digest: bytes | None, by: str | None, reason: str, as_json: bool) -> None:
    from ..eventlog.names import split_stream
    from .errors import InputRefused, RequestRefused

    try:
        told = (client.approve if approved else client.deny)(*split_stream(stream), approval, by=who(by), reason=reason, digest=digest or b"")
    except (InputRefused, RequestRefused) as problem:
        raise CouldNot(str(problem)) from problem
    _print_answer(told, as_json)


def _print_answer(told: Answered, as_json: bool) -> None:
    word = "approved" if told.approved else "denied"
    text = f"{one_line(told.stream)}  {one_line(told.approval_id)} is {word} by {one_line(told.by)}"
    with answering(f"The answer is recorded: {text}"):
        if as_json:
            print_json({"stream": told.stream, "id": told.approval_id, "approved": told.approved, "by": told.by, "duplicate": told.duplicate})
        else:
            say(text + (styled("  done before: nothing was written", fg="yellow") if told.duplicate else ""))


@approvals.command()
@click.option("--signed", metavar="FILE|-", required=True, help="The signed answer, as the surface sent it; - for stdin.")
@click.option("--fresh-for", metavar="TIME", type=Age(), default="15m", show_default=True, help="How old it may be.")
@keys_option("Verify it with these keys:")
@log_option
@json_option
def answer(signed: str, fresh_for: int, keys: KeyRing | None, url: str, as_json: bool) -> None:
    """Record an answer that was signed where it was given. What is not authentic is refused and kept as a dead letter.

    What is no signed answer by its form, a wrong file for example, is refused and not kept.

    \b
    eventlog approvals answer --signed answer.json --signing-keys file:/etc/keys
    """
    from datetime import timedelta

    from .approvals_answers import answer_signed, check_form
    from .errors import InputRefused, RequestRefused

    if keys is None:
        raise click.UsageError("A signed answer is verified with keys: give --signing-keys env:NAME or file:/path", click.get_current_context())
    raw = _read(signed)
    try:
        check_form(raw)
    except InputRefused as problem:
        raise CouldNot(
            f"{'stdin' if signed == '-' else one_line(signed)} is no signed answer: {problem}. Nothing was written, and nothing of it is kept."
        ) from None
    with writing(url, create=False) as log:
        try:
            told = answer_signed(log, raw, keys, fresh=timedelta(microseconds=fresh_for))
        except RequestRefused as problem:
            raise CouldNot(str(problem)) from problem
    _print_answer(told, as_json)


def _read(name: str) -> bytes:
    if name == "-":
        return sys.stdin.buffer.read(_MOST_READ)
    try:
        with Path(name).open("rb") as file:
            return file.read(_MOST_READ)
    except OSError as problem:
        raise click.UsageError(f"--signed {name!r} cannot be read: {problem.strerror}") from problem
