"""What was given up for now: parked inputs and blocked streams; and what is not authentic. Finding them and bringing them back, without the app.

A parked input is one whose last ``ActivationFailed`` names no retry and that nobody has redriven since. A blocked stream
holds an event that the worker's code could not read (S-8.3); it is no more once a worker has taken a turn on it. What is
not authentic (``signing``) is found here, too; how it is vouched for stands in ``operating`` and ``approvals_answers``.
"""

from __future__ import annotations

from typing import Any, Final

import attrs
import msgspec

from ..eventlog.codec import Codec
from ..eventlog.errors import EventIdConflict, NewerSchema, Undecodable, WrongExpectedVersion
from ..eventlog.log import Duplicate, EventLog, Wake
from ..eventlog.versions import ANY
from . import facts
from .app import runtime_codec
from .appends import TURNS
from .approvals_answers import STREAM, DistrustedAnswer, distrusted_answers
from .errors import InputRefused
from .intents import fact_id, input_event_id
from .operating import DISTRUSTED, Standing, named, standings
from .unreadable import Tell, Unreadable, facts_of, once, unreadable

_SCANNED: Final = ("activation.failed", "input.redriven", "stream.blocked")
_OF_QUESTIONS: Final = tuple(f"approval.{name}" for name in ("requested", "decided", "undelivered", "redriven"))
_SIGNED: Final = ("intent.signed",)
_TRIES: Final = 10
_MOST_NAMED: Final = 5
"""Dead letters that a refusal names."""


@attrs.frozen
class ParkedInput:
    """An input that was tried and given up for now (S-3.3)."""

    stream: str
    seq: int
    input_id: str
    #: Place of the failure that parked it.
    version: int
    position: int
    parked_at: int
    attempts: int
    failure: facts.Failure
    #: Later inputs of the key wait for it.
    holds: bool


@attrs.frozen
class BlockedStream:
    """A stream that stands still because of an event its code cannot read."""

    stream: str
    #: Version of the event at fault; -1 when the fold did not say.
    at_version: int
    #: Place of the remark that it is blocked.
    version: int
    position: int
    blocked_at: int
    failure: facts.Failure


@attrs.frozen
class Undelivered:
    """A question that a surface refused, that nobody has answered since, and that can still be answered."""

    stream: str
    fact: facts.ApprovalUndelivered
    version: int
    position: int
    at: int


DeadLetter = ParkedInput | BlockedStream
AnyLetter = DeadLetter | Undelivered | Standing | DistrustedAnswer | Unreadable


@attrs.frozen
class Failed:
    """One failed turn of a parked input."""

    attempt: int
    at: int
    failure: facts.Failure


@attrs.frozen
class Opened:
    """Everything about one dead letter that helps to decide what to do with it."""

    letter: ParkedInput
    received_at: int
    type: str
    #: The payload as plain values.
    payload: Any
    #: Since it was last redriven, oldest first.
    failures: tuple[Failed, ...]


@attrs.frozen
class Redriven:
    """What a redrive did: the inputs that are in line again, or that a blocked stream is looked at again."""

    stream: str
    #: (seq, input id) of each.
    inputs: tuple[tuple[int, str], ...]
    woken: bool


def dead_letters(log: EventLog, stream: str | None = None, *, tell: Tell | None = None) -> list[DeadLetter]:
    """All of them in the order in which they were given up; those of one stream when it is named.

    ``tell`` hears of each event about them that cannot be read; without it ``Undecodable`` is raised.
    """
    parked: dict[tuple[str, int], ParkedInput] = {}
    blocked: dict[str, BlockedStream] = {}
    events = log.read_all(types=_SCANNED) if stream is None else log.read(stream)
    for event, fact in facts_of(runtime_codec(), events, _SCANNED, tell):
        if isinstance(fact, facts.ActivationFailed):
            blocked.pop(event.stream, None)
            if fact.retry_at is None:
                place = (event.stream, fact.seq, fact.input_id, event.version, event.position, event.recorded_at)
                parked[event.stream, fact.seq] = ParkedInput(*place, fact.attempt, fact.failure, fact.holds)
        elif isinstance(fact, facts.InputRedriven):
            parked.pop((event.stream, fact.seq), None)
        elif isinstance(fact, facts.StreamBlocked):
            blocked[event.stream] = BlockedStream(event.stream, fact.at_version, event.version, event.position, event.recorded_at, fact.failure)
    standing = [each for each in blocked.values() if not _taken_up(log, each)]
    return sorted([*parked.values(), *standing], key=lambda each: each.position)


