"""Checks of what an append promises: expected versions, contiguity, all or nothing, and bytes as they were given."""

from __future__ import annotations

from typing import Any

import attrs

from ..errors import EventIdConflict, InvalidName, WrongExpectedVersion
from ..events import NewEvent
from ..log import Appended, AppendRequest, StreamAppend
from ..versions import ANY, EXISTS, NO_STREAM, ExpectedVersion, matches
from .maker import NOON, StoreMaker, Ticking, an_id, appended, content, event, events, everything, expect, fresh, one, request

_EXPECTATIONS: tuple[ExpectedVersion, ...] = (NO_STREAM, EXISTS, ANY, -1, 0, 1, 2, 3, 99)


def expected_version_matrix(maker: StoreMaker) -> None:
    """Every kind of expectation against every length of stream, empty to three events."""
    with fresh(maker) as log:
        for length in range(4):
            for number, expected in enumerate(_EXPECTATIONS):
                stream = f"matrix-{length}-{number}"
                if length:
                    log.append(stream, events(length), NO_STREAM)
                outcome = one(log, request(stream, event(), expected=expected))
                case = f"{length} events, expected {expected}"
                if matches(expected, length - 1):
                    assert isinstance(outcome, Appended), case
                    assert (length,) == outcome.first_versions, case
                    assert length == log.head(stream), case
                else:
                    assert isinstance(outcome, WrongExpectedVersion), case
                    assert (stream, expected, length - 1) == (outcome.stream, outcome.expected, outcome.actual), case
                    assert length - 1 == log.head(stream), case


def loser_is_told_what_it_missed(maker: StoreMaker) -> None:
    """``WrongExpectedVersion`` carries the events after an expected version, all of them for ``NO_STREAM``, 1,000 at most."""
    with fresh(maker) as log:
        log.append("told-a", events(4), NO_STREAM)
        for expected, missed in ((1, [2, 3]), (NO_STREAM, [0, 1, 2, 3]), (-1, [0, 1, 2, 3]), (7, [])):
            with expect(WrongExpectedVersion) as refusal:
                log.append("told-a", [event()], expected)
            assert missed == [found.version for found in refusal.error.events], f"expected {expected}"
        assert list(log.read("told-a", after=1)) == list(_since(log.append_batch([request("told-a", event(), expected=1)])[0]))
        with expect(WrongExpectedVersion) as refusal:
            log.append("told-b", [event()], EXISTS)
        assert () == refusal.error.events
        log.append("told-long", events(1_500), NO_STREAM)
        with expect(WrongExpectedVersion) as refusal:
            log.append("told-long", [event()], NO_STREAM)
        assert list(range(1_000)) == [found.version for found in refusal.error.events]


def _since(outcome: object) -> tuple[object, ...]:
    assert isinstance(outcome, WrongExpectedVersion)
    return tuple(outcome.events)


def versions_are_contiguous_and_positions_grow(maker: StoreMaker) -> None:
    """Versions count from 0 without holes, in every stream; positions only grow, refused appends or not."""
    with fresh(maker) as log:
        for round_ in range(10):
            for stream in ("run-a", "run-b", "run-c"):
                done = log.append(stream, events(round_ % 3 + 1), ANY)
                assert log.head(stream) == done.first_versions[0] + round_ % 3
                assert isinstance(one(log, request(stream, event(), expected=10_000)), WrongExpectedVersion)
        for stream in ("run-a", "run-b", "run-c"):
            found = [stored.version for stored in log.read(stream)]
            assert list(range(len(found))) == found
            assert 20 - 1 == log.head(stream) or len(found) - 1 == log.head(stream)
        positions = [stored.position for stored in everything(log)]
        assert positions == sorted(set(positions))
        assert positions[0] > 0
        assert positions[-1] == log.last_position()


def outcome_names_places(maker: StoreMaker) -> None:
    """An append's versions and positions are the ones its events are read back under."""
    with fresh(maker) as log:
        log.append("place-a", events(2), NO_STREAM)
        first, second = log.append_batch(
            [request("place-a", *events(3)), AppendRequest([StreamAppend("place-b", events(1), NO_STREAM), StreamAppend("place-a", events(2), 4)])]
        )
        assert (2,) == appended(first).first_versions
        assert (0, 5) == appended(second).first_versions
        assert [found.position for found in log.read("place-a", after=1)] == [*appended(first).positions[0], *appended(second).positions[1]]
        assert [found.position for found in log.read("place-b")] == list(appended(second).positions[0])


