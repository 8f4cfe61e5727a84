"""``eventlog dead-letters``: what was given up for now or is not authentic: list, show, redrive."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

import click

from ..eventlog.console import FOUND, MOST, OK, CouldNot, answering, json_option, log_option, reading, stream_argument, writing
from ..eventlog.printing import Column, iso, length, moment, one_line, print_json, say, styled, table
from .options import Age, by_option, keys_option, reason_option, who

if TYPE_CHECKING:
    from .approvals_answers import DistrustedAnswer
    from .dead_letters import AnyLetter, Opened
    from .facts import Failure
    from .operating import Standing
    from .signing import KeyRing
    from .unreadable import Unreadable

PARKED: Final = "parked"
BLOCKED: Final = "blocked"
DISTRUSTED: Final = "distrusted"
UNDELIVERED: Final = "undelivered"
UNREAD: Final = "unreadable"
_MOST_SHOWN: Final = 256
"""Bytes of something distrusted that a text shows; ``--json`` has them all."""
_COLUMNS: Final = (
    Column("stream", gives=True, whole=True),
    Column("seq", right=True),
    Column("input id", whole=True),
    Column("tries", right=True, below=True),
    Column("since", below=True),
    Column("why", gives=True, below=True),
)


@click.group("dead-letters")
def dead_letters() -> None:
    """What was given up for now, or is not authentic: list, show, redrive.

    Parked inputs, streams that stand still, intents and answers that are not authentic, questions that a surface refused.
    """


@dead_letters.command("list")
@click.option(
    "--status", "statuses", type=click.Choice([PARKED, BLOCKED, DISTRUSTED, UNDELIVERED, UNREAD]), multiple=True, help="Only these; may be given again."
)
@click.option("--tool", metavar="NAME", help="Only distrusted intents of this tool.")
@click.option("--key", metavar="KEY", help="Only those of this key.")
@click.option("--older-than", metavar="AGE", type=Age(), help="Only those given up longer ago: 90s, 10m, 2h, 1d.")
@log_option
@json_option
def list_(statuses: tuple[str, ...], tool: str | None, key: str | None, older_than: int | None, url: str, as_json: bool) -> int:
    """List them all, oldest first. What cannot be read is a row of its own, and the exit code is 1.

    \b
    eventlog dead-letters list --tool ship --older-than 1h
    """
    from .dead_letters import all_letters
    from .unreadable import Unreadable

    with reading(url) as log:
        now = log.clock()
        found = [
            each
            for each in all_letters(log)
            if (not statuses or _status(each) in statuses)
            if tool is None or _tool(each) == tool or isinstance(each, Unreadable)  # it may be one of that tool
            if key is None or each.stream.partition("-")[2] == key
            if older_than is None or now - _since(each) >= older_than
        ]
    if as_json:
        for each in found:
            print_json(_as_object(each))
    elif not found:
        say("No such dead letter." if statuses or tool or key or older_than is not None else "No dead letters.")
    else:
        table(_COLUMNS, [_row(each) for each in found])
    return FOUND if any(isinstance(each, Unreadable) for each in found) else OK


def _status(letter: AnyLetter) -> str:
    from .dead_letters import BlockedStream, ParkedInput, Undelivered
    from .unreadable import Unreadable

    if isinstance(letter, ParkedInput):
        return PARKED
    if isinstance(letter, Unreadable):
        return UNREAD
    return BLOCKED if isinstance(letter, BlockedStream) else UNDELIVERED if isinstance(letter, Undelivered) else DISTRUSTED


def _tool(letter: AnyLetter) -> str | None:
    from .operating import Standing

    return letter.intent.tool if isinstance(letter, Standing) else None


def _since(letter: AnyLetter) -> int:
    from .dead_letters import since

    return since(letter)


def _why(failure: Failure) -> str:
    return f"{failure.type}: {failure.message}" if failure.message else failure.type


def _row(letter: AnyLetter) -> tuple[object, ...]:
    from .approvals_answers import STREAM, DistrustedAnswer
    from .dead_letters import BlockedStream, ParkedInput, Undelivered
    from .unreadable import Unreadable

    at = moment(_since(letter))[5:16]
    if isinstance(letter, ParkedInput):
        return letter.stream, letter.seq, letter.input_id, letter.attempts, at, _why(letter.failure)
    if isinstance(letter, BlockedStream):
        return letter.stream, "", "blocked", "", at, _why(letter.failure)
    if isinstance(letter, Undelivered):
        return letter.stream, "", letter.fact.approval_id, letter.fact.tries, at, f"undelivered: {letter.fact.why}"
    if isinstance(letter, DistrustedAnswer):
        return STREAM, letter.version, "answer", "", at, f"distrusted: {letter.why}"
    if isinstance(letter, Unreadable):
        return letter.stream, "", f"version {letter.version}", "", at, f"unreadable: {letter.why}"
    return letter.stream, letter.intent.seq, f"intent {letter.intent.intent_id}", letter.attempts, at, f"distrusted: {_distrust(letter)}"


def _distrust(letter: Standing) -> str:
    return letter.distrusted.why if letter.distrusted is not None else ""


def _as_object(letter: AnyLetter) -> dict[str, Any]:
    from .approvals_answers import STREAM, DistrustedAnswer
    from .dead_letters import BlockedStream, ParkedInput, Undelivered
    from .unreadable import Unreadable

    place = {"stream": letter.stream, "version": letter.version, "position": letter.position, "kind": _status(letter), "at": iso(_since(letter))}
    if isinstance(letter, ParkedInput):
        own = {"seq": letter.seq, "id": letter.input_id, "attempts": letter.attempts, "holds": letter.holds}
        return place | own | {"failure": letter.failure}
    if isinstance(letter, BlockedStream):
        return place | {"at_version": letter.at_version, "failure": letter.failure}
    if isinstance(letter, Undelivered):
        fact = letter.fact
        return place | {"approval": fact.approval_id, "sink": fact.sink, "tries": fact.tries, "why": fact.why}
    if isinstance(letter, DistrustedAnswer):
        own = {"stream": STREAM, "seq": letter.version, "claims": {"stream": letter.stream, "approval": letter.approval_id}}
        return place | own | {"why": letter.why, "size": letter.size, "sha256": letter.digest.hex(), "payload": letter.raw}
    if isinstance(letter, Unreadable):
        return place | {"type": letter.type, "why": letter.why}
    intent, distrusted = letter.intent, letter.distrusted
    own = {"seq": intent.seq, "intent": intent.intent_id, "tool": intent.tool, "args": intent.args, "attempts": letter.attempts}
    if distrusted is not None:
        own |= {"why": distrusted.why, "key_id": distrusted.key_id, "signature": distrusted.signature, "schema": distrusted.schema}
        own |= {"payload": distrusted.payload, "expires_at": iso(intent.expires_at)}
    return place | own


@dead_letters.command()
@stream_argument
@click.option("--seq", metavar="N", type=click.IntRange(0, MOST), help="Which input, or which distrusted answer, when there are several.")
@click.option("--intent", metavar="INTENT", help="Which distrusted intent: its id, or six characters or more that it begins with.")
@log_option
@json_option
def show(stream: str, seq: int | None, intent: str | None, url: str, as_json: bool) -> None:
    """Show one: what it is, why it is here, its raw bytes where nobody vouches for it, and what can be done.

    \b
    eventlog dead-letters show orders-o-1
    """
    from .abbreviations import intent_named
    from .dead_letters import ParkedInput, letters_of, opened
    from .errors import InputRefused, RequestRefused

    with reading(url) as log:
        try:
            letter = letters_of(log, stream, seq, None if intent is None else intent_named(log, intent, stream))
            found = opened(log, stream, seq) if isinstance(letter, ParkedInput) else None
        except (InputRefused, RequestRefused) as problem:
            raise CouldNot(str(problem)) from problem
    if as_json:
        more = {} if found is None else {"received_at": iso(found.received_at), "type": found.type, "payload": found.payload, "failures": _tries(found)}
        print_json(_as_object(letter) | more)
    elif found is not None:
        _show_parked(found)
    else:
        _show_other(letter)


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


def _show_other(letter: AnyLetter) -> None:
    from .approvals_answers import DistrustedAnswer
    from .dead_letters import BlockedStream, Undelivered
    from .operating import Standing
    from .unreadable import Unreadable

    stream, since = one_line(letter.stream), f"  since     {moment(_since(letter))} UTC"
    if isinstance(letter, BlockedStream):
        say(styled(f"{stream}  blocked", bold=True))
        say(since + (f", at version {letter.at_version}" if letter.at_version >= 0 else ""))
        say("  why       " + styled(one_line(_why(letter.failure), 2_000), fg="red"))
        if letter.failure.type != "OutcomeDistrusted":  # which says itself what to do
            say(f"Once a worker runs code that reads the event: eventlog dead-letters redrive {stream}")
    elif isinstance(letter, Undelivered):
        say(styled(f"{stream}  {one_line(letter.fact.approval_id)}  undelivered", bold=True))
        say(since + f", after {letter.fact.tries} tries to {one_line(letter.fact.sink)}")
        say("  why       " + styled(one_line(letter.fact.why, 2_000), fg="red"))
        say(f"It can be answered all the same: eventlog approvals show {stream} {one_line(letter.fact.approval_id)}")
        say(f"Once the surface takes it: eventlog dead-letters redrive {stream} --approval {one_line(letter.fact.approval_id)}")
    elif isinstance(letter, DistrustedAnswer):
        _show_answer(letter, since)
    elif isinstance(letter, Unreadable):
        _show_unreadable(letter)
    elif isinstance(letter, Standing):
        _show_intent(letter, since)


def _show_unreadable(letter: Unreadable) -> None:
    say(styled(f"{one_line(letter.stream)}  version {letter.version}  unreadable", bold=True))
    say(f"  recorded  {moment(letter.recorded_at)} UTC as {one_line(letter.type)}")
    say("  why       " + styled(one_line(letter.why, 2_000), fg="red"))
    say("Nothing is done on this key where this matters until code runs that can read it, or its bytes are put back from a copy.")
    say(f"To see its bytes: {one_line(letter.looked_at)}")


def _show_answer(letter: DistrustedAnswer, since: str) -> None:
    from .approvals_answers import STREAM

    say(styled(f"{STREAM}  answer {letter.version}  distrusted", bold=True))
    say(since)
    say("  why       " + styled(one_line(letter.why, 2_000), fg="red"))
    say(f"  claims    {one_line(letter.stream)}  {one_line(letter.approval_id)}" if letter.stream else "  claims    nothing that can be read")
    _show_bytes(letter.raw, letter.size)
    say(f"  sha-256   {letter.digest.hex()}")
    say(f"If it is a matter of keys: eventlog dead-letters redrive {STREAM} --seq {letter.version} --signing-keys REFERENCE")


def _show_intent(letter: Standing, since: str) -> None:
    intent, stream = letter.intent, one_line(letter.stream)
    say(styled(f"{stream}  intent {one_line(intent.intent_id)}  distrusted", bold=True))
    say(since)
    say("  why       " + styled(one_line(_distrust(letter), 2_000), fg="red"))
    say(f"  tool      {one_line(intent.tool)}")
    for name, value in intent.args.items():
        say(f"  {one_line(name):<9} {one_line(value, 2_000)}")
    say(f"  deadline  {moment(intent.expires_at)} UTC" if intent.expires_at else "  deadline  none, or a ttl of zero or less, which reads as expired")
    if letter.distrusted is not None:
        key, signature = letter.distrusted.key_id, letter.distrusted.signature
        none = f"with bytes that are no signature: {signature[:_MOST_SHOWN].hex()}" if signature else "not at all"
        say(f"  signed    with key {one_line(key)}: {signature.hex()}" if key else f"  signed    {none}")
        _show_bytes(letter.distrusted.payload, len(letter.distrusted.payload))
    say(f"To vouch for it: eventlog dead-letters redrive {stream} --intent {one_line(intent.intent_id)} --reason TEXT --signing-keys REFERENCE")
    say(f"To tell its agent that nobody will carry it out: eventlog intents cancel {one_line(intent.intent_id)}")


def _show_bytes(raw: bytes, size: int) -> None:
    """The beginning, as text where it is text and else in base64."""
    begin = raw[:_MOST_SHOWN]
    text = begin.decode("ascii", "replace")
    printed = one_line(text, 2 * _MOST_SHOWN) if text.isprintable() and "\ufffd" not in text else f"base64 {base64.b64encode(begin).decode()}"
    say(f"  bytes     {size:,}" + (f", of which the first {len(begin)}" if size > len(begin) else "") + f": {printed}")


@dead_letters.command()
@stream_argument
@click.option("--seq", metavar="N", type=click.IntRange(0, MOST), help="Only this input, or this answer.  [default: all inputs that are parked in the stream]")
@click.option("--intent", metavar="INTENT", help="Vouch for this distrusted intent, or for its outcome; needs --signing-keys and --reason.")
@click.option("--approval", metavar="APPROVAL", help="Have this question published again; once it is answered, vouch for the answer.")
@by_option
@reason_option
@keys_option("For what is distrusted:")
@log_option
@json_option
def redrive(
    stream: str, seq: int | None, intent: str | None, approval: str | None, by: str | None, reason: str, keys: KeyRing | None, url: str, as_json: bool
) -> None:
    """Put parked inputs back in line; have a blocked stream looked at again; vouch for what is distrusted.

    \b
    eventlog dead-letters redrive orders-eve --seq 1 --reason "prices are fixed"
    """
    from .approvals_answers import STREAM
    from .errors import InputRefused, RequestRefused

    if sum(each is not None for each in (intent, approval, seq)) > 1:
        raise click.UsageError("Give --intent, --approval or --seq, only one of them: each names one thing.", click.get_current_context())
    with writing(url, create=False) as log:
        try:
            if intent is not None or approval is not None:
                said, shown = _vouch(log, stream, intent or "", approval or "", who(by), reason, keys)
            elif stream == STREAM:
                said, shown = _look_again(log, seq, who(by), reason, keys)
            else:
                said, shown = _put_back(log, stream, seq, who(by), reason)
        except (InputRefused, RequestRefused) as problem:
            raise CouldNot(str(problem)) from problem
    with answering(f"The redrive of {one_line(stream)} is recorded"):
        if as_json:
            print_json(shown)
            return
        for line in said:
            say(line)


def _put_back(log: Any, stream: str, seq: int | None, by: str, reason: str) -> tuple[list[str], dict[str, Any]]:
    from .dead_letters import redrive as put_back

    done = put_back(log, stream, seq, by=by, reason=reason)
    said = [f"{one_line(stream)}  input {each}  {one_line(input_id)} is in line again" for each, input_id in done.inputs]
    said += [f"{one_line(stream)} will be looked at again"] if done.woken else []
    return said, {"stream": done.stream, "inputs": [{"seq": each, "id": input_id} for each, input_id in done.inputs], "woken": done.woken}


def _needed(keys: KeyRing | None, what: str) -> KeyRing:
    if keys is None:
        raise click.UsageError(f"{what} is for whoever has keys: give --signing-keys env:NAME or file:/path. Nothing was written.", click.get_current_context())
    return keys


def _vouch(log: Any, stream: str, intent: str, approval: str, by: str, reason: str, keys: KeyRing | None) -> tuple[list[str], dict[str, Any]]:
    from .abbreviations import intent_named
    from .app import runtime_codec
    from .asking import closed
    from .dead_letters import redrive_approval
    from .operating import readmit, standing, vouch

    if approval and ((asked := closed(log, runtime_codec(), stream, approval)) is None or asked.decided is None):
        duplicate = redrive_approval(log, stream, approval, by=by, reason=reason)
        said = f"{one_line(stream)}  {one_line(approval)} will be published again"
        return [said + ("  done before: nothing was written" if duplicate else "")], {"stream": stream, "approval": approval, "duplicate": duplicate}
    ring = _needed(keys, "To vouch for something")
    if not reason.strip():
        raise click.UsageError("To vouch for something is to answer for it: say why, with --reason.", click.get_current_context())
    intent = intent_named(log, intent, stream) if intent else ""
    shown = {"stream": stream, **({"intent": intent} if intent else {"approval": approval}), "key_id": ring.signing_id}
    if approval or standing(log, intent, stream).settled is not None:
        duplicate = vouch(log, stream, ring, intent_id=intent, approval_id=approval, by=by)
        what = f"the outcome of intent {one_line(intent)}" if intent else f"the answer to {one_line(approval)}"
        text = f"{one_line(stream)}  {what} is vouched for"
    else:
        duplicate = readmit(log, intent, ring, by=by, reason=reason, stream=stream).duplicate
        text = f"{one_line(stream)}  intent {one_line(intent)} is readmitted; effectors that know the key {ring.signing_id} carry it out"
    return [text + ("  done before: nothing was written" if duplicate else "")], shown | {"duplicate": duplicate}


def _look_again(log: Any, seq: int | None, by: str, reason: str, keys: KeyRing | None) -> tuple[list[str], dict[str, Any]]:
    from .approvals_answers import redrive_answer

    if seq is None:
        raise click.UsageError("Say which answer, with --seq; see: eventlog dead-letters list --status distrusted", click.get_current_context())
    told = redrive_answer(log, seq, _needed(keys, "To look at an answer again"), by=by, reason=reason)
    word = "approved" if told.approved else "denied"
    said = f"{one_line(told.stream)}  {one_line(told.approval_id)} is {word} by {one_line(told.by)}"
    return [said], {"stream": told.stream, "id": told.approval_id, "approved": told.approved, "by": told.by, "duplicate": told.duplicate}
