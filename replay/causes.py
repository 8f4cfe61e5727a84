"""What led to an event: back from it, through the turn that wrote it and what that turn was woken by, to an input.

Told from the stream itself, for that is where the runtime's facts say what belongs to what: an outcome to its intent, an
intent to its turn, a turn to the outcomes it waited for and the answers it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import attrs

from ..agents import facts
from ..agents.intents import is_withdrawal
from ..agents.run import Activation, RunState
from ..eventlog.errors import LogError
from ..eventlog.events import Row
from .walking import Walk

MOST: Final = 60
"""Events of one chain."""
_OF_INTENTS: Final = (facts.IntentAttempted, facts.IntentPostponed, facts.IntentSettled, facts.IntentDistrusted)
_OUTSIDE: Final = (facts.InputReceived, facts.SignalReceived, facts.InputRedriven, facts.StreamBlocked)


@attrs.frozen
class Cause:
    """One event that led to another."""

    version: int
    type: str
    #: What it had to do with it, in words.
    role: str
    #: The event, or ``None`` when it cannot be decoded.
    event: Any
    recorded_at: int


def causes_of(walk: Walk, version: int) -> tuple[Cause, ...]:
    """What led to the event at ``version``, the nearest first and the input last; at the most 60.

    Empty for an input, and for what came from outside. Raises what the fold up to there raises.
    """
    chain = _Chain(walk)
    found: dict[int, Cause] = {}
    open_: set[int] = {version}  # where it goes on: several places where a turn had waited for several outcomes
    while open_ and len(found) < 2 * MOST:
        at = max(open_)
        open_.discard(at)
        links = list(chain.behind(at))
        found.update((link.version, link) for link in links if link.version not in found)
        open_.update(link.version for link in links if link.version < at and (link is links[-1] or link.role in _OUTCOMES))
    return tuple(sorted(found.values(), key=lambda each: -each.version)[:MOST])


@attrs.frozen
class _Chain:
    walk: Walk

    def behind(self, version: int) -> Iterator[Cause]:
        """What led to one event directly: the last of them is where the chain goes on."""
        fact = self._fact(self.walk.row(version))
        if isinstance(fact, _OUTSIDE):
            return
        if isinstance(fact, facts.CancelRequested):
            yield from self._first(version, (facts.InputReceived,), lambda each: each.input_id == fact.reason, "a newer input interrupts it")
        elif isinstance(fact, _OF_INTENTS) and not (isinstance(fact, facts.IntentSettled) and is_withdrawal(fact)):
            yield from self._of_intent(version, fact)
        elif isinstance(fact, facts.TimerFired):
            yield from self._of_timer(version, fact)
        elif isinstance(fact, facts.ApprovalDecided):
            yield from self._first(version, (facts.ApprovalRequested,), lambda each: each.approval_id == fact.approval_id, "a person was asked")
        elif isinstance(fact, facts.ReplyReceived):
            sent = (fact.stream, fact.input_id)
            yield from self._first(version, (facts.InputSent,), lambda each: (each.stream, each.input_id) == sent, "the input it is the reply to was sent")
        else:
            yield from self._of_turn(version, fact)

    def _of_intent(self, version: int, fact: Any) -> Iterator[Cause]:
        if not isinstance(fact, facts.IntentAttempted):
            yield from self._first(version, (facts.IntentAttempted, facts.IntentStaged), lambda each: each.intent_id == fact.intent_id, "", attempts=True)
        yield from self._first(version, (facts.IntentStaged,), lambda each: each.intent_id == fact.intent_id, "the effect was staged")

    def _of_timer(self, version: int, fact: facts.TimerFired) -> Iterator[Cause]:
        if fact.timer_id:

            def armed(each: Any) -> bool:
                return fact.timer_id == (each.timer_id if isinstance(each, facts.TimerArmed) else each.approval_id)

            yield from self._first(version, (facts.TimerArmed, facts.ApprovalRequested), armed, "the timer was armed")
        else:
            yield from self._first(version, (facts.Suspended,), lambda each: each.seq == fact.seq, "the deadline was set")

    def _of_turn(self, version: int, fact: Any) -> Iterator[Cause]:
        """What the turn that wrote the event was told, newest first, and then what it was woken by."""
        run = self.walk.at(version - 1).run
        activation = self._activation(version, fact, run)
        if activation is None:
            return
        yield from sorted(self._told(version, activation), key=lambda each: -each.version)
        woken = self._woken(version, activation, run)
        yield from woken if woken is not None else self._input(version, activation)

    def _activation(self, version: int, fact: Any, run: RunState) -> Activation | None:
        if fact is not None and type(fact) in _FACTS:
            return run.open.get(getattr(fact, "seq", self._seq_of_intent(version, fact, run)))
        correlation = self.walk.event(version).stored.correlation
        return next((each for each in run.open.values() if each.input_event_id == correlation), None)

    def _seq_of_intent(self, version: int, fact: Any, run: RunState) -> int:
        intent = run.intents.get(getattr(fact, "intent_id", ""))
        return intent.seq if intent is not None else -1

    def _told(self, version: int, activation: Activation) -> Iterator[Cause]:
        models = {step for step in activation.models if step >= activation.step}
        reads = {index for index in activation.tools if index >= activation.index}
        if not models and not reads:
            return
        for row in self.walk.rows_back(version - 1):
            if row[1] not in _JOURNAL:
                continue
            fact = self._fact(row)
            if fact is None or fact.seq != activation.seq:
                continue
            if isinstance(fact, facts.ModelCallCached) and fact.step in models:
                models.discard(fact.step)
                yield self._cause(row, fact, "the model answered")
            elif isinstance(fact, facts.ToolCallCached) and fact.index in reads:
                reads.discard(fact.index)
                yield self._cause(row, fact, "it read")
            if not models and not reads:
                return

    def _woken(self, version: int, activation: Activation, run: RunState) -> list[Cause] | None:
        """The outcomes the turn was told, and whatever else ended the wait before it, newest first; ``None`` for a first turn."""
        if not activation.turns:
            return None
        resolved = {at for wait in activation.results if (at := run.resolved_at(activation, wait)) is not None}
        places = resolved | {*activation.deadlines[-1:], activation.cancel_at}
        rows = [self.walk.row(place) for place in sorted((place for place in places if 0 <= place < version), reverse=True)]
        ended = [(row, self._fact(row)) for row in rows]
        latest = rows[0][0] if rows else -1
        links = [self._cause(row, fact, _ROLES.get(type(fact), "what it waited for")) for row, fact in ended if row[0] in resolved or row[0] == latest]
        return links or None

    def _input(self, version: int, activation: Activation) -> Iterator[Cause]:
        wanted = activation.input.input_id

        def is_it(each: Any) -> bool:
            return bool((each if isinstance(each, facts.InputReceived) else each.input).input_id == wanted)

        yield from self._first(version, (facts.InputReceived, facts.Continued), is_it, "the input")

    def _first(self, version: int, kinds: tuple[type, ...], fits: Callable[[Any], bool], role: str, *, attempts: bool = False) -> Iterator[Cause]:
        """The nearest event before ``version`` of one of these classes that ``fits``; with ``attempts`` only if it is an attempt."""
        names = {kind.__event_type__ for kind in kinds}  # type: ignore[attr-defined]
        for row in self.walk.rows_back(version - 1):
            if row[1] in names:
                fact = self._fact(row)
                if fact is not None and fits(fact):
                    if not attempts:
                        yield self._cause(row, fact, role)
                    elif isinstance(fact, facts.IntentAttempted):
                        yield self._cause(row, fact, "the attempt")
                    return

    def _fact(self, row: Row) -> Any:
        try:
            return self.walk.codec.decode(row[1], row[2], row[3])
        except LogError:
            return None

    def _cause(self, row: Row, fact: Any, role: str) -> Cause:
        return Cause(row[0], row[1], role, fact, row[5])


_FACTS: Final = frozenset(facts.FACTS)
_JOURNAL: Final = frozenset({"model_call.cached", "tool_call.cached"})
_ROLES: Final[dict[type, str]] = {
    facts.IntentSettled: "the outcome it waited for",
    facts.TimerFired: "the time had come",
    facts.ApprovalDecided: "a person answered",
    facts.SignalReceived: "the signal it waited for",
    facts.ReplyReceived: "the reply it waited for",
    facts.CancelRequested: "it was to end",
}
_OUTCOMES: Final = frozenset({*_ROLES.values(), "what it waited for"})
