"""Checks of S-2.2 at the store: an event id stands for one event in its stream, for ever."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from ..errors import EventIdConflict, LogUnavailable, WrongExpectedVersion
from ..log import Appended, AppendRequest, Duplicate, EventLog, Fence, Outcome, StreamAppend, Wake
from ..versions import ANY, EXISTS, NO_STREAM
from .maker import NOON, StoreMaker, appended, event, events, everything, expect, fresh, one, places, request


def same_bytes_again_is_a_duplicate(maker: StoreMaker) -> None:
    """Whatever it expects by now, the same request again gives the original places and changes nothing."""
    with fresh(maker) as log:
        log.append("again-a", events(1), NO_STREAM)
        new = events(3)
        first = log.append("again-a", new, 0)
        log.append("again-a", events(2), 3)
        before = everything(log)
        for expected in (0, 3, 5, 99, NO_STREAM, EXISTS, ANY):
            outcome = one(log, request("again-a", *new, expected=expected))
            assert isinstance(outcome, Duplicate), f"expected {expected}: {outcome!r}"
            assert places(first) == places(outcome), f"expected {expected}"
        assert isinstance(log.append("again-a", new, 0), Duplicate)
        assert before == everything(log)


def other_bytes_are_a_conflict(maker: StoreMaker) -> None:
    """The same id with another payload, type or schema is an ``EventIdConflict``, whatever it expects; nothing is written."""
    with fresh(maker) as log:
        original = event(b"one", "thing.happened")
        log.append("other-a", [original], NO_STREAM)
        evolve = attrs.evolve
        for changed in (evolve(original, data=b"two"), evolve(original, type="thing.changed"), evolve(original, schema=2), evolve(original, data=b"")):
            for expected in (0, NO_STREAM, ANY):
                with expect(EventIdConflict) as refusal:
                    log.append("other-a", [changed], expected)
                assert original.event_id.hex() in str(refusal.error).replace("-", "")
        for linked in (evolve(original, correlation=b"c" * 16), evolve(original, causation=b"c" * 16)):
            assert isinstance(log.append("other-a", [linked], 0), Duplicate)
        assert 1 == len(everything(log))


def partial_overlap_is_a_conflict(maker: StoreMaker) -> None:
    """A request of which only some ids are there is refused whole: in front, behind, and in another part."""
    with fresh(maker) as log:
        old = events(2)
        log.append("part-a", old, NO_STREAM)
        before = everything(log)
        for overlap in ([old[0], event()], [event(), old[1]], [*old, event()], [event(), *old]):
            assert isinstance(one(log, request("part-a", *overlap)), EventIdConflict)
        split = AppendRequest([StreamAppend("part-b", events(1), NO_STREAM), StreamAppend("part-a", [old[0]], ANY)])
        assert isinstance(one(log, split), EventIdConflict)
        assert before == everything(log)
        assert isinstance(one(log, request("part-a", old[1])), Duplicate)


def ids_are_unique_in_their_stream_only(maker: StoreMaker) -> None:
    """One id may be in two streams; twice in one request for one stream it is a conflict."""
    with fresh(maker) as log:
        twin = event()
        assert isinstance(one(log, request("twin-a", twin)), Appended)
        assert isinstance(one(log, request("twin-b", twin)), Appended)
        both = event()
        outcome = one(log, AppendRequest([StreamAppend("twin-a", [both], ANY), StreamAppend("twin-b", [both], ANY)]))
        assert (1, 1) == appended(outcome).first_versions
        before = everything(log)
        double = event()
        assert isinstance(one(log, request("twin-a", double, double)), EventIdConflict)
        assert isinstance(one(log, request("twin-a", double, attrs.evolve(double, data=b"other"))), EventIdConflict)
        assert before == everything(log)


def duplicates_in_one_batch_and_across_batches(maker: StoreMaker) -> None:
    """It makes no difference whether the first one is committed already or stands earlier in the same batch."""
    with fresh(maker) as log:
        new, fresh_one = events(2), event()
        first, second, third, fourth = log.append_batch(
            [
                request("twice-a", *new, expected=NO_STREAM),
                request("twice-a", *new, expected=NO_STREAM),
                request("twice-a", new[0], fresh_one),
                request("twice-a", fresh_one, expected=1),
            ]
        )
        assert [Appended, Duplicate, EventIdConflict, Appended] == [type(outcome) for outcome in (first, second, third, fourth)]
        assert places(first) == places(second)
        again = log.append_batch([request("twice-a", *new, expected=NO_STREAM), request("twice-a", fresh_one, expected=1)])
        assert [Duplicate, Duplicate] == [type(outcome) for outcome in again]
        assert [places(first), places(fourth)] == [places(outcome) for outcome in again]


def multi_part_duplicate_gives_all_places(maker: StoreMaker) -> None:
    """A request over several streams, sent again, is a duplicate with the places of every part."""
    with fresh(maker) as log:
        log.append("multi-b", events(3), NO_STREAM)
        whole = AppendRequest([StreamAppend("multi-a", events(2), NO_STREAM), StreamAppend("multi-b", events(2), 2)])
        first, again = one(log, whole), one(log, whole)
        assert isinstance(again, Duplicate)
        assert places(first) == places(again)
        assert (0, 3) == again.first_versions


def duplicate_changes_no_wake_and_no_lease(maker: StoreMaker) -> None:
    """A duplicate's wakes are not applied, its fences are not asked, its leases not handed back."""
    with fresh(maker) as log:
        new = event()
        log.append("still-a", [new], NO_STREAM, wakes=[Wake("q", NOON)])
        token = log.schedule.acquire("q", ["still-a"], "me", now=NOON, until=NOON + 100)["still-a"]
        part = StreamAppend("still-a", [new], NO_STREAM, [Wake("q", NOON - 50)])
        assert isinstance(one(log, AppendRequest([part], [Fence("q", "still-a", token, release=True)])), Duplicate)
        assert isinstance(one(log, AppendRequest([part], [Fence("q", "still-a", token + 7)])), Duplicate)
        assert {"me"} == log.schedule.owners()
        assert NOON + 100 == log.schedule.next_wake("q")


