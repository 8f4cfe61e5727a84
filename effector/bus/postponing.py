"""Attempts that ended in an error which may heal, kept in the dedup store beside the intent they were made for.

A store knows of an attempt that it was begun. That it ended, in what, and when the next one is due, is an outcome of its own, under
the id ``INTENT#ended.N``: whoever claims the intent next, after a crash too, then knows that nothing of it is under way and waits
for the moment, instead of taking the attempt for one whose end was never seen.
"""

from __future__ import annotations

from typing import Final

from ...agents import facts
from ...eventlog.clock import Micros
from ...eventlog.codec import Codec
from ...eventlog.errors import LogError
from ..dedup.errors import AlreadyDone, StaleToken
from ..dedup.store import Claimed, DedupStore, Done
from ..outbox import Pending

POSTPONED: Final = "POSTPONED"
"""The status of such an outcome."""


def record_of(intent_id: str, attempt: int) -> str:
    """The id under which it is kept.

    >>> record_of("i-1", 2)
    'i-1#ended.2'
    """
    return f"{intent_id}#ended.{attempt}"


def keep(store: DedupStore, codec: Codec, said: facts.IntentPostponed, owner: str, *, now: Micros, until: Micros, expires_at: Micros) -> None:
    """Durable when it returns. It is only ever said by who made the attempt, so its being there already is no conflict. Blocking."""
    name, value = record_of(said.intent_id, said.attempt), codec.encode_value(said, facts.IntentPostponed)
    found = store.claim(name, owner, now=now, until=until)
    if not isinstance(found, Claimed):  # an answer that was lost: it is there, or will be when the lease is over
        return
    try:
        store.complete(name, found.token, value, status=POSTPONED, now=now, expires_at=expires_at)
    except AlreadyDone:
        return
    except StaleToken:  # only a clock that went wild can bring that about; then the attempt reads as one without an end
        return


def recall(store: DedupStore, codec: Codec, pending: Pending, now: Micros) -> None:
    """Fill in what is known of the attempts that ``pending`` has. Blocking."""
    for attempt in range(1, pending.attempts + 1):
        found = store.look(record_of(pending.intent.intent_id, attempt), now=now)
        if isinstance(found, Done) and found.status == POSTPONED:
            try:
                pending.postponed[attempt] = codec.decode_value(found.result, facts.IntentPostponed)
            except LogError:  # written by another release: an attempt whose end is not known
                continue
