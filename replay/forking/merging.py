"""What becomes of a fork and its source when they are put together again, decided from their two histories. Pure.

Both begin with the same events. Behind those, an event of one side *is* one of the other when it is about the same thing:
the input of that id, the answer to that step, the outcome of that intent, the turn of that ordinal. What only the fork has is
brought; where both have the same thing and it says something else, there is a conflict, shown with both sides.

* settled beats pending, in either direction: the side that has no outcome yet gets the other's, and never carries it out
* cancelled against carried out is a conflict, and so are two outcomes, two payloads, and an attempt that is under way
* pending on both sides: the source carries it out, and it is withdrawn on the fork
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from ...agents import facts
from ...agents.intents import CANCELLED
from ...eventlog.codec import Codec
from ...eventlog.printing import one_line
from .pieces import CLOSING, FAILED, JOURNAL, Piece, is_told

_OF_THE_MOMENT: Final = frozenset({"now", "seen", "deadline", "expires_at", "fires_at"})
"""When it was decided, and what had arrived by then; two sides decide the same at different moments."""
_BY_WHOM: Final = frozenset({"settled_by", "effector", "token", "attempts", "retry_at", "reason"})
_DECIDED_THERE: Final = (
    "a person decided it on the fork, and a decision holds only for the question it was given to. Decide it on the source, too, then merge again: "
    "eventlog approvals show {} {}"
)
_HAD_IT: Final = "the source had its outcome when the fork was merged"
_HAS_IT: Final = "the fork was merged, and the source carries it out"
_ATTEMPT: Final = "an attempt is under way on the {}; wait for its outcome, or settle it: eventlog intents settle"


@attrs.frozen
class Conflict:
    """Something that both sides have, and that cannot be both."""

    what: str
    why: str
    source: str
    fork: str


@attrs.frozen
class Outcome:
    """How an open intent of the fork is to end there, for it is the source's now."""

    #: Under the source's id.
    intent_id: str
    settled: facts.IntentSettled


