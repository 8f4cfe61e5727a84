"""Checks of versions beside each other: built while everything else goes on, swapped in whole, through kills, rivals and failed commits."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import attrs

from ..errors import LogUnavailable, ProjectionFailed, ProjectionRefused
from ..events import StoredEvent
from ..log import EventLog, View, ViewTransaction
from ..projections import OnError, Progress, Projection, catch_up, drop, follow, rebuild, rebuild_beside, retry_parked, swap, swap_as_it_is
from ..versions import ANY
from .maker import PATIENCE, StoreMaker, event, everything, expect, fresh, patiently, request, several, together

_KILLED: Final = """
import os, signal, sys
from {package}.opening import open_log
from {package}.projections import rebuild_beside
from {package}.testing.beside import SECOND

batches = 0
def told(progress):
    global batches
    batches += 1
    if batches == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

rebuild_beside(open_log(sys.argv[1], create=False), SECOND, batch=10, progress=told)
"""


def _row(view: View, stored: StoredEvent, mark: bytes) -> None:
    """A row an event and one for its stream's count, each beginning with ``mark``; ``poison`` is refused after a first write."""
    view.put(f"{stored.position:015}", mark + stored.data)
    if stored.data == b"poison":
        raise ValueError("poison")
    count = int((view.get(stored.stream) or b"--0")[2:]) + 1
    view.put(stored.stream, mark + str(count).encode())


FIRST: Final = Projection("sums", lambda view, stored, _: _row(view, stored, b"1:"))
SECOND: Final = Projection("sums", lambda view, stored, _: _row(view, stored, b"2:"), version=2)


def _fill(log: EventLog, count: int, data: bytes = b"x") -> None:
    log.append_batch([request(f"sum-{number % 3}", event(data)) for number in range(count)])


def _rows(log: EventLog, view: str) -> list[tuple[str, bytes]]:
    return list(log.views.read(view).items())


def _folded(log: EventLog, mark: bytes, upto: int) -> list[tuple[str, bytes]]:
    """What the view must hold at position ``upto``, told from the log alone."""
    rows: dict[str, bytes] = {}
    for stored in log.read_all(upto=upto):
        rows[f"{stored.position:015}"] = mark + stored.data
        rows[stored.stream] = mark + str(int(rows.get(stored.stream, b"--0")[2:]) + 1).encode()
    return sorted(rows.items())


def the_first_version_that_runs_is_live(maker: StoreMaker) -> None:
    """The first version run answers to the name; a later one does not until it is swapped in, however often it runs."""
    with fresh(maker) as log:
        _fill(log, 4)
        catch_up(log, SECOND)
        catch_up(log, FIRST)
        assert {"sums": "sums@v2"} == log.views.pointed()
        assert _folded(log, b"2:", log.last_position()) == _rows(log, "sums")


def built_beside_while_everything_goes_on(maker: StoreMaker) -> None:
    """Writers append, the live version follows and readers read while another is built and swapped in; all end at one fold."""
    with several(maker, 4) as (log, builder, live, reader):
        _fill(log, 300)
        catch_up(log, FIRST)
        over, marks, torn = threading.Event(), set[bytes](), list[str]()

        def write() -> None:
            while not over.is_set():
                patiently(lambda: _fill(log, 3))

        def read() -> None:
            reading = reader.views.read("sums")
            while not over.is_set():
                found = {value[:2] for _, value in reading.items("sum-")}
                marks.update(found)
                if len(found) != 1 or reading.get("sum-0") is None:
                    torn.append(f"a walk found {found}")

        threads = [threading.Thread(target=body, daemon=True) for body in (write, read, lambda: follow(live, FIRST, stop=over.is_set, poll=0.005))]
        for thread in threads:
            thread.start()
        try:
            while not marks and threads[1].is_alive():  # it reads the version that is about to be replaced
                time.sleep(0.001)
            rebuild_beside(builder, SECOND, batch=50)
            swapped = patiently(lambda: swap(builder, SECOND))
            while b"2:" not in marks and threads[1].is_alive():
                patiently(lambda: log.append("sum-0", [event()], ANY))
        finally:
            over.set()
            for thread in threads:
                thread.join(PATIENCE)
        assert ("sums@v1", "sums@v2", []) == (swapped.old, swapped.new, torn)
        assert {b"1:", b"2:"} == marks
        for projection, mark in ((FIRST, b"1:"), (SECOND, b"2:")):
            catch_up(log, projection)
            assert _folded(log, mark, log.last_position()) == _rows(log, projection.view)
        drop(log, "sums", 1)
        assert ([], 0, b"2:") == (_rows(log, "sums@v1"), log.checkpoints.load("sums@v1"), _rows(log, "sums")[0][1][:2])


