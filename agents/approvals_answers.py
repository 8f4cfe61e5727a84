"""Answers of people that come back through a surface: signed there, verified here, recorded like any other answer.

A signed answer names the stream, the approval and the digest of what was asked, so it is of no use for another question, on
another stream or on a fork (S-7.5). One that is not authentic drives nothing: it is kept, with its bytes, as a dead letter.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any, Final, Protocol

import attrs
import msgspec

from ..eventlog.clock import SECOND, Micros, from_timedelta
from ..eventlog.errors import EventIdConflict, InvalidName
from ..eventlog.log import EventLog
from ..eventlog.names import check_stream
from ..eventlog.printing import one_line
from ..eventlog.versions import ANY
from . import facts
from .app import App, runtime_codec
from .asking import Answered, answer
from .errors import AnotherQuestion, InputRefused, NotAuthentic
from .intents import fact_id
from .operating import named
from .signing import KeyRing, Signature
from .unreadable import Tell, facts_of

CATEGORY: Final = "distrusted.answers"
STREAM: Final = f"{CATEGORY}-received"
"""Where answers that are not authentic are kept: no agent's stream, so that nobody can write to one by sending rubbish."""
FRESH: Final = timedelta(minutes=15)
"""How old an answer may be when it comes."""
MOST_BYTES: Final = 65_536
"""Of one answer; of a longer one the beginning is kept."""
MOST_KEPT: Final = 10_000
"""Answers that are kept; what comes beyond them is refused and not kept, so that rubbish cannot fill the log."""
_AHEAD: Final = 60 * SECOND


class Asked(Protocol):
    """What an answer is to: a ``PublishedApproval``, or a ``PendingApproval``."""

    @property
    def stream(self) -> str: ...
    @property
    def approval_id(self) -> str: ...
    @property
    def digest(self) -> bytes: ...


class _Signed(msgspec.Struct, forbid_unknown_fields=True):
    stream: str
    approval: str
    digest: str
    approved: bool
    by: str
    reason: str
    #: Microseconds since 1970-01-01 UTC.
    decided_at: int
    key: str
    signature: str


@attrs.frozen
class SignedAnswer:
    """What a signed answer says, once it is known to be authentic."""

    stream: str
    approval_id: str
    digest: bytes
    approved: bool
    by: str
    reason: str
    decided_at: Micros
    key_id: str


def sign_answer(keys: KeyRing, asked: Asked, *, approved: bool, by: str, reason: str = "", now: Micros) -> bytes:
    """A person's answer as a document for ``answer_signed``, signed by the first key; ``now`` is when it was given.

    Raises ``InputRefused`` when ``by`` names nobody.
    """
    parts = (asked.stream, asked.approval_id, asked.digest, approved, named(by), reason, now)
    made = keys.sign_answer(*parts)
    said = {"stream": asked.stream, "approval": asked.approval_id, "digest": asked.digest.hex(), "approved": approved, "by": by, "reason": reason}
    return msgspec.json.encode(said | {"decided_at": now, "key": made.key_id, "signature": made.signature.hex()})


def verified(raw: bytes, keys: KeyRing, *, now: Micros, fresh: timedelta = FRESH) -> SignedAnswer:
    """What ``raw`` says, if it is an answer by a key of the ring that is no older than ``fresh``; raises ``NotAuthentic``. Pure."""
    said = _read(raw)
    digest = _hex(said.digest, "digest")
    fields = (said.stream, said.approval, digest, said.approved, said.by, said.reason, said.decided_at)
    why = keys.verify_answer(Signature(said.key, _hex(said.signature, "signature")), *fields)
    if why is not None:
        raise NotAuthentic(why)
    age = now - said.decided_at
    if age > from_timedelta(fresh):
        raise NotAuthentic(f"it was given {age / SECOND:.0f} s ago; at most {fresh.total_seconds():.0f} s are taken")
    if -age > _AHEAD:
        raise NotAuthentic(f"it is dated {-age / SECOND:.0f} s ahead of this clock")
    try:
        check_stream(said.stream)
        named(said.by)
    except (InvalidName, InputRefused) as problem:
        raise NotAuthentic(str(problem)) from problem
    return SignedAnswer(*fields, said.key)


def _read(raw: bytes) -> _Signed:
    if len(raw) > MOST_BYTES:
        raise NotAuthentic(f"it has {len(raw):,} bytes, and an answer at most {MOST_BYTES:,}")
    try:
        return msgspec.json.decode(raw, type=_Signed)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as problem:
        raise NotAuthentic(f"it is no signed answer: {one_line(str(problem), 300)}") from problem


def check_form(raw: bytes) -> None:
    """Raise ``InputRefused`` for what is no signed answer by its form: for a door where a wrong file may be given.

    Nothing of ``raw`` is repeated, since it may be a secret. An answer that is forged has its form.
    """
    why = _no_answer(raw)
    if why:
        raise InputRefused(f"it is {why}; a signed answer is a JSON object with {', '.join(_Signed.__struct_fields__)}")


def _no_answer(raw: bytes) -> str:
    if len(raw) > MOST_BYTES:
        return f"longer than {MOST_BYTES:,} bytes"
    try:
        found: Any = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return "no JSON, or not all of it" if raw.strip() else "empty"
    if not isinstance(found, dict):
        return "JSON, but no object"
    fields = _Signed.__struct_fields__
    missing = [name for name in fields if name not in found]
    if missing:
        return f"an object without {', '.join(missing)}"
    if len(found) > len(fields):
        return "an object with other fields as well"
    try:
        _read(raw)
    except NotAuthentic:
        return "an object whose fields are not of the types that they have in an answer"
    return ""


