"""Checks of the schedule: wake-ups with the events that cause them, leases, fencing tokens, takeover."""

from __future__ import annotations

from ..errors import LeaseLost, WrongExpectedVersion
from ..log import Appended, AppendRequest, Claim, EventLog, Fence, StreamAppend, Wake
from ..versions import ANY, NO_STREAM
from .maker import NOON, StoreMaker, Ticking, event, everything, fresh, one, patiently, request, several, together


def claim(log: EventLog, owner: str = "me", *, now: int = NOON, lasting: int = 100, limit: int = 10, categories: tuple[str, ...] = ()) -> list[Claim]:
    """Claim what is due in queue ``q``."""
    return log.schedule.claim_due("q", owner, now=now, until=now + lasting, limit=limit, categories=categories)


def due_names_are_claimed_longest_due_first(maker: StoreMaker) -> None:
    """Only names with a wake-up that has come are given, in its order, up to the limit, by category, from their own queue."""
    with fresh(maker) as log:
        for name, at in (("due-c", NOON - 1), ("due-a", NOON - 3), ("due-b", NOON), ("due-later", NOON + 1), ("other-a", NOON - 2)):
            log.schedule.wake("q", name, at)
        log.schedule.wake("elsewhere", "due-z", NOON - 9)
        assert 4 == log.schedule.due("q", now=NOON)
        assert [("due-a", NOON - 3)] == [(found.name, found.wake_at) for found in claim(log, limit=1, categories=("due",))]
        assert [("q", "other-a", NOON - 2), ("q", "due-c", NOON - 1), ("q", "due-b", NOON)] == [(*found[:2], found.wake_at) for found in claim(log)]
        assert [] == claim(log)
        assert ["due-z"] == [found.name for found in log.schedule.claim_due("elsewhere", "me", now=NOON, until=NOON + 1, limit=9)]
        assert [] == log.schedule.claim_due("none", "me", now=NOON, until=NOON + 1, limit=9)


def tokens_grow_for_ever(maker: StoreMaker) -> None:
    """Every new lease has a larger token than all before it, across release, expiry, eviction and the two ways to get one."""
    with fresh(maker) as log:
        log.schedule.wake("q", "token-a", NOON)
        (first,) = claim(log)
        log.schedule.release([first])
        (second,) = claim(log)
        (third,) = claim(log, "you", now=NOON + 100)
        assert 1 == log.schedule.evict("you")
        fourth = log.schedule.acquire("q", ["token-a"], "me", now=NOON, until=NOON + 9)
        assert 0 < first.token < second.token < third.token < fourth["token-a"]
        assert ["token-a"] == list(log.schedule.acquire("p", ["token-a"], "me", now=NOON, until=NOON + 9))


def held_names_are_left_out(maker: StoreMaker) -> None:
    """``acquire`` gives names nobody holds, due or not; a live lease is not given again, not even to its owner."""
    with fresh(maker) as log:
        mine = log.schedule.acquire("q", ["held-a", "held-b", "held-a"], "me", now=NOON, until=NOON + 100)
        assert ["held-a", "held-b"] == list(mine)
        assert ["held-c"] == list(log.schedule.acquire("q", ["held-a", "held-c"], "me", now=NOON + 99, until=NOON + 200))
        assert {} == log.schedule.acquire("q", ["held-a", "held-b"], "you", now=NOON + 99, until=NOON + 200)
        theirs = log.schedule.acquire("q", ["held-a"], "you", now=NOON + 100, until=NOON + 200)
        assert ["held-a"] == list(theirs)
        assert theirs["held-a"] > mine["held-a"]
        assert {} == log.schedule.acquire("q", [], "you", now=NOON, until=NOON + 1)
        assert {"me", "you"} == log.schedule.owners()


