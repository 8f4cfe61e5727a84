"""Checks of projections over a store: live equals rebuilt, poison stops or is stepped over, a crash leaves no half."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

from ..errors import LogUnavailable, ProjectionFailed
from ..events import StoredEvent
from ..log import EventLog, View
from ..projections import OnError, Progress, Projection, catch_up, follow, rebuild
from ..versions import ANY
from .maker import PATIENCE, StoreMaker, event, everything, expect, fresh, request, several


def _total(view: View, stored: StoredEvent, _: object) -> None:
    """Sum the numbers of each stream; a payload that is no number is poison, after a first write."""
    view.put(f"last:{stored.stream}", stored.data)
    view.put(stored.stream, str(int(view.get(stored.stream) or b"0") + int(stored.data)).encode())


def _numbers(log: EventLog, *payloads: bytes, type: str = "number") -> None:
    log.append_batch([request(f"sum-{place % 3}", event(payload, type)) for place, payload in enumerate(payloads)])


def _rows(log: EventLog, name: str) -> list[tuple[str, bytes]]:
    return list(log.views.read(name).items())


def rebuilt_equals_live(maker: StoreMaker) -> None:
    """Caught up in bits, in one go and rebuilt: the same rows and the same checkpoint, whatever the batch size."""
    with fresh(maker) as log:
        live, whole = Projection("live", _total), Projection("whole", _total)
        for begin in range(0, 60, 10):
            _numbers(log, *(str(number).encode() for number in range(begin, begin + 10)))
            catch_up(log, live, batch=begin // 10 + 1)
        assert Progress(log.last_position(), 60, 0) == catch_up(log, whole)
        assert _rows(log, "whole") == _rows(log, "live")
        assert Progress(log.last_position(), 60, 0) == rebuild(log, live, batch=7)
        assert _rows(log, "whole") == _rows(log, "live")
        assert Progress(log.last_position(), 0, 0) == catch_up(log, live)
        assert log.last_position() == log.checkpoints.load("live@v1")


def filtered_events_are_passed(maker: StoreMaker) -> None:
    """The checkpoint goes past events of other types, so that they are not looked at again."""
    with fresh(maker) as log:
        _numbers(log, b"1", b"2")
        _numbers(log, b"noise", b"noise", type="noise")
        assert Progress(log.last_position(), 2, 0) == catch_up(log, Projection("some", _total, types=("number",)), batch=1)
        assert log.last_position() == log.checkpoints.load("some@v1")


def poison_stops_behind_the_last_good_event(maker: StoreMaker) -> None:
    """``STOP``: what stands before the poison is kept, nothing of it is; the error says where; mended code goes on from there."""
    with fresh(maker) as log:
        _numbers(log, b"1", b"2", b"poison", b"4")
        whole = everything(log)
        for _ in range(2):
            with expect(ProjectionFailed) as refusal:
                catch_up(log, Projection("stop", _total))
            for word in ("stop", "sum-2", "version 0", "number", "ValueError"):
                assert word in str(refusal.error), f"{word!r} is not in {refusal.error}"
            assert isinstance(refusal.error.__cause__, ValueError)
            assert [("last:sum-0", b"1"), ("last:sum-1", b"2"), ("sum-0", b"1"), ("sum-1", b"2")] == _rows(log, "stop")
            assert (whole[1].position, []) == (log.checkpoints.load("stop@v1"), log.views.parked())
        mended = Projection("stop", lambda view, stored, _: view.put("mended", stored.data))
        assert Progress(log.last_position(), 2, 0) == catch_up(log, mended)
        assert b"4" == log.views.read("stop").get("mended")


def poison_is_parked_and_stepped_over(maker: StoreMaker) -> None:
    """``PARK``: each poison event is parked with its error, none of its writes stay, and everything else is handled once."""
    with fresh(maker) as log:
        _numbers(log, b"bad", b"2", b"3", b"4", b"worse", b"worst", b"7")
        whole = everything(log)
        for batch in (1, 2, 3, 500):
            projection = Projection(f"skip{batch}", _total, on_error=OnError.PARK)
            assert Progress(whole[-1].position, 4, 3) == catch_up(log, projection, batch=batch)
            assert {"sum-0": b"11", "sum-1": b"2", "sum-2": b"3"} == {key: value for key, value in _rows(log, projection.name) if not key.startswith("last:")}
            parked = log.views.parked(projection.view)
            assert [(found.position, found.stream, found.version) for found in (whole[0], whole[4], whole[5])] == [
                (found.position, found.stream, found.version) for found in parked
            ]
            assert all("ValueError" in found.error for found in parked)
            assert Progress(whole[-1].position, 4, 3) == rebuild(log, projection, batch=batch)
            assert 3 == len(log.views.parked(projection.view))


class _Picky:
    """A codec that cannot read some payloads."""

    def decode_stored(self, stored: StoredEvent) -> object:
        return int(stored.data)


def undecodable_events_are_poison(maker: StoreMaker) -> None:
    """An event that does not decode stops or is parked like one whose handler raises; the handler gets decoded values."""
    with fresh(maker) as log:
        _numbers(log, b"1", b"?", b"3")

        def double(view: View, stored: StoredEvent, number: int) -> None:
            view.put(stored.stream, str(number * 2).encode())

        with expect(ProjectionFailed):
            catch_up(log, Projection("stop", double), codec=_Picky())
        assert [("sum-0", b"2")] == _rows(log, "stop")
        catch_up(log, Projection("skip", double, on_error=OnError.PARK), codec=_Picky())
        assert [("sum-0", b"2"), ("sum-2", b"6")] == _rows(log, "skip")
        assert ["sum-1"] == [found.stream for found in log.views.parked("skip@v1")]


class _Overtaken:
    """A codec during whose first decoding another runner takes all the events."""

    def __init__(self, log: EventLog) -> None:
        self._others: Iterator[Progress] = (catch_up(log, Projection("sums", _total)) for _ in range(1))

    def decode_stored(self, stored: StoredEvent) -> object:
        return next(self._others, None)


def overtaken_runner_handles_nothing_twice(maker: StoreMaker) -> None:
    """A batch that another runner took between its reading and its transaction is left alone."""
    with several(maker, 2) as (log, other):
        _numbers(log, b"1", b"2", b"3", b"4")
        assert Progress(log.last_position(), 0, 0) == catch_up(log, Projection("sums", _total), codec=_Overtaken(other), batch=3)
        assert [b"5", b"2", b"3"] == [log.views.read("sums").get(f"sum-{number}") for number in range(3)]


class _Crash(BaseException):
    """Stands for the death of the process: nothing may catch it."""


def crash_in_a_rebuild_is_resumed(maker: StoreMaker) -> None:
    """A rebuild that dies leaves exactly what its checkpoint says, and ``catch_up`` carries on to the same end."""
    with fresh(maker) as log:
        _numbers(log, *(str(number).encode() for number in range(20)))
        whole = Projection("whole", _total)
        catch_up(log, whole)
        for fatal in (0, 1, 9, 19):
            seen = 0

            def dying(view: View, stored: StoredEvent, value: object, fatal: int = fatal) -> None:
                nonlocal seen
                if seen == fatal:
                    raise _Crash
                seen += 1
                _total(view, stored, value)

            catch_up(log, Projection("victim", _total))
            with expect(_Crash):
                rebuild(log, Projection("victim", dying), batch=4)
            reached = log.checkpoints.load("victim@v1")
            assert fatal // 4 * 4 == sum(found.position <= reached for found in everything(log))
            assert Progress(log.last_position(), 20 - fatal // 4 * 4, 0) == catch_up(log, Projection("victim", _total))
            assert _rows(log, "whole") == _rows(log, "victim")


def absent_store_is_not_poison(maker: StoreMaker) -> None:
    """A retryable error in a handler ends the run with nothing parked and nothing of the batch kept."""
    with fresh(maker) as log:
        _numbers(log, b"1", b"2")

        def away(view: View, stored: StoredEvent, _: object) -> None:
            view.put("a", b"1")
            raise LogUnavailable("away")

        with expect(LogUnavailable):
            catch_up(log, Projection("away", away, on_error=OnError.PARK))
        assert ([], [], 0) == (_rows(log, "away"), log.views.parked(), log.checkpoints.load("away@v1"))


def followed_view_keeps_up(maker: StoreMaker) -> None:
    """``follow`` takes events that arrive while it runs, until it is told to stop."""
    with fresh(maker) as log:
        _numbers(log, b"1")
        deadline = time.monotonic() + PATIENCE
        feeder = threading.Thread(target=lambda: [log.append("sum-9", [event(b"1", "number")], ANY) for _ in range(50)])
        feeder.start()
        done = follow(
            log,
            Projection("live", _total),
            stop=lambda: log.views.read("live").get("sum-9") == b"50" or time.monotonic() > deadline,
            poll=0.01,
            batch=3,
        )
        feeder.join()
        assert Progress(log.last_position(), 51, 0) == done
        assert b"50" == log.views.read("live").get("sum-9")


CHECKS = (
    rebuilt_equals_live,
    filtered_events_are_passed,
    poison_stops_behind_the_last_good_event,
    poison_is_parked_and_stepped_over,
    undecodable_events_are_poison,
    overtaken_runner_handles_nothing_twice,
    crash_in_a_rebuild_is_resumed,
    absent_store_is_not_poison,
    followed_view_keeps_up,
)