def _hex(text: str, what: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError as problem:
        raise NotAuthentic(f"its {what} is not hexadecimal") from problem


def answer_signed(log: EventLog, raw: bytes, keys: KeyRing, *, fresh: timedelta = FRESH, app: App | None = None) -> Answered:
    """Record a signed answer, as ``asking.answer`` does for one that is given here. Sending it again changes nothing.

    What is recorded is signed with the first of ``keys``, which vouches for having looked.
    Raises ``NotAuthentic`` for one that is forged, altered, too old, or about something else than what was asked: it drives
    nothing and is kept as a dead letter. Raises ``RequestRefused`` for an authentic one that comes too late (S-7.3), or second.
    """
    try:
        said = verified(raw, keys, now=log.clock(), fresh=fresh)
        return _record(log, said, keys, app)
    except NotAuthentic as problem:
        kept = _keep(log, raw, str(problem))
        where = "It is kept: eventlog dead-letters list" if kept else f"It is not kept, for {MOST_KEPT:,} such answers are there already"
        raise NotAuthentic(f"This answer is not authentic: {problem}. It changes nothing. {where}") from problem


def _record(log: EventLog, said: SignedAnswer, keys: KeyRing, app: App | None) -> Answered:
    try:
        return answer(
            log,
            app.codec if app is not None else runtime_codec(),
            said.stream,
            said.approval_id,
            approved=said.approved,
            by=said.by,
            reason=said.reason,
            digest=said.digest,
            app=app,
            keys=keys,
        )
    except AnotherQuestion as problem:
        raise NotAuthentic(str(problem)) from problem


def _keep(log: EventLog, raw: bytes, why: str) -> bool:
    """Whether the answer is on the log now, as a dead letter."""
    whole = hashlib.sha256(raw).digest()
    stream, approval_id = _claimed(raw)
    fact = facts.AnswerDistrusted(why[:2_000], raw[:MOST_BYTES], len(raw), whole, stream, approval_id)
    if log.head(STREAM) + 1 >= MOST_KEPT:
        return False
    try:
        log.append(STREAM, [runtime_codec().stage(fact, event_id=fact_id("distrusted-answer", whole.hex()))], ANY)
    except EventIdConflict:  # the same bytes were kept before, for another reason
        pass
    return True


def _claimed(raw: bytes) -> tuple[str, str]:
    """Stream and approval that it claims to be about, for whoever looks at it; empty when it cannot be read."""
    try:
        said = _read(raw)
        return check_stream(said.stream), said.approval[:200]
    except (NotAuthentic, InvalidName):
        return "", ""


@attrs.frozen
class DistrustedAnswer:
    """An answer that was kept because it is not authentic."""

    #: Stream and approval it claims to be about, or empty.
    stream: str
    approval_id: str
    why: str
    raw: bytes
    #: Bytes that it had, and their SHA-256: more than ``raw`` when it was too long.
    size: int
    digest: bytes
    #: Its place in ``STREAM``.
    version: int
    position: int
    received_at: Micros


def distrusted_answers(log: EventLog, tell: Tell | None = None) -> list[DistrustedAnswer]:
    """Those that nobody has redriven since, oldest first. ``tell``: see ``unreadable.facts_of``."""
    found = dict[int, DistrustedAnswer]()
    for event, fact in facts_of(runtime_codec(), log.read(STREAM), ("answer.distrusted", "answer.redriven"), tell):
        if isinstance(fact, facts.AnswerDistrusted):
            said = (fact.stream, fact.approval_id, fact.why, fact.raw, fact.size, fact.digest)
            found[event.version] = DistrustedAnswer(*said, event.version, event.position, event.recorded_at)
        elif isinstance(fact, facts.AnswerRedriven):
            found.pop(fact.version, None)
    return list(found.values())


def redrive_answer(log: EventLog, version: int, keys: KeyRing, *, by: str, reason: str = "") -> Answered:
    """Look at a kept answer once more, with other keys and as of when it came; recorded if it is authentic now.

    Raises ``InputRefused`` when there is none, ``NotAuthentic`` when it still is not, and what ``asking.answer`` raises.
    """
    letter = next((each for each in distrusted_answers(log) if each.version == version), None)
    if letter is None:
        raise InputRefused(f"{STREAM} has no distrusted answer {version}. See what there is: eventlog dead-letters list --status distrusted")
    named(by)
    if len(letter.raw) != letter.size:
        raise NotAuthentic(f"Answer {version} had {letter.size:,} bytes and was not kept whole. Have it given anew")
    try:
        done = _record(log, verified(letter.raw, keys, now=letter.received_at), keys, None)
    except NotAuthentic as problem:
        raise NotAuthentic(f"Answer {version} is still not authentic: {problem}. Nothing was written.") from problem
    fact = facts.AnswerRedriven(version, by, reason)
    try:
        log.append(STREAM, [runtime_codec().stage(fact, event_id=fact_id("answer-redriven", STREAM, version))], ANY)
    except EventIdConflict:  # by somebody else at the same moment: the answer is the same
        pass
    return done