@attrs.frozen
class Plan:
    """What is to be written, or why nothing is."""

    #: Events of the fork that the source lacks, in order, with ids and versions of the source.
    bring: tuple[Piece, ...] = ()
    #: Outcomes for intents that are open on the fork.
    settle_fork: tuple[Outcome, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    #: What is worth knowing and changes nothing.
    notes: tuple[str, ...] = ()


@attrs.frozen
class _Item:
    """Something about one thing: an event that stands alone, or all of a turn's append."""

    key: tuple[Any, ...]
    pieces: tuple[Piece, ...]
    facts: tuple[Any, ...]
    #: Version of its first event on its side.
    version: int

    @property
    def said(self) -> str:
        """What it says, for a person."""
        return "; ".join(one_line(_content(fact), 200) for fact in self.facts)


@attrs.define
class _Side:
    items: list[_Item]
    by_key: dict[tuple[Any, ...], _Item]
    staged: dict[str, facts.IntentStaged] = attrs.field(factory=dict)
    settled: dict[str, facts.IntentSettled] = attrs.field(factory=dict)
    #: Attempts that were made on this side, none that was only copied.
    attempts: dict[str, int] = attrs.field(factory=dict)

    def is_pending(self, intent_id: str) -> bool:
        """Whether it is staged here and has no outcome."""
        return intent_id in self.staged and intent_id not in self.settled


def decide(codec: Codec, base: Sequence[Piece], source: Sequence[Piece], fork: Sequence[Piece], *, stream: str, live: bool, copied: int) -> Plan:
    """Put ``fork`` back into ``source``; both are what stands behind ``base``, under the source's ids.

    ``stream``: the source's name. ``live``: the fork's effects were carried out. Outcomes on one whose effects were off are nobody's. ``copied``: the fork's
    first version that was recorded after it was begun; an attempt or outcome before it *is* the source's, and happened once.
    Raises ``Undecodable``.
    """
    ours, theirs = _side(codec, base, source, 0), _side(codec, base, _unended(codec, fork), copied)
    conflicts = list(_conflicts(ours, theirs, stream, live))
    notes = [
        f"intent {each} ({theirs.staged[each].tool}) was carried out on both sides before they were put together"
        for each in theirs.settled
        if live and ours.attempts.get(each) and theirs.attempts.get(each)
    ]
    if conflicts:
        return Plan(conflicts=tuple(conflicts), notes=tuple(notes))
    missing = [item for item in theirs.items if item.key not in ours.by_key]
    bring = _brought(codec, missing, ours, theirs, len(base), len(source))
    settle = tuple(_ends(ours, theirs)) if live else ()
    return Plan(tuple(bring), settle, (), tuple(notes))


def _unended(codec: Codec, fork: Sequence[Piece]) -> Sequence[Piece]:
    """``fork`` without the ends that a merge had put behind it which was killed before it was done: the fork has never known them."""
    last = len(fork)
    while last and fork[last - 1].type == "intent.settled" and _reason(codec, fork[last - 1]) in (_HAD_IT, _HAS_IT):
        last -= 1
    return fork[:last]


def _reason(codec: Codec, settled: Piece) -> str:
    return str(codec.decode(settled.type, settled.schema, settled.data).reason)


# ── conflicts ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _conflicts(ours: _Side, theirs: _Side, stream: str, live: bool) -> Iterator[Conflict]:
    for item in theirs.items:
        other = ours.by_key.get(item.key)
        if other is not None:
            if item.key[0] != "settled" and list(map(_content, item.facts)) != list(map(_content, other.facts)):
                yield Conflict(_named(item.key), "both sides have it, and it says something else", other.said, item.said)
        elif item.key[0] == "approval":
            yield Conflict(_named(item.key), _DECIDED_THERE.format(stream, item.key[1]), "not decided", item.said)
        elif not live and item.key[0] in ("attempt", "settled"):
            yield Conflict(_named(item.key), "effects were off on this fork, so this outcome is nobody's", "no outcome", item.said)
    yield from _outcome_conflicts(ours, theirs)
    mine, new = ([item for item in a.items if item.key not in b.by_key and item.key[0] in ("turn", "failed")] for a, b in ((ours, theirs), (theirs, ours)))
    if mine and new:
        yield Conflict("the turns", "both sides have gone on, each on its own", mine[0].said, new[0].said)
    mine, new = ([item for item in a.items if item.key not in b.by_key and item.key[0] == "input"] for a, b in ((ours, theirs), (theirs, ours)))
    if mine and new:
        yield Conflict("the inputs", "both sides have had inputs, so their activations are counted differently", mine[0].said, new[0].said)


def _outcome_conflicts(ours: _Side, theirs: _Side) -> Iterator[Conflict]:
    for intent_id in dict.fromkeys((*ours.staged, *theirs.staged)):
        mine, new = ours.settled.get(intent_id), theirs.settled.get(intent_id)
        if intent_id not in ours.staged or intent_id not in theirs.staged:
            continue
        what = f"intent {intent_id} ({ours.staged[intent_id].tool})"
        if mine is not None and new is not None:
            if _content(mine) != _content(new):
                cancelled = CANCELLED in (mine.status, new.status)
                why = "one side has cancelled what the other has settled" if cancelled else "both sides have an outcome, and not the same"
                yield Conflict(what, why, one_line(_content(mine), 200), one_line(_content(new), 200))
        elif new is not None and ours.attempts.get(intent_id):
            yield Conflict(what, _ATTEMPT.format("source"), f"attempt {ours.attempts[intent_id]}", one_line(_content(new), 200))
        elif mine is not None and theirs.attempts.get(intent_id):
            yield Conflict(what, _ATTEMPT.format("fork"), one_line(_content(mine), 200), f"attempt {theirs.attempts[intent_id]}")
    for intent_id in theirs.staged:
        if theirs.is_pending(intent_id) and theirs.attempts.get(intent_id) and intent_id not in ours.settled:
            what = f"intent {intent_id} ({theirs.staged[intent_id].tool})"
            yield Conflict(what, _ATTEMPT.format("fork"), "no outcome", f"attempt {theirs.attempts[intent_id]}")


# ── what is written ─────────────────────────────────────────────────────────────────────────────────────────────────


def _ends(ours: _Side, theirs: _Side) -> Iterator[Outcome]:
    """Nothing stays open on a fork that is put back: the source has its outcome, or is the one to carry it out."""
    for intent_id in theirs.staged:
        if not theirs.is_pending(intent_id):
            continue
        settled = ours.settled.get(intent_id)
        if settled is not None:
            ended: Any = settled
            yield Outcome(intent_id, attrs.evolve(ended, attempts=0, reason=_HAD_IT))
        else:
            yield Outcome(intent_id, facts.IntentSettled(intent_id, CANCELLED, reason=_HAS_IT))


def _brought(codec: Codec, missing: Sequence[_Item], ours: _Side, theirs: _Side, base: int, own: int) -> Iterator[Piece]:
    """``missing`` behind the source's ``own`` events, with the versions they speak of as they are there."""
    places: dict[int, int] = {}
    head = base + own
    for item in theirs.items:
        there = ours.by_key.get(item.key)
        first = there.version if there is not None else head
        for offset in range(len(item.pieces)):
            places[item.version + offset] = min(first + offset, there.version + len(there.pieces) - 1) if there is not None else first + offset
        if there is None:
            head += len(item.pieces)
    for item in missing:
        for piece, fact in zip(item.pieces, item.facts, strict=True):
            seen = getattr(fact, "seen", -1)
            if hasattr(fact, "seq") and seen >= base:
                kind, schema, blob = codec.encode(attrs.evolve(fact, seen=places[seen]))
                piece = attrs.evolve(piece, type=kind, schema=schema, data=blob)
            yield piece


# ── what an event is about ──────────────────────────────────────────────────────────────────────────────────────────


def _side(codec: Codec, base: Sequence[Piece], pieces: Sequence[Piece], copied: int) -> _Side:
    side = _Side([], {})
    for version, piece in enumerate(base):
        _note(side, codec.decode(piece.type, piece.schema, piece.data), its_own=version >= copied)
    turns: dict[int, int] = {}
    group: list[tuple[Piece, Any]] = []
    for version, piece in enumerate(pieces, len(base)):
        fact = codec.decode(piece.type, piece.schema, piece.data)
        _note(side, fact, its_own=version >= copied)
        if piece.type in JOURNAL or piece.type == FAILED or is_told(codec, piece.type, piece.schema, piece.data):
            _add(side, _Item(_key(fact), (piece,), (fact,), version))
            continue
        group.append((piece, fact))
        if piece.type in CLOSING:
            turn = turns.get(fact.seq, 0)
            turns[fact.seq] = turn + 1
            _add(side, _Item(("turn", fact.seq, turn), tuple(p for p, _ in group), tuple(f for _, f in group), version - len(group) + 1))
            group.clear()
    return side


def _add(side: _Side, item: _Item) -> None:
    key = item.key
    while key in side.by_key:  # the same again is one more of it
        key = (*key, "again")
    item = attrs.evolve(item, key=key)
    side.items.append(item)
    side.by_key[key] = item


def _note(side: _Side, fact: Any, *, its_own: bool) -> None:
    if isinstance(fact, facts.IntentStaged):
        side.staged[fact.intent_id] = fact
    elif isinstance(fact, facts.IntentAttempted) and its_own:
        side.attempts[fact.intent_id] = fact.attempt
    elif isinstance(fact, facts.IntentSettled):
        side.settled.setdefault(fact.intent_id, fact)


_KEYS: Final[Mapping[type, tuple[str, tuple[str, ...]]]] = {
    facts.InputReceived: ("input", ("input_id",)),
    facts.ModelCallCached: ("answer", ("seq", "step")),
    facts.ToolCallCached: ("read", ("seq", "index")),
    facts.AggregateLoaded: ("load", ("seq", "step")),
    facts.IntentAttempted: ("attempt", ("intent_id", "attempt")),
    facts.IntentSettled: ("settled", ("intent_id",)),
    facts.ApprovalDecided: ("approval", ("approval_id",)),
    facts.SignalReceived: ("signal", ("signal_id",)),
    facts.ReplyReceived: ("reply", ("stream", "input_id")),
    facts.TimerFired: ("timer", ("seq", "timer_id")),
    facts.CancelRequested: ("cancel", ("seq",)),
    facts.ActivationFailed: ("failed", ("seq", "attempt")),
    facts.InputRedriven: ("redriven", ("seq",)),
}


def _key(fact: Any) -> tuple[Any, ...]:
    name, fields = _KEYS.get(type(fact), ("", ()))
    if name:
        return (name, *(getattr(fact, field) for field in fields))
    return (type(fact).__event_type__, *(str(getattr(fact, field)) for field in ("intent_id", "attempt", "number", "approval_id") if hasattr(fact, field)))


_WORDS: Final[Mapping[str, str]] = {
    "input": "the input {}",
    "answer": "the model's answer at step {1} of activation {0}",
    "read": "what read {1} of activation {0} gave",
    "load": "the aggregate loaded at step {1} of activation {0}",
    "attempt": "attempt {1} of the intent {0}",
    "settled": "the outcome of the intent {}",
    "approval": "the decision about {}",
    "signal": "the signal {}",
    "reply": "the reply of {} to the input {}",
    "timer": "the timer {1} of activation {0}",
    "cancel": "the request to cancel activation {}",
    "failed": "failure {1} of activation {0}",
    "redriven": "the redrive of activation {}",
}
_ORDINALS: Final = ("first", "second", "third")


def _named(key: tuple[Any, ...]) -> str:
    """What both sides have, in words."""
    name, *about = key
    if name == "turn":
        ordinal = _ORDINALS[about[1]] if about[1] < len(_ORDINALS) else f"{about[1] + 1}th"
        return f"the {ordinal} turn of activation {about[0]} behind the fork"
    again = ", once more" if "again" in about else ""
    words = _WORDS.get(name)
    return (words.format(*about) if words is not None else " ".join((name, *(str(part) for part in about if part not in ("", "again"))))) + again


def _content(fact: Any) -> dict[str, Any]:
    """What it says, without when and by whom."""
    return {field.name: getattr(fact, field.name) for field in attrs.fields(type(fact)) if field.name not in _OF_THE_MOMENT | _BY_WHOM}
