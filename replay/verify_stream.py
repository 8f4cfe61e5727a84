"""Whether the events of one stream are what a runtime could have written: in their places, readable, canonical, and possible."""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs

from ..agents import facts
from ..agents.errors import ImpossibleHistory
from ..agents.evolve import take
from ..agents.intents import content_digest, input_event_id, intent_id_for, keyed_intent_id
from ..agents.models import ModelRequest
from ..agents.run import RunState
from ..eventlog.codec import Codec
from ..eventlog.errors import LogError, Undecodable
from ..eventlog.events import StoredEvent
from ..eventlog.odd import odd_columns
from .orphans import uncorrelated
from .signatures import Signatures
from .verify_report import FaultKind, OpenIntent, StreamReport

_FACTS: Final = frozenset(facts.FACTS)
_MOST_SENT: Final = 10_000
#: The number of a rule, which says nothing to whoever reads a report.
_RULE: Final = re.compile(r" \(S-[0-9.]+\)")


@attrs.define(eq=False)
class Check:
    """The walk over the events of one stream; what it finds goes into ``report``."""

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
    #: The first version that is not there though later ones are.
    missing: int | None = None
    #: Something in the stream was written by us: what is in another format there was damaged, and is nobody else's.
    ours: bool = False
    #: Something in the stream is of a type that is known here, or its category is: a type that is not is missing in the app.
    known: bool = False
    last_at: int = 0
    #: Event ids that were met, where the log itself does not keep them apart.
    ids: dict[bytes, int] | None = None
    signatures: Signatures | None = None
    #: Versions in which a bundle has something redacted: of these and what follows from them nothing can be said.
    redacted: frozenset[int] = frozenset()
    #: Inputs for other streams, the latest of them; their own bytes left out.
    sent: deque[tuple[StoredEvent, facts.InputSent]] = attrs.field(factory=lambda: deque(maxlen=_MOST_SENT))

    def run(self, events: Iterable[StoredEvent]) -> StreamReport:
        """Look at the stream's events, from its first on."""
        for stored in events:
            self.first = self.first or stored
            self.report.events += 1
            if not self._columns(stored):
                continue
            self._place(stored)
            self._apart(stored)
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
            self.missing = self.version + 1 if self.missing is None else self.missing
            missing = f"{self.version + 1}" if stored.version == self.version + 2 else f"{self.version + 1} to {stored.version - 1}"
            self.report.fault(FaultKind.HOLE, stored.version, f"version {stored.version} follows {self.version}: {missing} is missing")
        if stored.position <= self.position:
            self.report.fault(FaultKind.ORDER, stored.version, f"position {stored.position} does not lie behind {self.position}, that of the version before")
        self.version, self.position = stored.version, stored.position

    def _apart(self, stored: StoredEvent) -> None:
        if self.ids is None:
            return
        first = self.ids.setdefault(stored.event_id, stored.position)
        if first != stored.position:
            text = f"event id {stored.id} is there already, at position {first}, and again at {stored.position}: no append records an event twice in a stream"
            self.report.fault(FaultKind.ID_TWICE, stored.version, text)

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
