"""What comes to a key between two of its turns, as values: outcomes, answers of people, signals, time, cancellation.

Each says which facts it stands for on the log, given what the key waits for at that moment.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs

from ...eventlog.clock import from_timedelta
from ...eventlog.codec import Codec
from .. import facts
from ..failures import failure_of
from ..intents import ERROR, OK
from ..run import Activation, Approval, Intent, RunState
from ..tools import Tool, ToolSet


class NotWaitedFor(AssertionError):
    """The key waits for nothing of the kind."""


@attrs.frozen
class World:
    """What an arrival may look at: the key's fold, and the moment."""

    run: RunState
    codec: Codec
    tools: ToolSet
    now: int

    @property
    def current(self) -> Activation:
        """The activation whose turn it is; raises ``NotWaitedFor``."""
        if self.run.current is None:
            raise NotWaitedFor("no activation is open here: nothing was sent to this key, or all of it is over")
        return self.run.current


class Arrival:
    """Base of everything that ``when`` takes besides an input."""

    def facts(self, world: World) -> list[object]:
        """The facts it stands for; raises ``NotWaitedFor``."""
        raise TypeError(f"{type(self).__name__} stands for no fact")


@attrs.frozen
class Settled(Arrival):
    """An effect ended; in ``answering``: a read-only tool returned or raised."""

    tool: str
    value: Any = None
    error: BaseException | None = None
    status: str = OK

    def facts(self, world: World) -> list[object]:
        """An attempt and the settlement of the first open intent of this tool."""
        found = first_open(world.run, self.tool)
        failure = failure_of(self.error) if self.error is not None else None
        known = world.tools.get(self.tool)
        value = None if self.status != OK else world.codec.tree(world.codec.encode_value(self.value, known.returns if known is not None else Any))
        attempted = facts.IntentAttempted(found.intent_id, found.attempts + 1, "a test", 1)
        settled = facts.IntentSettled(found.intent_id, self.status, value, failure, attempted.attempt, "a test")
        return [attempted, settled]


def first_open(run: RunState, tool: str) -> Intent:
    """The first intent of ``tool`` without an outcome; raises ``NotWaitedFor`` naming those there are."""
    pending = [each for each in run.intents.values() if each.settled is None]
    found = next((each for each in pending if each.tool == tool), None)
    if found is None:
        raise NotWaitedFor(f"no effect of {tool} is open; open are: {', '.join(each.tool for each in pending) or 'none'}")
    return found


@attrs.frozen
class Decided(Arrival):
    """A person answered."""

    approved: bool
    question: str | None = None
    by: str = "a tester"
    reason: str = ""

    def facts(self, world: World) -> list[object]:
        """The answer to the question, or to the only one that is open."""
        asked = asked_of(world.run, self.question).requested
        return [facts.ApprovalDecided(asked.approval_id, asked.digest, self.approved, self.by, self.reason)]


def asked_of(run: RunState, question: str | None) -> Approval:
    """The open approval with this question, or the only one there is; raises ``NotWaitedFor``."""
    pending = [each for activation in run.open.values() for id, each in activation.approvals.items() if each.decided is None and id in activation.timers]
    fitting = [each for each in pending if question in (None, each.requested.question)]
    if not fitting or (question is None and len(fitting) > 1):
        shown = ", ".join(repr(each.requested.question) for each in pending) or "none"
        raise NotWaitedFor(f"{'no approval is open' if question is None and not fitting else f'which approval? {question!r} was given'}; open are: {shown}")
    return fitting[0]


@attrs.frozen
class Signalled(Arrival):
    """Somebody sent a signal."""

    name: str
    payload: Any = None

    def facts(self, world: World) -> list[object]:
        """The signal, under an id of its own."""
        return [facts.SignalReceived(f"signal-{self.name}-{world.run.at + 1}", self.name, self.payload)]


@attrs.frozen
class Elapsed(Arrival):
    """Time passes; what was due by then fires, in order."""

    length: timedelta

    def facts(self, world: World) -> list[object]:
        """The timers that fired, or the suspension's own deadline; raises ``NotWaitedFor`` when nothing was due."""
        until, waiting = world.now + from_timedelta(self.length), world.run.waiting()
        timers = sorted((at, timer, each.seq) for each in waiting for timer, at in each.timers.items() if timer in each.waits)
        deadlines = sorted((each.deadline, "", each.seq) for each in waiting)
        due = [each for each in timers if each[0] <= until] or [each for each in deadlines if each[0] <= until]
        if not due:
            following = min([*timers, *deadlines], default=None)
            raise NotWaitedFor(
                f"nothing is due after {self.length}" + (f"; the next is in {timedelta(microseconds=following[0] - world.now)}" if following else "")
            )
        return [facts.TimerFired(seq, timer, at) for at, timer, seq in due]


@attrs.frozen
class Cancelled(Arrival):
    """Somebody cancels the activation."""

    by: str = "a tester"
    reason: str = ""

    def facts(self, world: World) -> list[object]:
        """The request to cancel the current activation."""
        return [facts.CancelRequested(world.current.seq, self.by, self.reason)]


def returned(tool: Tool | str, value: Any) -> Settled:
    """The tool did it and returned ``value``: the outcome of an effect in ``when``, what a read gives in ``answering``."""
    return Settled(tool if isinstance(tool, str) else tool.name, value)


def failed(tool: Tool | str, error: BaseException | None = None, *, status: str = ERROR) -> Settled:
    """The tool raised ``error``; ``status`` names another end (``UNKNOWN``, ``REJECTED``, ``EXPIRED``)."""
    return Settled(tool if isinstance(tool, str) else tool.name, None, error or RuntimeError("it failed"), status)


def approved(question: str | None = None, *, by: str = "a tester", reason: str = "") -> Decided:
    """A person said yes, to this question or to the only one that is open."""
    return Decided(True, question, by, reason)


def denied(question: str | None = None, *, by: str = "a tester", reason: str = "") -> Decided:
    """A person said no."""
    return Decided(False, question, by, reason)


def signalled(name: str, payload: Any = None) -> Signalled:
    """A signal of this name came."""
    return Signalled(name, payload)


def elapsed(length: timedelta) -> Elapsed:
    """This much time passed since the last turn, and what was due fired."""
    return Elapsed(length)


def cancelled(*, by: str = "a tester", reason: str = "") -> Cancelled:
    """The activation was cancelled."""
    return Cancelled(by, reason)
