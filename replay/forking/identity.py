"""A fork under a name of its own: its intents are other intents, so that nothing it does is taken for the source's.

Ids are replaced wherever they stand, in what the code was told too. They are of one length, so that every event stays
what it is; digests are made anew. Whether the code, under its new name, decides all of it again is for a replay to say.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import attrs

from ...agents import facts
from ...agents.intents import attempt_event_id, content_digest, intent_id_for, keyed_intent_id, settlement_event_id
from ...agents.models import ModelRequest
from ...eventlog.codec import Codec
from .pieces import Piece


def renamed(codec: Codec, pieces: Sequence[Piece], stream: str) -> tuple[list[Piece], dict[str, str]]:
    """``pieces`` as a history of ``stream``, and the ids of its intents → those they had."""
    decoded = [codec.decode(piece.type, piece.schema, piece.data) for piece in pieces]
    staged = [fact for fact in decoded if isinstance(fact, facts.IntentStaged)]
    new_ids = {fact.intent_id: keyed_intent_id(stream, fact.tool, fact.key) if fact.key else intent_id_for(stream, fact.seq, fact.step) for fact in staged}
    done: list[Piece] = []
    attempts: dict[str, int] = {}
    for piece in pieces:
        data = piece.data
        for old, new in new_ids.items():
            data = data.replace(old.encode(), new.encode())
        fact = _fitting(codec, codec.decode(piece.type, piece.schema, data))
        if data != piece.data or fact is not None:
            kind, schema, data = codec.encode(fact if fact is not None else codec.decode(piece.type, piece.schema, data))
            piece = attrs.evolve(piece, type=kind, schema=schema, data=data)
        done.append(_with_id(codec, piece, attempts))
    moved = {before.event_id: after.event_id for before, after in zip(pieces, done, strict=True) if before.event_id != after.event_id}
    done = [attrs.evolve(piece, causation=moved[piece.causation]) if piece.causation in moved else piece for piece in done]
    return done, {new: old for old, new in new_ids.items()}


def _fitting(codec: Codec, fact: Any) -> Any:
    """The fact with what is made of its content made anew; ``None`` for others. Nobody but the source is told of the end."""
    changed: Any = fact
    if isinstance(fact, facts.ModelCallCached):
        return attrs.evolve(changed, digest=hashlib.sha256(codec.encode_value(fact.request, ModelRequest)).digest())
    if isinstance(fact, facts.ToolCallCached | facts.IntentStaged):
        return attrs.evolve(changed, digest=content_digest(fact.tool, codec.encode_value(fact.args, dict[str, Any])))
    if isinstance(fact, facts.InputReceived):
        return attrs.evolve(changed, reply_to="")
    return None


def _with_id(codec: Codec, piece: Piece, attempts: dict[str, int]) -> Piece:
    """``piece`` under an event id that belongs to its intent's new id."""
    if piece.type not in ("intent.attempted", "intent.settled"):
        return piece
    fact = codec.decode(piece.type, piece.schema, piece.data)
    if isinstance(fact, facts.IntentAttempted):
        attempts[fact.intent_id] = fact.attempt
        return attrs.evolve(piece, event_id=attempt_event_id(fact.intent_id, fact.attempt))
    return attrs.evolve(piece, event_id=settlement_event_id(fact.intent_id, attempts.get(fact.intent_id, 0)))
