"""What others than a key's worker may write to its stream: signals, cancellations, answers to approvals. Blocking, without a shell.

All of them are arrivals (``facts.ARRIVALS``): they go behind whatever is there, under an id made of what they say, and wake the
stream by the same append. Sending one again changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs

from ..eventlog.clock import Micros, to_datetime
from ..eventlog.codec import Codec
from ..eventlog.errors import EventIdConflict, Undecodable, WrongExpectedVersion
from ..eventlog.log import Duplicate, EventLog, Wake
from ..eventlog.names import split_stream, stream_name
from ..eventlog.versions import ANY
from . import facts
from .app import App
from .appends import TURNS
from .errors import AnotherQuestion, InputRefused, RequestRefused
from .intents import fact_id
from .knowing import known_run
from .lifecycle import ActivationState
from .run import Activation, Approval, RunState
from .sending import check_input_id
from .signing import KeyRing
from .unreadable import Tell, facts_of, once, unreadable
from .vouching import signed_decision

_TRIES: Final = 20


@attrs.frozen
class SignalSent:
    """A signal is durable."""

    stream: str
    signal_id: str
    name: str
    version: int
    #: It had been sent before: nothing was written.
    duplicate: bool


@attrs.frozen
class CancelAsked:
    """A cancellation is durable; the activation ends when it has cleaned up."""

    stream: str
    seq: int
    input_id: str
    #: It had been asked for before: nothing was written.
    duplicate: bool


@attrs.frozen
class PendingApproval:
    """A question that waits for a person."""

    stream: str
    approval_id: str
    seq: int
    question: str
    channel: str
    details: dict[str, Any]
    #: Microseconds since 1970-01-01 UTC.
    expires_at: Micros
    #: What an answer is bound to.
    digest: bytes
    #: When it was asked.
    asked_at: Micros = 0

    @property
    def agent(self) -> str:
        """The agent that asks."""
        return split_stream(self.stream)[0]

    @property
    def key(self) -> str:
        """The key it asks for."""
        return split_stream(self.stream)[1]


@attrs.frozen
class Answered:
    """A person's answer is durable and final."""

    stream: str
    approval_id: str
    approved: bool
    by: str
    reason: str
    #: The same answer had been given before: nothing was written.
    duplicate: bool


def signal(log: EventLog, codec: Codec, agent: str, key: str, name: str, payload: Any, signal_id: str) -> SignalSent:
    """Tell a key something. It is kept until a wait takes it, whether that was begun before or will be later.

    Raises ``InputRefused`` for a name or id that cannot be, and for an id that was used on this key with other contents.
    """
    if not isinstance(name, str) or not name.strip():
        raise InputRefused(f"Invalid signal name {name!r:.80}: it must be a string that is not blank, for example 'customer.reply'")
    stream, now = stream_name(agent, key), log.clock()
    fact = facts.SignalReceived(check_input_id(signal_id), name, payload)
    event = codec.stage(fact, event_id=fact_id("signal", signal_id))
    try:
        outcome = log.append(stream, [event], ANY, wakes=(Wake(TURNS, now, sooner=True),))
    except EventIdConflict as problem:
        raise InputRefused(f"signal id {signal_id!r} was used on {stream} before with other contents; send a different signal under a new id") from problem
    return SignalSent(stream, signal_id, name, outcome.first_versions[0], isinstance(outcome, Duplicate))


def cancel(log: EventLog, codec: Codec, agent: str, key: str, *, input_id: str | None, seq: int | None, by: str, reason: str, app: App | None) -> CancelAsked:
    """Ask that an activation end: the one of ``input_id`` or ``seq``, or else the current one.

    Raises ``RequestRefused`` when it is over, parked, or was never there.
    """
    stream = stream_name(agent, key)
    run, _ = known_run(log, stream, codec, app)
    activation = _to_cancel(stream, run, input_id, seq)
    if activation.state is ActivationState.PARKED:
        raise RequestRefused(f"{stream}, input {activation.seq}, is parked: there is nothing to cancel unless it is redriven. Nothing was written.")
    if activation.cancel is not None:
        return CancelAsked(stream, activation.seq, activation.input.input_id, True)
    fact = facts.CancelRequested(activation.seq, _named(by), reason)
    event = codec.stage(fact, event_id=fact_id("cancel", stream, activation.seq), correlation=activation.input_event_id)
    try:
        outcome = log.append(stream, [event], ANY, wakes=(Wake(TURNS, log.clock(), sooner=True),))
    except EventIdConflict:  # somebody else asked at the same moment
        return CancelAsked(stream, activation.seq, activation.input.input_id, True)
    return CancelAsked(stream, activation.seq, activation.input.input_id, isinstance(outcome, Duplicate))