def all_letters(log: EventLog, stream: str | None = None) -> list[AnyLetter]:
    """The same with intents and answers that are not authentic, questions that a surface refused, and events about any of them that cannot
    be read, oldest first. An event that a stream is blocked at is not named twice.
    """
    unread: list[Unreadable] = []
    tell = once(unread.append)
    given_up = dead_letters(log, stream, tell=tell)
    found: list[AnyLetter] = [*given_up, *_undelivered(log, stream, tell)]
    found += [each for each in standings(log, stream, tell=tell) if each.status == DISTRUSTED]
    found += distrusted_answers(log, tell) if stream in (None, STREAM) else []
    _newer_signatures(log, stream, tell)
    named_there = {(each.stream, each.at_version) for each in given_up if isinstance(each, BlockedStream)}
    found += [each for each in unread if (each.stream, each.version) not in named_there]
    return sorted(found, key=lambda each: (since(each), each.position))


def _newer_signatures(log: EventLog, stream: str | None, tell: Tell) -> None:
    """Tell of signatures that newer code made: effectors that cannot read them leave their keys alone. A damaged one is a distrusted intent."""
    codec = runtime_codec()
    for event in log.read_all(types=_SIGNED) if stream is None else log.read(stream):
        if event.type in _SIGNED:
            try:
                codec.decoder(event.type, event.schema)
            except NewerSchema as problem:
                tell(unreadable(event, problem.at(event.stream, event.version)))
            except Undecodable:  # no schema at all: damaged
                pass


def since(letter: AnyLetter) -> int:
    """When it became one."""
    if isinstance(letter, ParkedInput):
        return letter.parked_at
    if isinstance(letter, BlockedStream):
        return letter.blocked_at
    if isinstance(letter, Undelivered):
        return letter.at
    if isinstance(letter, Unreadable):
        return letter.recorded_at
    return letter.received_at if isinstance(letter, DistrustedAnswer) else letter.distrusted_at


def _undelivered(log: EventLog, stream: str | None, tell: Tell | None = None) -> list[Undelivered]:
    found = dict[tuple[str, str], Undelivered]()
    deadlines: dict[tuple[str, str], int] = {}
    events = log.read_all(types=_OF_QUESTIONS) if stream is None else log.read(stream)
    for event, fact in facts_of(runtime_codec(), events, _OF_QUESTIONS, tell):
        key = event.stream, fact.approval_id
        if isinstance(fact, facts.ApprovalUndelivered):
            found[key] = Undelivered(event.stream, fact, event.version, event.position, event.recorded_at)
        elif isinstance(fact, facts.ApprovalDecided):
            found.pop(key, None)
            deadlines.pop(key, None)
        elif isinstance(fact, facts.ApprovalRedriven):
            found.pop(key, None)
        elif fact.expires_at > log.clock():
            deadlines[key] = fact.expires_at
    return [each for key, each in found.items() if key in deadlines]


def letters_of(log: EventLog, stream: str, seq: int | None = None, intent_id: str | None = None) -> AnyLetter:
    """The one dead letter of a stream that ``seq`` or ``intent_id`` mean, or that comes first; raises ``InputRefused``.

    Of several parked inputs one must be named.
    """
    letters = all_letters(log, stream)
    if intent_id is not None:
        meant = [each for each in letters if isinstance(each, Standing) and each.intent.intent_id == intent_id]
        if not meant:
            raise InputRefused(f"{stream} has no distrusted intent {intent_id!r:.80}. {_there(letters)}")
        return meant[0]
    parked = [each for each in letters if isinstance(each, ParkedInput)]
    if stream == STREAM:
        answers: list[AnyLetter] = [each for each in letters if isinstance(each, DistrustedAnswer) and seq in (None, each.version)]
        if not answers:
            raise InputRefused(f"{stream} has no distrusted answer{'' if seq is None else f' {seq}'}. See what is: eventlog dead-letters list")
        return answers[0]
    if parked or seq is not None or not letters:
        return _only(log, stream, parked, seq)
    return letters[0]


def _taken_up(log: EventLog, blocked: BlockedStream) -> bool:
    """Whether a worker has written to the stream since: whatever is no arrival is a turn's."""
    return any(event.type not in facts.ARRIVALS for event in log.read(blocked.stream, after=blocked.version))


def opened(log: EventLog, stream: str, seq: int | None = None) -> Opened:
    """One parked input with its payload and its failures; raises ``InputRefused`` when there is none, or several and no ``seq``."""
    letter = _only(log, stream, [each for each in dead_letters(log, stream) if isinstance(each, ParkedInput)], seq)
    codec = runtime_codec()
    ordinal, received, received_at = -1, None, 0
    failures: list[Failed] = []
    for event in log.read(stream):
        if event.type == "input.received":
            ordinal += 1
            if ordinal == letter.seq:
                received, received_at = codec.decode_stored(event), event.recorded_at
        elif event.type == "activation.failed" and (failed := codec.decode_stored(event)).seq == letter.seq:
            failures.append(Failed(failed.attempt, event.recorded_at, failed.failure))
        elif event.type == "input.redriven" and codec.decode_stored(event).seq == letter.seq:
            failures.clear()
    if received is None:
        raise InputRefused(f"{stream}: input {letter.seq} is not in the stream. Look for what is wrong with: eventlog verify {stream}")
    return Opened(letter, received_at, received.type, payload_of(codec, received), tuple(failures))


