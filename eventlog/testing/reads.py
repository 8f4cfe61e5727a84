"""Checks of every way to read: ranges, directions, rows, many streams, the whole log with filters, names by prefix."""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Iterator
from typing import Final

from ..log import EventLog
from ..names import category_of
from ..versions import ANY, NO_STREAM
from .maker import StoreMaker, event, events, everything, fresh, request

LONG: Final = 100_000
"""Events in the long stream."""
READING_BOUND: Final = 32 * 1_048_576
"""Bytes of Python memory that reading it may take, at its peak; the events together take well over twice that."""

_KEYS: Final = (
    "100%",
    "100x",
    "a_b",
    "aXb",
    "ab",
    "%",
    "_",
    "\\",
    "[a]",
    "*",
    "é",
    "z",
    "日本",
    "\uffee",
    "\U0001f600",
    "\U0001f600b",
    "A",
    "a'b",
    'a"b',
    "-",
    "--x",
)


def ranges_of_one_stream(maker: StoreMaker) -> None:
    """Every combination of after, upto, limit and direction equals the same cut of a list."""
    with fresh(maker) as log:
        log.append("range-b", events(2), NO_STREAM)
        log.append("range-a", events(5), NO_STREAM)
        whole = list(log.read("range-a"))
        assert [0, 1, 2, 3, 4] == [found.version for found in whole]
        for after, upto, limit, backwards in itertools.product((-1, 0, 2, 4, 9), (None, -1, 0, 3, 4, 99), (None, 0, 1, 3, 99), (False, True)):
            wanted = [found for found in whole if found.version > after and (upto is None or found.version <= upto)]
            wanted = (wanted[::-1] if backwards else wanted)[:limit]
            got = list(log.read("range-a", after=after, upto=upto, limit=limit, backwards=backwards))
            assert wanted == got, f"after={after} upto={upto} limit={limit} backwards={backwards}"
            if limit is None and not backwards:
                rows = [tuple(row) for chunk in log.rows("range-a", after=after, upto=upto) for row in chunk]
                assert [(found.version, found.type, found.schema, found.data, found.event_id, found.recorded_at) for found in wanted] == rows
        assert [] == list(log.read("range-none"))
        assert [] == [row for chunk in log.rows("range-none") for row in chunk]
        assert -1 == log.head("range-none")


def tails_of_many_streams(maker: StoreMaker) -> None:
    """``rows_of`` gives each stream what lies above its own version, or the first of it, however many are asked for."""
    with fresh(maker) as log:
        log.append_batch([request(f"many-{number}", *events(number % 4 + 1)) for number in range(1_200)])
        asked = {f"many-{number}": number % 3 - 1 for number in range(1_200)} | {"many-none": -1}
        got = log.rows_of(asked)
        assert set(asked) >= set(got)
        for stream, after in asked.items():
            wanted = [row for chunk in log.rows(stream, after=after) for row in chunk]
            assert wanted == [tuple(row) for row in got.get(stream, [])], stream
        assert {} == log.rows_of({})
        for most in (1, 2, 100):
            bounded = log.rows_of(asked, most=most)
            assert all(list(bounded.get(stream, [])) == list(got.get(stream, []))[:most] for stream in asked), most


def whole_log_with_filters(maker: StoreMaker) -> None:
    """``read_all`` gives commit order; position bounds, types, categories and limit cut it like a list."""
    with fresh(maker) as log:
        log.append_batch(
            [
                request(f"{group}-{number % 2}", event(type=f"kind.{number % 3}"), event(type="kind.0"))
                for number, group in enumerate(("all", "all.x", "other") * 4)
            ]
        )
        whole = everything(log)
        assert 24 == len(whole)
        middle = whole[11].position
        kinds = ((), ("kind.1",), ("kind.0", "kind.2"), ("absent",))
        groups = ((), ("all",), ("all.x", "other"), ("absent",))
        for after, upto, types, categories, limit in itertools.product((0, middle, whole[-1].position), (None, middle, 0), kinds, groups, (None, 0, 2)):
            wanted = [
                found
                for found in whole
                if found.position > after
                and (upto is None or found.position <= upto)
                and (not types or found.type in types)
                and (not categories or category_of(found.stream) in categories)
            ][:limit]
            got = list(log.read_all(after=after, upto=upto, types=iter(types), categories=iter(categories), limit=limit))
            assert wanted == got, f"after={after} upto={upto} types={types} categories={categories} limit={limit}"