def _to_cancel(stream: str, run: RunState, input_id: str | None, seq: int | None) -> Activation:
    if input_id is None and seq is None:
        if run.current is None:
            raise RequestRefused(f"{stream} has no open activation: there is nothing to cancel. Nothing was written.")
        return run.current
    found = [each for each in run.open.values() if seq in (None, each.seq) and input_id in (None, each.input.input_id)]
    if not found:
        which = f"input {input_id!r}" if input_id is not None else f"activation {seq}"
        opened = ", ".join(f"{each.seq} ({each.input.input_id})" for each in run.open.values()) or "none"
        raise RequestRefused(f"{stream} has no open {which}: it is over, or was never sent. Open there: {opened}. Nothing was written.")
    return found[0]


def pending(
    log: EventLog, codec: Codec, *, stream: str | None = None, channel: str | None = None, app: App | None = None, tell: Tell | None = None
) -> Iterator[PendingApproval]:
    """Approvals that wait for an answer now, in the order in which they were asked for; memory grows with their number alone.

    ``tell`` hears of each event that cannot be read; the questions of a stream whose run is not known for one are left out then, since
    nobody's answer could be taken. Without ``tell`` it is raised as ``Undecodable``.
    """
    waiting: dict[tuple[str, str], Micros] = {}
    types = ("approval.requested", "approval.decided")
    told = once(tell) if tell is not None else None
    for stored, fact in facts_of(codec, log.read_all(types=types) if stream is None else log.read(stream), types, told):
        if isinstance(fact, facts.ApprovalDecided):
            waiting.pop((stored.stream, fact.approval_id), None)
        elif fact.expires_at > log.clock() and channel in (None, fact.channel):
            waiting[stored.stream, fact.approval_id] = stored.recorded_at
    runs: dict[str, RunState | None] = {}
    for (name, approval_id), asked_at in waiting.items():
        if name not in runs:  # one at a time: a stream's questions stand together
            runs = {name: _run(log, name, codec, _knows(app, name), told)}
        run = runs[name]
        found = _approval(run, approval_id) if run is not None else None
        if found is not None and found[1].decided is None and approval_id in found[0].waits:
            yield _pending(name, found[1].requested, asked_at)


def _run(log: EventLog, stream: str, codec: Codec, app: App | None, tell: Tell | None) -> RunState | None:
    """What the stream adds up to; ``None`` when ``tell`` was told that it cannot be known."""
    try:
        return known_run(log, stream, codec, app)[0]
    except Undecodable as problem:
        if tell is None or problem.version < 0:
            raise
        for event in log.read(stream, after=problem.version - 1, upto=problem.version):
            tell(unreadable(event, problem))
        return None


@attrs.frozen
class Closed:
    """An approval that waits no more, and what became of it."""

    asked: PendingApproval
    #: The answer, and when it was given; ``None`` and 0: there was none in time, which reads as denied.
    decided: facts.ApprovalDecided | None
    decided_at: Micros


def closed(log: EventLog, codec: Codec, stream: str, approval_id: str) -> Closed | None:
    """What is on record of an approval, whoever asks and however long ago; ``None`` for one that was never asked."""
    return on_record(log, codec, stream).get(approval_id)


def on_record(log: EventLog, codec: Codec, stream: str) -> dict[str, Closed]:
    """The same of every approval that was ever asked on a stream, in that order; those that wait still are among them."""
    found: dict[str, Closed] = {}
    for stored in log.read(stream):
        if stored.type not in ("approval.requested", "approval.decided"):
            continue
        fact = codec.decode_stored(stored)
        if isinstance(fact, facts.ApprovalRequested):
            found[fact.approval_id] = Closed(_pending(stream, fact, stored.recorded_at), None, 0)
            continue
        asked = found.get(fact.approval_id)
        if asked is not None and fact.digest == asked.asked.digest and asked.decided is None:
            found[fact.approval_id] = Closed(asked.asked, fact, stored.recorded_at)
    return found


def _knows(app: App | None, stream: str) -> App | None:
    return app if app is not None and split_stream(stream)[0] in app.agents else None


def _pending(stream: str, asked: facts.ApprovalRequested, asked_at: Micros) -> PendingApproval:
    return PendingApproval(stream, asked.approval_id, asked.seq, asked.question, asked.channel, asked.details, asked.expires_at, asked.digest, asked_at)


def _approval(run: RunState, approval_id: str) -> tuple[Activation, Approval] | None:
    return next(((each, each.approvals[approval_id]) for each in run.open.values() if approval_id in each.approvals), None)