def request_is_all_or_nothing(maker: StoreMaker) -> None:
    """When one part of a request is refused, no part of it is written: first, middle or last."""
    with fresh(maker) as log:
        log.append("whole-x", events(1), NO_STREAM)
        before = everything(log)
        for place in range(3):
            parts = [StreamAppend(f"whole-{number}", events(2), NO_STREAM) for number in range(3)]
            parts[place] = StreamAppend("whole-x", events(2), NO_STREAM)
            assert isinstance(one(log, AppendRequest(parts)), WrongExpectedVersion)
        taken = event(id=before[0].event_id, data=b"other")
        assert isinstance(one(log, AppendRequest([StreamAppend("whole-1", events(1), ANY), StreamAppend("whole-x", [taken], ANY)])), EventIdConflict)
        assert before == everything(log)
        assert ["whole-x"] == list(log.streams())
        done = one(
            log,
            AppendRequest(
                [StreamAppend("whole-1", events(2), NO_STREAM), StreamAppend("whole-2", events(1), NO_STREAM), StreamAppend("whole-x", events(1), 0)]
            ),
        )
        assert (0, 0, 1) == appended(done).first_versions
        assert 5 == len(everything(log))


def parts_on_one_stream_follow_each_other(maker: StoreMaker) -> None:
    """A request may name a stream twice: its parts are judged and written in their order."""
    with fresh(maker) as log:
        done = one(
            log,
            AppendRequest([StreamAppend("double-a", events(2), NO_STREAM), StreamAppend("double-b", events(1), ANY), StreamAppend("double-a", events(1), 1)]),
        )
        assert (0, 0, 2) == appended(done).first_versions
        assert [0, 1, 2] == [found.version for found in log.read("double-a")]
        refused = one(log, AppendRequest([StreamAppend("double-a", events(1), 2), StreamAppend("double-a", events(1), 2)]))
        assert isinstance(refused, WrongExpectedVersion)
        same = event()
        assert isinstance(one(log, AppendRequest([StreamAppend("double-a", [same], ANY), StreamAppend("double-a", [same], ANY)])), EventIdConflict)
        assert 4 == len(everything(log))


def batch_spoils_nothing(maker: StoreMaker) -> None:
    """Requests of a batch are judged one after the other: a later one sees the earlier ones, a refused one changes nothing."""
    with fresh(maker) as log:
        same = event(b"same")
        outcomes = log.append_batch(
            [
                request("batch-a", event(b"0"), expected=NO_STREAM),
                request("batch-a", event(b"never"), expected=NO_STREAM),
                request("batch-a", event(b"1"), expected=0),
                request("batch-b", same, expected=NO_STREAM),
                request("batch-b", event(b"other", id=same.event_id)),
                request("batch-c", event(b"c"), expected=EXISTS),
                request("batch-b", event(b"b"), expected=0),
            ]
        )
        kinds = [type(outcome) for outcome in outcomes]
        assert [Appended, WrongExpectedVersion, Appended, Appended, EventIdConflict, WrongExpectedVersion, Appended] == kinds
        assert [("batch-a", 0, b"0"), ("batch-a", 1, b"1"), ("batch-b", 0, b"same"), ("batch-b", 1, b"b")] == content(log.read_all())
        assert [] == log.append_batch([])


def append_without_events_changes_no_stream(maker: StoreMaker) -> None:
    """A part without events checks its expectation, names the next version, and brings no stream into being."""
    with fresh(maker) as log:
        assert (0,) == log.append("none-a", [], ANY).first_versions
        assert ((),) == tuple(map(tuple, log.append("none-a", [], NO_STREAM).positions))
        with expect(WrongExpectedVersion):
            log.append("none-a", [], EXISTS)
        assert [] == list(log.streams())
        assert -1 == log.head("none-a")


