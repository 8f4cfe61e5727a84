"""Checks of names that mean views: pointed at once for everybody, never at a view that is behind, and parked events that leave."""

from __future__ import annotations

import threading

from ..errors import LeaseLost
from ..log import EventLog, ParkedEvent
from .maker import PATIENCE, StoreMaker, expect, fresh, patiently, several, together


def _filled(log: EventLog, view: str, position: int, *rows: tuple[str, bytes]) -> None:
    with log.views.transaction(view) as writing:
        for key, value in rows:
            writing.put(key, value)
        writing.checkpoint(position)


def a_name_means_the_view_it_points_at(maker: StoreMaker) -> None:
    """Readers follow the name, those made before it changed as well; writing, clearing and checkpoints are of the view named."""
    with several(maker, 2) as (log, other):
        _filled(log, "sums@v1", 5, ("a", b"1"))
        _filled(log, "sums@v2", 5, ("a", b"2"), ("b", b"2"))
        before = other.views.read("sums")
        assert (None, [], {}) == (before.get("a"), list(before.items()), log.views.pointed())
        assert log.views.point("sums", "sums@v1", expected=None)
        assert (b"1", [("a", b"1")]) == (before.get("a"), list(before.items()))
        assert log.views.point("sums", "sums@v2", expected="sums@v1")
        assert (b"2", None, [("b", b"2")]) == (before.get("a"), before.get("c"), list(before.items("b")))
        assert {"sums": "sums@v2"} == other.views.pointed()
        assert (b"1", 0) == (log.views.read("sums@v1").get("a"), log.checkpoints.load("sums"))
        log.views.clear("sums")
        assert b"2" == before.get("a")
        assert log.views.point("sums", None, expected="sums@v2")
        assert (None, {}) == (before.get("a"), other.views.pointed())


def a_name_is_pointed_from_where_it_was_seen(maker: StoreMaker) -> None:
    """``point`` changes nothing when the name means something else than expected."""
    with fresh(maker) as log:
        _filled(log, "n@v1", 1, ("a", b"1"))
        _filled(log, "n@v2", 1, ("a", b"2"))
        assert not log.views.point("n", "n@v1", expected="n@v2")
        assert not log.views.point("n", None, expected="n@v1")
        assert log.views.point("n", "n@v1", expected=None)
        assert not log.views.point("n", "n@v2", expected=None)
        assert {"n": "n@v1"} == log.views.pointed()


def no_name_is_pointed_at_a_view_that_is_behind(maker: StoreMaker) -> None:
    """``point`` refuses a view whose checkpoint is behind the one the name means; level with it is enough."""
    with fresh(maker) as log:
        _filled(log, "n@v1", 7, ("a", b"1"))
        _filled(log, "n@v2", 6, ("a", b"2"))
        assert log.views.point("n", "n@v1", expected=None)
        assert not log.views.point("n", "n@v2", expected="n@v1")
        assert not log.views.point("n", "n@v3", expected="n@v1")
        assert b"1" == log.views.read("n").get("a")
        _filled(log, "n@v2", 7)
        assert log.views.point("n", "n@v2", expected="n@v1")
        assert b"2" == log.views.read("n").get("a")


def one_of_two_swaps_at_once_wins(maker: StoreMaker) -> None:
    """Of two ``point`` calls that expect the same, one comes true."""
    with several(maker, 2) as logs:
        for view in ("n@v1", "n@v2", "n@v3"):
            _filled(logs[0], view, 1)
        for _ in range(10):
            assert logs[0].views.point("n", "n@v1", expected=logs[0].views.pointed().get("n"))
            done = together(
                lambda: patiently(lambda: logs[0].views.point("n", "n@v2", expected="n@v1")),
                lambda: patiently(lambda: logs[1].views.point("n", "n@v3", expected="n@v1")),
            )
            assert sorted(done) == [False, True], done
            assert {"n": "n@v2" if done[0] else "n@v3"} == logs[0].views.pointed()


def readers_see_one_view_or_the_other(maker: StoreMaker) -> None:
    """While a name is pointed to and fro, every ``get`` finds a row, and every walk is one view from end to end."""
    with several(maker, 2) as (log, other):
        keys = [f"k{number:04}" for number in range(3_000)]
        for view in ("n@v1", "n@v2"):
            _filled(log, view, 1, *((key, view.encode()) for key in keys))
        log.views.point("n", "n@v1", expected=None)
        reading, over, seen, walks = other.views.read("n"), threading.Event(), set[bytes | None](), set[tuple[int, int]]()

        def look() -> None:
            while not over.is_set():
                seen.add(reading.get(keys[-1]))
                values = [value for _, value in reading.items()]
                walks.add((len(values), len(set(values))))

        reader = threading.Thread(target=look, daemon=True)
        reader.start()
        try:
            for turn in range(40):
                now, then = ("n@v1", "n@v2") if turn % 2 == 0 else ("n@v2", "n@v1")
                assert patiently(lambda now=now, then=then: log.views.point("n", then, expected=now))  # type: ignore[misc]
        finally:
            over.set()
            reader.join(PATIENCE)
        assert not reader.is_alive()
        assert seen <= {b"n@v1", b"n@v2"}, seen
        assert walks <= {(len(keys), 1)}, walks


def a_walk_under_which_the_view_is_cleared_is_not_taken_for_whole(maker: StoreMaker) -> None:
    """``items`` gives every row or raises ``LeaseLost``; it never just ends where the clearing came."""
    with several(maker, 2) as (log, other):
        _filled(log, "n@v1", 1, *((f"k{number:05}", b"x" * 100) for number in range(20_000)))
        log.views.point("n", "n@v1", expected=None)
        walk = log.views.read("n").items()
        first = next(walk)
        other.views.clear("n@v1")
        walked: int | str
        try:
            walked = len([first, *walk])
        except LeaseLost as lost:
            walked = str(lost)
        assert walked == 20_000 or "n@v1" in str(walked), walked
        assert [] == list(log.views.read("n").items())


def parked_events_leave_with_their_block(maker: StoreMaker) -> None:
    """``unpark`` forgets one parked event of this view, together with the block's writes; parking again renews the error."""
    with fresh(maker) as log:
        for view in ("n@v1", "n@v2"):
            with log.views.transaction(view) as writing:
                writing.park(ParkedEvent(view, 3, "a-1", 0, "first", 10))
                writing.park(ParkedEvent(view, 4, "a-1", 1, "second", 11))
        with expect(ZeroDivisionError), log.views.transaction("n@v1") as writing:
            writing.unpark(3)
            raise ZeroDivisionError
        assert [3, 4] == [parked.position for parked in log.views.parked("n@v1")]
        with log.views.transaction("n@v1") as writing:
            writing.unpark(3)
            writing.unpark(99)
            writing.park(ParkedEvent("n@v1", 4, "a-1", 1, "again", 12))
        assert [ParkedEvent("n@v1", 4, "a-1", 1, "again", 12)] == log.views.parked("n@v1")
        assert [3, 4] == [parked.position for parked in log.views.parked("n@v2")]


CHECKS = (
    a_name_means_the_view_it_points_at,
    a_name_is_pointed_from_where_it_was_seen,
    no_name_is_pointed_at_a_view_that_is_behind,
    one_of_two_swaps_at_once_wins,
    readers_see_one_view_or_the_other,
    a_walk_under_which_the_view_is_cleared_is_not_taken_for_whole,
    parked_events_leave_with_their_block,
)
