"""An aggregate's snapshot against the fold of its stream: what the next turn that loads it would begin with (S-8.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from ..agents.app import App
from ..agents.compare import first_difference
from ..agents.errors import ImpossibleHistory
from ..agents.reading_streams import Loaded, PlainFolder
from ..eventlog.errors import Undecodable
from ..eventlog.log import EventLog, Snapshot
from ..eventlog.names import category_of
from .aggregates import aggregate_of
from .verify_report import FaultKind, StreamReport


class Folded(Protocol):
    """A state and how far its stream was folded."""

    @property
    def version(self) -> int: ...


F = TypeVar("F", bound=Folded)


def check_plain(log: EventLog, app: App | None, report: StreamReport, snapshot: Snapshot) -> None:
    """Tell of a snapshot that is not the fold, and of one that is ignored."""
    kind = aggregate_of(app, category_of(report.stream)) if app is not None else None
    if app is None or kind is None:
        report.snapshot_ignored = "no app that folds this stream was given"
        return
    folder = PlainFolder(app.codec, kind)
    if snapshot.fingerprint != folder.fingerprint:
        report.snapshot_ignored = "it was made by other folding code"
        return
    restored = folder.restore(snapshot, None)

    def fold() -> Loaded:
        folded = Loaded(kind(), -1)
        for rows in log.rows(report.stream, upto=snapshot.version):
            folded = folder.fold(report.stream, folded, rows)
        return folded

    compare(report, snapshot, restored, fold, folder.snapshot, lambda each: {"state": each.state})


def compare(
    report: StreamReport, snapshot: Snapshot, restored: F, fold: Callable[[], F], taken: Callable[[F], Snapshot], parts: Callable[[F], dict[str, Any]]
) -> None:
    """Tell of a snapshot that is not what ``fold`` comes to: ``restored`` is read from it, ``taken`` makes one, ``parts`` are told apart by name."""
    if restored.version != snapshot.version:
        report.fault(FaultKind.SNAPSHOT, snapshot.version, f"the snapshot at version {snapshot.version} cannot be read")
        return
    try:
        folded = fold()
    except (Undecodable, ImpossibleHistory) as problem:
        report.snapshot_ignored = f"the history before it cannot be folded: {problem}"
        return
    if folded.version != snapshot.version:
        report.fault(FaultKind.SNAPSHOT, snapshot.version, f"the snapshot is at version {snapshot.version}, but the stream ends at {folded.version}")
    elif taken(folded).data != snapshot.data:
        found = first_difference(parts(folded), parts(restored))
        report.fault(FaultKind.SNAPSHOT, snapshot.version, f"at {found.path or 'value'} the fold has {found.left}, the snapshot {found.right}")