def bad_input_is_refused_before_anything_is_written(maker: StoreMaker) -> None:
    """A bad stream name, expected version or value of an event anywhere in a batch refuses the whole call with an error that names it."""
    with fresh(maker) as log:
        good = request("good-1", event())
        for bad in ("", "plain", "Big-1", "a-", "a- ", "a-\x00", "a-e\u0301", "a-" + "x" * 10_000):
            with expect(InvalidName):
                log.append_batch([good, request(bad, event())])
        for wrong in (b"", b"short", b"x" * 17):
            with expect(ValueError, TypeError) as refusal:
                log.append_batch([good, request("good-2", event(id=wrong))])
            assert "event_id" in str(refusal.error)
        with expect(ValueError, TypeError) as refusal:
            log.append_batch([good, request("good-2", event(data="text"))])  # type: ignore[arg-type]
        assert "data" in str(refusal.error)
        wrong_values: dict[str, tuple[Any, ...]] = {
            "schema": ("1", 1.5, True, None, -1, 2**31, 2**40),
            "correlation": (b"c", "c" * 16),
            "causation": (b"c" * 17, 7),
        }
        for field, values in wrong_values.items():
            for value in values:
                with expect(ValueError, TypeError) as refusal:
                    log.append_batch([good, request("good-2", attrs.evolve(event(), **{field: value}))])
                assert field in str(refusal.error)
                assert repr(value) in str(refusal.error)
        for version in (2**62 + 1, 2**70, -(2**70)):
            with expect(ValueError) as refusal:
                log.append_batch([good, request("good-2", event(), expected=version)])
            assert "expected version" in str(refusal.error)
            assert str(version) in str(refusal.error)
        assert [] == everything(log)


def time_comes_from_the_clock(maker: StoreMaker) -> None:
    """``recorded_at`` is the injected clock's, one moment for a whole batch."""
    clock = Ticking()
    with fresh(maker, clock) as log:
        log.append_batch([request("time-a", *events(2)), request("time-b", event())])
        clock.advance(1)
        log.append("time-a", [event()], ANY)
        assert [NOON, NOON, NOON, NOON + 1] == [found.recorded_at for found in everything(log)]
    hasty = Ticking()
    with fresh(maker, lambda: hasty.advance(1)) as log:
        log.append_batch([request(f"time-{number}", event()) for number in range(5)])
        assert 1 == len({found.recorded_at for found in everything(log)})


def bytes_come_back_as_they_were_given(maker: StoreMaker) -> None:
    """NUL, 0xff, nothing at all, every byte there is, and 8 MB; columns of metadata too."""
    payloads = [b"", b"\x00", b"\xff\xfe", b"a\x00b\x00", bytes(range(256)), b"'; --", "\U0001f600".encode(), bytes(range(256)) * 32_768]
    with fresh(maker) as log:
        new = [event(payload, schema=number) for number, payload in enumerate(payloads, 1)]
        log.append("bytes-\U0001f600", new, NO_STREAM)
        stored = list(log.read("bytes-\U0001f600"))
        assert payloads == [found.data for found in stored]
        assert [given.event_id for given in new] == [found.event_id for found in stored]
        assert list(range(1, len(payloads) + 1)) == [found.schema for found in stored]
        assert [(None, None)] * len(payloads) == [(found.correlation, found.causation) for found in stored]
        assert stored == everything(log)
        linked = NewEvent(an_id(), "thing.linked", 1, b"{}", correlation=b"\x00" * 16, causation=b"\xff" * 16)
        log.append("bytes-linked", [linked], NO_STREAM)
        assert [(b"\x00" * 16, b"\xff" * 16)] == [(found.correlation, found.causation) for found in log.read("bytes-linked")]


CHECKS = (
    expected_version_matrix,
    loser_is_told_what_it_missed,
    versions_are_contiguous_and_positions_grow,
    outcome_names_places,
    request_is_all_or_nothing,
    parts_on_one_stream_follow_each_other,
    batch_spoils_nothing,
    append_without_events_changes_no_stream,
    bad_input_is_refused_before_anything_is_written,
    time_comes_from_the_clock,
    bytes_come_back_as_they_were_given,
)
