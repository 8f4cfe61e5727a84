"""Recorded answers and outcomes that a fork may still use: each once, and only for the very thing that was asked.

An answer is used where the fork asks the same question (its digest), an outcome where it waits for the same thing: an
intent with the same arguments, an approval of the same question, a timer of the same name and moment.
"""

from __future__ import annotations

from typing import Any

import attrs

from ...agents import facts
from ...agents.appends import trigger
from ...agents.intents import attempt_event_id, fact_id, settlement_event_id
from ...agents.lifecycle import ActivationState, IntentState
from ...agents.requests import NeedModel, NeedRead, NeedStream, Request
from ...agents.run import Activation, Approval, Intent, RunState
from ...eventlog.codec import Codec
from .pieces import INVENTED, Piece


@attrs.define
class Pool:
    """What was recorded on the source and has not been used."""

    codec: Codec
    #: Intent id → digest of what it was on the source.
    digests: dict[str, bytes]
    #: Intent id → event id of the input that led to it.
    inputs: dict[str, bytes | None]
    #: What was asked (a digest, or the stream that was loaded) → the answers there are.
    answers: dict[Any, list[tuple[Piece, Any]]] = attrs.field(factory=dict)
    outcomes: list[Piece] = attrs.field(factory=list)
    #: Intents of the source → those of the fork that got their outcomes.
    _bound: dict[str, str] = attrs.field(factory=dict)

    def keep(self, piece: Piece) -> None:
        """Keep a journal entry as an answer."""
        fact = self.codec.decode(piece.type, piece.schema, piece.data)
        key = fact.stream if isinstance(fact, facts.AggregateLoaded) else (type(fact), fact.digest)
        self.answers.setdefault(key, []).append((piece, fact))

    def answer(self, asked: Request, activation: Activation, now: int, seen: int, only: Piece | None = None) -> Piece | None:
        """The recorded answer to ``asked`` as it belongs into this turn, used up; ``None`` when there is none, or ``only`` is none."""
        found = self.answers.get(_key(asked), [])
        if only is not None:
            found = [each for each in found if each[0] is only]
        if not found:
            return None
        seq = activation.seq
        place = asked.index if isinstance(asked, NeedRead) else asked.step
        piece, fact = next((each for each in found if each[1].seq == seq and _place(each[1]) == place), found[0])
        self.answers[_key(asked)].remove((piece, fact))
        if isinstance(asked, NeedStream):
            changed = attrs.evolve(fact, seq=seq, step=place)
        else:
            where = {"index": place} if isinstance(asked, NeedRead) else {"step": place}
            changed = attrs.evolve(fact, seq=seq, now=now, seen=seen, **where)
        kind, schema, blob = self.codec.encode(changed)
        return attrs.evolve(piece, type=kind, schema=schema, data=blob, correlation=activation.input_event_id, causation=trigger(activation))

    def take_outcome(self, run: RunState) -> Piece | None:
        """The first outcome that something in ``run`` is open for, used up."""
        for place, piece in enumerate(self.outcomes):
            if (fitting := self.fitting(run, piece)) is not None:
                del self.outcomes[place]
                return fitting
        return None

    def fitting(self, run: RunState, piece: Piece) -> Piece | None:
        """``piece`` as it can be recorded now, correlated with the input it belongs to here; ``None`` when nothing is open for it."""
        found = self._fitting(run, piece)
        owner = _owner(run, self.codec.decode(found.type, found.schema, found.data)) if found is not None else None
        if found is None or owner is None or found.correlation == owner.input_event_id or (found.correlation is None and found.origin != INVENTED):
            return found
        return attrs.evolve(found, correlation=owner.input_event_id)

    def _fitting(self, run: RunState, piece: Piece) -> Piece | None:
        fact = self.codec.decode(piece.type, piece.schema, piece.data)
        if hasattr(fact, "intent_id"):
            return self._of_intent(run, piece, fact)
        if isinstance(fact, facts.ApprovalDecided) and not _is_open(run, fact):  # the same question, asked at another step
            asked = [each for each in _questions(run) if each.decided is None and each.requested.digest == fact.digest]
            return self._evolved(piece, fact, approval_id=asked[0].requested.approval_id) if asked else None
        return piece if _is_open(run, fact) else None

    def _of_intent(self, run: RunState, piece: Piece, fact: Any) -> Piece | None:
        intent = run.intents.get(fact.intent_id) if piece.origin == INVENTED else self._meant(run, fact.intent_id)
        if intent is None:
            return None
        if intent.state is IntentState.SETTLED:
            return piece if isinstance(fact, facts.OutcomeSigned) and intent.intent_id == fact.intent_id else None
        if intent.intent_id != fact.intent_id:
            if isinstance(fact, facts.OutcomeSigned):
                return None  # nobody has vouched for it under this id
            piece = self._evolved(piece, fact, intent_id=intent.intent_id)
        elif piece.origin != INVENTED:
            return piece
        if isinstance(fact, facts.IntentAttempted):
            return attrs.evolve(piece, event_id=attempt_event_id(intent.intent_id, fact.attempt))
        if isinstance(fact, facts.IntentSettled):
            return attrs.evolve(piece, event_id=settlement_event_id(intent.intent_id, intent.attempts))
        return piece

    def _meant(self, run: RunState, intent_id: str) -> Intent | None:
        """The fork's intent that is the source's ``intent_id``: the same id, or of the same input; always of the same content."""
        digest = self.digests.get(intent_id)
        if intent_id in self._bound:
            return run.intents.get(self._bound[intent_id])
        found = run.intents.get(intent_id)
        if found is None or found.digest != digest:
            taken = {*self._bound.values()}
            free = (each for each in run.intents.values() if each.digest == digest and each.intent_id not in taken and each.state is not IntentState.SETTLED)
            found = next((each for each in free if each.seq in run.open and run.open[each.seq].input_event_id == self.inputs.get(intent_id)), None)
        if found is not None:
            self._bound[intent_id] = found.intent_id
        return found

    def _evolved(self, piece: Piece, fact: Any, **changes: Any) -> Piece:
        kind, schema, blob = self.codec.encode(attrs.evolve(fact, **changes))
        return attrs.evolve(piece, type=kind, schema=schema, data=blob, event_id=fact_id("fork", kind, *changes.values(), piece.origin))


