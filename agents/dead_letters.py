"""What was given up for now: parked inputs and blocked streams; finding them and bringing them back, without the app.

A parked input is one whose last ``ActivationFailed`` names no retry and that nobody has redriven since. A blocked stream
holds an event that the worker's code could not read (S-8.3); it is no more once a worker has taken a turn on it.
"""

from __future__ import annotations

from typing import Any, Final

import attrs
import msgspec

from ..eventlog.codec import Codec
from ..eventlog.errors import WrongExpectedVersion
from ..eventlog.log import EventLog, Wake
from . import facts
from .app import runtime_codec
from .appends import TURNS
from .errors import InputRefused
from .intents import fact_id, input_event_id

_SCANNED: Final = ("activation.failed", "input.redriven", "stream.blocked")
_TRIES: Final = 10


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


DeadLetter = ParkedInput | BlockedStream


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


def dead_letters(log: EventLog, stream: str | None = None) -> list[DeadLetter]:
    """All of them in the order in which they were given up; those of one stream when it is named."""
    codec = runtime_codec()
    parked: dict[tuple[str, int], ParkedInput] = {}
    blocked: dict[str, BlockedStream] = {}
    events = log.read_all(types=_SCANNED) if stream is None else (event for event in log.read(stream) if event.type in _SCANNED)
    for event in events:
        fact = codec.decode_stored(event)
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


def _taken_up(log: EventLog, blocked: BlockedStream) -> bool:
    """Whether a worker has written to the stream since: whatever is no arrival is a turn's."""
    return any(event.type not in facts.ARRIVALS for event in log.read(blocked.stream, after=blocked.version))


def opened(log: EventLog, stream: str, seq: int | None = None) -> Opened:
    """One parked input with its payload and its failures; raises ``InputRefused`` when there is none, or several and no ``seq``."""
    letter = _only(stream, [each for each in dead_letters(log, stream) if isinstance(each, ParkedInput)], seq)
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
        raise InputRefused(_nothing(stream, seq, letters))
    for letter in parked:
        _put_back(log, letter, by, reason)
    blocked = any(isinstance(each, BlockedStream) for each in letters)
    if blocked:
        log.schedule.wake(TURNS, stream, log.clock())
    return Redriven(stream, tuple((each.seq, each.input_id) for each in parked), blocked)


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


def _only(stream: str, parked: list[ParkedInput], seq: int | None) -> ParkedInput:
    found = [each for each in parked if seq in (None, each.seq)]
    if not found:
        raise InputRefused(_nothing(stream, seq, parked))
    if len(found) > 1:
        raise InputRefused(f"{stream} has {len(found)} parked inputs; say which one with --seq: {', '.join(str(each.seq) for each in found)}")
    return found[0]


def _nothing(stream: str, seq: int | None, letters: list[Any]) -> str:
    parked = [str(each.seq) for each in letters if isinstance(each, ParkedInput)]
    which = "" if seq is None else f" {seq}"
    known = f" Parked there: {', '.join(parked)}." if parked else " See what is: eventlog dead-letters list"
    return f"{stream} has no parked input{which}.{known}"
