"""The questions that are still to be published, as the tail of the log tells it. A pure fold: no clock, no store, no wire.

Questions of one stream stand in the order in which they were asked. ``low_water`` is the position up to which nothing is left
to be published: what a checkpoint may safely say.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from ...agents import facts
from ...eventlog.events import StoredEvent

TYPES: Final = ("approval.requested", "approval.decided", "approval.undelivered", "approval.redriven")
"""The event types they are made of."""


@attrs.frozen(eq=False)
class Again:
    """A question that is to be published once more."""

    event: StoredEvent
    asked: facts.ApprovalRequested


@attrs.define(eq=False)
class Question:
    """One of them."""

    event: StoredEvent
    asked: facts.ApprovalRequested
    #: What wants it published: the question itself, or a person who redrives it.
    position: int
    #: Deliveries that failed in a row, and how many of them were refusals.
    failures: int = 0
    refusals: int = 0
    #: Not before this moment of the loop's clock.
    not_before: float = 0.0


class Questions:
    """Takes events in log order; knows what is to be published."""

    def __init__(self, after: int = 0) -> None:
        #: Position of the last event taken in.
        self.cursor = after
        self._lanes: dict[str, dict[str, Question]] = {}
        self._open: dict[int, None] = {}

    def take(self, event: StoredEvent, fact: Any) -> None:
        """Take the next event in. One that is answered, or given up, needs no publishing any more."""
        self.cursor = event.position
        if isinstance(fact, facts.ApprovalRequested):
            self._wanted(Question(event, fact, event.position))
        elif isinstance(fact, Again):
            self._wanted(Question(fact.event, fact.asked, event.position))
        elif isinstance(fact, facts.ApprovalDecided | facts.ApprovalUndelivered):
            self.over(event.stream, fact.approval_id)

    def _wanted(self, question: Question) -> None:
        lane = self._lanes.setdefault(question.event.stream, {})
        if question.asked.approval_id not in lane:
            lane[question.asked.approval_id] = question
            self._open[question.position] = None

    def over(self, stream: str, approval_id: str) -> None:
        """Nothing is to be published of it; told twice, it changes nothing the second time."""
        lane = self._lanes.get(stream, {})
        question = lane.pop(approval_id, None)
        if question is None:
            return
        del self._open[question.position]
        del self._lanes[stream]
        if lane:  # behind the other keys, so that one with many questions does not hold them up
            self._lanes[stream] = lane

    def firsts(self) -> list[Question]:
        """The next question of each stream; the stream that was served last comes last."""
        return [next(iter(lane.values())) for lane in self._lanes.values()]

    @property
    def low_water(self) -> int:
        """Everything at or below this position is published, answered, expired or given up."""
        return next(iter(self._open)) - 1 if self._open else self.cursor

    def __len__(self) -> int:
        return len(self._open)
