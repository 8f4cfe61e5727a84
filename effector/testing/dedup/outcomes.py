"""Checks of outcomes: the first is final, comes back as it was given, and ends when its time is over."""

from __future__ import annotations

from ...dedup.checking import MOST_BYTES
from ...dedup.errors import AlreadyDone, ResultTooLarge, StaleToken, StoreUnavailable
from ...dedup.store import Busy, Done, Free
from .maker import DAY, LEASE, NOON, DedupMaker, claimed, completed, expect, fresh, several


def first_outcome_is_final(maker: DedupMaker) -> None:
    """Everybody is handed the first outcome, and a second one is refused with it, whoever brings it."""
    with fresh(maker) as store:
        mine = completed(store, "one", b"first", status="ERROR")
        for now in (NOON, NOON + 2 * LEASE, NOON + DAY - 1):
            assert Done("ERROR", b"first") == store.claim("one", "you", now=now, until=now + LEASE)
        for token, status, result in ((mine.token, "OK", b"first"), (mine.token, "ERROR", b"second"), (mine.token + 1, "ERROR", b"first"), (0, "OK", b"")):
            with expect(AlreadyDone) as refusal:
                store.complete("one", token, result, status=status, now=NOON + 1, expires_at=NOON + DAY)
            assert Done("ERROR", b"first") == refusal.error.done
        store.release("one", mine.token)
        assert Done("ERROR", b"first") == store.look("one", now=NOON)


def same_outcome_again_changes_nothing(maker: DedupMaker) -> None:
    """Completing again with the same token and bytes is fine, as after a lost acknowledgement; the expiry stays the first one's."""
    with fresh(maker) as store:
        mine = completed(store, "one", b"same")
        store.complete("one", mine.token, b"same", status="OK", now=NOON + 1, expires_at=NOON + 9 * DAY)
        assert Free(0) == store.look("one", now=NOON + DAY)


def outcome_needs_the_claim(maker: DedupMaker) -> None:
    """No outcome without a claim or under another token; an outcome without an attempt (refused, expired) is one."""
    with fresh(maker) as store:
        with expect(StaleToken):
            store.complete("never", 1, b"", status="OK", now=NOON, expires_at=NOON + DAY)
        assert Free(0) == store.look("never", now=NOON)
        mine = claimed(store, "one")
        with expect(StaleToken) as refusal:
            store.complete("one", mine.token + 1, b"", status="OK", now=NOON, expires_at=NOON + DAY)
        assert not isinstance(refusal.error, AlreadyDone)
        assert Busy(NOON + LEASE, "me") == store.look("one", now=NOON)
        store.complete("one", mine.token, b"", status="EXPIRED", now=NOON, expires_at=NOON + DAY)
        assert Done("EXPIRED", b"") == store.look("one", now=NOON)


def results_come_back_as_they_were_given(maker: DedupMaker) -> None:
    """Nothing at all, NUL, every byte there is, and 30 MB; whoever looks, by whichever object."""
    thirty = bytes(range(256)) * (30 * 4096)
    assert 30 << 20 == len(thirty)
    with several(maker, 2) as (_, (store, other)):
        for number, result in enumerate((b"", b"\0", b"\xff\xfe", b"a\0b\0", bytes(range(256)), b"'; --", thirty)):
            completed(store, f"bytes{number}", result)
            assert Done("OK", result) == other.claim(f"bytes{number}", "you", now=NOON, until=NOON + LEASE)
        with expect(AlreadyDone) as refusal:
            other.complete("bytes6", 1, thirty[1:], status="OK", now=NOON, expires_at=NOON + DAY)
        assert thirty == refusal.error.done.result
        assert "<31457280 bytes>" in repr(refusal.error.done), "30 MB reach no log line"


def result_that_is_too_large_is_refused(maker: DedupMaker) -> None:
    """One byte more than a store takes is an error that says both sizes; the claim stays, and another outcome can be stored."""
    with fresh(maker) as store:
        mine = claimed(store, "one")
        with expect(ResultTooLarge) as refusal:
            store.complete("one", mine.token, bytes(MOST_BYTES + 1), status="OK", now=NOON, expires_at=NOON + DAY)
        assert f"{MOST_BYTES:,}" in str(refusal.error)
        with expect(TypeError):
            store.complete("one", mine.token, "text", status="OK", now=NOON, expires_at=NOON + DAY)  # type: ignore[arg-type]
        store.complete("one", mine.token, b"too large", status="ERROR", now=NOON, expires_at=NOON + DAY)


