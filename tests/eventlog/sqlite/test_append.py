"""What is particular to this store's way of appending: optimism, what it remembers, and many rows at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from intentlog.eventlog.errors import EventIdConflict, LeaseLost, WrongExpectedVersion
from intentlog.eventlog.events import NewEvent
from intentlog.eventlog.ids import id_maker
from intentlog.eventlog.log import Appended, AppendRequest, Duplicate, EventLog, Fence, StreamAppend, Wake
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.versions import ANY, NO_STREAM, ExpectedVersion

new_id = id_maker()
QUEUE = "turns"


def event(content: bytes = b"{}") -> NewEvent:
    return NewEvent(new_id(), "thing.happened", 1, content)


def request(stream: str, events: list[NewEvent], expected: ExpectedVersion, *, wakes: tuple[Wake, ...] = (), fences: tuple[Fence, ...] = ()) -> AppendRequest:
    return AppendRequest([StreamAppend(stream, events, expected, wakes)], fences)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EventLog]:
    with closing(open_log(f"sqlite:///{tmp_path}/log.db")) as opened:
        yield opened


@pytest.fixture
def other(tmp_path: Path, log: EventLog) -> Iterator[EventLog]:
    """The same file through an object of its own: to ``log``, another process."""
    with closing(open_log(f"sqlite:///{tmp_path}/log.db")) as opened:
        yield opened


def test_a_repetition_that_states_the_present_head_is_a_duplicate(log: EventLog) -> None:
    first, second = event(), event()
    log.append("a-1", [first], NO_STREAM)
    log.append("a-1", [second], 0)
    outcomes = log.append_batch([request("b-1", [event()], NO_STREAM), request("a-1", [second], 1), request("a-1", [event()], 1)])
    assert outcomes == [Appended((0,), ((3,),)), Duplicate((1,), ((2,),)), Appended((2,), ((4,),))]


def test_a_repetition_inside_one_batch_is_a_duplicate_of_the_earlier_request(log: EventLog) -> None:
    twice = request("a-1", [event(), event()], NO_STREAM)
    assert log.append_batch([twice, twice]) == [Appended((0,), ((1, 2),)), Duplicate((0,), ((1, 2),))]


def test_requests_with_and_without_exact_versions_share_a_batch(log: EventLog) -> None:
    old, new = event(), event()
    log.append("a-1", [old], NO_STREAM)
    outcomes = log.append_batch([request("b-1", [new], NO_STREAM), request("a-1", [old], ANY), request("b-1", [new], ANY), request("a-1", [event()], ANY)])
    assert outcomes == [Appended((0,), ((2,),)), Duplicate((0,), ((1,),)), Duplicate((0,), ((2,),)), Appended((1,), ((3,),))]


def test_the_same_id_with_other_bytes_is_a_conflict_even_at_the_right_version(log: EventLog) -> None:
    first = event(b"one")
    log.append("a-1", [first], NO_STREAM)
    outcomes = log.append_batch([request("a-1", [NewEvent(first.event_id, first.type, 1, b"two")], 0), request("a-1", [event()], 0)])
    assert isinstance(outcomes[0], EventIdConflict)
    assert outcomes[1] == Appended((1,), ((2,),))


def test_a_loser_sees_what_earlier_requests_of_its_batch_appended_and_nothing_later(log: EventLog) -> None:
    log.append("a-1", [event(b"0")], NO_STREAM)
    outcomes = log.append_batch([request("a-1", [event(b"1")], 0), request("a-1", [event(b"x")], 0), request("a-1", [event(b"2")], 1)])
    lost = outcomes[1]
    assert isinstance(lost, WrongExpectedVersion)
    assert [(each.version, each.data) for each in lost.events] == [(1, b"1")]
    assert [each.data for each in log.read("a-1")] == [b"0", b"1", b"2"]


def test_a_refused_request_leaves_no_stream_behind(log: EventLog) -> None:
    (outcome,) = log.append_batch([request("a-1", [event()], 5)])
    assert isinstance(outcome, WrongExpectedVersion)
    assert list(log.streams()) == []


def test_what_another_process_appended_is_noticed(log: EventLog, other: EventLog) -> None:
    log.append("a-1", [event()], NO_STREAM)
    other.append("a-1", [event()], 0)
    other.append("b-1", [event()], NO_STREAM)
    assert log.append("a-1", [event()], 1) == Appended((2,), ((4,),))
    with pytest.raises(WrongExpectedVersion):
        log.append("b-1", [event()], NO_STREAM)
    with pytest.raises(WrongExpectedVersion):
        other.append("a-1", [event()], 1)


def test_a_lease_that_another_process_took_over_is_noticed(log: EventLog, other: EventLog) -> None:
    token = log.schedule.acquire(QUEUE, ["a-1"], "one", now=0, until=10)["a-1"]
    fenced = request("a-1", [event()], NO_STREAM, fences=(Fence(QUEUE, "a-1", token),))
    assert isinstance(log.append_batch([fenced])[0], Appended)
    assert other.schedule.acquire(QUEUE, ["a-1"], "two", now=20, until=30) == {"a-1": token + 1}
    (outcome,) = log.append_batch([request("a-1", [event()], 0, fences=(Fence(QUEUE, "a-1", token),))])
    assert isinstance(outcome, LeaseLost)


def test_a_stream_whose_first_append_was_undone_is_not_remembered(log: EventLog, other: EventLog) -> None:
    with pytest.raises(OverflowError):
        log.append("ghost-1", [event(b"ghost")], NO_STREAM, wakes=[Wake(QUEUE, 1 << 70)])  # the schedule is written after the stream
    other.append("real-1", [event(b"real")], NO_STREAM)
    assert log.append("ghost-1", [event(b"ghost")], NO_STREAM) == Appended((0,), ((2,),))
    assert [each.data for each in other.read("real-1")] == [b"real"]
    assert [each.data for each in other.read("ghost-1")] == [b"ghost"]


@pytest.mark.parametrize("count", [1, 127, 128, 129, 300])
def test_batches_of_any_size_are_whole_and_in_order(log: EventLog, count: int) -> None:
    names = [f"a-{each:04d}" for each in range(count)]
    assert log.append_batch([]) == []
    outcomes = log.append_batch([request(name, [event(), event(), event()], NO_STREAM, wakes=(Wake(QUEUE, 5),)) for name in names])
    assert outcomes == [Appended((0,), ((3 * each + 1, 3 * each + 2, 3 * each + 3),)) for each in range(count)]
    claims = log.schedule.claim_due(QUEUE, "w", now=5, until=9, limit=1_000)
    assert [claim.name for claim in claims] == names
    fenced = [request(claim.name, [event()], 2, wakes=(Wake(QUEUE, None),), fences=(Fence(QUEUE, claim.name, claim.token, release=True),)) for claim in claims]
    assert {type(outcome) for outcome in log.append_batch(fenced)} == {Appended}
    assert (log.schedule.due(QUEUE, now=100), log.schedule.owners()) == (0, set())
    assert [each.position for each in log.read_all()] == list(range(1, 4 * count + 1))


def test_wakes_of_one_batch_add_up_in_the_order_of_its_requests(log: EventLog) -> None:
    log.schedule.wake(QUEUE, "a-1", 50)
    log.schedule.wake(QUEUE, "b-1", 50)
    log.schedule.wake(QUEUE, "c-1", 50)
    wakes = {
        "a-1": [Wake(QUEUE, 70), Wake(QUEUE, 90, sooner=True)],
        "b-1": [Wake(QUEUE, 10, sooner=True), Wake(QUEUE, None)],
        "c-1": [Wake(QUEUE, 60, sooner=True)],
    }
    log.append_batch([request(name, [event()], ANY, wakes=(wake,)) for name, several in wakes.items() for wake in several])
    log.append_batch([request("d-1", [], ANY, wakes=(Wake(QUEUE, None), Wake(QUEUE, 80, sooner=True)))])
    claims = log.schedule.claim_due(QUEUE, "w", now=100, until=200, limit=10)
    assert [(claim.name, claim.wake_at) for claim in claims] == [("c-1", 50), ("a-1", 70), ("d-1", 80)]


def test_positions_are_not_given_twice_even_after_rows_were_deleted_by_hand(log: EventLog, tmp_path: Path) -> None:
    log.append("a-1", [event(), event()], NO_STREAM)
    with log._database.write() as connection:  # type: ignore[attr-defined]
        connection.execute("DELETE FROM events")
    with closing(open_log(f"sqlite:///{tmp_path}/log.db")) as later:
        assert later.append("b-1", [event()], NO_STREAM) == Appended((0,), ((3,),))
