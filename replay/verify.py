"""Whether a log is what a runtime could have written: every event in its place, readable, canonical, and possible.

Everything is checked event by event with bounded memory; only the first fault of each kind in a stream is kept, and the
rest are counted. What cannot be checked without the app's event classes is counted, never passed over in silence.
"""

from __future__ import annotations

import enum
import hashlib
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import attrs

from ..agents import facts
from ..agents.app import App, runtime_codec
from ..agents.compare import first_difference
from ..agents.errors import ImpossibleHistory
from ..agents.evolve import take
from ..agents.intents import content_digest, input_event_id, intent_id_for, keyed_intent_id
from ..agents.models import ModelRequest
from ..agents.run import RunState
from ..agents.signing import KeyRing
from ..agents.streams import Folder
from ..eventlog.codec import Codec
from ..eventlog.errors import LogError, StoreSchemaError, Undecodable
from ..eventlog.events import StoredEvent
from ..eventlog.log import EventLog
from ..eventlog.names import category_of
from .bookkeeping import ahead_of_the_log, covering, no_wake, odd_columns, wrong_category
from .errors import EmptyStream
from .fold import head_of
from .forking.begun import is_still
from .orphans import lost_send, uncorrelated
from .signatures import Signatures
from .verify_rows import Unseen, lacking_indexes, nowhere, unseen_rows

_FACTS: Final = frozenset(facts.FACTS)
_MOST_SENT: Final = 10_000
#: The number of a rule, which says nothing to whoever reads a report.
_RULE: Final = re.compile(r" \(S-[0-9.]+\)")


class FaultKind(enum.Enum):
    """What can be wrong."""

    EMPTY = "not one event is there"
    HOLE = "versions have a hole"
    TWICE = "a version is there twice"
    UNSEEN = "no reader of streams sees it"
    ORDER = "positions do not grow"
    UNDECODABLE = "cannot be decoded"
    NOT_CANONICAL = "bytes are not canonical"
    DIGEST = "digest does not fit its content"
    IDENTITY = "id does not fit what it names"
    SETTLED_TWICE = "settled twice"
    IMPOSSIBLE = "no run can have written this"
    SNAPSHOT = "snapshot is not the fold"
    COLUMN = "a column holds what no append writes"
    CATEGORY = "listed under another category"
    NO_WAKE = "nobody will be woken for it"
    CHECKPOINT = "a checkpoint is ahead"
    INDEX = "an index is missing"
    ORPHAN = "belongs to nothing"
    CHAIN = "not what it was when the chain was made"
    SIGNATURE = "not signed by who seems to have signed it"


@attrs.frozen
class Fault:
    """The first fault of one kind in a stream."""

    stream: str
    version: int
    kind: FaultKind
    text: str
    #: How many of this kind the stream has.
    count: int = 1


@attrs.frozen
class OpenIntent:
    """An intent without an outcome: no fault, but worth a look when it is old."""

    stream: str
    version: int
    intent_id: str
    tool: str
    attempts: int
    position: int = 0
    #: It is not authentic, and no effector is to look at it.
    distrusted: bool = False