def answer(
    log: EventLog,
    codec: Codec,
    stream: str,
    approval_id: str,
    *,
    approved: bool,
    by: str,
    reason: str,
    digest: bytes = b"",
    app: App | None = None,
    keys: KeyRing | None = None,
) -> Answered:
    """A person's answer, bound to the digest of what was asked (S-7.5). The first one is final.

    ``digest``, whole or its beginning, is what the person saw; ``AnotherQuestion`` is raised when something else was asked.
    ``keys`` sign the answer on the log, for workers that insist on that.
    Raises ``RequestRefused`` for an approval that is unknown, expired, decided otherwise, or that nobody waits for any more.
    It states the version it was decided at, so that an answer that returns is one that the activation gets.
    """
    for _ in range(_TRIES):
        run, version = known_run(log, stream, codec, app)
        found = _approval(run, approval_id)
        if found is None:
            return _answered_before(log, codec, stream, approval_id, approved=approved, by=_named(by), reason=reason, digest=digest)
        activation, asked = found
        now = log.clock()
        if asked.decided is None and (asked.requested.expires_at <= now or approval_id not in activation.timers):
            raise RequestRefused(f"{_expired(stream, asked.requested)}. Nothing was written.")
        _check_digest(stream, asked.requested, digest)
        fact = facts.ApprovalDecided(approval_id, asked.requested.digest, approved, _named(by), reason)
        if asked.decided is not None:
            return _repeated(stream, asked.decided, fact)
        if approval_id not in activation.waits:
            raise RequestRefused(f"{stream}, {approval_id}: nobody waits for an answer any more. Nothing was written.")
        event = codec.stage(fact, event_id=fact_id("approval", approval_id), correlation=activation.input_event_id)
        beside = [signed_decision(codec, keys, stream, approval_id, event)] if keys is not None else []
        try:
            outcome = log.append(stream, [event, *beside], version, wakes=(Wake(TURNS, now, sooner=True),))
        except (WrongExpectedVersion, EventIdConflict):  # the stream has moved on: look again
            continue
        return Answered(stream, approval_id, approved, by, reason, isinstance(outcome, Duplicate))
    raise RequestRefused(f"{stream} is being written to so fast that {approval_id} could not be answered in {_TRIES} tries; try again. Nothing was written.")


def _answered_before(log: EventLog, codec: Codec, stream: str, approval_id: str, *, approved: bool, by: str, reason: str, digest: bytes) -> Answered:
    """The same for an approval that no open activation has: what is on record says whether it can be the same answer again."""
    over = closed(log, codec, stream, approval_id)
    if over is None:
        raise RequestRefused(f"{stream} has no open approval {approval_id!r:.80}: it was never asked. Nothing was written. See: eventlog approvals list")
    if over.decided is not None:
        _check_digest(stream, over.asked, digest)
        return _repeated(stream, over.decided, facts.ApprovalDecided(approval_id, over.asked.digest, approved, by, reason))
    if over.asked.expires_at <= log.clock():
        raise RequestRefused(f"{_expired(stream, over.asked)}; its activation is over. Nothing was written.")
    raise RequestRefused(f"{stream}, {approval_id}: nobody waits for an answer any more, for its activation is over. Nothing was written.")


def _check_digest(stream: str, asked: facts.ApprovalRequested | PendingApproval, digest: bytes) -> None:
    if not asked.digest.startswith(digest):
        raise AnotherQuestion(
            f"{stream}, {asked.approval_id}: the digest of what is asked is {asked.digest.hex()}, and the answer is to {digest.hex()}. "
            f"Nothing was written. See what is asked: eventlog approvals show {stream} {asked.approval_id}"
        )


def _repeated(stream: str, decided: facts.ApprovalDecided, fact: facts.ApprovalDecided) -> Answered:
    if decided == fact:
        return Answered(stream, fact.approval_id, fact.approved, fact.by, fact.reason, True)
    told = "approved" if decided.approved else "denied"
    raise RequestRefused(f"{stream}, {fact.approval_id}, was {told} by {decided.by} already; the first answer is final. Nothing was written.")


def _expired(stream: str, asked: facts.ApprovalRequested | PendingApproval) -> str:
    return f"{stream}, {asked.approval_id}, expired at {to_datetime(asked.expires_at):%Y-%m-%d %H:%M:%S} UTC and reads as denied"


def _named(by: str) -> str:
    if not isinstance(by, str) or not by.strip():
        raise InputRefused(f"by={by!r}: say who it is, for the record")
    return by