def a_swap_takes_nobody_back(maker: StoreMaker) -> None:
    """A version that is behind and cannot catch up is refused; with its code, it catches up inside the swap."""
    with fresh(maker) as log:
        _fill(log, 10)
        catch_up(log, FIRST)
        catch_up(log, SECOND, upto=everything(log)[4].position)
        with expect(ProjectionRefused) as refusal:
            swap_as_it_is(log, "sums", 2)
        for word in ("sums@v2", "sums@v1", "behind", str(everything(log)[4].position)):
            assert word in str(refusal.error), refusal.error
        assert {"sums": "sums@v1"} == log.views.pointed()
        assert log.last_position() == swap(log, SECOND).position
        assert _folded(log, b"2:", log.last_position()) == _rows(log, "sums")
        swap_as_it_is(log, "sums", 1)
        assert {"sums": "sums@v1"} == log.views.pointed()
        with expect(ProjectionRefused):
            drop(log, "sums", 1)
        with expect(ProjectionRefused):
            rebuild_beside(log, FIRST)


class _Views:
    """A log's views through which things happen at the wrong moment."""

    def __init__(self, log: EventLog, *, pointing: Callable[[], object] = lambda: None, committing: Callable[[str], object] = lambda _: None) -> None:
        self._views = log.views
        self._pointing = pointing
        self._committing = committing

    def __getattr__(self, name: str) -> object:
        return getattr(self._views, name)

    def point(self, name: str, view: str | None, *, expected: str | None) -> bool:
        self._pointing()
        return self._views.point(name, view, expected=expected)

    @contextmanager
    def transaction(self, name: str) -> Iterator[ViewTransaction]:
        with self._views.transaction(name) as view:
            yield view
            self._committing("before")
        self._committing("after")


class _Through:
    """A log whose views are looked at through ``views``."""

    def __init__(self, log: EventLog, views: _Views) -> None:
        self._log = log
        self.views = views

    def __getattr__(self, name: str) -> object:
        return getattr(self._log, name)


def an_append_at_the_last_moment_is_not_lost(maker: StoreMaker) -> None:
    """Events that come, and that the live version takes, between a rebuild's last look and the swap are in the new view, too."""
    with fresh(maker) as log:
        _fill(log, 20)
        catch_up(log, FIRST)
        late = iter((b"late", b"later", b"latest"))

        def slip_in() -> None:
            if (data := next(late, None)) is not None:
                _fill(log, 2, data)
                catch_up(log, FIRST)

        def fertile(view: View, stored: StoredEvent, value: object) -> None:
            SECOND.handle(view, stored, value)
            if stored.position == end:
                slip_in()

        end = log.last_position()
        done = rebuild_beside(log, attrs.evolve(SECOND, handle=fertile))
        assert (end, 20) == (done.position, done.seen)
        through: EventLog = _Through(log, _Views(log, pointing=slip_in))  # type: ignore[assignment]
        swap(through, SECOND)
        assert 26 == len(everything(log))
        assert _folded(log, b"2:", log.last_position()) == _rows(log, "sums")


def a_killed_rebuild_is_carried_on(maker: StoreMaker) -> None:
    """SIGKILL after any batch leaves the view at its checkpoint and the live one untouched; the next rebuild ends it, or begins anew."""
    if not maker.shared:
        return
    with fresh(maker) as log:
        _fill(log, 60)
        catch_up(log, FIRST)
        code = _KILLED.format(package=__package__.rpartition(".")[0])
        seen = 0
        for batches in (1, 2):
            killed = subprocess.run([sys.executable, "-c", code, log.url, str(batches)], timeout=PATIENCE, check=False)
            assert -signal.SIGKILL == killed.returncode
            seen += 10 * batches
            assert seen == sum(stored.position <= log.checkpoints.load("sums@v2") for stored in everything(log))
            assert _folded(log, b"2:", log.checkpoints.load("sums@v2")) == _rows(log, "sums@v2")
            assert _folded(log, b"1:", log.last_position()) == _rows(log, "sums")
        assert Progress(log.last_position(), 60 - seen, 0) == rebuild_beside(log, SECOND)
        assert _folded(log, b"2:", log.last_position()) == _rows(log, "sums@v2")
        assert 60 == rebuild_beside(log, SECOND, restart=True).handled
        assert _folded(log, b"2:", log.last_position()) == _rows(log, "sums@v2")


def two_rebuilds_at_once_handle_every_event_once(maker: StoreMaker) -> None:
    """Two that build one version share the work, and one that begins anew under another does no harm."""
    with several(maker, 2) as logs:
        _fill(logs[0], 200)
        done = together(*[lambda log=log: rebuild_beside(log, SECOND, batch=7) for log in logs])
        assert 200 == sum(each.handled for each in done)
        assert _folded(logs[0], b"2:", logs[0].last_position()) == _rows(logs[0], "sums@v2")
        together(
            *[lambda log=log, restart=restart: rebuild_beside(log, SECOND, batch=7, restart=restart) for log, restart in zip(logs, (True, False), strict=True)]
        )
        rebuild_beside(logs[0], SECOND)
        assert _folded(logs[0], b"2:", logs[0].last_position()) == _rows(logs[0], "sums@v2")


