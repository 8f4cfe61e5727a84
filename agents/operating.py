"""What a person does to intents: finds them, tries one again now, takes one back, says how one ended. Blocking, without the app.

An intent that is open is changed under the lease that an effector would need for it, so that the two never act at once, and
with the event ids that decide every other race (S-6.2). One that is settled stays settled: what an agent was told is not
changed behind its back. What a person finds out about an UNKNOWN one is recorded beside it, as a signal to its key that the
agent may wait for (``resolved_signal``).
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import attrs

from ..eventlog.clock import SECOND
from ..eventlog.codec import Codec
from ..eventlog.errors import EventIdConflict, LeaseLost
from ..eventlog.events import StoredEvent
from ..eventlog.log import AppendRequest, Claim, Duplicate, EventLog, Fence, StreamAppend, Wake
from ..eventlog.owners import this_process
from ..eventlog.versions import ANY
from . import facts
from .app import runtime_codec
from .errors import InputRefused, RequestRefused
from .intents import CANCELLED, ERROR, OK, UNKNOWN, fact_id, readmission_event_id, settlement_event_id
from .queues import EFFECTS, TURNS
from .signing import KeyRing, Signature
from .standing import ATTEMPTED, DISTRUSTED, OPEN, POSTPONED, STAGED, STANDINGS, Resolution, Standing, resolved_signal, standing, standings
from .unreadable import facts_of, unheard
from .vouching import signed_outcome, vouched

__all__ = [
    "ATTEMPTED",
    "DISTRUSTED",
    "OPEN",
    "POSTPONED",
    "STAGED",
    "STANDINGS",
    "Changed",
    "Resolution",
    "Standing",
    "cancel",
    "named",
    "readmit",
    "resolved_signal",
    "retry",
    "settle",
    "standing",
    "standings",
    "vouch",
]

_LEASE: Final = 30 * SECOND


@attrs.frozen
class Changed:
    """What a person did is durable."""

    intent: Standing
    #: It had been done before: nothing was written.
    duplicate: bool = False


def retry(log: EventLog, intent_id: str, *, by: str, reason: str = "", stream: str | None = None, patience: float = 5.0) -> Changed:
    """Have the next attempt of a postponed intent made now; its id stays, its attempts go on being counted.

    Raises ``RequestRefused`` for one that is not postponed: an intent that nobody attempted is in line already, one under
    way is an effector's, and a settled one is over. ``patience``: seconds to wait for an effector to let go of the key.
    """
    named(by)
    with _held(log, standing(log, intent_id, stream), patience) as (found, claim):
        postponed = found.postponed
        if found.status != POSTPONED or postponed is None:
            raise RequestRefused(f"{found.stream}: {_why_no_retry(found)} Nothing was written.")
        now = log.clock()
        if postponed.retry_at <= now:
            return Changed(found, True)
        told = f"tried again at once for {by}" + (f": {reason}" if reason else "")
        failure = facts.Failure(postponed.failure.type, postponed.failure.message, told)
        fact = facts.IntentPostponed(intent_id, postponed.attempt, failure, now, _signed(by))
        return _append(log, claim, found, fact, fact_id("hurried", intent_id, fact.attempt))


def _why_no_retry(found: Standing) -> str:
    intent_id, status = found.intent.intent_id, found.status
    if status == STAGED:
        return f"intent {intent_id} was not attempted yet; it is in line, and there is nothing to try again."
    if status == ATTEMPTED:
        return f"attempt {found.attempts} of intent {intent_id} is under way, or was interrupted and is taken up by the next effector."
    if status == DISTRUSTED:
        way = f"eventlog dead-letters redrive {found.stream} --intent {intent_id}"
        return f"intent {intent_id} is not authentic; nobody may carry it out unless you vouch for it: {way}"
    if status == UNKNOWN:
        return (
            f"intent {intent_id} was reported UNKNOWN, and its agent may have acted on that. Find out whether it happened and say so: "
            f"eventlog intents settle {intent_id} OK JSON, or ERROR. The agent hears of it, and acts again if it still wants to."
        )
    return f"intent {intent_id} is settled {status}; the first outcome is final."


def cancel(
    log: EventLog, intent_id: str, *, by: str, reason: str = "", stream: str | None = None, patience: float = 5.0, keys: KeyRing | None = None
) -> Changed:
    """Take back an intent that nobody attempted: its agent is told CANCELLED. Raises ``RequestRefused`` for any other.

    ``keys`` sign the outcome, for workers that insist on that.
    """
    named(by)
    with _held(log, standing(log, intent_id, stream), patience) as (found, claim):
        done = facts.IntentSettled(intent_id, CANCELLED, settled_by=_signed(by), reason=reason)
        if found.settled == done:
            return Changed(found, True)
        if found.settled is not None:
            raise RequestRefused(f"{found.stream}: intent {intent_id} is settled {found.status}; the first outcome is final. Nothing was written.")
        if found.attempts:
            raise RequestRefused(
                f"{found.stream}: attempt {found.attempts} of intent {intent_id} was begun, so it cannot be taken back. Nothing was written. "
                f"If you know how it ended: eventlog intents settle {intent_id} OK JSON, or ERROR"
            )
        return _append(log, claim, found, done, settlement_event_id(intent_id, 0), keys)


def readmit(log: EventLog, intent_id: str, keys: KeyRing, *, by: str, reason: str, stream: str | None = None, patience: float = 5.0) -> Changed:
    """Vouch for a distrusted intent, so that effectors carry it out after all: the readmission is signed with ``keys``.

    Only whoever has keys that the effectors trust may do that, as with staging. What is vouched for are the bytes on the log.
    Raises ``RequestRefused`` for an intent that is not distrusted, is past its deadline, or whose bytes are not the ones that
    were distrusted.
    """
    named(by)
    with _held(log, standing(log, intent_id, stream), patience) as (found, claim):
        distrusted = found.distrusted
        if found.status != DISTRUSTED or distrusted is None:
            raise RequestRefused(f"{found.stream}: intent {intent_id} is {found.status}; only one that is {DISTRUSTED} is readmitted. Nothing was written.")
        if found.intent.expires_at <= log.clock():
            raise RequestRefused(
                f"{found.stream}: intent {intent_id} is past its deadline, so nobody would carry it out. Nothing was written. "
                f"To tell its agent: eventlog intents cancel {intent_id}"
            )
        if (distrusted.schema, distrusted.payload) != (found.schema, found.payload):
            raise RequestRefused(f"{found.stream}: the bytes that were distrusted are not those of intent {intent_id} as it was staged. Nothing was written.")
        number = found.readmissions + 1
        said = (number, by, reason, found.attempts, found.schema, found.payload)
        made = keys.sign_readmission(found.stream, *said)
        fact = facts.IntentReadmitted(intent_id, *said, made.key_id, made.signature)
        return _append(log, claim, found, fact, readmission_event_id(found.stream, intent_id, number))


def vouch(log: EventLog, stream: str, keys: KeyRing, *, intent_id: str = "", approval_id: str = "", by: str) -> bool:
    """Sign an outcome, or an answer, that is on the log unsigned, or signed by a key that is gone; its stream is looked at again.

    Whether that had been done before: a signature by the first of ``keys`` stands behind it, whoever made it, and nothing is written.
    Raises ``RequestRefused`` for an intent without an outcome, an approval without an answer.
    """
    named(by)
    codec = runtime_codec()
    kind, field, name = ("intent.settled", "intent_id", intent_id) if intent_id else ("approval.decided", "approval_id", approval_id)
    told = facts_of(codec, log.read(stream), (kind,), unheard)
    found = next((event for event, fact in told if getattr(fact, field) == name), None)
    if found is None:
        raise RequestRefused(f"{stream}: there is no outcome of {name} to vouch for. Nothing was written.")
    before = _is_signed(codec, log, keys, found, name)
    if not before:
        outcome = log.append(stream, [vouched(codec, keys, found, name)], ANY, wakes=(Wake(TURNS, log.clock(), sooner=True),))
        before = isinstance(outcome, Duplicate)
    if before:
        log.schedule.wake(TURNS, stream, log.clock())  # what was not written wakes nobody
    return before


def _is_signed(codec: Codec, log: EventLog, keys: KeyRing, stored: StoredEvent, name: str) -> bool:
    """Whether a signature of the outcome or answer ``stored`` by the first of ``keys`` stands behind it already."""
    of_intent = stored.type == "intent.settled"
    kind, verify = ("outcome.signed", keys.verify_outcome) if of_intent else ("approval.signed", keys.verify_decision)
    for _, fact in facts_of(codec, log.read(stored.stream, after=stored.version), (kind,), unheard):
        signs = fact.intent_id if of_intent else fact.approval_id
        made = Signature(fact.key_id, fact.signature)
        if signs == name and made.key_id == keys.signing_id and verify(made, stored.stream, stored.schema, stored.data) is None:
            return True
    return False


def settle(
    log: EventLog,
    intent_id: str,
    status: str,
    value: Any = None,
    *,
    by: str,
    reason: str = "",
    stream: str | None = None,
    patience: float = 5.0,
    keys: KeyRing | None = None,
) -> Changed:
    """Say how an intent ended: OK with the value its tool would have returned, or ERROR.

    For an open one this is its outcome, and the agent is told. For one that was settled UNKNOWN it is recorded beside that
    outcome, which stays, and sent to the key as the signal ``resolved_signal``. The first word is final in both cases;
    raises ``RequestRefused`` for a second, different one, and for an intent whose outcome is known.
    """
    named(by)
    if status not in (OK, ERROR):
        raise InputRefused(f"Invalid status {status!r}: a person settles as OK or ERROR")
    if status == ERROR and value is not None:
        raise InputRefused("An ERROR has no value; say why with a reason")
    found = standing(log, intent_id, stream)
    if found.settled is not None and found.settled.status == UNKNOWN:
        return _resolve(log, found, status, value, by, reason)
    with _held(log, found, patience) as (found, claim):
        failure = facts.Failure("SettledByPerson", reason or f"{by} says that it failed") if status == ERROR else None
        done = facts.IntentSettled(intent_id, status, value, failure, found.attempts, _signed(by), reason)
        if found.settled == done:
            return Changed(found, True)
        if found.settled is not None:
            raise RequestRefused(
                f"{found.stream}: intent {intent_id} was settled {found.status} by {found.settled.settled_by}; the first outcome is final. Nothing was written."
            )
        return _append(log, claim, found, done, settlement_event_id(intent_id, found.attempts), keys)


def _resolve(log: EventLog, found: Standing, status: str, value: Any, by: str, reason: str) -> Changed:
    intent_id = found.intent.intent_id
    name = resolved_signal(intent_id)
    payload = {"intent_id": intent_id, "status": status, "value": value, "by": by, "reason": reason}
    event = runtime_codec().stage(
        facts.SignalReceived(name, name, payload), event_id=fact_id("signal", name), correlation=found.correlation, causation=found.event_id
    )
    try:
        outcome = log.append(found.stream, [event], ANY, wakes=(Wake(TURNS, log.clock(), sooner=True),))
    except EventIdConflict as problem:
        known = standing(log, intent_id, found.stream).resolution
        told = f"{known.status} by {known.by}" if known is not None else "something else"
        raise RequestRefused(f"{found.stream}: intent {intent_id} was resolved as {told} already; the first word is final. Nothing was written.") from problem
    return Changed(standing(log, intent_id, found.stream), isinstance(outcome, Duplicate))


def _append(log: EventLog, claim: Claim, found: Standing, fact: Any, event_id: bytes, keys: KeyRing | None = None) -> Changed:
    codec = runtime_codec()
    event = codec.stage(fact, event_id=event_id, correlation=found.correlation, causation=found.event_id)
    beside = (signed_outcome(codec, keys, found.stream, found.intent.intent_id, event),) if keys is not None else ()
    wakes = (Wake(TURNS, log.clock(), sooner=True),) if isinstance(fact, facts.IntentSettled) else ()
    request = AppendRequest((StreamAppend(found.stream, (event, *beside), ANY, wakes),), (Fence(claim.queue, claim.name, claim.token),))
    (outcome,) = log.append_batch([request])
    intent_id = found.intent.intent_id
    if isinstance(outcome, EventIdConflict | LeaseLost):
        now = standing(log, intent_id, found.stream)
        raise RequestRefused(
            f"{found.stream}: somebody else was faster; intent {intent_id} is {now.status} now. Nothing was written. See: eventlog intents show {intent_id}"
        ) from outcome
    if isinstance(outcome, BaseException):
        raise outcome
    return Changed(standing(log, intent_id, found.stream), isinstance(outcome, Duplicate))


@contextmanager
def _held(log: EventLog, found: Standing, patience: float) -> Iterator[tuple[Standing, Claim]]:
    """The intent as it is while no effector can touch its key. Raises ``RequestRefused`` when one does not let go."""
    owner, stream = this_process(f"person-{uuid.uuid4().hex[:12]}"), found.stream
    if found.settled is not None:  # for good: nothing about it will change, whoever holds the key
        yield found, Claim(EFFECTS, stream, 0, None)
        return
    deadline = time.monotonic() + patience
    while True:
        now = log.clock()
        tokens = log.schedule.acquire(EFFECTS, [stream], owner, now=now, until=now + _LEASE)
        if stream in tokens:
            break
        left = deadline - time.monotonic()
        if left <= 0:
            raise RequestRefused(
                f"{stream}: an effector is at work on this key, or died there and its lease has not run out. Nothing was written. "
                "Try again, or wait longer for it: --wait SECONDS"
            )
        log.wait(log.last_position(), min(left, 0.2))
    claim = Claim(EFFECTS, stream, tokens[stream], None)
    try:
        yield standing(log, found.intent.intent_id, stream), claim
    finally:
        log.schedule.release([claim])


def named(by: str) -> str:
    """``by``; raises ``InputRefused`` when it names nobody."""
    if not isinstance(by, str) or not by.strip():
        raise InputRefused(f"by={by!r}: say who it is, for the record")
    return by


def _signed(by: str) -> str:
    return f"person:{by}"