def _owner(run: RunState, fact: Any) -> Activation | None:
    """The open activation that an outcome is for."""
    if hasattr(fact, "intent_id"):
        return run.open.get(run.intents[fact.intent_id].seq)
    if hasattr(fact, "approval_id"):
        return next((each for each in run.open.values() if fact.approval_id in each.approvals), None)
    return run.open.get(fact.seq) if hasattr(fact, "seq") else None


def _questions(run: RunState) -> list[Approval]:
    return [asked for each in run.open.values() for asked in each.approvals.values()]


def _place(fact: Any) -> int:
    place: int = fact.index if isinstance(fact, facts.ToolCallCached) else fact.step
    return place


def _key(asked: Request) -> Any:
    if isinstance(asked, NeedStream):
        return asked.stream
    return (facts.ModelCallCached if isinstance(asked, NeedModel) else facts.ToolCallCached), asked.digest


def _is_open(run: RunState, fact: Any) -> bool:
    """Whether something in ``run`` can take it in."""
    if isinstance(fact, facts.TimerFired):
        activation = run.open.get(fact.seq)
        if activation is None:
            return False
        if fact.timer_id:
            return activation.timers.get(fact.timer_id) == fact.due_at
        return activation.state is ActivationState.SUSPENDED and activation.deadline == fact.due_at
    if isinstance(fact, facts.ApprovalDecided):
        return any(each.requested.approval_id == fact.approval_id and each.decided is None and each.requested.digest == fact.digest for each in _questions(run))
    if isinstance(fact, facts.ReplyReceived):
        key = f"{fact.stream}|{fact.input_id}"
        return any(key in each.children and each.children[key] not in each.outcomes for each in run.open.values())
    if isinstance(fact, facts.SignalReceived):
        return any(wait.startswith("signal-") and wait.split("-", 3)[3] == fact.name for each in run.open.values() for wait in each.waits)
    if isinstance(fact, facts.CancelRequested):
        return fact.seq in run.open
    if isinstance(fact, facts.InputRedriven):
        return fact.seq in run.open and run.open[fact.seq].state is ActivationState.PARKED
    return False
