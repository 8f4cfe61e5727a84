"""The transitions as rules over one record: what memory and SQLite apply, and what the statements and scripts of the others say again."""

from __future__ import annotations

from typing import Final

import attrs

from ...eventlog.clock import Micros
from .errors import AlreadyDone, StaleToken
from .store import Busy, Done, Free

HANDED_BACK: Final = 0
"""The lease of a record that nobody holds."""


@attrs.frozen
class Record:
    """What a store knows of one intent; the result's bytes are kept beside it."""

    owner: str
    token: int
    until: Micros
    attempts: int = 0
    #: ``None`` while there is no outcome.
    status: str | None = None
    expires_at: Micros = 0

    def done(self, now: Micros) -> bool:
        """Whether there is an outcome that has not expired."""
        return self.status is not None and self.expires_at > now


def seen(record: Record | None, now: Micros) -> Busy | Free | None:
    """What ``look`` answers; ``None`` when it is the outcome. An expired outcome takes its attempts with it."""
    if record is None:
        return Free(0)
    if record.status is not None:
        return None if record.expires_at > now else Free(0)
    return Busy(record.until, record.owner) if record.until > now else Free(record.attempts)


def claimed(record: Record | None, free: Free, owner: str, now: Micros, until: Micros) -> Record:
    """The record after a claim of what was found free.

    A first token is the moment itself and later ones count on from it: a record removed long after its result expired, and
    made anew, never gives a token that was given before.
    """
    return Record(owner, now if record is None else record.token + 1, until, free.attempts)


def attempted(record: Record | None, intent_id: str, token: int, now: Micros) -> Record:
    """The record after an attempt. Raises ``StaleToken``; outcomes have been looked for."""
    held = holding(record, intent_id, token)
    if held.until <= now:
        raise ran_out(intent_id, token, held.until, now)
    return attrs.evolve(held, attempts=held.attempts + 1)


def holding(record: Record | None, intent_id: str, token: int) -> Record:
    """The record, if ``token`` is its claim. Raises ``StaleToken``."""
    if record is None or record.status is not None:
        raise no_claim(intent_id, token)
    if record.token != token:
        raise overtaken(intent_id, token, record)
    return record


def released(record: Record) -> Record:
    """The record after a hand-back; the old token is spent."""
    return attrs.evolve(record, token=record.token + 1, until=HANDED_BACK)


def renewed(record: Record, until: Micros) -> Record:
    """The record with a longer lease, never a shorter one."""
    return attrs.evolve(record, until=max(record.until, until))


def refused(record: Record | None, intent_id: str, token: int, now: Micros) -> StaleToken:
    """Why a transition under ``token`` changed nothing; outcomes have been looked for."""
    try:
        held = holding(record, intent_id, token)
    except StaleToken as reason:
        return reason
    return ran_out(intent_id, token, held.until, now)


def no_claim(intent_id: str, token: int) -> StaleToken:
    """There is nothing that could be held."""
    return StaleToken(f"Nobody holds intent {intent_id}, so token {token} is not current: its result has expired, or it was never claimed. Claim it again.")


def overtaken(intent_id: str, token: int, record: Record) -> StaleToken:
    """Another claim was made, or this one handed back."""
    if record.until == HANDED_BACK:
        return StaleToken(f"Token {token} of intent {intent_id} is no longer current: the claim was handed back. Claim it again.")
    return StaleToken(
        f"Token {token} of intent {intent_id} is no longer current: {record.owner} holds {record.token}. Nothing was written; wait for its outcome."
    )


def ran_out(intent_id: str, token: int, until: Micros, now: Micros) -> StaleToken:
    """The lease is over, and what it protected must not begin."""
    return StaleToken(
        f"Token {token} of intent {intent_id} ran out {(now - until) / 1e6:.3f} s ago, so no tool is called under it. Renew it, or claim the intent again."
    )


def outcome_stands(intent_id: str, token: int, done: Done) -> AlreadyDone:
    """Somebody completed first."""
    return AlreadyDone(f"Intent {intent_id} has its outcome already ({done.status}), so nothing was written under token {token}. Publish that one.", done)