@attrs.define
class StreamReport:
    """What was found out about one stream."""

    #: Empty for what concerns the log as a whole; such a report is only made when there is a fault.
    stream: str
    events: int = 0
    #: Events whose content could not be checked, because the app that knows their types was not given.
    unchecked: int = 0
    #: Events of another program: of types that are not known here, in streams with nothing of ours. Nothing looked into them.
    foreign: int = 0
    faults: dict[FaultKind, Fault] = attrs.field(factory=dict)
    open_intents: list[OpenIntent] = attrs.field(factory=list)
    #: Why the snapshot was not compared; empty when it was, or there is none.
    snapshot_ignored: str = ""
    #: Intents, outcomes and answers that nobody signed; counted where there are keys to check with.
    unsigned: int = 0

    @property
    def sound(self) -> bool:
        """Whether no fault was found."""
        return not self.faults

    def fault(self, kind: FaultKind, version: int, text: str, count: int = 1) -> None:
        """Keep the first of its kind, count the others."""
        known = self.faults.get(kind)
        self.faults[kind] = Fault(self.stream, version, kind, text, count) if known is None else attrs.evolve(known, count=known.count + count)


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
    codec = app.codec if app is not None else runtime_codec()
    folders = {name: Folder(definitions) for name, definitions in app.definitions.items()} if app is not None else {}
    # Before any event is read: an effector saves a checkpoint only behind outcomes that are recorded by then.
    whole = StreamReport("")
    checkpoints = _checkpoints(log, whole)
    unseen = _tables(log, whole)
    if not whole.sound:
        yield whole
    for stream in log.streams() if streams is None else streams:
        report = StreamReport(stream)
        if (rows := unseen.get(stream)) is not None:
            report.fault(FaultKind.UNSEEN, rows.version, str(rows), rows.count)
        try:
            head_of(log, stream)
            folder = folders.get(category_of(stream))
            check = _Check(codec, app is not None, report, folder.empty(stream).run if folder is not None else RunState())
            check.ours = check.known = folder is not None
            check.signatures = Signatures(keys) if keys is not None else None
            check.redacted = getattr(log, "redacted", {}).get(stream, frozenset())
            check.run(log.read(stream))
            _beside(log, check, checkpoints)
            _snapshot(log, folder, report)
        except EmptyStream as problem:
            if rows is None:  # otherwise it has some, in another place
                report.fault(FaultKind.EMPTY, 0, str(problem))
        except StoreSchemaError as problem:
            report.fault(FaultKind.COLUMN, report.events, str(problem))
        progress(report)
        yield report


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
            report.fault(FaultKind.UNSEEN, rows.version, str(rows), rows.count)
    except StoreSchemaError as problem:
        report.fault(FaultKind.COLUMN, 0, str(problem))
        return {}
    return unseen


def _beside(log: EventLog, check: _Check, checkpoints: dict[str, int]) -> None:
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


