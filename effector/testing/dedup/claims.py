"""Checks of claims, attempts, renewals and hand-backs: who may go on, and what the next one learns."""

from __future__ import annotations

from ...dedup.errors import AlreadyDone, StaleToken
from ...dedup.store import Busy, Done, Free
from .maker import DAY, LEASE, NOON, DedupMaker, claimed, completed, expect, fresh


def claim_is_exclusive(maker: DedupMaker) -> None:
    """While one holds an intent everybody else is told how long, an owner of the same name too; other intents are free."""
    with fresh(maker) as store:
        mine = claimed(store, "one", "me")
        assert 0 == mine.attempts
        for owner in ("you", "me"):
            for now in (NOON, NOON + 1, NOON + LEASE - 1):
                assert Busy(NOON + LEASE, "me") == store.claim("one", owner, now=now, until=now + LEASE)
        assert 0 == claimed(store, "two", "you").attempts
        assert 1 == store.attempt("one", mine.token, now=NOON)


def claim_that_ran_out_goes_to_the_next(maker: DedupMaker) -> None:
    """From its last moment on a lease is over: the next claim has a larger token, and the old one can do nothing any more."""
    with fresh(maker) as store:
        old = claimed(store, "one", "old")
        new = claimed(store, "one", "new", now=NOON + LEASE)
        assert new.token > old.token
        later = NOON + LEASE + 1
        for refused in (
            lambda: store.attempt("one", old.token, now=later),
            lambda: store.complete("one", old.token, b"late", status="OK", now=later, expires_at=later + DAY),
        ):
            with expect(StaleToken) as refusal:
                refused()
            assert "new" in str(refusal.error), "the message names who holds it"
        assert not store.renew("one", old.token, until=later + LEASE, now=later)
        store.release("one", old.token)
        assert Busy(NOON + 2 * LEASE, "new") == store.look("one", now=later)
        assert 1 == store.attempt("one", new.token, now=later)


def attempts_are_kept_over_owners(maker: DedupMaker) -> None:
    """Attempts count on, whoever makes them, and the next owner learns of every one whose end was never seen."""
    with fresh(maker) as store:
        now = NOON
        for number in range(1, 4):
            mine = claimed(store, "one", f"owner{number}", now=now)
            assert 2 * (number - 1) == mine.attempts
            assert 2 * number - 1 == store.attempt("one", mine.token, now=now)
            assert 2 * number == store.attempt("one", mine.token, now=now + 1)
            now += LEASE
        assert Free(6) == store.look("one", now=now)
        assert Free(0) == store.look("two", now=now)


def attempt_needs_a_claim_that_holds(maker: DedupMaker) -> None:
    """No attempt without a claim, under a made-up token, after the lease, after a hand-back, or after the outcome; none is counted."""
    with fresh(maker) as store:
        with expect(StaleToken):
            store.attempt("never", 1, now=NOON)
        mine = claimed(store, "one")
        for token in (mine.token - 1, mine.token + 1, 0):
            with expect(StaleToken):
                store.attempt("one", token, now=NOON)
        with expect(StaleToken) as refusal:
            store.attempt("one", mine.token, now=NOON + LEASE)
        assert not isinstance(refusal.error, AlreadyDone)
        store.release("one", mine.token)
        with expect(StaleToken):
            store.attempt("one", mine.token, now=NOON)
        assert 0 == claimed(store, "one").attempts
        done = completed(store, "two", b"two")
        with expect(AlreadyDone) as refusal:
            store.attempt("two", done.token, now=NOON + 1)
        assert Done("OK", b"two") == refusal.error.done


def handing_back_frees_at_once(maker: DedupMaker) -> None:
    """After ``release`` nobody waits for the lease, the token is spent for everything, and attempts stay."""
    with fresh(maker) as store:
        mine = claimed(store, "one", "me")
        assert 1 == store.attempt("one", mine.token, now=NOON)
        store.release("one", mine.token)
        assert Free(1) == store.look("one", now=NOON)
        store.release("one", mine.token)
        assert not store.renew("one", mine.token, until=NOON + 2 * LEASE, now=NOON)
        with expect(StaleToken):
            store.complete("one", mine.token, b"late", status="OK", now=NOON, expires_at=NOON + DAY)
        mine_again = claimed(store, "one", "me")
        assert (1, True) == (mine_again.attempts, mine_again.token > mine.token)
        store.release("one", mine.token)
        assert Busy(NOON + LEASE, "me") == store.look("one", now=NOON)
        store.release("never", 7)
        assert Free(0) == store.look("never", now=NOON)


