"""What a re-run comes to, as values: a stream is *same*, *diverged* at its first event, or could not be replayed (S-9.2)."""

from __future__ import annotations

import enum
from typing import Final

import attrs


class Verdict(enum.Enum):
    """How a stream came out."""

    SAME = "same"
    #: It diverged only where the allow-list says that it may.
    ALLOWED = "allowed"
    DIVERGED = "diverged"
    CANNOT = "cannot"


class StateCheck(enum.Enum):
    """Whether the aggregate's state was held against one that somebody else had folded."""

    #: With a snapshot, or with the state under other code.
    COMPARED = "compared"
    NOT_COMPARED = "not compared"
    #: The agent has no aggregate.
    NO_STATE = "no state"


class Kind(enum.Enum):
    """What differs."""

    #: A recorded step and the same step as decided now (S-4.2, S-5.2).
    DRIFT = "drift"
    #: A step that was never recorded; a replay never calls out.
    MISS = "miss"
    #: An event the turn stages.
    EVENT = "event"
    #: The turn raised where it had ended, or ended where it had raised, or raised something else.
    FAILURE = "failure"
    #: The aggregate as it was kept in a snapshot, and as it is folded now (S-8.1).
    STATE = "state"


@attrs.frozen
class Divergence:
    """The first difference between what is recorded and what today's code decides. Everything counts from 0."""

    stream: str
    #: Version of the recorded event that differs, or before which something more was decided.
    version: int
    #: Type of that event.
    event: str
    kind: Kind
    seq: int
    #: Ordinal of the turn in its activation.
    turn: int
    #: Ordinal of the durable step (``step``) or of the read (``read``), or -1 when it is neither.
    step: int
    recorded: str
    decided: str
    #: Path of the first differing field; empty when the two are different things altogether.
    field: str = ""
    #: What the step is about: the tool, ``model call``, ``read 2``.
    subject: str = ""

    @property
    def place(self) -> str:
        """Where, in words.

        >>> Divergence("a-1", 3, "intent.staged", Kind.EVENT, 0, 1, 2, "4200", "4300", "args.cents", "refund").place
        'activation 0, turn 1, step 2 (refund)'
        """
        if self.kind is Kind.STATE:
            return f"the state at version {self.version}"
        step = f", step {self.step}" if self.step >= 0 else ""
        return f"activation {self.seq}, turn {self.turn}{step}{f' ({self.subject})' if self.subject else ''}"


@attrs.frozen
class Excused:
    """A divergence that the allow-list lets through, and the line of the list that does."""

    line: int
    divergence: Divergence


@attrs.frozen
class StreamReplay:
    """One stream's verdict. Counts cover what was replayed up to the verdict."""

    stream: str
    verdict: Verdict
    events: int = 0
    #: Turns that were run again, failed ones included.
    turns: int = 0
    #: Recorded answers given to steps that asked for them.
    hits: int = 0
    divergence: Divergence | None = None
    #: Why the stream could not be replayed.
    reason: str = ""
    #: Remarks about what cannot be reproduced from the log and is therefore no divergence.
    notes: tuple[str, ...] = ()
    #: What was let through; the replay went on behind each with what is recorded.
    excused: tuple[Excused, ...] = ()
    #: Decisions are always compared; the state only where there is one to compare it with.
    state: StateCheck = StateCheck.NOT_COMPARED

    @property
    def misses(self) -> int:
        """Steps that were never recorded: 1 when that is how the stream diverged."""
        return int(self.divergence is not None and self.divergence.kind is Kind.MISS)

    @property
    def drifts(self) -> int:
        """Steps that differ from the recorded ones: 1 when that is how the stream diverged."""
        return int(self.divergence is not None and self.divergence.kind is Kind.DRIFT)


SAME: Final = 0
FOUND: Final = 1
COULD_NOT: Final = 3


@attrs.define
class Summary:
    """The sum of many streams."""

    same: int = 0
    allowed: int = 0
    diverged: int = 0
    cannot: int = 0
    events: int = 0
    turns: int = 0
    hits: int = 0
    misses: int = 0
    drifts: int = 0
    #: Streams whose state was compared, and streams that came out well without.
    states: int = 0
    states_open: int = 0
    #: Projections, which are no streams.
    views: int = 0
    views_diverged: int = 0
    views_cannot: int = 0

    def add_projection(self, verdict: Verdict) -> None:
        """Count one projection."""
        self.views += 1
        self.views_diverged += verdict is Verdict.DIVERGED
        self.views_cannot += verdict is Verdict.CANNOT

    def add(self, replayed: StreamReplay) -> None:
        """Count one more stream."""
        self.same += replayed.verdict is Verdict.SAME
        self.allowed += replayed.verdict is Verdict.ALLOWED
        self.diverged += replayed.verdict is Verdict.DIVERGED
        self.cannot += replayed.verdict is Verdict.CANNOT
        self.events += replayed.events
        self.turns += replayed.turns
        self.hits += replayed.hits
        self.misses += replayed.misses
        self.drifts += replayed.drifts
        self.states += replayed.state is StateCheck.COMPARED
        self.states_open += replayed.state is StateCheck.NOT_COMPARED and replayed.verdict in (Verdict.SAME, Verdict.ALLOWED)

    @property
    def streams(self) -> int:
        """How many streams were looked at."""
        return self.same + self.allowed + self.diverged + self.cannot

    @property
    def exit_code(self) -> int:
        """0: all the same, or allowed to differ. 1: at least one diverged. 3: none diverged, but at least one could not be replayed."""
        return FOUND if self.diverged or self.views_diverged else COULD_NOT if self.cannot or self.views_cannot else SAME