def wakes_bring_forward_or_set(maker: StoreMaker) -> None:
    """``sooner`` takes the earlier moment and never clears; otherwise the moment is set, earlier, later or to none."""
    with fresh(maker) as log:
        steps = [
            (Wake("q", NOON + 50, sooner=True), NOON + 50),
            (Wake("q", NOON + 90, sooner=True), NOON + 50),
            (Wake("q", NOON + 20, sooner=True), NOON + 20),
            (Wake("q", None, sooner=True), NOON + 20),
            (Wake("q", NOON + 70), NOON + 70),
            (Wake("q", None), None),
            (Wake("q", None), None),
            (Wake("q", NOON + 80, sooner=True), NOON + 80),
        ]
        for number, (wake, then) in enumerate(steps):
            log.append("wake-a", [event()] if number % 2 else [], ANY, wakes=[wake])
            assert then == log.schedule.next_wake("q"), f"step {number}: {wake}"
        log.schedule.wake("q", "wake-a", NOON + 95)
        assert NOON + 80 == log.schedule.next_wake("q")
        log.schedule.wake("q", "wake-a", NOON)
        assert NOON == log.schedule.next_wake("q")


def refused_append_changes_no_wake(maker: StoreMaker) -> None:
    """Wakes are part of the append: with it or not at all, in every part, every queue and every refusal."""
    with fresh(maker) as log:
        log.append("atom-a", [event()], NO_STREAM, wakes=[Wake("q", NOON + 50), Wake("p", NOON + 60)])
        loud = [Wake("q", NOON), Wake("p", None)]
        outcomes = log.append_batch(
            [
                request("atom-a", event(), expected=NO_STREAM, wakes=loud),
                AppendRequest([StreamAppend("atom-b", [event()], NO_STREAM, loud), StreamAppend("atom-a", [event()], 9, loud)]),
                AppendRequest([StreamAppend("atom-a", [event()], 0, loud)], [Fence("q", "atom-a", 5)]),
                AppendRequest([StreamAppend("atom-a", [], 7, loud)]),
            ]
        )
        assert [WrongExpectedVersion, WrongExpectedVersion, LeaseLost, WrongExpectedVersion] == [type(outcome) for outcome in outcomes]
        assert (NOON + 50, NOON + 60) == (log.schedule.next_wake("q"), log.schedule.next_wake("p"))
        assert 1 == len(everything(log))
        assert isinstance(one(log, request("atom-a", event(), expected=0, wakes=loud)), Appended)
        assert (NOON, None) == (log.schedule.next_wake("q"), log.schedule.next_wake("p"))


def fence_holds_until_takeover(maker: StoreMaker) -> None:
    """A paused owner whose lease has run out may still append until somebody took over; then its token is stale (S-6.4)."""
    with fresh(maker) as log:
        log.append("fence-a", [event()], NO_STREAM, wakes=[Wake("q", NOON)])
        (mine,) = claim(log, lasting=10)
        assert isinstance(one(log, _fenced(mine)), Appended)
        (theirs,) = claim(log, "you", now=NOON + 10)
        stale = one(log, _fenced(mine))
        assert isinstance(stale, LeaseLost)
        assert "fence-a" in str(stale)
        assert 1 == log.head("fence-a")
        assert isinstance(one(log, _fenced(theirs)), Appended)
        for wrong in (theirs.token + 1, 0, -1):
            assert isinstance(one(log, _fenced(theirs._replace(token=wrong))), LeaseLost)
        assert isinstance(one(log, _fenced(theirs._replace(queue="never"))), LeaseLost)
        assert isinstance(one(log, _fenced(theirs._replace(name="fence-never"))), LeaseLost)


def _fenced(held: Claim, release: bool = False) -> AppendRequest:
    return AppendRequest([StreamAppend("fence-a", [event()], ANY)], [Fence(held.queue, held.name, held.token, release)])


def fence_comes_before_the_expected_version(maker: StoreMaker) -> None:
    """A request that is both fenced off and out of date is told about the lease."""
    with fresh(maker) as log:
        both = AppendRequest([StreamAppend("fence-a", [event()], 7)], [Fence("q", "fence-a", 1)])
        assert isinstance(one(log, both), LeaseLost)


def release_inside_the_append(maker: StoreMaker) -> None:
    """``Fence(release=True)`` hands the lease back with the events, and only then; the next one in the batch sees it."""
    with fresh(maker) as log:
        log.append("fence-a", [event()], NO_STREAM, wakes=[Wake("q", NOON)])
        (held,) = claim(log)
        refused = AppendRequest([StreamAppend("fence-a", [event()], 7)], [Fence("q", "fence-a", held.token, release=True)])
        assert isinstance(one(log, refused), WrongExpectedVersion)
        assert [] == claim(log)
        assert {"me"} == log.schedule.owners()
        assert isinstance(one(log, _fenced(held, release=True)), Appended)
        assert set() == log.schedule.owners()
        (theirs,) = claim(log, "you")
        assert theirs.token > held.token