def results_expire_when_read(maker: DedupMaker) -> None:
    """Up to its last µs a result stands, from then on the intent is free as if nobody had ever touched it, and carried out again."""
    with fresh(maker) as store:
        old = completed(store, "one", b"old", ttl=DAY)
        end = NOON + DAY
        assert Done("OK", b"old") == store.look("one", now=end - 1)
        assert Free(0) == store.look("one", now=end)
        with expect(StaleToken) as refusal:
            store.complete("one", old.token, b"old", status="OK", now=end, expires_at=end + DAY)
        assert not isinstance(refusal.error, AlreadyDone)
        with expect(StaleToken):
            store.attempt("one", old.token, now=end)
        new = claimed(store, "one", now=end)
        assert (0, True) == (new.attempts, new.token > old.token)
        assert 1 == store.attempt("one", new.token, now=end)
        store.complete("one", new.token, b"new", status="OK", now=end, expires_at=end + DAY)
        assert Done("OK", b"new") == store.look("one", now=end + 1)
        with expect(ValueError):
            store.complete("one", new.token, b"new", status="OK", now=end, expires_at=end)


def unfinished_attempts_are_never_forgotten(maker: DedupMaker) -> None:
    """However long ago, and however many results expired and went meanwhile, an attempt without an outcome is there."""
    with fresh(maker) as store:
        mine = claimed(store, "open")
        assert 1 == store.attempt("open", mine.token, now=NOON)
        for day in range(1, 100):
            completed(store, f"passing{day}", now=NOON + day * DAY, ttl=LEASE)
        assert 1 == claimed(store, "open", now=NOON + 400 * DAY).attempts


def removal_is_later_than_any_clock(maker: DedupMaker) -> None:
    """A result that has expired for one whose clock is 5 minutes ahead is still there for all who say that it has not."""
    with fresh(maker) as store:
        completed(store, "one", b"kept", ttl=LEASE)
        for number in range(100):
            completed(store, f"passing{number}", now=NOON + 2 * LEASE - 1, ttl=LEASE)
        assert Done("OK", b"kept") == store.look("one", now=NOON + LEASE - 1)


def reopened_store_holds_everything(maker: DedupMaker) -> None:
    """Another object on the same store sees the same claims, attempts and outcomes."""
    if maker.reopen is None:
        return
    with several(maker, 2) as (_, (store, other)):
        mine = claimed(store, "one", "me")
        completed(store, "two", b"two")
        store.attempt("one", mine.token, now=NOON)
        store.close()
        assert Busy(NOON + LEASE, "me") == other.look("one", now=NOON)
        assert Free(1) == other.look("one", now=NOON + LEASE)
        assert Done("OK", b"two") == other.look("two", now=NOON)
        assert 2 == other.attempt("one", mine.token, now=NOON), "whoever holds the token, it is the claim"


def closed_store_is_unavailable(maker: DedupMaker) -> None:
    """After ``close``, or a ``with`` block, every method raises ``StoreUnavailable``; closing twice is fine."""
    with fresh(maker) as store:
        store.ping()
        mine = claimed(store, "one")
        with store as same:
            assert same is store
        store.close()
        for call in (
            store.ping,
            lambda: store.claim("one", "me", now=NOON, until=NOON + LEASE),
            lambda: store.attempt("one", mine.token, now=NOON),
            lambda: store.complete("one", mine.token, b"", status="OK", now=NOON, expires_at=NOON + DAY),
            lambda: store.renew("one", mine.token, until=NOON + LEASE, now=NOON),
            lambda: store.release("one", mine.token),
            lambda: store.look("one", now=NOON),
        ):
            with expect(StoreUnavailable):
                call()


CHECKS = (
    first_outcome_is_final,
    same_outcome_again_changes_nothing,
    outcome_needs_the_claim,
    results_come_back_as_they_were_given,
    result_that_is_too_large_is_refused,
    results_expire_when_read,
    unfinished_attempts_are_never_forgotten,
    removal_is_later_than_any_clock,
    reopened_store_holds_everything,
    closed_store_is_unavailable,
)