def payload_of(codec: Codec, received: facts.InputReceived) -> Any:
    """An input's payload as plain values, without its class."""
    return msgspec.json.decode(received.payload) if received.format == "json" else codec.tree(received.payload)


def redrive(log: EventLog, stream: str, seq: int | None = None, *, by: str, reason: str = "") -> Redriven:
    """Put a stream's parked inputs (or the one of ``seq``) back in line; wake the stream when it is blocked.

    Each append states the version it was decided at. Raises ``InputRefused`` when nothing there is parked or blocked.
    """
    letters = dead_letters(log, stream)
    parked = [each for each in letters if isinstance(each, ParkedInput) and seq in (None, each.seq)]
    if not parked and (seq is not None or not letters):
        raise InputRefused(_nothing(log, stream, seq))
    for letter in parked:
        _put_back(log, letter, by, reason)
    blocked = any(isinstance(each, BlockedStream) for each in letters)
    if blocked:
        log.schedule.wake(TURNS, stream, log.clock())
    return Redriven(stream, tuple((each.seq, each.input_id) for each in parked), blocked)


def redrive_approval(log: EventLog, stream: str, approval_id: str, *, by: str, reason: str = "") -> bool:
    """Have a question that was given up published once more; whether that had been done before.

    Raises ``InputRefused`` when no surface has refused it, or nobody could answer it any more.
    """
    found = [each for each in _undelivered(log, stream) if each.fact.approval_id == approval_id]
    if not found:
        raise InputRefused(f"{stream} has no question {approval_id!r:.80} that a surface refused and that waits still. {_there(all_letters(log, stream))}")
    fact = facts.ApprovalRedriven(approval_id, named(by), reason)
    event = runtime_codec().stage(fact, event_id=fact_id("approval-redriven", stream, approval_id, found[0].version))
    try:
        return isinstance(log.append(stream, [event], ANY), Duplicate)
    except EventIdConflict:  # by somebody else at the same moment
        return True


def _put_back(log: EventLog, letter: ParkedInput, by: str, reason: str) -> None:
    codec = runtime_codec()
    fact = facts.InputRedriven(letter.seq, letter.input_id, by, reason)
    # Made of the failure it answers: two people who redrive at once put the input back once.
    event = codec.stage(fact, event_id=fact_id("redriven", letter.stream, letter.version), correlation=input_event_id(letter.input_id))
    for _ in range(_TRIES):
        version = log.head(letter.stream)
        if letter.position not in {each.position for each in dead_letters(log, letter.stream)}:
            raise InputRefused(f"{letter.stream}: input {letter.seq} was put back by somebody else just now; nothing is left to do.")
        try:
            log.append(letter.stream, [event], version, wakes=(Wake(TURNS, log.clock(), sooner=True),))
        except WrongExpectedVersion:
            continue
        return
    raise InputRefused(f"{letter.stream} is being written to so fast that input {letter.seq} could not be put back in {_TRIES} tries; try again.")


def _only(log: EventLog, stream: str, parked: list[ParkedInput], seq: int | None) -> ParkedInput:
    found = [each for each in parked if seq in (None, each.seq)]
    if not found:
        raise InputRefused(_nothing(log, stream, seq))
    if len(found) > 1:
        raise InputRefused(f"{stream} has {len(found)} parked inputs; say which one with --seq: {', '.join(str(each.seq) for each in found)}")
    return found[0]


def _nothing(log: EventLog, stream: str, seq: int | None) -> str:
    return f"{stream} has no parked input{'' if seq is None else f' {seq}'}. {_there(all_letters(log, stream))}"


def _there(letters: list[AnyLetter]) -> str:
    """What a stream has instead, and how each of it is named."""
    parked = ", ".join(str(each.seq) for each in letters if isinstance(each, ParkedInput))
    others = [text for each in letters if (text := _other(each))]
    said = [f"Parked there: {parked}." if parked else "", f"There is: {'; '.join(others[:_MOST_NAMED])}." if others else ""]
    said += ["See what is: eventlog dead-letters list"] if not letters or len(others) > _MOST_NAMED else []
    return " ".join(each for each in said if each)


def _other(letter: AnyLetter) -> str:
    if isinstance(letter, BlockedStream):
        return "the stream itself, blocked: without --seq"
    if isinstance(letter, Standing):
        return f"intent {letter.intent.intent_id}, distrusted: --intent {letter.intent.intent_id}"
    if isinstance(letter, Undelivered):
        return f"question {letter.fact.approval_id}, undelivered; to redrive it: --approval {letter.fact.approval_id}"
    if isinstance(letter, Unreadable):
        return f"version {letter.version}, which cannot be read: {letter.looked_at}"
    return f"answer {letter.version}, distrusted: --seq {letter.version}" if isinstance(letter, DistrustedAnswer) else ""