def released_names_keep_or_change_their_wake(maker: StoreMaker) -> None:
    """A release leaves the wake-up unless told otherwise; a stale claim releases nothing and changes no wake-up."""
    with fresh(maker) as log:
        log.schedule.wake("q", "rel-a", NOON)
        (first,) = claim(log)
        log.schedule.release([first])
        (second,) = claim(log)
        log.schedule.release([second], NOON + 500, keep_wake=False)
        assert NOON + 500 == log.schedule.next_wake("q")
        (third,) = claim(log, now=NOON + 500)
        log.schedule.release([second], None, keep_wake=False)
        assert [] == claim(log, "you", now=NOON + 500)
        assert NOON + 600 == log.schedule.next_wake("q")
        log.schedule.release([third], keep_wake=False)
        assert log.schedule.next_wake("q") is None
        assert set() == log.schedule.owners()


def renewed_leases_go_on(maker: StoreMaker) -> None:
    """``renew`` moves the end of what is still held, expired or not, and gives back what is lost or handed back."""
    with fresh(maker) as log:
        for name in ("new-a", "new-b", "new-c"):
            log.schedule.wake("q", name, NOON)
        a, b, c = claim(log, lasting=10)
        log.schedule.release([c], NOON + 9_000, keep_wake=False)
        assert [c] == log.schedule.renew([a, b, c], until=NOON + 50)
        assert [] == claim(log, "you", now=NOON + 49)
        assert [] == log.schedule.renew([b], until=NOON + 80)
        (taken,) = claim(log, "you", now=NOON + 50)
        assert "new-a" == taken.name
        assert [a] == log.schedule.renew([a, b], until=NOON + 90)
        assert [] == log.schedule.renew([taken], until=NOON + 500)
        assert [] == log.schedule.renew([], until=NOON)


def next_wake_looks_behind_leases(maker: StoreMaker) -> None:
    """``next_wake`` is the first moment at which a claim could give something: a wake-up, or the end of the lease in its way."""
    with fresh(maker) as log:
        assert log.schedule.next_wake("q") is None
        log.schedule.acquire("q", ["next-idle"], "me", now=NOON, until=NOON + 1)
        assert log.schedule.next_wake("q") is None
        log.schedule.wake("q", "next-a", NOON)
        claim(log, lasting=100)
        assert NOON + 100 == log.schedule.next_wake("q")
        log.schedule.wake("q", "next-b", NOON + 70)
        assert NOON + 70 == log.schedule.next_wake("q")
        log.schedule.wake("q", "next-c", NOON + 150)
        assert ["next-b"] == [found.name for found in claim(log, now=NOON + 70, lasting=500)]
        assert NOON + 100 == log.schedule.next_wake("q")
        assert (3, 2) == (log.schedule.due("q", now=NOON), log.schedule.due("q", now=NOON + 149))


def wake_ups_are_told_by_name(maker: StoreMaker) -> None:
    """``wakes`` gives the wake-up of each name of one queue, leased or not; names it never saw are left out."""
    with fresh(maker) as log:
        log.append("wake-a", [event()], NO_STREAM, wakes=[Wake("q", NOON), Wake("other", NOON + 3)])
        log.append("wake-b", [event()], NO_STREAM, wakes=[Wake("q", None)])
        claim(log)
        assert {"wake-a": NOON, "wake-b": None} == log.schedule.wakes("q", ["wake-b", "wake-a", "wake-c"])
        assert {"wake-a": NOON + 3} == log.schedule.wakes("other", ["wake-a", "wake-b"])
        many = [f"wake-{number}" for number in range(1_200)]
        assert {} == log.schedule.wakes("q", [])
        assert {"wake-a": NOON} == log.schedule.wakes("q", [*many, "wake-a"])


