"""The gate on a log: effectors follow its tail, and it is its own dedup store."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs

from intentlog.agents import facts
from intentlog.eventlog.clock import SECOND, system_clock
from intentlog.eventlog.ids import id_maker
from intentlog.eventlog.log import EventLog
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.owners import is_dead
from intentlog.eventlog.versions import ANY
from tests.effector.gate.plans import Plan
from tests.effector.gate.runs import Intent, Outcome, Run, forked
from tests.effector.service.replicas import CODEC, Replica

STAGED, ATTEMPTED, POSTPONED, SETTLED = facts.IntentStaged, facts.IntentAttempted, facts.IntentPostponed, facts.IntentSettled


@attrs.define(eq=False)
class LogGround:
    """One log."""

    url: str
    #: What its effectors find in their environment, beside what they need.
    environment: dict[str, str] = attrs.field(factory=dict)
    log: EventLog = attrs.field(init=False)
    _ids: Any = attrs.field(factory=lambda: id_maker(system_clock), init=False)
    _read: int = attrs.field(default=0, init=False)
    _outcomes: dict[str, list[Outcome]] = attrs.field(factory=dict, init=False)

    def lease_ms(self, plan: Plan) -> int:
        return 6000 if plan.leases_run_out and self.log.served else 20_000

    def __attrs_post_init__(self) -> None:
        self.log = open_log(self.url)

    def close(self) -> None:
        self.log.close()

    def stage(self, intents: list[Intent]) -> None:
        until = system_clock() + 3600 * SECOND
        for key in dict.fromkeys(each.key for each in intents):
            mine = [STAGED(each.id, 0, each.place, each.tool, each.args, b"", until) for each in intents if each.key == key]
            self.log.append(f"a-{key}", [CODEC.stage(fact, event_id=self._ids(), correlation=b"c" * 16) for fact in mine], ANY)

    def effector(self, words: list[str], environment: dict[str, str], folder: Path, name: str) -> Replica:
        return forked([*words, "--log", self.url], environment | self.environment, folder, name)

    def outcomes(self) -> dict[str, list[Outcome]]:
        for each in self.log.read_all(after=self._read, types=["intent.settled"]):
            fact = CODEC.decode_stored(each)
            self._outcomes.setdefault(fact.intent_id, []).append(
                Outcome(fact.status, fact.value, fact.attempts, _life(fact.settled_by), fact.failure.type if fact.failure else "")
            )
            self._read = each.position
        return self._outcomes

    def over(self) -> bool:
        return True

    def end_leases(self) -> None:
        for owner in filter(is_dead, self.log.schedule.owners()):
            self.log.schedule.evict(owner)

    def faults(self, run: Run) -> list[str]:
        """What the streams say against it."""
        found: list[str] = []
        for key in dict.fromkeys(each.key for each in run.intents):
            told = [CODEC.decode_stored(each) for each in self.log.read(f"a-{key}")]
            found += [f"a-{key}: {fault}" for law in (one_after_the_other, attempts_recorded, tokens_never_fall) for fault in law(told, run)]
        return found


def _life(owner: str) -> str:
    return owner.rpartition("/")[2]


def one_after_the_other(told: list[Any], run: Run) -> Iterator[str]:
    """S-6.2, S-6.6: each is settled once, and nothing about the next one stands before that."""
    order = [fact.intent_id for fact in told if isinstance(fact, STAGED)]
    done = [fact.intent_id for fact in told if isinstance(fact, ATTEMPTED | POSTPONED | SETTLED)]
    if [order.index(each) for each in done] != sorted(order.index(each) for each in done):
        yield f"not one after the other: {[order.index(each) for each in done]}"
    if order != [fact.intent_id for fact in told if isinstance(fact, SETTLED)]:
        yield "not settled once each, in order"


def attempts_recorded(told: list[Any], run: Run) -> Iterator[str]:
    """S-6.4: every call stands on the log as an attempt; one whose end is not seen is of a life that was killed."""
    ends = {(fact.intent_id, fact.attempt) for fact in told if isinstance(fact, POSTPONED)}
    settled = {fact.intent_id: fact for fact in told if isinstance(fact, SETTLED)}
    attempts: dict[str, list[Any]] = {}
    for fact in told:
        if isinstance(fact, ATTEMPTED):
            attempts.setdefault(fact.intent_id, []).append(fact)
    recorded = {(fact.intent_id, fact.attempt, _life(fact.effector)) for mine in attempts.values() for fact in mine}
    streams = {fact.intent_id for fact in told if isinstance(fact, STAGED)}
    for call in run.ledger:
        if call.what == "begun" and call.intent_id in streams and (call.intent_id, call.attempt, call.life) not in recorded:
            yield f"{call} has no attempt"
    for intent_id, mine in attempts.items():
        if [fact.attempt for fact in mine] != list(range(1, len(mine) + 1)) or settled[intent_id].attempts != len(mine):
            yield f"{intent_id} has the attempts {[fact.attempt for fact in mine]}, and its outcome says {settled[intent_id].attempts}"
        last = mine[-1]
        for fact in mine:
            seen = (intent_id, fact.attempt) in ends or (fact is last and _life(settled[intent_id].settled_by) == _life(fact.effector))
            if not seen and _life(fact.effector) not in run.gone:
                yield f"{intent_id}: the end of attempt {fact.attempt} was not seen, and {_life(fact.effector)} was not killed"
        if settled[intent_id].status == "UNKNOWN" and _life(settled[intent_id].settled_by) == _life(last.effector):
            yield f"{intent_id} is UNKNOWN to the very life that attempted it"


def tokens_never_fall(told: list[Any], run: Run) -> Iterator[str]:
    """S-6.4: whoever attempts has the highest token so far, and the token says who it is."""
    mine = [(fact.token, _life(fact.effector)) for fact in told if isinstance(fact, ATTEMPTED)]
    for (before, who), (after, other) in pairwise(mine):
        if after < before or (after == before and who != other):
            yield f"{other} attempted under token {after} after {who} under {before}"
