"""Whether a log is what a runtime could have written: every event in its place, readable, canonical, and possible.

Everything is checked event by event with bounded memory; only the first fault of each kind in a stream is kept, and the
rest are counted. What cannot be checked without the app's event classes is counted, never passed over in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ..agents.app import App
from ..agents.run import RunState
from ..agents.signing import KeyRing
from ..agents.streams import Folder, StreamState
from ..eventlog.errors import StoreSchemaError
from ..eventlog.log import EventLog
from ..eventlog.names import category_of
from ..eventlog.odd import KINDS, shown
from .bookkeeping import ahead_of_the_log, covering, no_wake, wrong_category
from .errors import EmptyStream
from .fold import head_of
from .forking.begun import codec_for, is_still
from .orphans import lost_send
from .signatures import Signatures
from .verify_plain import check_plain, compare
from .verify_report import Fault, FaultKind, OpenIntent, StreamReport
from .verify_rows import Unseen, keeps_ids_apart, lacking_indexes, nowhere, odd_cells, unseen_rows
from .verify_stream import Check


def verify_all(
    log: EventLog,
    app: App | None = None,
    streams: Iterable[str] | None = None,
    *,
    keys: KeyRing | None = None,
    progress: Callable[[StreamReport], None] = lambda report: None,
) -> Iterator[StreamReport]:
    """A report a stream, for ``streams`` or the whole log; with ``keys`` signatures are checked, too.

    Raises ``NoSuchStream`` for a name the log does not have.
    """
    folders = {name: Folder(definitions) for name, definitions in app.definitions.items()} if app is not None else {}
    # Before any event is read: an effector saves a checkpoint only behind outcomes that are recorded by then.
    whole = StreamReport("")
    checkpoints = _checkpoints(log, whole)
    unseen = _tables(log, whole)
    apart = keeps_ids_apart(log)
    if not whole.sound:
        yield whole
    for stream in log.streams() if streams is None else streams:
        report = StreamReport(stream)
        rows = unseen.get(stream)
        folder = folders.get(category_of(stream))
        check = Check(codec_for(stream, app), app is not None, report, folder.empty(stream).run if folder is not None else RunState())
        check.ours = check.known = folder is not None
        check.signatures = Signatures(keys) if keys is not None else None
        check.redacted = getattr(log, "redacted", {}).get(stream, frozenset())
        check.ids = None if apart else {}
        try:
            _look_for(log, stream)
            check.run(log.read(stream))
            _beside(log, check, checkpoints)
            _snapshot(log, app, folder, report)
        except EmptyStream as problem:
            if rows is None:  # otherwise it has some, in another place
                report.fault(FaultKind.EMPTY, 0, str(problem))
        except StoreSchemaError as problem:
            report.fault(FaultKind.COLUMN, max(check.version, 0), str(problem))
        if rows is not None:
            _tell_unseen(report, rows, check)
        progress(report)
        yield report


def _look_for(log: EventLog, stream: str) -> None:
    """Raises ``NoSuchStream`` or ``EmptyStream``."""
    try:
        head_of(log, stream)
    except StoreSchemaError:  # the last version is no number: which event that is shows in the walk
        return


def _tell_unseen(report: StreamReport, rows: Unseen, check: Check) -> None:
    """A row whose version is no number is told of at the first version that is not there: that is where it was."""
    version = rows.version
    if version is None:
        version = check.version + 1 if check.missing is None else check.missing
        report.fault(FaultKind.COLUMN, version, f"version is {shown(rows.first.version)}, where {KINDS[int]} belongs")
    report.fault(FaultKind.UNSEEN, version, str(rows), rows.count)


def _checkpoints(log: EventLog, report: StreamReport) -> dict[str, int]:
    try:
        checkpoints = log.checkpoints.all()
        for text in ahead_of_the_log(checkpoints, log.last_position()):
            report.fault(FaultKind.CHECKPOINT, 0, text)
    except StoreSchemaError as problem:
        report.fault(FaultKind.COLUMN, 0, str(problem))
        return {}
    return checkpoints


def _tables(log: EventLog, report: StreamReport) -> dict[str, Unseen]:
    """What is in the tables beside what readers see; the rows of streams that get a report of their own are given back."""
    try:
        for text in lacking_indexes(log):
            report.fault(FaultKind.INDEX, 0, text)
        unseen = unseen_rows(log)
        for rows in nowhere(unseen, log):
            report.fault(FaultKind.UNSEEN, rows.version or 0, str(rows), rows.count)
        for text in odd_cells(log):
            report.fault(FaultKind.COLUMN, 0, text)
    except StoreSchemaError as problem:
        report.fault(FaultKind.COLUMN, 0, str(problem))
        return {}
    return unseen


def _beside(log: EventLog, check: Check, checkpoints: dict[str, int]) -> None:
    """What stands beside the stream's events."""
    report = check.report
    if check.first is not None and (text := wrong_category(log, report.stream, check.first)):
        report.fault(FaultKind.CATEGORY, 0, text)
    for intent in report.open_intents:
        if not intent.distrusted and (name := covering(checkpoints, report.stream, intent.position)):
            text = f"checkpoint {name!r:.80} at position {checkpoints[name]} is ahead of intent {intent.intent_id} ({intent.tool}) at {intent.position}"
            report.fault(FaultKind.CHECKPOINT, intent.version, f"{text}, which has no outcome: no effector will look at it again. Reset the checkpoint.")
    for stored, sent in check.sent:
        if text := lost_send(log, stored, sent):
            report.fault(FaultKind.ORPHAN, stored.version, text)
    text = no_wake(log, report.stream, check.run_state, check.version, check.last_at) if check.run_state is not None else ""
    if text and not is_still(log, report.stream):
        report.fault(FaultKind.NO_WAKE, check.version, text)


def _snapshot(log: EventLog, app: App | None, folder: Folder | None, report: StreamReport) -> None:
    """A snapshot under today's fingerprint must be the fold from zero; any other is ignored, as it is when it is loaded (S-8.2)."""
    snapshot = log.snapshots.load([report.stream]).get(report.stream)
    if snapshot is None:
        return
    if folder is None:
        check_plain(log, app, report, snapshot)
        return
    if snapshot.fingerprint != folder.fingerprint:
        report.snapshot_ignored = "it was made by other folding code"
        return
    restored = folder.restore(report.stream, snapshot)

    def fold() -> StreamState:
        folded = folder.empty(report.stream)
        for rows in log.rows(report.stream, upto=snapshot.version):
            folder.fold(folded, rows)
        return folded

    compare(report, snapshot, restored, fold, folder.snapshot, lambda each: {"run": each.run, "state": each.state})


__all__ = ["Fault", "FaultKind", "OpenIntent", "StreamReport", "verify_all"]