def categories_are_counted_apart(maker: StoreMaker) -> None:
    """``due`` and ``next_wake`` of some categories look at nobody else's names; held ones count under their own."""
    with fresh(maker) as log:
        for name, at in (("one-a", NOON + 5), ("two-a", NOON), ("one-b", NOON + 9), ("three-a", NOON + 1)):
            log.schedule.wake("q", name, at)
        log.schedule.acquire("q", ["one-b"], "me", now=NOON, until=NOON + 50)
        due, wake = log.schedule.due, log.schedule.next_wake
        assert (3, 4, 2, 1, 0) == tuple(
            due("q", now=at, categories=some)
            for at, some in ((NOON + 1, ()), (NOON + 9, ()), (NOON + 5, ("one",)), (NOON + 5, ("two", "four")), (NOON + 5, ("four",)))
        )
        assert (NOON, NOON + 5, NOON + 1, None) == (
            wake("q"),
            wake("q", categories=["one"]),
            wake("q", categories=["three", "one"]),
            wake("q", categories=["on"]),
        )
        claim(log, now=NOON + 5, lasting=100, categories=("one",))
        assert NOON + 50 == wake("q", categories=["one"])


def eviction_frees_everything_of_one_owner(maker: StoreMaker) -> None:
    """``evict`` ends every lease of a dead owner in every queue at once, and nobody else's; its tokens are stale."""
    with fresh(maker) as log:
        log.append("fence-a", [event()], NO_STREAM, wakes=[Wake("q", NOON)])
        (dead,) = claim(log, "dead", lasting=10_000)
        log.schedule.acquire("p", ["evict-b"], "dead", now=NOON, until=NOON + 10_000)
        log.schedule.acquire("p", ["evict-c"], "alive", now=NOON, until=NOON + 10_000)
        assert 2 == log.schedule.evict("dead")
        assert 0 == log.schedule.evict("dead")
        assert {"alive"} == log.schedule.owners()
        assert [dead] == log.schedule.renew([dead], until=NOON + 99_000)
        (alive,) = claim(log, "next")
        assert alive.token > dead.token
        assert isinstance(one(log, _fenced(dead)), LeaseLost)


def claimers_never_share(maker: StoreMaker) -> None:
    """Threads that claim the same queue at once get each name once, in all."""
    with several(maker, 4) as logs:
        names = [f"share-{number:03}" for number in range(200)]
        logs[0].append_batch([request(name, event(), wakes=[Wake("q", NOON)]) for name in names])

        def greedy(log: EventLog, owner: str) -> list[Claim]:
            mine: list[Claim] = []
            while got := patiently(lambda: claim(log, owner, limit=7)):
                mine.extend(got)
            return mine

        shares = together(*[lambda log=log, number=number: greedy(log, f"w{number}") for number, log in enumerate(logs)])
        assert names == sorted(found.name for share in shares for found in share)


def racing_owners_never_both_commit(maker: StoreMaker) -> None:
    """Owners that take over from each other at every turn: exactly one fenced append a token."""
    clock = Ticking()
    with several(maker, 2, clock) as logs:
        logs[0].append("fence-a", [event()], NO_STREAM, wakes=[Wake("q", NOON)])
        for round_ in range(25):
            now = NOON + round_ * 10
            (held,) = claim(logs[0], "old", now=now, lasting=5)
            takers = [lambda log=log, now=now: patiently(lambda: claim(log, "new", now=now + 5, lasting=5)) for log in logs]
            won = [found for share in together(*takers) for found in share]
            assert [True] == [found.token > held.token for found in won]
            outcomes = [one(logs[0], _fenced(held)), one(logs[1], _fenced(won[0]))]
            assert [LeaseLost, Appended] == [type(outcome) for outcome in outcomes]


CHECKS = (
    due_names_are_claimed_longest_due_first,
    tokens_grow_for_ever,
    held_names_are_left_out,
    wakes_bring_forward_or_set,
    refused_append_changes_no_wake,
    fence_holds_until_takeover,
    fence_comes_before_the_expected_version,
    release_inside_the_append,
    released_names_keep_or_change_their_wake,
    renewed_leases_go_on,
    next_wake_looks_behind_leases,
    wake_ups_are_told_by_name,
    categories_are_counted_apart,
    eviction_frees_everything_of_one_owner,
    claimers_never_share,
    racing_owners_never_both_commit,
)
