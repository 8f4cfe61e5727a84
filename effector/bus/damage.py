"""Whether a message says what was once staged. A bus may damage what it carries, and a damaged intent is another one.

What follows from the rest has to fit it: the digest, and the id, which is that of a place or of a business key (S-5.2, S-5.3). The
rest, deadline and envelope, is held by the header ``sha256`` of whoever encoded the message; it may be missing. None of it is
a signature: who wants to deceive can make all of it.
"""

from __future__ import annotations

import hashlib
from typing import Any

from ...agents import facts
from ...agents.intents import content_digest, intent_id_for, keyed_intent_id
from ...eventlog.codec import Codec
from ...eventlog.errors import LogError
from ..outbox import Pending
from .protocol import Message
from .wire import Question


def damage(codec: Codec, message: Message, found: Pending | Question) -> str | None:
    """Why ``found``, which ``message`` was read as, is not what was staged, or ``None``."""
    said = message.headers.get("sha256")
    if said is not None and said != hashlib.sha256(message.value).hexdigest().encode():
        return "its bytes are not those that its header sha256 is of"
    try:
        return _of_intent(codec, found.stream, found.intent) if isinstance(found, Pending) else _of_question(codec, found.asked)
    except (LogError, ValueError, TypeError, RecursionError, OverflowError) as problem:
        return f"{type(problem).__name__}: {problem}"


def _of_intent(codec: Codec, stream: str, intent: facts.IntentStaged) -> str | None:
    if intent.digest != content_digest(intent.tool, codec.encode_value(intent.args, dict[str, Any])):
        return f"its digest is not that of its tool, {intent.tool!r:.100}, and its arguments"
    if intent.key:
        expected, place = keyed_intent_id(stream, intent.tool, intent.key), f"with the business key {intent.key!r:.100}"
    else:
        expected, place = intent_id_for(stream, intent.seq, intent.step), f"of turn {intent.seq}, step {intent.step}"
    return None if intent.intent_id == expected else f"its id is {intent.intent_id!r:.100}, and an intent {place} of {stream:.200} has the id {expected}"


def _of_question(codec: Codec, asked: facts.ApprovalRequested) -> str | None:
    said = {"question": asked.question, "channel": asked.channel, "details": asked.details}
    if asked.digest != content_digest("approval", codec.encode_value(said, dict[str, Any])):
        return "its digest is not that of its question, channel and details"
    expected = f"approval-{asked.seq}-{asked.step}"
    return None if asked.approval_id == expected else f"its id is {asked.approval_id!r:.100}, and a question of its place has the id {expected}"