def payloads_only_when_asked_for(maker: StoreMaker) -> None:
    """Without ``payloads`` a read gives the same events with empty data, in every direction and with every filter, small and large."""
    with fresh(maker) as log:
        log.append_batch([request(f"bare-{number % 2}", event(bytes(size), f"kind.{number % 3}")) for number, size in enumerate((0, 1, 200_000) * 4)])
        for backwards in (False, True):
            whole = log.read("bare-0", backwards=backwards)
            assert [found._replace(data=b"") for found in whole] == list(log.read("bare-0", backwards=backwards, payloads=False))
        for types, categories in (((), ()), (("kind.1",), ()), ((), ("bare",)), (("kind.2",), ("bare",))):
            bare = list(log.read_all(types=types, categories=categories, payloads=False))
            assert [found._replace(data=b"") for found in log.read_all(types=types, categories=categories)] == bare
            assert {b""} == {found.data for found in bare}
        assert {0, 1, 200_000} == {len(found.data) for found in log.read_all()}


def names_by_prefix(maker: StoreMaker) -> None:
    """``streams`` takes a prefix literally, whatever characters it holds, and gives names in code point order."""
    with fresh(maker) as log:
        names = [f"{category}-{key}" for category in ("pre", "pre.fix", "q") for key in _KEYS]
        log.append_batch([request(name, event()) for name in names])
        log.schedule.wake("q", "pre-only.scheduled", 1)
        for prefix in ("", "p", "pre-", "pre.", "q-", "r", "Q", *(f"pre-{key}" for key in _KEYS), "pre-\U0001f600", "pre-a", "%", "_re"):
            assert sorted(name for name in names if name.startswith(prefix)) == list(log.streams(prefix)), repr(prefix)


def streams_differ_by_every_character(maker: StoreMaker) -> None:
    """Names that differ in case, in a blank or in a look-alike are different streams."""
    with fresh(maker) as log:
        names = ["eq-a", "eq-A", "eq-a ", "eq- a", "eq-а", "eq-ａ", "eq-a-", "eq-" + "x" * 511, "eq-" + "x" * 512]
        for number, name in enumerate(names):
            log.append(name, events(number + 1), NO_STREAM)
        assert list(range(len(names))) == [log.head(name) for name in names]


def empty_log(maker: StoreMaker) -> None:
    """A new log has nothing in it and says so."""
    with fresh(maker) as log:
        assert 0 == log.last_position()
        assert [] == everything(log)
        assert [] == list(log.streams())
        assert not log.wait(0, 0.01)


def reading_while_writing(maker: StoreMaker) -> None:
    """An append in the middle of a read neither disturbs the reader nor waits for it."""
    with fresh(maker) as log:
        log.append("while-a", events(3_000), NO_STREAM)
        seen = []
        for found in log.read("while-a", upto=2_999):
            seen.append(found.version)
            if found.version % 1_000 == 0:
                log.append("while-a", [event()], ANY)
        assert list(range(3_000)) == seen
        abandoned = log.read_all()
        next(abandoned)
        log.append("while-a", [event()], ANY)
        assert 3_003 == log.head("while-a")


def long_stream_in_bounded_memory(maker: StoreMaker) -> None:
    """100,000 events are read one by one; from a store outside this process with bounded memory."""
    with fresh(maker) as log:
        for begin in range(0, LONG, 10_000):
            log.append("long-a", [event(b"%0400d" % number) for number in range(begin, begin + 10_000)], begin - 1)
        reads: list[Iterator[object]] = [log.read("long-a"), log.read("long-a", backwards=True), log.read_all(), _rows(log)]
        for found in reads:
            assert iter(found) is found, "a read is an iterator, not a list"
            if maker.outside_memory:
                count, peak = _measured(found)
                assert peak <= READING_BOUND, f"reading {LONG} events took {peak / 1_048_576:.1f} MB"
            else:
                count = sum(1 for _ in found)
            assert LONG == count


def _rows(log: EventLog) -> Iterator[object]:
    return (row for chunk in log.rows("long-a") for row in chunk)


def _measured(found: Iterator[object]) -> tuple[int, int]:
    """How many there were, and the peak of Python memory while walking them."""
    ours = not tracemalloc.is_tracing()
    if ours:
        tracemalloc.start()
    try:
        begin, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        count = sum(1 for _ in found)
        return count, tracemalloc.get_traced_memory()[1] - begin
    finally:
        if ours:
            tracemalloc.stop()


CHECKS = (
    ranges_of_one_stream,
    tails_of_many_streams,
    whole_log_with_filters,
    payloads_only_when_asked_for,
    names_by_prefix,
    streams_differ_by_every_character,
    empty_log,
    reading_while_writing,
    long_stream_in_bounded_memory,
)