@attrs.define(eq=False)
class _Check:
    codec: Codec
    knows_all: bool
    report: StreamReport
    #: The fold of the runtime's facts; ``None`` once something was met that cannot be folded.
    run_state: RunState | None
    open: dict[str, OpenIntent] = attrs.field(factory=dict)
    settled: set[str] = attrs.field(factory=set)
    version: int = -1
    position: int = 0
    first: StoredEvent | None = None
    #: Something in the stream was written by us: what is in another format there was damaged, and is nobody else's.
    ours: bool = False
    #: Something in the stream is of a type that is known here, or its category is: a type that is not is missing in the app.
    known: bool = False
    last_at: int = 0
    signatures: Signatures | None = None
    #: Versions in which a bundle has something redacted: of these and what follows from them nothing can be said.
    redacted: frozenset[int] = frozenset()
    #: Inputs for other streams, the latest of them; their own bytes left out.
    sent: deque[tuple[StoredEvent, facts.InputSent]] = attrs.field(factory=lambda: deque(maxlen=_MOST_SENT))

    def run(self, events: Iterable[StoredEvent]) -> StreamReport:
        for stored in events:
            self.first = self.first or stored
            self.report.events += 1
            if not self._columns(stored):
                continue
            self._place(stored)
            if stored.version in self.redacted:
                self.report.unchecked += 1
                self.run_state = None
                continue
            event = self._decoded(stored)
            if event is not None:
                self._content(stored, event)
                if type(event) in _FACTS:
                    self._fact(stored, event)
        self.report.open_intents = list(self.open.values())
        self.report.unsigned = self.signatures.unsigned if self.signatures is not None else 0
        return self.report

    def _columns(self, stored: StoredEvent) -> bool:
        """Whether the event can be looked into; one whose columns are odd stands for nothing that follows."""
        version = stored.version if type(stored.version) is int else self.version + 1
        odd = list(odd_columns(stored))
        for text in odd:
            self.report.fault(FaultKind.COLUMN, version, text)
        if odd:
            self.run_state, self.version, self.position = None, version, stored.position
            return False
        self.last_at = stored.recorded_at
        return True

    def _place(self, stored: StoredEvent) -> None:
        if stored.version == self.version:
            text = f"version {stored.version} is there twice, at positions {self.position} and {stored.position}: no append writes a version that is there"
            self.report.fault(FaultKind.TWICE, stored.version, text)
            self.position = max(self.position, stored.position)  # which of the two comes first is nobody's promise
            return
        if stored.version != self.version + 1:
            missing = f"{self.version + 1}" if stored.version == self.version + 2 else f"{self.version + 1} to {stored.version - 1}"
            self.report.fault(FaultKind.HOLE, stored.version, f"version {stored.version} follows {self.version}: {missing} is missing")
        if stored.position <= self.position:
            self.report.fault(FaultKind.ORDER, stored.version, f"position {stored.position} does not lie behind {self.position}, that of the version before")
        self.version, self.position = stored.version, stored.position

    def _decoded(self, stored: StoredEvent) -> Any:
        if self.codec.registry.get(stored.type) is None:
            damage = self._damage(stored)
            if not self.ours if damage else self.knows_all and not self.known:
                self.report.foreign += 1
                return None
            if not self.knows_all:
                self.report.unchecked += 1
                if damage:
                    self.report.fault(FaultKind.UNDECODABLE, stored.version, f"{stored.type}: {damage}")
                return None
        self.ours = self.known = True
        try:
            return self.codec.decode(stored.type, stored.schema, stored.data)
        except Undecodable as problem:
            self.report.fault(FaultKind.UNDECODABLE, stored.version, str(problem))
            self.run_state = None
            return None

    def _damage(self, stored: StoredEvent) -> str:
        """Why the bytes are not in our format; empty when they are."""
        try:
            self.codec.tree(stored.data)
        except Undecodable as problem:
            return str(problem)
        self.ours = True
        return ""

    def _content(self, stored: StoredEvent, event: Any) -> None:
        try:
            kind, schema, blob = self.codec.encode(event)
        except LogError as problem:
            self.report.fault(FaultKind.NOT_CANONICAL, stored.version, f"{stored.type} decodes to what cannot be written: {problem}")
            return
        if (kind, schema) == (stored.type, stored.schema) and blob != stored.data:
            self.report.fault(FaultKind.NOT_CANONICAL, stored.version, f"{stored.type}: {len(stored.data)} bytes that would be written as {len(blob)} others")
        for fault, text in _identity(self.codec, stored, event):
            self.report.fault(fault, stored.version, text)

    def _fact(self, stored: StoredEvent, event: Any) -> None:
        if self.signatures is not None and (text := self.signatures.objection(stored, event)):
            self.report.fault(FaultKind.SIGNATURE, stored.version, text)
        self._intent(stored, event)
        if self.run_state is None:
            return
        if text := uncorrelated(self.run_state, stored, event):
            self.report.fault(FaultKind.ORPHAN, stored.version, text)
        try:
            self.run_state.at = stored.version
            take(self.run_state, event, stored.recorded_at)
        except ImpossibleHistory as problem:
            self.report.fault(FaultKind.IMPOSSIBLE, stored.version, f"{stored.type}: {_RULE.sub('', str(problem))}")
            self.run_state = None  # what follows would only repeat it

    def _intent(self, stored: StoredEvent, event: Any) -> None:
        if isinstance(event, facts.IntentStaged):
            self.open[event.intent_id] = OpenIntent(stored.stream, stored.version, event.intent_id, event.tool, 0, stored.position)
        elif isinstance(event, facts.IntentAttempted) and event.intent_id in self.open:
            self.open[event.intent_id] = attrs.evolve(self.open[event.intent_id], attempts=event.attempt)
        elif isinstance(event, facts.IntentSettled):
            if event.intent_id in self.settled:
                self.report.fault(FaultKind.SETTLED_TWICE, stored.version, f"intent {event.intent_id} has an outcome already; the first one is final")
            self.settled.add(event.intent_id)
            self.open.pop(event.intent_id, None)
        elif isinstance(event, facts.InputSent):
            self.sent.append((stored._replace(data=b""), event))
        elif isinstance(event, facts.IntentDistrusted) and event.intent_id in self.open:
            self.open[event.intent_id] = attrs.evolve(self.open[event.intent_id], distrusted=True)
        elif isinstance(event, facts.IntentReadmitted) and event.intent_id in self.open:
            self.open[event.intent_id] = attrs.evolve(self.open[event.intent_id], distrusted=False, position=stored.position)