class _Deaf:
    """A log whose next acknowledgement is lost: the append takes effect, and the caller is told that the store is away."""

    def __init__(self, log: EventLog) -> None:
        self._log = log

    def append_batch(self, requests: Sequence[AppendRequest]) -> list[Outcome]:
        self._log.append_batch(requests)
        raise LogUnavailable("the acknowledgement was lost")


def lost_acknowledgement(maker: StoreMaker) -> None:
    """After an append that took effect unseen, the retry is a duplicate with the original positions, also behind later events."""
    with fresh(maker) as log:
        requests = [
            request("lost-a", *events(2), expected=NO_STREAM),
            request("lost-b", event(), expected=EXISTS),
            AppendRequest([StreamAppend("lost-a", events(1), 1), StreamAppend("lost-c", events(1), NO_STREAM)]),
        ]
        with expect(LogUnavailable):
            _Deaf(log).append_batch(requests)
        written = everything(log)
        assert [("lost-a", 0), ("lost-a", 1), ("lost-a", 2), ("lost-c", 0)] == [(found.stream, found.version) for found in written]
        log.append("lost-a", events(1), 2)
        first, refused, third = log.append_batch(requests)
        assert isinstance(first, Duplicate) and isinstance(refused, WrongExpectedVersion) and isinstance(third, Duplicate)
        assert ((0,), ((written[0].position, written[1].position),)) == places(first)
        assert ((2, 0), ((written[2].position,), (written[3].position,))) == places(third)
        assert 5 == len(everything(log))


CHECKS = (
    same_bytes_again_is_a_duplicate,
    other_bytes_are_a_conflict,
    partial_overlap_is_a_conflict,
    ids_are_unique_in_their_stream_only,
    duplicates_in_one_batch_and_across_batches,
    multi_part_duplicate_gives_all_places,
    duplicate_changes_no_wake_and_no_lease,
    lost_acknowledgement,
)
