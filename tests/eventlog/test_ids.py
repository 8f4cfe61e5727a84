"""Event ids: unique, in order of making, and valid UUIDs of version 7."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from intentlog.eventlog.ids import id_maker


def test_ids_of_one_maker_grow_inside_a_millisecond_and_across_them():
    moments = iter([5_000, 5_000, 5_999, 6_000, 9_000_000])
    make = id_maker(lambda: next(moments))
    made = [make() for _ in range(5)]
    assert sorted(made) == made
    assert 5 == len(set(made))


def test_ids_grow_when_the_clock_goes_back():
    moments = iter([9_000_000, 5_000, 4_000, 9_001_000])
    make = id_maker(lambda: next(moments))
    made = [make() for _ in range(4)]
    assert sorted(set(made)) == made


@given(st.integers(0, (1 << 48) * 1_000 - 1), st.binary(min_size=10, max_size=10))
def test_an_id_is_a_uuid_of_version_7_that_tells_its_millisecond(now, entropy):
    made = id_maker(lambda: now, lambda _: entropy)()
    assert 16 == len(made)
    assert 7 == uuid.UUID(bytes=made).version
    assert uuid.RFC_4122 == uuid.UUID(bytes=made).variant
    assert now // 1_000 == int.from_bytes(made[:6], "big")


@given(st.binary(min_size=10, max_size=10))
def test_counting_up_keeps_the_order_whatever_the_entropy(entropy):
    make = id_maker(lambda: 1_000, lambda _: entropy)
    made = [make() for _ in range(100)]
    assert sorted(set(made)) == made


def test_the_same_clock_and_entropy_give_the_same_ids():
    one, two = (id_maker(lambda: 1_000, lambda count: b"\x07" * count) for _ in range(2))
    assert [one() for _ in range(3)] == [two() for _ in range(3)]


def test_threads_share_a_maker_without_a_repeated_id():
    make = id_maker()
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: make(), range(5_000)))
    assert 5_000 == len(set(made))


def test_two_makers_do_not_meet():
    one, two = id_maker(lambda: 1_000), id_maker(lambda: 1_000)
    assert not {one() for _ in range(1_000)} & {two() for _ in range(1_000)}