def renewing_extends(maker: DedupMaker) -> None:
    """A renewed lease holds to its new end; what is lost, done, or was never there is not renewed."""
    with fresh(maker) as store:
        mine = claimed(store, "one")
        assert store.renew("one", mine.token, until=NOON + 3 * LEASE, now=NOON + LEASE - 1)
        assert Busy(NOON + 3 * LEASE, "me") == store.claim("one", "you", now=NOON + 2 * LEASE, until=NOON + 9 * LEASE)
        assert 1 == store.attempt("one", mine.token, now=NOON + 2 * LEASE)
        assert not store.renew("one", mine.token + 1, until=NOON + 9 * LEASE, now=NOON)
        assert not store.renew("never", 1, until=NOON + LEASE, now=NOON)
        done = completed(store, "two")
        assert not store.renew("two", done.token, until=NOON + LEASE, now=NOON)


def late_owner_goes_on_while_nobody_took_over(maker: DedupMaker) -> None:
    """A lease that ran out unnoticed can be renewed, and a result that came late is stored, unless somebody else took the intent."""
    with fresh(maker) as store:
        mine = claimed(store, "one")
        assert store.renew("one", mine.token, until=NOON + 3 * LEASE, now=NOON + 2 * LEASE)
        assert 1 == store.attempt("one", mine.token, now=NOON + 2 * LEASE)
        late = NOON + 9 * LEASE
        store.complete("one", mine.token, b"late", status="OK", now=late, expires_at=late + DAY)
        assert Done("OK", b"late") == store.claim("one", "you", now=late, until=late + LEASE)


def lost_renewals_cost_the_claim(maker: DedupMaker) -> None:
    """An owner whose renewals never arrive loses the intent, is told by the first that does, and its result is refused; the new owner knows of the attempt."""
    with fresh(maker) as store:
        old = claimed(store, "one", "old")
        assert 1 == store.attempt("one", old.token, now=NOON)
        new = claimed(store, "one", "new", now=NOON + LEASE)
        assert 1 == new.attempts
        assert not store.renew("one", old.token, until=NOON + 9 * LEASE, now=NOON + LEASE + 1)
        with expect(StaleToken) as refusal:
            store.complete("one", old.token, b"old", status="OK", now=NOON + LEASE + 1, expires_at=NOON + DAY)
        assert not isinstance(refusal.error, AlreadyDone)
        store.complete("one", new.token, b"", status="UNKNOWN", now=NOON + LEASE + 2, expires_at=NOON + DAY)
        with expect(AlreadyDone) as refusal:
            store.complete("one", old.token, b"old", status="OK", now=NOON + LEASE + 3, expires_at=NOON + DAY)
        assert Done("UNKNOWN", b"") == refusal.error.done


def looking_changes_nothing(maker: DedupMaker) -> None:
    """``look`` says what a claim would find, and leaves no trace."""
    with fresh(maker) as store:
        for _ in range(2):
            assert Free(0) == store.look("one", now=NOON)
        mine = claimed(store, "one")
        assert Busy(NOON + LEASE, "me") == store.look("one", now=NOON)
        assert Free(0) == store.look("one", now=NOON + LEASE)
        assert 1 == store.attempt("one", mine.token, now=NOON)
        assert Free(1) == store.look("one", now=NOON + LEASE)
        store.complete("one", mine.token, b"x", status="OK", now=NOON, expires_at=NOON + DAY)
        assert Done("OK", b"x") == store.look("one", now=NOON)


def names_are_kept_apart(maker: DedupMaker) -> None:
    """Ids that differ in case, in accents, in length, or by what a query language minds are different intents; owners come back as given."""
    names = ["a", "A", "a ", "é", "e\u0301", "'; --", "%s{schema}", "a:b", "*", "\U0001f600", "x" * 512, "x" * 511]
    with fresh(maker) as store:
        for name in names:
            assert 0 == claimed(store, name, f"owner of {name[:400]}").attempts
        for name in names:
            assert Busy(NOON + LEASE, f"owner of {name[:400]}") == store.look(name, now=NOON)


def bad_values_are_refused_at_the_door(maker: DedupMaker) -> None:
    """What no store could hold is a ``ValueError`` or ``TypeError`` that shows it, and writes nothing."""
    with fresh(maker) as store:
        for name in ("", "a\0b", "x" * 513, "\ud800"):
            with expect(ValueError):
                store.claim(name, "me", now=NOON, until=NOON + 1)
            with expect(ValueError):
                store.claim("one", name, now=NOON, until=NOON + 1)
        for now, until in ((NOON, NOON), (NOON, NOON - 1), (-1, NOON), (NOON, 2**53)):
            with expect(ValueError):
                store.claim("one", "me", now=now, until=until)
        for wrong in (None, 1.5, "1", True):
            with expect(TypeError):
                store.claim("one", "me", now=wrong, until=NOON)  # type: ignore[arg-type]
        assert Free(0) == store.look("one", now=NOON)


CHECKS = (
    claim_is_exclusive,
    claim_that_ran_out_goes_to_the_next,
    attempts_are_kept_over_owners,
    attempt_needs_a_claim_that_holds,
    handing_back_frees_at_once,
    renewing_extends,
    late_owner_goes_on_while_nobody_took_over,
    lost_renewals_cost_the_claim,
    looking_changes_nothing,
    names_are_kept_apart,
    bad_values_are_refused_at_the_door,
)
