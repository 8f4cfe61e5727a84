"""What an effector tells of while it works: the one place where metrics, logs, spans and health listen.

Called in the event loop, between two steps of a lane, so a listener must be quick and must not raise. What it hears holds no
arguments and no results; of a failure take the type, for its text may repeat either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..eventlog.clock import Micros
    from .outbox import Outbox, Pending
    from .phases import Outcome


class Watching:
    """Hears nothing; override what is wanted."""

    def beat(self, part: str) -> None:
        """``part`` made progress, or found that there was none to make."""

    def looked(self, outbox: Outbox) -> None:
        """The tail was read to its end."""

    def failed(self, part: str, problem: BaseException) -> None:
        """``part`` failed; it is begun again after a pause."""

    def attempted(self, pending: Pending) -> None:
        """An attempt is recorded; the tool is called now. In the context that the tool runs in."""

    def called(self, pending: Pending, outcome: Outcome, seconds: float) -> None:
        """The tool returned, raised or ran out of time, ``seconds`` after it was called."""

    def postponed(self, pending: Pending, outcome: Outcome) -> None:
        """The attempt failed in a way that may heal; that it is over, and when the next one is due, is recorded."""

    def settled(self, pending: Pending, outcome: Outcome) -> None:
        """The outcome is recorded."""

    def distrusted(self, pending: Pending, why: str) -> None:
        """The intent is not authentic; nothing was done about it, and that is recorded."""

    def approval_published(self, stream: str) -> None:
        """A surface has the question that ``stream`` asks."""

    def approval_undelivered(self, stream: str) -> None:
        """A surface refused the question again and again; it is given up, and that is recorded."""

    def left_alone(self, stream: str, doing: str, problem: BaseException) -> None:
        """An event of the stream cannot be read here, so nothing more is done on it; once. ``on_error`` hears of it next."""

    def waiting(self, reasons: Mapping[str, int]) -> None:
        """Keys that wait, by what keeps them: an unknown tool that is held, a back-off, a limit of the tool. About once a second."""

    def refused(self, pending: Pending, outcome: Outcome) -> None:
        """The outcome came second and was refused: somebody else, a person perhaps, settled the intent first (S-6.2)."""

    def lost(self, stream: str, pending: Pending | None) -> None:
        """The lease on the key had gone to somebody else; what this effector had to say about ``pending`` was refused (S-6.4)."""

    def busy(self, stream: str) -> None:
        """Somebody else holds the key; it is waited for."""

    def handed_back(self, stream: str) -> None:
        """The lease on the key was given back with nothing under way."""

    def abandoned(self, pending: Pending, seconds: float) -> None:
        """A tool went on ``seconds`` past its timeout, deaf to its cancellation; the key is left to its lease."""

    def left(self, pending: Pending) -> None:
        """The effector stops, and the tool was not over within the grace; the key is left to its lease (S-6.7)."""

    def hindered(self, pending: Pending, doing: str, problem: BaseException) -> None:
        """``doing`` something for the intent failed; ``on_error`` hears of it next."""

    def repeated(self, pending: Pending, status: str) -> None:
        """A bus delivered an intent that has its outcome: that is published again, and nothing is carried out."""

    def set_aside(self, partition: int, offset: int, kind: str, why: str) -> None:
        """A message of a bus was made a dead letter, durably. ``why`` may repeat what it holds; ``kind`` does not."""

    def in_hand(self, count: int, oldest: Micros | None) -> None:
        """Messages of a bus that are not done with, and when the oldest of them was staged. About twice a second."""


class Everyone(Watching):
    """Tells several listeners, in order."""

    def __init__(self, listeners: Iterable[Watching]) -> None:
        self._listeners = tuple(listeners)

    def beat(self, part: str) -> None:
        for each in self._listeners:
            each.beat(part)

    def looked(self, outbox: Outbox) -> None:
        for each in self._listeners:
            each.looked(outbox)

    def failed(self, part: str, problem: BaseException) -> None:
        for each in self._listeners:
            each.failed(part, problem)

    def attempted(self, pending: Pending) -> None:
        for each in self._listeners:
            each.attempted(pending)

    def called(self, pending: Pending, outcome: Outcome, seconds: float) -> None:
        for each in self._listeners:
            each.called(pending, outcome, seconds)

    def postponed(self, pending: Pending, outcome: Outcome) -> None:
        for each in self._listeners:
            each.postponed(pending, outcome)

    def waiting(self, reasons: Mapping[str, int]) -> None:
        for each in self._listeners:
            each.waiting(reasons)

    def left_alone(self, stream: str, doing: str, problem: BaseException) -> None:
        for each in self._listeners:
            each.left_alone(stream, doing, problem)

    def settled(self, pending: Pending, outcome: Outcome) -> None:
        for each in self._listeners:
            each.settled(pending, outcome)

    def distrusted(self, pending: Pending, why: str) -> None:
        for each in self._listeners:
            each.distrusted(pending, why)

    def approval_published(self, stream: str) -> None:
        for each in self._listeners:
            each.approval_published(stream)

    def approval_undelivered(self, stream: str) -> None:
        for each in self._listeners:
            each.approval_undelivered(stream)

    def refused(self, pending: Pending, outcome: Outcome) -> None:
        for each in self._listeners:
            each.refused(pending, outcome)

    def lost(self, stream: str, pending: Pending | None) -> None:
        for each in self._listeners:
            each.lost(stream, pending)

    def busy(self, stream: str) -> None:
        for each in self._listeners:
            each.busy(stream)

    def handed_back(self, stream: str) -> None:
        for each in self._listeners:
            each.handed_back(stream)

    def abandoned(self, pending: Pending, seconds: float) -> None:
        for each in self._listeners:
            each.abandoned(pending, seconds)

    def left(self, pending: Pending) -> None:
        for each in self._listeners:
            each.left(pending)

    def hindered(self, pending: Pending, doing: str, problem: BaseException) -> None:
        for each in self._listeners:
            each.hindered(pending, doing, problem)

    def repeated(self, pending: Pending, status: str) -> None:
        for each in self._listeners:
            each.repeated(pending, status)

    def set_aside(self, partition: int, offset: int, kind: str, why: str) -> None:
        for each in self._listeners:
            each.set_aside(partition, offset, kind, why)

    def in_hand(self, count: int, oldest: Micros | None) -> None:
        for each in self._listeners:
            each.in_hand(count, oldest)
