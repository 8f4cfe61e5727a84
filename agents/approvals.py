"""Questions to people as they are published to a surface: the document, its signature, and how the surface opens it.

Pure. Who publishes is ``effector.approvals``; how an answer comes back is in ``approvals_answers``. The header
``Intentlog-Signature`` is ``t=SECONDS,key=ID,v1=HEX``: HMAC-SHA256, with the secret of that key, over ``intentlog.webhook.v1``,
then the seconds as decimal digits and the body, each behind its length in decimal digits and a colon.
"""

from __future__ import annotations

import re
import uuid
from datetime import timedelta
from typing import Any, Final

import attrs
import msgspec

from ..eventlog.clock import SECOND, Micros
from ..eventlog.events import StoredEvent
from ..eventlog.printing import iso, one_line, plain
from . import facts
from .errors import NotAuthentic
from .signing import KeyRing, Signature

SIGNATURE_HEADER: Final = "Intentlog-Signature"
ID_HEADER: Final = "Intentlog-Id"
"""The same for every delivery of one question: the receiver's way to take it once."""
TOLERANCE: Final = timedelta(minutes=5)
"""How old a delivery may be, and how far the clocks of both sides may be apart."""
_HEADER: Final = re.compile(r"t=([0-9]{1,12}),key=([A-Za-z0-9][A-Za-z0-9_.-]{0,63}),v1=([0-9a-f]{64})")


@attrs.frozen
class PublishedApproval:
    """A question as a surface gets it."""

    #: The same for every delivery.
    id: str
    stream: str
    approval_id: str
    question: str
    channel: str
    details: dict[str, Any]
    #: What an answer is bound to.
    digest: bytes
    #: Microseconds since 1970-01-01 UTC; unanswered by then it reads as denied.
    expires_at: Micros
    #: Where an answer may be sent; empty when nothing was said about it.
    answer_url: str = ""


class _Document(msgspec.Struct):
    id: str
    stream: str
    approval: str
    question: str
    channel: str
    details: dict[str, Any]
    digest: str
    expires_at: str
    expires_at_us: int
    answer_url: str


def document(event: StoredEvent, asked: facts.ApprovalRequested, answer_url: str = "") -> bytes:
    """The question that ``event`` records, exactly as it is written there, as JSON; bytes in the details are ``{"$bytes": base64}``."""
    made = {
        "id": str(uuid.UUID(bytes=event.event_id)),
        "stream": event.stream,
        "approval": asked.approval_id,
        "question": asked.question,
        "channel": asked.channel,
        "details": plain(asked.details),
        "digest": asked.digest.hex(),
        "expires_at": iso(asked.expires_at),
        "expires_at_us": asked.expires_at,
        "answer_url": answer_url,
    }
    return msgspec.json.encode(made)


def signature_header(keys: KeyRing, body: bytes, now: Micros) -> str:
    """The value of ``Intentlog-Signature`` for ``body``, sent at ``now``."""
    seconds = now // SECOND
    made = keys.sign_webhook(seconds, body)
    return f"t={seconds},key={made.key_id},v1={made.signature.hex()}"


def opened(body: bytes, header: str, keys: KeyRing, *, now: Micros, tolerance: timedelta = TOLERANCE) -> PublishedApproval:
    """The question in ``body``; for whoever receives it. Raises ``NotAuthentic`` when ``header`` does not vouch for it now.

    A delivery may come twice, under the same ``id``.
    """
    found = _HEADER.fullmatch(header.strip())
    if found is None:
        raise NotAuthentic(f"the header {SIGNATURE_HEADER} must be t=SECONDS,key=ID,v1=HEX, not {header!r:.100}")
    seconds, signature = int(found[1]), Signature(found[2], bytes.fromhex(found[3]))
    why = keys.verify_webhook(signature, seconds, body)
    if why is not None:
        raise NotAuthentic(f"the delivery is not authentic: {why}")
    apart = abs(now - seconds * SECOND) / SECOND
    if apart > tolerance.total_seconds():
        raise NotAuthentic(f"the delivery was signed {apart:.0f} s from now; at most {tolerance.total_seconds():.0f} s are taken")
    try:
        read = msgspec.json.decode(body, type=_Document)
        digest = bytes.fromhex(read.digest)
    except (msgspec.MsgspecError, ValueError, UnicodeError) as problem:
        raise NotAuthentic(f"the body is no published approval: {one_line(str(problem), 300)}") from problem
    place = (read.id, read.stream, read.approval, read.question, read.channel, read.details)
    return PublishedApproval(*place, digest, read.expires_at_us, read.answer_url)
