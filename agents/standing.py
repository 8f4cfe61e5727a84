"""How intents stand, as far as the log tells, without the app: open in one of four ways, or settled, and what a person found out since.

Rules of this file: nothing is written here. What a person does about an intent is in ``operating``.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from ..eventlog.clock import Micros
from ..eventlog.events import StoredEvent
from ..eventlog.held_back import held_back
from ..eventlog.log import EventLog
from . import facts
from .app import runtime_codec
from .errors import RequestRefused
from .intents import ERROR, OK, STATUSES, UNKNOWN, readmission_event_id
from .unreadable import Tell, facts_of, unheard

STAGED: Final = "STAGED"
ATTEMPTED: Final = "ATTEMPTED"
POSTPONED: Final = "POSTPONED"
DISTRUSTED: Final = "DISTRUSTED"
OPEN: Final = (STAGED, ATTEMPTED, POSTPONED, DISTRUSTED)
"""How an intent without an outcome stands: nobody attempted it; an attempt's end is not recorded; it waits for its next attempt;
it is not authentic, and no effector will touch it.
"""
STANDINGS: Final = (*OPEN, *STATUSES)
_SIGNAL: Final = "intent.resolved:"
_STAGED: Final = ("intent.staged",)
_SCANNED: Final = (*(f"intent.{each}" for each in ("staged", "attempted", "postponed", "settled", "distrusted", "readmitted")), "signal.received")


@attrs.frozen
class Resolution:
    """What a person found out about an UNKNOWN intent."""

    #: OK or ERROR.
    status: str
    value: Any
    by: str
    reason: str
    at: Micros


@attrs.define
class Standing:
    """One intent, as far as the log tells. Moments are µs since 1970-01-01 UTC."""

    stream: str
    intent: facts.IntentStaged
    staged_at: Micros
    #: Place of ``intent.staged``.
    version: int
    position: int
    event_id: bytes
    correlation: bytes | None
    #: ``intent.staged`` as it is stored.
    schema: int = 0
    payload: bytes = attrs.field(default=b"", repr=False)
    attempts: int = 0
    postponed: facts.IntentPostponed | None = None
    #: Set while nobody has readmitted it.
    distrusted: facts.IntentDistrusted | None = None
    distrusted_at: Micros = 0
    readmissions: int = 0
    settled: facts.IntentSettled | None = None
    settled_at: Micros = 0
    resolution: Resolution | None = None

    @property
    def status(self) -> str:
        """One of ``STANDINGS``."""
        if self.settled is not None:
            return self.settled.status
        if self.distrusted is not None:
            return DISTRUSTED
        if self.attempts == 0:
            return STAGED
        return POSTPONED if self.postponed is not None and self.postponed.attempt == self.attempts else ATTEMPTED

    @property
    def needs_somebody(self) -> bool:
        """Open, or UNKNOWN and nobody has said how it ended."""
        return self.settled is None or (self.settled.status == UNKNOWN and self.resolution is None)


def resolved_signal(intent_id: str) -> str:
    """The name of the signal by which a key is told what a person found out about an UNKNOWN intent of its.

    Its payload: ``{"intent_id", "status", "value", "by", "reason"}``, with status OK or ERROR.

    >>> resolved_signal("25ddf24b")
    'intent.resolved:25ddf24b'
    """
    return _SIGNAL + intent_id


def standings(log: EventLog, stream: str | None = None, *, settled: bool = False, tell: Tell | None = None) -> list[Standing]:
    """Intents of the log, or of one stream, in the order in which they were staged: those that need somebody, or all with ``settled``.

    ``tell`` hears of each event that cannot be read, which may be about any of its stream's intents; without it ``Undecodable`` is
    raised. Memory grows with what is returned, not with the log.
    """
    codec, found = runtime_codec(), dict[tuple[str, str], Standing]()
    for event, fact in facts_of(codec, log.read_all(types=_SCANNED) if stream is None else log.read(stream), _SCANNED, tell):
        _take(found, event, fact, settled)
    return [each for each in found.values() if settled or each.needs_somebody]


def _take(found: dict[tuple[str, str], Standing], event: StoredEvent, fact: Any, keep: bool) -> None:
    if isinstance(fact, facts.IntentStaged):
        at = (event.recorded_at, event.version, event.position, event.event_id, event.correlation, event.schema, event.data)
        found[event.stream, fact.intent_id] = Standing(event.stream, fact, *at)
        return
    intent_id = fact.intent_id if not isinstance(fact, facts.SignalReceived) else fact.name.removeprefix(_SIGNAL)
    known = found.get((event.stream, intent_id))
    if known is None:
        return
    if isinstance(fact, facts.IntentAttempted):
        known.attempts = max(known.attempts, fact.attempt)
    elif isinstance(fact, facts.IntentPostponed):
        known.postponed = fact
    elif isinstance(fact, facts.IntentDistrusted):
        known.distrusted, known.distrusted_at = fact, event.recorded_at
    elif isinstance(fact, facts.IntentReadmitted):
        if event.event_id == readmission_event_id(event.stream, intent_id, fact.number):  # else it is a copy, which no effector heeds
            known.distrusted, known.readmissions = None, max(known.readmissions, fact.number)
    elif isinstance(fact, facts.IntentSettled):
        known.settled, known.settled_at = fact, event.recorded_at
    elif known.settled is not None and (resolution := _resolution(fact, event.recorded_at)) is not None:
        known.resolution = resolution
    if not keep and not known.needs_somebody:
        del found[event.stream, intent_id]


def _resolution(signal: facts.SignalReceived, at: Micros) -> Resolution | None:
    """What the signal says of its intent, or ``None`` for one that somebody else sent under such a name."""
    said = signal.payload
    if not isinstance(said, dict) or signal.signal_id != signal.name or said.get("status") not in (OK, ERROR):
        return None
    return Resolution(said["status"], said.get("value"), str(said.get("by", "")), str(said.get("reason", "")), at)


def standing(log: EventLog, intent_id: str, stream: str | None = None, *, tell: Tell | None = None) -> Standing:
    """One intent. Naming its ``stream`` spares a look through the whole log. Raises ``RequestRefused`` for one that is not there.

    ``tell`` hears of each event of its stream that cannot be read; without it ``Undecodable`` is raised.
    """
    codec, found = runtime_codec(), dict[tuple[str, str], Standing]()
    where = stream
    if where is None:
        staged = facts_of(codec, log.read_all(types=_STAGED), _STAGED, unheard)
        where = next((event.stream for event, fact in staged if fact.intent_id == intent_id), None)
    for event, fact in facts_of(codec, log.read(where) if where is not None else (), _SCANNED, tell):
        _take(found, event, fact, True)
    if where is None or (where, intent_id) not in found:
        place = f"{stream} has" if stream is not None else "The log has"
        hidden = f" Or it cannot be found yet: {held}. Naming its stream finds it all the same." if where is None and (held := held_back(log)) else ""
        raise RequestRefused(f"{place} no intent {intent_id!r}. Nothing was written. See what there is: eventlog intents list --all{hidden}")
    return found[where, intent_id]
