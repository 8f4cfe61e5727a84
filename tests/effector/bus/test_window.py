"""Which message is next, and up to where everything is done with."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from intentlog.effector.bus import Message
from intentlog.effector.bus.window import MOST, Entry, Window


def window(*keys: str | None, holes: int = 1) -> Window:
    made = Window()
    for number, key in enumerate(keys):
        made.add(Message(key, b"xx", {}, 0, number * holes))
    return made


def taken(of: Window, now: int = 10) -> Entry:
    found = of.next(now)
    assert isinstance(found, Entry)
    return found


def test_messages_are_taken_in_order_and_nothing_is_done_before_the_first_is():
    made = window("a", "b", "a")
    first = taken(made)
    first.wait("busy", 20, 10)
    second = taken(made)
    made.over(second)
    assert (0, 1, -1) == (first.message.offset, second.message.offset, made.done)
    assert 20 == made.next(10)
    assert taken(made, 20) is first
    made.over(first)
    assert (1, 2) == (made.done, taken(made).message.offset)


def test_one_that_waits_keeps_its_key_and_no_other():
    made = window("a", "a", "b", None, None)
    taken(made).wait("busy", 50, 10)
    order = []
    while isinstance(found := made.next(10), Entry):
        order.append(found.message.offset)
        made.over(found)
    assert ([2, 3, 4], 50, 2) == (order, found, len(made))


def test_messages_without_a_key_do_not_wait_for_each_other():
    made = window(None, None)
    taken(made).wait("dead letters", 50, 10)
    assert 1 == taken(made).message.offset


def test_a_clock_that_goes_back_makes_nobody_wait():
    made = window("a")
    entry = taken(made, 1_000)
    entry.wait("busy", 1_100, 1_000)
    assert (1_100, entry) == (made.next(1_050), made.next(500))


def test_with_holes_between_offsets_what_is_done_is_an_offset_that_was_delivered():
    made = window("a", "b", "c", holes=10)
    for _ in range(3):
        made.over(taken(made))
    assert 20 == made.done


def test_it_is_full_with_many_messages_or_many_bytes_and_roomy_again_later():
    made = window(*["a"] * MOST)
    assert (True, False) == (made.full, made.roomy)
    while not made.roomy:
        made.over(taken(made))
    assert MOST // 2 == len(made)
    large = Window()
    large.add(Message("a", b"x" * (33 << 20), {}, 0, 0))
    assert (True, False) == (large.full, large.roomy)
    large.over(taken(large))
    assert (False, True) == (large.full, large.roomy)


@given(st.lists(st.tuples(st.sampled_from([None, "a", "b", "c"]), st.integers(0, 3)), max_size=30))
def test_whatever_waits_every_key_keeps_its_order_and_all_is_done_in_the_end(plan):
    made = window(*[key for key, _ in plan])
    waits = {number: times for number, (_, times) in enumerate(plan)}
    over: list[int] = []
    now = 0
    while len(made):
        found = made.next(now)
        if not isinstance(found, Entry):
            assert found is not None
            assert found > now
            now = found
            continue
        offset = found.message.offset
        if waits[offset]:
            waits[offset] -= 1
            found.wait("busy", now + 1 + offset % 3, now)
            continue
        made.over(found)
        over.append(offset)
        left = set(range(len(plan))) - set(over)
        assert made.done == (min(left) - 1 if left else len(plan) - 1)
    assert sorted(over) == list(range(len(plan)))
    for key in "abc":
        mine = [offset for offset in over if plan[offset][0] == key]
        assert sorted(mine) == mine