def _identity(codec: Codec, stored: StoredEvent, event: Any) -> Iterator[tuple[FaultKind, str]]:
    """Digests and ids that are made of the event's own content must still fit it."""
    if isinstance(event, facts.InputReceived) and stored.event_id != input_event_id(event.input_id):
        yield FaultKind.IDENTITY, f"event id {stored.id} does not belong to input id {event.input_id!r}"
    if isinstance(event, facts.ModelCallCached) and event.digest != hashlib.sha256(codec.encode_value(event.request, ModelRequest)).digest():
        yield FaultKind.DIGEST, f"{stored.type}: the request at step {event.step} is not the one that was asked"
    called = event if isinstance(event, facts.ToolCallCached | facts.IntentStaged) else None
    if called is not None and called.digest != content_digest(called.tool, codec.encode_value(called.args, dict[str, Any])):
        place = f"step {event.step}" if isinstance(event, facts.IntentStaged) else f"read {event.index}"
        yield FaultKind.DIGEST, f"{stored.type}: tool and arguments at {place} ({event.tool}) are not those that were recorded"
    if isinstance(event, facts.IntentStaged):
        expected = keyed_intent_id(stored.stream, event.tool, event.key) if event.key else intent_id_for(stored.stream, event.seq, event.step)
        if event.intent_id != expected:
            yield FaultKind.IDENTITY, f"intent id {event.intent_id} does not belong to activation {event.seq}, step {event.step}: that is {expected}"


def _snapshot(log: EventLog, folder: Folder | None, report: StreamReport) -> None:
    """A snapshot under today's fingerprint must be the fold from zero; any other is ignored, as it is when it is loaded (S-8.2)."""
    snapshot = log.snapshots.load([report.stream]).get(report.stream)
    if snapshot is None:
        return
    if folder is None:
        report.snapshot_ignored = "no app that folds this stream was given"
        return
    if snapshot.fingerprint != folder.fingerprint:
        report.snapshot_ignored = "it was made by other folding code"
        return
    restored = folder.restore(report.stream, snapshot)
    if restored.version != snapshot.version:
        report.fault(FaultKind.SNAPSHOT, snapshot.version, f"the snapshot at version {snapshot.version} cannot be read")
        return
    folded = folder.empty(report.stream)
    try:
        for rows in log.rows(report.stream, upto=snapshot.version):
            folder.fold(folded, rows)
    except (Undecodable, ImpossibleHistory) as problem:
        report.snapshot_ignored = f"the history before it cannot be folded: {problem}"
        return
    if folded.version != snapshot.version:
        report.fault(FaultKind.SNAPSHOT, snapshot.version, f"the snapshot is at version {snapshot.version}, but the stream ends at {folded.version}")
    elif folder.snapshot(folded).data != snapshot.data:
        found = first_difference({"run": folded.run, "state": folded.state}, {"run": restored.run, "state": restored.state})
        report.fault(FaultKind.SNAPSHOT, snapshot.version, f"at {found.path or 'value'} the fold has {found.left}, the snapshot {found.right}")


__all__ = ["Fault", "FaultKind", "OpenIntent", "StreamReport", "verify_all"]
