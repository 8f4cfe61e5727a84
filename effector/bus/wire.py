"""What a message holds: an event as it stands on its stream, in an envelope. The same for intents, approvals and outcomes.

The value is canonical MessagePack (the codec's) of an ``Envelope``; the message's key is the stream. Payload, schema and signature
are those of the log, so an intent is signed once, wherever it travels, and an outcome's payload can be appended as it is.
The header ``type`` repeats the event type for whoever routes; nothing here reads it. The header ``sha256`` is of the value: it
shows what was damaged on the way (``damage``), and it is no signature.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import attrs

from ...agents import facts
from ...agents.errors import AgentError
from ...agents.intents import ERROR, fact_id
from ...agents.signing import KeyRing, Signature
from ...eventlog.codec import Codec
from ...eventlog.errors import LogError, NewerSchema, Undecodable
from ...eventlog.events import NewEvent, StoredEvent
from ...eventlog.names import check_stream
from ..dedup.checking import check_name
from ..outbox import Pending
from ..phases import Outcome, settled_event
from .errors import BadMessage, NewerMessage
from .protocol import Message, Outgoing, headers_of

VERSION: Final = 1
"""Of the envelope."""
MOST_BYTES: Final = 8 << 20
"""The largest intent that is taken."""
STAGED: Final = "intent.staged"
ASKED: Final = "approval.requested"
SETTLED: Final = "intent.settled"
_LONGEST_ID: Final = 400
"""UTF-8 bytes of an intent's id; dedup stores take a few more, for what is kept beside it."""


@attrs.frozen
class Envelope:
    """An event on its way."""

    version: int
    type: str
    schema: int
    stream: str
    #: The event's bytes as on the log: what ``signature`` is of, with stream and schema.
    payload: bytes
    #: 16 bytes.
    event_id: bytes
    correlation: bytes | None = None
    #: Microseconds since 1970-01-01 UTC.
    recorded_at: int = 0
    #: Of an outcome: the digest of the intent it is the outcome of (``intent_digest``).
    answers: bytes = b""
    key_id: str = ""
    signature: bytes = b""


@attrs.frozen
class Question:
    """An approval on its way to people."""

    stream: str
    asked: facts.ApprovalRequested
    envelope: Envelope
    message: Message


def encode_intent(codec: Codec, event: StoredEvent, signature: Signature | None = None) -> Outgoing:
    """An ``intent.staged`` or ``approval.requested`` of the log as a message, with the signature that stands behind it."""
    signed = signature or Signature("", b"")
    envelope = Envelope(
        VERSION, event.type, event.schema, event.stream, event.data, event.event_id, event.correlation, event.recorded_at, b"", signed.key_id, signed.signature
    )
    return _outgoing(codec, envelope)


def decode_intent(codec: Codec, message: Message, most_bytes: int = MOST_BYTES) -> Pending | Question:
    """The intent or approval in a message. Raises ``BadMessage`` for everything that is neither, whatever it is."""
    if len(message.value) > most_bytes:
        raise BadMessage(f"it has {len(message.value):,} bytes, and an intent may have {most_bytes:,}")
    envelope = read_envelope(codec, message.value)
    try:
        check_stream(envelope.stream)
        if message.key != envelope.stream:
            raise BadMessage(f"its key is {message.key!r:.200}, and it is for the stream {envelope.stream!r:.200}: order would be lost")
        if envelope.type not in (STAGED, ASKED):
            raise BadMessage(f"it holds {envelope.type!r:.100}, neither {STAGED} nor {ASKED}")
        if len(envelope.event_id) != 16:
            raise BadMessage(f"its event id has {len(envelope.event_id)} bytes, not 16")
        fact = codec.decode(envelope.type, envelope.schema, envelope.payload)
        check_id(fact.approval_id if isinstance(fact, facts.ApprovalRequested) else fact.intent_id)
    except NewerSchema as problem:
        raise NewerMessage(str(problem)) from problem
    except (LogError, AgentError, ValueError, TypeError, RecursionError, OverflowError) as problem:
        raise BadMessage(f"{type(problem).__name__}: {problem}") from problem
    if isinstance(fact, facts.ApprovalRequested):
        return Question(envelope.stream, fact, envelope, message)
    return Pending(
        envelope.stream,
        message.offset,
        envelope.event_id,
        envelope.correlation,
        fact,
        staged_at=envelope.recorded_at,
        schema=envelope.schema,
        data=envelope.payload,
        signature=signature_of(envelope),
    )


def read_envelope(codec: Codec, value: bytes) -> Envelope:
    """Raises ``BadMessage``, for bytes of a newer release ``NewerMessage``."""
    try:
        envelope = codec.decode_value(value, Envelope)
    except LogError as problem:
        _refuse_newer(codec, value)
        raise BadMessage(f"it is no message of ours: {problem}") from problem
    if envelope.version > VERSION:
        raise _newer(envelope.version)
    if envelope.version < 1:
        raise BadMessage(f"its version is {envelope.version}; versions begin with 1")
    return envelope


