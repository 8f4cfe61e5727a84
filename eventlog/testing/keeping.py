"""Checks of what is kept beside the events: snapshots, checkpoints, and views that move with their checkpoint."""

from __future__ import annotations

import time

from ..log import EventLog, ParkedEvent, Snapshot
from .maker import NOON, StoreMaker, expect, fresh, patiently, several, together


def latest_snapshot_wins(maker: StoreMaker) -> None:
    """A newer version replaces an older one, never the reverse under one fingerprint; another fingerprint always replaces."""
    with fresh(maker) as log:
        kept = log.snapshots
        assert {} == kept.load(["snap-a", "snap-b"])
        for snapshot, then in (
            (Snapshot(5, "f", b"five"), b"five"),
            (Snapshot(3, "f", b"three"), b"five"),
            (Snapshot(5, "f", b"five again"), b"five again"),
            (Snapshot(8, "f", b"\x00\xff"), b"\x00\xff"),
            (Snapshot(2, "g", b""), b""),
        ):
            kept.save("snap-a", snapshot)
            assert then == kept.load(["snap-a"])["snap-a"].data
        kept.save("snap-b", Snapshot(0, "f", b"b"))
        assert {"snap-a": Snapshot(2, "g", b""), "snap-b": Snapshot(0, "f", b"b")} == kept.load(["snap-a", "snap-b", "snap-none"])
        assert {} == kept.load([])


def snapshots_are_disposable(maker: StoreMaker) -> None:
    """One or all of them can be dropped; a dropped one is just not there (S-8.2)."""
    with fresh(maker) as log:
        for number in range(1_200):
            log.snapshots.save(f"drop-{number}", Snapshot(number, "f", b"x"))
        assert 1_200 == len(log.snapshots.load([f"drop-{number}" for number in range(1_200)]))
        assert 1 == log.snapshots.delete("drop-0")
        assert 0 == log.snapshots.delete("drop-0")
        assert 1_199 == log.snapshots.delete()
        assert {} == log.snapshots.load(["drop-0", "drop-1"])
        log.snapshots.save("drop-1", Snapshot(0, "f", b"y"))
        assert b"y" == log.snapshots.load(["drop-1"])["drop-1"].data


def checkpoints_never_go_back(maker: StoreMaker) -> None:
    """A smaller position changes nothing; only ``reset`` goes back, to 0."""
    with fresh(maker) as log:
        kept = log.checkpoints
        assert (0, {}) == (kept.load("none"), kept.all())
        for position, then in ((3, 3), (2, 3), (3, 3), (9, 9), (0, 9), (-4, 9)):
            kept.save("one", position)
            assert then == kept.load("one")
        kept.save("täsk %_", 2**60)
        assert {"one": 9, "täsk %_": 2**60} == kept.all()
        kept.reset("one")
        kept.reset("none")
        assert 0 == kept.load("one")
        kept.save("one", 4)
        assert 4 == kept.load("one")


def checkpoints_from_many_threads(maker: StoreMaker) -> None:
    """Savers that overtake each other leave the largest position."""
    with several(maker, 3) as logs:

        def save(log: EventLog, offset: int) -> None:
            for position in range(offset, 90, 3):
                patiently(lambda position=position: log.checkpoints.save("raced", position))  # type: ignore[misc]

        together(*[lambda log=log, number=number: save(log, number) for number, log in enumerate(logs)])
        assert 89 == logs[0].checkpoints.load("raced")


def view_and_checkpoint_move_together(maker: StoreMaker) -> None:
    """When the block ends, rows, checkpoint and parked events are all there; when it raises, none of them."""
    with fresh(maker) as log:
        parked = ParkedEvent("sums", 4, "a-1", 2, "ValueError: no", NOON)
        with log.views.transaction("sums") as view:
            assert 0 == view.position
            view.put("a", b"1")
            view.put("b", b"2")
            view.checkpoint(5)
            assert 5 == view.position
        with expect(ZeroDivisionError), log.views.transaction("sums") as view:
            assert 5 == view.position
            view.put("a", b"changed")
            view.delete("b")
            view.put("c", b"3")
            view.park(parked)
            view.checkpoint(8)
            raise ZeroDivisionError
        assert [("a", b"1"), ("b", b"2")] == list(log.views.read("sums").items())
        assert (5, []) == (log.checkpoints.load("sums"), log.views.parked())
        with log.views.transaction("sums") as view:
            view.park(parked)
            view.checkpoint(6)
            view.checkpoint(2)
        assert (6, [parked]) == (log.checkpoints.load("sums"), log.views.parked("sums"))


