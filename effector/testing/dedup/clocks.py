"""Checks of clocks that go back or stand apart by five minutes: nothing that holds is lost, nothing that is over comes back."""

from __future__ import annotations

from typing import Final

from ....eventlog.clock import SECOND
from ...dedup.errors import StaleToken
from ...dedup.store import Busy, Done
from .maker import DAY, LEASE, NOON, DedupMaker, claimed, completed, expect, fresh

_FIVE: Final = 300 * SECOND


def clock_going_back_shortens_no_lease(maker: DedupMaker) -> None:
    """An owner whose clock goes back five minutes renews, attempts and completes as before; for others its lease never gets shorter."""
    with fresh(maker) as store:
        mine = claimed(store, "one", lease=LEASE)
        back = NOON + SECOND - _FIVE
        assert store.renew("one", mine.token, until=back + LEASE, now=back)
        assert Busy(NOON + LEASE, "me") == store.claim("one", "you", now=NOON + LEASE - 1, until=NOON + 2 * LEASE)
        assert 1 == store.attempt("one", mine.token, now=back)
        store.complete("one", mine.token, b"x", status="OK", now=back, expires_at=back + DAY)
        assert Done("OK", b"x") == store.look("one", now=NOON)


def rival_behind_waits_and_comes_to_an_end(maker: DedupMaker) -> None:
    """A rival whose clock is five minutes behind is told to wait until the lease ends by the owner's clock, and no longer."""
    with fresh(maker) as store:
        claimed(store, "one")
        behind = NOON - _FIVE
        assert Busy(NOON + LEASE, "me") == store.claim("one", "you", now=behind, until=behind + LEASE)
        assert Busy(NOON + LEASE, "me") == store.claim("one", "you", now=NOON + LEASE - 1, until=NOON + 2 * LEASE)
        claimed(store, "one", "you", now=NOON + LEASE)


def rival_ahead_fences_the_owner(maker: DedupMaker) -> None:
    """A rival whose clock runs ahead by more than the lease takes over; the owner's next transition says so, so that nothing is settled twice."""
    with fresh(maker) as store:
        mine = claimed(store, "one", lease=_FIVE)
        assert 1 == store.attempt("one", mine.token, now=NOON)
        theirs = claimed(store, "one", "you", now=NOON + _FIVE)
        assert 1 == theirs.attempts
        assert not store.renew("one", mine.token, until=NOON + LEASE, now=NOON + 1)
        with expect(StaleToken):
            store.complete("one", mine.token, b"mine", status="OK", now=NOON + 1, expires_at=NOON + DAY)


def outcome_taken_for_expired_does_not_come_back(maker: DedupMaker) -> None:
    """Once somebody claimed the intent anew, one whose clock is behind sees that claim, and not the old outcome again."""
    with fresh(maker) as store:
        completed(store, "one", b"old", ttl=DAY)
        end = NOON + DAY
        new = claimed(store, "one", "you", now=end)
        behind = end - _FIVE
        assert Busy(end + LEASE, "you") == store.look("one", now=behind)
        assert Busy(end + LEASE, "you") == store.claim("one", "me", now=behind, until=behind + LEASE)
        assert 1 == store.attempt("one", new.token, now=behind)


def tokens_grow_when_the_clock_goes_back(maker: DedupMaker) -> None:
    """Tokens grow from claim to claim, whatever the clock does between two."""
    with fresh(maker) as store:
        tokens = []
        for now in (NOON, NOON - _FIVE, NOON + _FIVE, 1, NOON):
            mine = claimed(store, "one", now=now)
            tokens.append(mine.token)
            store.release("one", mine.token)
        assert tokens == sorted(set(tokens))


CHECKS = (
    clock_going_back_shortens_no_lease,
    rival_behind_waits_and_comes_to_an_end,
    rival_ahead_fences_the_owner,
    outcome_taken_for_expired_does_not_come_back,
    tokens_grow_when_the_clock_goes_back,
)
