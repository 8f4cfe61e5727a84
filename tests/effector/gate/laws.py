"""What must hold of every run, as functions that list what does not. Each is named after what it checks."""

from __future__ import annotations

import signal
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from tests.effector.gate.runs import Call, Intent, Outcome, Run


def faults(run: Run) -> list[str]:
    """Everything that is wrong with a run that has been lived."""
    laws = (lives_ended_as_they_should, one_outcome_each, attempts_within_bounds, charged_once, never_run_again, order_kept)
    return [fault for law in laws for fault in law(run)]


def lives_ended_as_they_should(run: Run) -> Iterator[str]:
    """Killed, or in an orderly way, which a signal does not find before the life heeds it."""
    for life in run.lives:
        unheard = life.code == -signal.SIGTERM and life.asked and not life.replica.lines("serving")
        if not life.killed and life.code != 0 and not unheard:
            yield f"{life.name} ended with {life.code}: {life.replica.errors.read_text()[-2000:]}"
        if life.killed and life.death is None:
            yield f"{life.name} was killed, and nobody had planned it"


def one_outcome_each(run: Run) -> Iterator[str]:
    """S-6.2: told once, or the same every time; of nothing that was not staged."""
    staged = {each.id for each in run.intents}
    for intent_id in run.outcomes.keys() | {call.intent_id for call in run.ledger} | run.provider.receipts.keys():
        if intent_id not in staged:
            yield f"{intent_id} was never staged"
    for each in run.intents:
        told = run.outcomes.get(each.id, [])
        if len({(one.status, repr(one.value), one.attempts) for one in told}) != 1:
            yield f"{_name(each)} has the outcomes {told}"
        elif told[0].status not in (("OK",) if each.tool == "charge" else ("OK", "UNKNOWN")) and not timed_out(told[0]):
            yield f"{_name(each)} ended {told[0]}"
    if (late := sum(timed_out(told[0]) for told in run.outcomes.values())) > len(run.intents) // 8:
        yield f"{late} calls ran out of time: this machine is too busy to say anything"


def timed_out(outcome: Outcome) -> bool:
    """S-6.1: an ERROR that may have run. What no tool here brings about by itself, a busy machine does."""
    return (outcome.status, outcome.failure) == ("ERROR", "TimedOut")


def attempts_within_bounds(run: Run) -> Iterator[str]:
    """At most one more than there were kills, and one for a failure that heals; S-6.4: none was called that was not counted before."""
    calls = _calls(run)
    for each, outcome in _ended(run):
        numbers = [call.attempt for call in calls[each.id]]
        heals = 1 if each.tool == "print_label" else 0
        if outcome.attempts > 1 + heals + len(run.kills) + len(run.overtaken):
            yield f"{_name(each)} was attempted {outcome.attempts} times, with {len(run.kills)} kills"
        if numbers != sorted(set(numbers)) or (numbers and numbers[-1] > outcome.attempts):
            yield f"{_name(each)} was called in the attempts {numbers}, of {outcome.attempts}"
        for before, _ in pairwise(calls[each.id]):
            if before.life not in run.gone and not (heals and before.attempt == 1):
                yield f"{_name(each)} was called again after {before.life}, which was not killed"


def charged_once(run: Run) -> Iterator[str]:
    """An idempotent tool's ledger has each id once, whoever asked for it how often."""
    wanted = {each.id for each in run.intents if each.tool == "charge"}
    if strange := run.provider.receipts.keys() - wanted:
        yield f"charged, and nobody wanted it: {sorted(strange)}"
    for each, outcome in _ended(run):
        if each.tool == "charge" and not timed_out(outcome) and outcome.value != run.provider.receipts.get(each.id):
            yield f"{_name(each)} was told {outcome.value!r}, and the receipt is {run.provider.receipts.get(each.id)!r}"


def never_run_again(run: Run) -> Iterator[str]:
    """S-6.5: a tool that promises nothing and was interrupted is UNKNOWN, and whoever can be asked is asked."""
    calls = _calls(run)
    for each, outcome in _ended(run):
        if each.tool == "charge":
            continue
        begun, did = calls[each.id], [call for call in run.ledger if call.what == "did" and call.intent_id == each.id]
        if len(did) > 1:
            yield f"{_name(each)} took effect {len(did)} times"
        if len(begun) > (2 if each.tool == "print_label" else 1):
            yield f"{_name(each)} was called {len(begun)} times"
        if outcome.status == "OK" and len(did) != 1:
            yield f"{_name(each)} is OK and took no effect"
        if outcome.status == "UNKNOWN":
            if each.tool == "transfer" and did and begun[-1].life not in run.overtaken:
                yield f"{_name(each)} took effect, could have been asked for, and is UNKNOWN"
            # Of the last attempt: one before it may have ended on record, by a life that goes on.
            if begun and begun[-1].attempt == outcome.attempts and begun[-1].life not in run.gone:
                yield f"{_name(each)} is UNKNOWN, and {begun[-1].life}, which called it, was not killed"


def order_kept(run: Run) -> Iterator[str]:
    """S-6.6: within a key no tool is called before everything staged earlier is over."""
    place = {each.id: (each.key, each.place) for each in run.intents}
    last: dict[str, int] = {}
    for call in run.ledger:
        if call.what != "begun":
            continue
        key, number = place.get(call.intent_id, ("", 0))
        if number < last.get(key, 0):
            yield f"{key}: intent {number} was called after intent {last[key]} had been"
        last[key] = max(number, last.get(key, 0))


def _ended(run: Run) -> Iterator[tuple[Intent, Outcome]]:
    for each in run.intents:
        if each.id in run.outcomes:
            yield each, run.outcomes[each.id][0]


def _calls(run: Run) -> defaultdict[str, list[Call]]:
    found: defaultdict[str, list[Call]] = defaultdict(list)
    for call in run.ledger:
        if call.what == "begun":
            found[call.intent_id].append(call)
    return found


def _name(intent: Intent) -> str:
    return f"{intent.tool} of {intent.key}, number {intent.place} ({intent.id[:8]})"
