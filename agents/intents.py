"""An intent's identity: where it was decided, or its business key, bound to a digest of what it says (S-5.2, S-5.3)."""

from __future__ import annotations

import hashlib
import uuid
from typing import Final

from . import facts

NAMESPACE: Final = uuid.UUID("4b5f2c0e-8f0b-5b0a-9d5e-6f2c6a1e9b77")
"""Never changes: every intent id ever minted hangs off it."""
_NAMESPACE_BYTES: Final = NAMESPACE.bytes
_VARIANT: Final = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}

OK: Final = "OK"
ERROR: Final = "ERROR"
REJECTED: Final = "REJECTED"
EXPIRED: Final = "EXPIRED"
CANCELLED: Final = "CANCELLED"
UNKNOWN: Final = "UNKNOWN"
TIMED_OUT: Final = "TIMED_OUT"
"""Not a settlement: what a wait reports for an outcome that was not there at its deadline."""

STATUSES: Final = (OK, ERROR, REJECTED, EXPIRED, CANCELLED, UNKNOWN)


def intent_id_for(stream: str, seq: int, step: int) -> str:
    """``uuid5(NAMESPACE, stream|seq|step)``.

    >>> intent_id_for("accounts-acct-42", 0, 1)
    '25ddf24b-d820-53e2-acac-e3a9906b9fd8'
    """
    return _uuid5(f"{stream}|{seq}|{step}")


def keyed_intent_id(stream: str, tool: str, key: str) -> str:
    """``uuid5(NAMESPACE, stream|tool|key)`` for an intent named by a business key."""
    return _uuid5(f"{stream}|{tool}|{key}")


def _uuid5(name: str) -> str:
    """``str(uuid.uuid5(NAMESPACE, name))`` (RFC 9562, section 5.5) without the object in between: it is made for every intent."""
    digits = hashlib.sha1(_NAMESPACE_BYTES + name.encode(), usedforsecurity=False).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-5{digits[13:16]}-{_VARIANT[digits[16]]}{digits[17:20]}-{digits[20:32]}"


def content_digest(name: str, canonical: bytes) -> bytes:
    """SHA-256 over a name and canonical bytes, unambiguous about where one ends."""
    return hashlib.sha256(f"{len(name)}:{name}".encode() + canonical).digest()


def input_event_id(input_id: str) -> bytes:
    """The event id of an input: the same input sent twice is the same event (S-2.2)."""
    return hashlib.sha256(b"input|" + input_id.encode("utf-8", "surrogatepass")).digest()[:16]


def attempt_event_id(intent_id: str, attempt: int) -> bytes:
    """The event id of an attempt. The first shares its id with a settlement that no attempt preceded, so the store lets only
    one of the two happen: what was withdrawn is never begun, and what was begun is never withdrawn (S-6.1, CANCELLED).
    """
    return fact_id("begun", intent_id) if attempt == 1 else fact_id("attempt", intent_id, attempt)


def settlement_event_id(intent_id: str, attempts: int) -> bytes:
    """The event id of a settlement: of the intent alone, so that there is only one (S-6.2)."""
    return fact_id("begun", intent_id) if attempts == 0 else fact_id("settled", intent_id)


def fact_id(*parts: object) -> bytes:
    """An event id made of what the event is about, so that writing the same fact again is a duplicate."""
    return hashlib.sha256("|".join(map(str, parts)).encode()).digest()[:16]


def readmission_event_id(stream: str, intent_id: str, number: int) -> bytes:
    """The event id of an intent's ``number``-th readmission: it is there once, so a copy of it cannot be made to count again."""
    return fact_id("readmitted", stream, intent_id, number)


def withdrawn(intent_id: str) -> facts.IntentSettled:
    """The settlement of an intent that its own agent takes back before anybody attempted it: a part of a turn, not an arrival."""
    return facts.IntentSettled(intent_id, CANCELLED, settled_by="agent", reason="nobody waits for it any more")


def is_withdrawal(fact: facts.IntentSettled) -> bool:
    """Whether the settlement is a ``withdrawn``."""
    return fact == withdrawn(fact.intent_id)
