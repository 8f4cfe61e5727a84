"""What a check of a log can find, stream by stream. Values only."""

from __future__ import annotations

import enum

import attrs


class FaultKind(enum.Enum):
    """What can be wrong."""

    EMPTY = "not one event is there"
    HOLE = "versions have a hole"
    TWICE = "a version is there twice"
    ID_TWICE = "an event id is there twice"
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
