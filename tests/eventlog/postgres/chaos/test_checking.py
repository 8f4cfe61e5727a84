"""The checker notices every way in which a log or a tail could be wrong."""

from __future__ import annotations

import pytest

from tests.eventlog.postgres.chaos.checking import Ack, Entry, Life, checkpoint_faults, history_faults, tail_faults

A, B, C = Entry(10, "a-1", 0, "aa"), Entry(11, "b-1", 0, "bb"), Entry(20, "a-1", 1, "cc")
ORDER = [A, B, C]
ACKS = [Ack(1, (A, B)), Ack(1, (C,), refused=("dd",)), Ack(2, (A,), again=True)]


def test_a_log_that_is_as_it_should_be_has_no_faults():
    assert [] == list(history_faults(ORDER, ACKS))


@pytest.mark.parametrize(
    "order, acks, named",
    [
        ([A, B], ACKS, "acknowledged"),
        ([A, B, C, Entry(30, "c-1", 0, "cc")], ACKS, "more than once"),
        ([A, B, C, Entry(30, "c-1", 0, "dd")], ACKS, "refused, and there"),
        ([A, B, C, Entry(30, "c-1", 0, "ee")], ACKS, "nobody was told of"),
        ([A, C, B], ACKS, "stands before"),
        ([A, B, C._replace(version=2)], [Ack(1, (A, B, C._replace(version=2)))], "versions of a-1"),
        ([A, B, C._replace(version=0)], [Ack(1, (A, B, C._replace(version=0)))], "versions of a-1"),
        ([A, B, C], [Ack(1, (A, B)), Ack(1, (C._replace(position=21),))], "acknowledged"),
        ([A, B, C], [Ack(1, (C,)), Ack(1, (A, B))], "was told of 20 before"),
    ],
)
def test_a_fault_of_the_log_is_named(order, acks, named):
    assert any(named in fault for fault in history_faults(order, acks))


def test_a_tail_that_is_as_it_should_be_has_no_faults():
    for lives in ([Life(0, ORDER)], [Life(0, [A, B]), Life(10, [B, C])], [Life(0, []), Life(0, ORDER)], [Life(0, ORDER), Life(20, [])]):
        assert [] == list(tail_faults("t", lives, ORDER))


@pytest.mark.parametrize(
    "lives",
    [
        [Life(0, [A, B])],
        [Life(0, [A, C])],
        [Life(0, [B, A, C])],
        [Life(0, [A, A, B, C])],
        [Life(0, [A, C]), Life(10, [B, C])],
        [Life(0, [A]), Life(11, [C])],
        [Life(0, [A, B, C]), Life(10, [C])],
        [Life(0, [A, B, C, C])],
    ],
)
def test_a_fault_of_a_tail_is_named(lives):
    assert [] != list(tail_faults("t", lives, ORDER))


def test_a_checkpoint_that_goes_back_is_named():
    assert [] == list(checkpoint_faults([{}, {"t": 1}, {"t": 1, "u": 5}, {"t": 3, "u": 5}]))
    assert 1 == len(list(checkpoint_faults([{"t": 2}, {"t": 1}])))
    assert 1 == len(list(checkpoint_faults([{"t": 2}, {}])))