def a_commit_that_fails_once_costs_nothing(maker: StoreMaker) -> None:
    """Whether the checkpoint's commit failed or only its acknowledgement: the next run handles every event once."""
    for moment in ("before", "after"):
        with fresh(maker) as log:
            _fill(log, 30)
            commits = 0

            def failing(now: str, moment: str = moment) -> None:
                nonlocal commits
                commits += now == moment
                if now == moment and commits == 2:
                    raise LogUnavailable(f"lost {moment} the commit")

            through: EventLog = _Through(log, _Views(log, committing=failing))  # type: ignore[assignment]
            with expect(LogUnavailable):
                rebuild_beside(through, SECOND, batch=10)
            kept = 10 if moment == "before" else 20
            assert kept == sum(stored.position <= log.checkpoints.load("sums@v2") for stored in everything(log))
            assert _folded(log, b"2:", log.checkpoints.load("sums@v2")) == _rows(log, "sums@v2")
            assert 30 - kept == rebuild_beside(through, SECOND, batch=10).handled
            assert _folded(log, b"2:", log.last_position()) == _rows(log, "sums@v2")


def a_checkpoint_ahead_of_the_log_is_refused(maker: StoreMaker) -> None:
    """A view that has seen more than there is (a restored backup) is not carried on with; a rebuild in place mends it."""
    with fresh(maker) as log:
        _fill(log, 5)
        catch_up(log, FIRST)
        ahead = log.last_position() + 1_000
        log.checkpoints.save("sums@v1", ahead)
        for run in (catch_up, rebuild_beside, swap, lambda log, projection: follow(log, projection, stop=lambda: False)):
            target = FIRST if run is not rebuild_beside else SECOND
            if run is rebuild_beside:
                log.checkpoints.save("sums@v2", ahead)
            with expect(ProjectionRefused) as refusal:
                run(log, target)
            for word in (target.view, str(ahead), "backup", "--in-place"):
                assert word in str(refusal.error), refusal.error
        rebuild_beside(log, SECOND, restart=True)
        with expect(ProjectionRefused) as refusal:
            swap(log, SECOND)
        assert "ahead of the log" in str(refusal.error)
        rebuild(log, FIRST)
        assert _folded(log, b"1:", log.last_position()) == _rows(log, "sums")
        swap(log, SECOND)
        assert _folded(log, b"2:", log.last_position()) == _rows(log, "sums")


def what_is_built_and_what_is_parked_is_all_there_is(maker: StoreMaker) -> None:
    """Rows + parked = events, through stops, parking and a retry; a view that lacks what the live one has is not swapped in."""
    with fresh(maker) as log:
        lenient = Projection("sums", lambda view, stored, _: view.put(f"{stored.position:015}", stored.data))
        for data in (b"a", b"poison", b"b", b"poison", b"c"):
            _fill(log, 4, data)
        catch_up(log, lenient)
        with expect(ProjectionFailed) as refusal:
            rebuild_beside(log, SECOND, batch=3)
        bad = everything(log)[4]
        for word in ("sums@v2", str(bad.id), bad.stream, f"version {bad.version}", f"position {bad.position}", "ValueError: poison"):
            assert word in str(refusal.error), f"{word!r} is not in {refusal.error}"
        assert everything(log)[3].position == log.checkpoints.load("sums@v2")
        parking = attrs.evolve(SECOND, on_error=OnError.PARK)
        done = rebuild_beside(log, parking, batch=3)
        rows = [key for key, _ in _rows(log, "sums@v2") if key.isdecimal()]
        assert (8, 8, 20) == (done.parked, len(log.views.parked("sums@v2")), len(rows) + done.parked)
        with expect(ProjectionRefused) as refusal:
            swap(log, parking)
        for word in ("8 parked events", bad.stream, "--retry", "--lacking"):
            assert word in str(refusal.error), refusal.error
        still = retry_parked(log, parking)
        assert (0, 8) == (still.handled, len(still.parked))
        mended = attrs.evolve(parking, handle=lambda view, stored, _: view.put(f"{stored.position:015}", b"2:" + stored.data))
        healed = retry_parked(log, mended)
        assert (8, (), []) == (healed.handled, healed.parked, log.views.parked("sums@v2"))
        swap(log, mended)
        assert 20 == sum(key.isdecimal() for key, _ in _rows(log, "sums"))


CHECKS = (
    the_first_version_that_runs_is_live,
    built_beside_while_everything_goes_on,
    a_swap_takes_nobody_back,
    an_append_at_the_last_moment_is_not_lost,
    a_killed_rebuild_is_carried_on,
    two_rebuilds_at_once_handle_every_event_once,
    a_commit_that_fails_once_costs_nothing,
    a_checkpoint_ahead_of_the_log_is_refused,
    what_is_built_and_what_is_parked_is_all_there_is,
)