def view_is_a_sorted_map(maker: StoreMaker) -> None:
    """``get``, ``put``, ``delete`` and ``items`` by literal prefix, inside the transaction and after it."""
    keys = ["", "a", "a%", "a%b", "a_", "ab", "b", "é", "\uffee", "\U0001f600"]
    with fresh(maker) as log:
        with log.views.transaction("map") as view:
            for key in reversed(keys):
                view.put(key, key.encode())
            view.put("a", b"\x00")
            view.put("gone", b"")
            view.delete("gone")
            view.delete("never")
            wanted = {key: b"\x00" if key == "a" else key.encode() for key in keys}
            for prefix in ("", "a", "a%", "a_", "\U0001f600", "x"):
                assert [(key, wanted[key]) for key in sorted(keys) if key.startswith(prefix)] == list(view.items(prefix)), prefix
            assert (b"\x00", None) == (view.get("a"), view.get("gone"))
        reading = log.views.read("map")
        for prefix in ("", "a", "a%", "a_", "\U0001f600", "x"):
            assert [(key, wanted[key]) for key in sorted(keys) if key.startswith(prefix)] == list(reading.items(prefix)), prefix
        assert (b"", None) == (reading.get(""), reading.get("gone"))
        assert [] == list(log.views.read("another").items())


def walk_of_a_view_shows_what_was_there(maker: StoreMaker) -> None:
    """``items`` inside the transaction gives the rows of the moment it was asked for, whatever the block writes while it walks."""
    with fresh(maker) as log:
        with log.views.transaction("walk") as view:
            for key in "abc":
                view.put(key, b"1")
        with log.views.transaction("walk") as view:
            view.put("d", b"1")
            found = []
            for key, value in view.items():
                found.append((key, value))
                view.put("b", b"2")
                view.delete("c")
                view.put("e", b"2")
            assert [(key, b"1") for key in "abcd"] == found
            assert [("a", b"1"), ("b", b"2"), ("d", b"1"), ("e", b"2")] == list(view.items())


def view_for_reading_refuses_writes(maker: StoreMaker) -> None:
    """``put`` and ``delete`` outside a transaction raise ``TypeError`` and change nothing."""
    with fresh(maker) as log:
        with log.views.transaction("still") as view:
            view.put("a", b"1")
        with expect(TypeError):
            log.views.read("still").put("a", b"2")
        with expect(TypeError):
            log.views.read("still").delete("a")
        assert b"1" == log.views.read("still").get("a")


def cleared_view_is_as_new(maker: StoreMaker) -> None:
    """``clear`` drops rows, checkpoint and parked events of one view and of no other."""
    with fresh(maker) as log:
        for name in ("clear", "stays"):
            with log.views.transaction(name) as view:
                view.put("a", b"1")
                view.park(ParkedEvent(name, 4, "a-1", 2, "no", NOON))
                view.checkpoint(5)
        log.views.clear("clear")
        log.views.clear("never")
        assert ([], 0, []) == (list(log.views.read("clear").items()), log.checkpoints.load("clear"), log.views.parked("clear"))
        assert (b"1", 5) == (log.views.read("stays").get("a"), log.checkpoints.load("stays"))
        assert ["stays"] == [parked.projection for parked in log.views.parked()]


def one_writer_at_a_time(maker: StoreMaker) -> None:
    """Threads that each read, pause, add one and write lose no addition: the later one waits, or is refused and tries again."""
    with several(maker, 3) as logs:

        def add(log: EventLog) -> None:
            for _ in range(20):
                patiently(lambda: increment(log))

        def increment(log: EventLog) -> None:
            with log.views.transaction("count") as view:
                seen = int(view.get("n") or b"0")
                time.sleep(0.001)
                view.put("n", str(seen + 1).encode())
                view.checkpoint(view.position + 1)

        together(*[lambda log=log: add(log) for log in logs])
        assert (b"60", 60) == (logs[0].views.read("count").get("n"), logs[0].checkpoints.load("count"))


CHECKS = (
    latest_snapshot_wins,
    snapshots_are_disposable,
    checkpoints_never_go_back,
    checkpoints_from_many_threads,
    view_and_checkpoint_move_together,
    view_is_a_sorted_map,
    walk_of_a_view_shows_what_was_there,
    view_for_reading_refuses_writes,
    cleared_view_is_as_new,
    one_writer_at_a_time,
)
