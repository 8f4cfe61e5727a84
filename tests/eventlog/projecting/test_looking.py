"""Which views there are, how far they are behind, and how two of them differ."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intentlog.eventlog.clock import SECOND
from intentlog.eventlog.errors import ProjectionRefused
from intentlog.eventlog.events import StoredEvent
from intentlog.eventlog.log import EventLog, View
from intentlog.eventlog.memory import open_memory
from intentlog.eventlog.projections import Lag, OnError, Projection, catch_up, compare, drop, lag_of, standings, swap, swap_as_it_is
from intentlog.eventlog.testing import StoreMaker
from intentlog.eventlog.testing.maker import Ticking, event, events, fresh
from intentlog.eventlog.versions import ANY


def count(view: View, stored: StoredEvent, decoded: object) -> None:
    view.put(stored.stream, str(int(view.get(stored.stream) or b"0") + 1).encode())


def hostile(view: View, stored: StoredEvent, decoded: object) -> None:
    raise ValueError("no")


def test_every_version_is_listed_with_where_it_stands(maker: StoreMaker) -> None:
    with fresh(maker) as log:
        log.append("a-1", events(5), ANY)
        log.checkpoints.save("effector", 3)
        first, second = Projection("p", count), Projection("p", count, version=2)
        catch_up(log, first)
        catch_up(log, second, upto=next(iter(log.read_all(after=0, limit=1))).position)
        catch_up(log, Projection("bad", hostile, on_error=OnError.PARK))
        end = log.last_position()
        found = [(each.view, each.live, each.parked, each.behind == 0, each.declared) for each in standings(log, [second])]
        assert [("bad@v1", True, 5, True, None), ("p@v1", True, 0, True, None), ("p@v2", False, 0, False, second)] == found
        assert {end} == {each.end for each in standings(log)}
        assert ["p@v1", "p@v2"] == [each.view for each in standings(log, name="p")]


def test_what_was_declared_and_never_run_is_listed_too() -> None:
    (standing,) = standings(open_memory(), [Projection("p", count)])
    assert (False, 0, 0) == (standing.live, standing.position, standing.behind)


def test_lag_counts_what_the_projection_wants_and_says_how_old_it_is() -> None:
    clock = Ticking()
    log = open_memory(clock=clock)
    wanting = Projection("p", count, types=("x",))
    log.append("a-1", [event(type="x")], ANY)
    catch_up(log, wanting)
    log.append("a-1", [event(type="y")], ANY)
    clock.advance(5 * SECOND)
    log.append("a-1", [event(type="x"), event(type="x")], ANY)
    clock.advance(7 * SECOND)
    (known,), (unknown,) = standings(log, [wanting]), standings(log)
    assert (Lag(2, False, 7 * SECOND), Lag(3, False, 12 * SECOND)) == (lag_of(log, known), lag_of(log, unknown))
    catch_up(log, wanting)
    (known,) = standings(log, [wanting])
    assert Lag(0, False, 0) == lag_of(log, known)


def test_a_view_ahead_of_the_log_is_behind_by_less_than_nothing() -> None:
    log = open_memory()
    log.append("a-1", events(2), ANY)
    log.checkpoints.save("p@v1", 12)
    (standing,) = standings(log)
    assert (-10, Lag(0, False, 0)) == (standing.behind, lag_of(log, standing))


def filled(log: EventLog, view: str, rows: dict[str, bytes], position: int = 1) -> None:
    with log.views.transaction(view) as writing:
        for key, value in rows.items():
            writing.put(key, value)
        writing.checkpoint(position)


KEYS = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from([b"1", b"2"]))


@given(KEYS, KEYS)
def test_a_comparison_counts_what_two_dicts_say(left: dict[str, bytes], right: dict[str, bytes]) -> None:
    log = open_memory()
    filled(log, "p@v1", left)
    filled(log, "p@v2", right)
    found = compare(log, "p@v1", "p@v2", examples=3)
    both = left.keys() & right.keys()
    same = {key for key in both if left[key] == right[key]}
    assert (len(same), len(both - same)) == (found.same, found.different)
    assert (len(left.keys() - right.keys()), len(right.keys() - left.keys())) == (found.only_left, found.only_right)
    others = sorted((left.keys() | right.keys()) - same)
    assert [(key, left.get(key), right.get(key)) for key in others[:3]] == list(found.examples)
    assert (left == right, False) == (found.equal, found.moved)


def test_a_name_is_compared_by_the_view_it_means(maker: StoreMaker) -> None:
    with fresh(maker) as log:
        filled(log, "p@v1", {"a": b"1"})
        filled(log, "p@v2", {"a": b"1"}, position=2)
        log.views.point("p", "p@v1", expected=None)
        found = compare(log, "p", "p@v2")
        assert ("p@v1", "p@v2", 1, 2, True) == (found.left, found.right, found.left_position, found.right_position, found.equal)


def test_what_was_never_built_is_not_compared() -> None:
    log = open_memory()
    filled(log, "p@v1", {})
    with pytest.raises(ProjectionRefused, match="no view p@v2 to compare"):
        compare(log, "p@v1", "p@v2")


def test_a_swap_back_without_code_needs_a_view() -> None:
    log = open_memory()
    log.append("a-1", events(1), ANY)
    catch_up(log, Projection("p", count))
    with pytest.raises(ProjectionRefused, match=r"There is no view p@v2.*rebuild p --version 2"):
        swap_as_it_is(log, "p", 2)
    done = swap_as_it_is(log, "p", 1)
    assert ("p@v1", "p@v1") == (done.old, done.new)


def test_a_swap_to_what_is_live_changes_nothing() -> None:
    log = open_memory()
    log.append("a-1", events(1), ANY)
    catch_up(log, Projection("p", count))
    done = swap(log, Projection("p", count))
    assert ("p@v1", "p@v1", {"p": "p@v1"}) == (done.old, done.new, log.views.pointed())


def test_a_first_swap_has_no_old_view() -> None:
    log = open_memory()
    log.append("a-1", events(1), ANY)
    assert None is swap(log, Projection("p", count)).old


def test_an_event_that_the_live_version_lacks_too_stops_no_swap() -> None:
    log = open_memory()
    log.append("a-1", events(3), ANY)
    catch_up(log, Projection("p", hostile, on_error=OnError.PARK))
    swap(log, Projection("p", hostile, on_error=OnError.PARK, version=2))
    log.views.clear("p@v2")
    catch_up(log, Projection("p", count, version=2))
    with pytest.raises(ProjectionRefused, match=r"p@v3 lacks 3 parked events that p@v2 has, first a-1 version 0"):
        swap(log, Projection("p", hostile, on_error=OnError.PARK, version=3))
    swap(log, Projection("p", hostile, on_error=OnError.PARK, version=3), lacking=True)
    assert {"p": "p@v3"} == log.views.pointed()


def test_what_is_not_there_is_not_dropped() -> None:
    with pytest.raises(ProjectionRefused, match="There is no view p@v1 to drop"):
        drop(open_memory(), "p", 1)


def test_a_view_that_becomes_live_while_it_is_dropped_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_memory()
    log.append("a-1", events(1), ANY)
    catch_up(log, Projection("p", count))
    catch_up(log, Projection("p", count, version=2))
    clear = log.views.clear

    def clear_late(view: str) -> None:
        swap_as_it_is(log, "p", 2)
        clear(view)

    monkeypatch.setattr(log.views, "clear", clear_late)
    with pytest.raises(ProjectionRefused, match=r"p@v2 became live while it was being dropped.*--version 2 --in-place"):
        drop(log, "p", 2)