def signature_of(envelope: Envelope) -> Signature | None:
    """Its signature, ``None`` when there is none."""
    return Signature(envelope.key_id, envelope.signature) if envelope.key_id or envelope.signature else None


def question_name(question: Question) -> str:
    """Under which name dedup stores know a question: its id is that of a place on its stream, and every stream has one of the same."""
    return f"question-{fact_id('question', question.stream, question.asked.approval_id).hex()}"


def check_id(intent_id: str) -> None:
    """Raises ``ValueError`` unless dedup stores can hold it, and what is kept beside it."""
    check_name("intent id", intent_id)
    if len(intent_id.encode()) > _LONGEST_ID:
        raise ValueError(f"the intent id {intent_id!r:.80} is longer than {_LONGEST_ID} bytes")


def intent_digest(pending: Pending) -> bytes:
    """SHA-256 of what an outcome is the outcome of."""
    return hashlib.sha256(b"%d:" % pending.schema + pending.data).digest()


def encode_result(codec: Codec, pending: Pending, outcome: Outcome, effector: str, now: int, keys: KeyRing | None = None) -> bytes:
    """The value of a result message: ``intent.settled`` as it may be appended to the intent's stream. Raises ``Unencodable``."""
    return _result(codec, pending, settled_event(codec, pending, outcome, effector), now, keys)


def _result(codec: Codec, pending: Pending, event: NewEvent, now: int, keys: KeyRing | None) -> bytes:
    signed = sign_outcome(keys, pending.stream, event.schema, event.data)
    envelope = Envelope(
        VERSION,
        event.type,
        event.schema,
        pending.stream,
        event.data,
        event.event_id,
        event.correlation,
        now,
        intent_digest(pending),
        signed.key_id,
        signed.signature,
    )
    return codec.encode_value(envelope, Envelope)


def decode_result(codec: Codec, value: bytes) -> tuple[Envelope, facts.IntentSettled]:
    """What a result message says. Raises ``BadMessage``; authenticity is another question (``verify_result``)."""
    envelope = read_envelope(codec, value)
    if envelope.type != SETTLED:
        raise BadMessage(f"it holds {envelope.type!r:.100}, not {SETTLED}")
    try:
        fact = codec.decode(envelope.type, envelope.schema, envelope.payload)
    except NewerSchema as problem:
        raise NewerMessage(str(problem)) from problem
    except Undecodable as problem:
        raise BadMessage(f"{type(problem).__name__}: {problem}") from problem
    assert isinstance(fact, facts.IntentSettled)
    return envelope, fact


def result_message(codec: Codec, stream: str, value: bytes) -> Outgoing:
    """A stored result as it is published: the same bytes for everybody."""
    return Outgoing(stream, value, headers_of(type=SETTLED))


def too_large_result(codec: Codec, value: bytes, most_bytes: int, keys: KeyRing | None = None) -> bytes:
    """What is published in place of a stored result that the sink does not take: the same ERROR, whoever finds it."""
    envelope, fact = decode_result(codec, value)
    text = f"the stored outcome, {fact.status}, has {len(value):,} bytes, and the sink takes {most_bytes:,}; it stays in the dedup store"
    said = facts.IntentSettled(fact.intent_id, ERROR, None, facts.Failure("ResultTooLarge", text), fact.attempts, fact.settled_by)
    _, schema, payload = codec.encode(said)
    signed = sign_outcome(keys, envelope.stream, schema, payload)
    made = attrs.evolve(envelope, schema=schema, payload=payload, key_id=signed.key_id, signature=signed.signature)
    return codec.encode_value(made, Envelope)


def as_it_came(message: Message) -> Outgoing:
    """The same message, for somebody else."""
    return Outgoing(message.key, message.value, message.headers)


def _outgoing(codec: Codec, envelope: Envelope) -> Outgoing:
    value = codec.encode_value(envelope, Envelope)
    return Outgoing(envelope.stream, value, headers_of(type=envelope.type, sha256=hashlib.sha256(value).hexdigest()))


def _refuse_newer(codec: Codec, value: bytes) -> None:
    try:
        tree: Any = codec.tree(value)
    except (LogError, RecursionError):
        return
    version = tree.get("version") if isinstance(tree, dict) else None
    if isinstance(version, int) and version > VERSION:
        raise _newer(version)


def _newer(version: int) -> NewerMessage:
    return NewerMessage(f"it is of version {version}, and this effector knows versions up to {VERSION}; deploy the newer one, then publish it again")


def sign_outcome(keys: KeyRing | None, stream: str, schema: int, payload: bytes) -> Signature:
    """The signature of an outcome, the same as on a log; empty without keys."""
    return keys.sign_outcome(stream, schema, payload) if keys is not None else Signature("", b"")


def verify_result(keys: KeyRing, envelope: Envelope) -> str | None:
    """Why an outcome is not one by these keys, or ``None``."""
    signature = signature_of(envelope)
    if signature is None:
        return "it is not signed"
    return keys.verify_outcome(signature, envelope.stream, envelope.schema, envelope.payload)
