"""What must hold of a log that was killed, as functions that list what does not. Each is named after the rules it checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise, zip_longest
from typing import Any

import attrs

from intentlog.agents import facts
from intentlog.agents.appends import TURNS
from intentlog.agents.intents import intent_id_for, keyed_intent_id
from intentlog.replay.verify import verify_all
from tests.acceptance.harness import folded, not_the_same, opened
from tests.acceptance.kill.lives import Case, Life, Order, Read
from tests.acceptance.kill.orders import EFFECTS, Closed, Orders, Paid, Priced, Unclear, app

#: Written by others than the turn, wherever it suits them.
ARRIVALS = (facts.InputReceived, facts.IntentAttempted, facts.IntentSettled)
JOURNAL = (facts.ModelCallCached, facts.ToolCallCached)
#: What the turns of an order append, each in one piece: when all went well, and when an effect was not OK.
FIRST = ("order.priced", "intent.staged", "intent.staged", "activation.suspended")
SECOND = ("order.paid", "intent.staged", "activation.suspended")
LAST = ("order.closed", "activation.completed")
UNCLEAR = ("order.unclear", "activation.completed")


def faults(case: Case, unkilled: Case | None = None) -> list[str]:
    """Everything that is wrong with a case whose last life ended by itself."""
    found = [f"{life.caller} ended with {life.ended.code}: {life.ended.output[-2000:]}" for life in case.lives if not life.killed and life.ended.code != 0]
    for life in case.lives:
        found += [f"after {life.caller}: {fault}" for fault in partial_turns(life.left)]
    for law in (inputs_once, answers_once, attempts_before_calls, effects_once, statuses_as_they_must_be, turns_as_without_a_kill, looked_back):
        found += law(case)
    if unkilled is not None:
        found += same_as_unkilled(case, unkilled)
    return found


def inputs_once(case: Case) -> Iterator[str]:
    """S-2: each input is recorded once, those of a key in their order; what was recorded by a killed life is still there."""
    recorded = case.left.of(facts.InputReceived)
    for stream in {order.stream for order in case.orders}:
        expected = [order.order for order in case.orders if order.stream == stream]
        found = [fact.input_id for stored, fact in recorded if stored.stream == stream]
        if found != expected:
            yield f"S-2: {stream} holds the inputs {found}, expected {expected}"
    for life in case.lives:
        if [stored for stored, _ in life.left.events] != [stored for stored, _ in case.left.events[: len(life.left.events)]]:
            yield f"S-2: what {life.caller} left is not the beginning of what is there now"


def partial_turns(left: Read) -> Iterator[str]:
    """S-3.2: whatever a turn appended stands together in its stream and in the log, and is all of it."""
    for stream in dict.fromkeys(stored.stream for stored, _ in left.events if stored.stream.startswith("orders-")):
        block: list[Any] = []
        for version, (stored, fact) in enumerate(left.stream(stream)):
            if stored.version != version:
                yield f"S-1.3: {stream} has version {stored.version} in place {version}"
            if isinstance(fact, ARRIVALS + JOURNAL):
                if block:
                    yield f"S-3.2: {stream} version {stored.version}: {stored.type} stands inside a turn"
                continue
            if block and stored.position != block[-1].position + 1:
                yield f"S-3.2: {stream} version {stored.version}: the turn is not one append"
            block.append(stored)
            if isinstance(fact, facts.Suspended | facts.Completed):
                types = tuple(each.type for each in block)
                if types not in (FIRST, SECOND, LAST, UNCLEAR):
                    yield f"S-3.2: {stream}: a turn appended {types}"
                block = []
        if block:
            yield f"S-3.2: {stream} ends in the middle of a turn: {[each.type for each in block]}"


def answers_once(case: Case) -> Iterator[str]:
    """S-4: an answer is asked for once, and again only by who comes after a kill that fell before it was in the journal."""
    for (stream, seq, step), times in Counter((stored.stream, fact.seq, fact.step) for stored, fact in case.left.of(facts.ModelCallCached)).items():
        if times > 1:
            yield f"S-4.9: {stream}, activation {seq}, step {step} has {times} answers"
    lost: Counter[str] = Counter()
    before: frozenset[str] = frozenset()
    asked = case.world.callers_of("model")
    for life in case.lives:
        mine = {key: times for (caller, key), times in asked.items() if caller == life.caller}
        for key, times in mine.items():
            if key in before:
                yield f"S-4.2: {life.caller} asked for {key}, which was in the journal when it began"
            if times > 1:
                yield f"S-4.1: {life.caller} asked for {key} {times} times"
        missing = mine.keys() - life.left.journal
        lost.update(missing)
        if missing and not life.killed:
            yield f"S-4.1: {life.caller} was not killed and left {missing} out of the journal"
        streams = Counter(call.stream for call in case.world.calls if call.what == "model" and call.caller == life.caller and call.key in missing)
        for stream, times in streams.items():
            if times > 1:
                yield f"S-4.1: {life.caller} used an answer before it was durable: {times} answers of {stream} were lost at once"
        before = life.left.journal
    for key, times in case.world.count("model").items():
        if times != 1 + lost[key]:
            yield f"S-4.10: {key} was asked for {times} times; {lost[key]} kills fell before its record"


def attempts_before_calls(case: Case) -> Iterator[str]:
    """S-6.4: no tool was ever called whose attempt was not durable when the caller died."""
    for life in case.lives:
        called = {call.key for call in case.world.calls if call.caller == life.caller and call.what in EFFECTS}
        for intent_id in called - set(life.left.attempts):
            yield f"S-6.4: {life.caller} called {intent_id} and left no attempt"


def effects_once(case: Case) -> Iterator[str]:
    """S-5.2, S-6.1, S-6.2, S-6.5, S-6.6: one settlement each, no money moved twice, order within a key kept."""
    left, calls, moved = case.left, case.world.count(*EFFECTS), Counter(case.world.moved)
    settlements = Counter(fact.intent_id for _, fact in left.of(facts.IntentSettled))
    staged = [(stored.stream, fact) for stored, fact in left.of(facts.IntentStaged)]
    for stream, intent in staged:
        name, kind = f"{stream} {intent.tool}", intent.tool.rpartition("_")[2]
        expected = keyed_intent_id(stream, intent.tool, intent.key) if intent.key else intent_id_for(stream, intent.seq, intent.step)
        if intent.intent_id != expected:
            yield f"S-5.2: {name} has the id {intent.intent_id}, expected {expected}"
        if settlements[intent.intent_id] != 1:
            yield f"S-6.2: {name} was settled {settlements[intent.intent_id]} times"
        if moved[intent.intent_id] > 1:
            yield f"S-6.5: {name} took effect {moved[intent.intent_id]} times"
        if left.statuses.get(intent.intent_id) == "OK" and moved[intent.intent_id] != 1:
            yield f"S-6.1: {name} is OK and took effect {moved[intent.intent_id]} times"
        broken = times_interrupted(case, intent.intent_id)
        repeats = broken if kind == "idempotent" else 0
        if left.attempts[intent.intent_id] != 1 + repeats:
            yield f"S-6.5: {name} has {left.attempts[intent.intent_id]} attempts; it was interrupted {broken} times"
        if calls[intent.intent_id] > left.attempts[intent.intent_id]:
            yield f"S-6.4: {name} was called {calls[intent.intent_id]} times in {left.attempts[intent.intent_id]} attempts"
    for stream in dict.fromkeys(stream for stream, _ in staged):
        line = [intent.intent_id for each, intent in staged if each == stream and calls[intent.intent_id]]
        order = list(dict.fromkeys(call.key for call in case.world.calls if call.what in EFFECTS and call.stream == stream))
        if order != line:
            yield f"S-6.6: {stream}: effects came in the order {order}, staged were {line}"
    for stranger in set(calls) - {intent.intent_id for _, intent in staged}:
        yield f"S-5.4: {stranger} was carried out and is not staged"


def times_interrupted(case: Case, intent_id: str) -> int:
    """How many lives were killed in an attempt of their own; one that died before it came so far left the same attempt open."""
    attempts = [0, *(life.left.attempts[intent_id] for life in case.lives)]
    return sum(life.killed and now > before and intent_id in life.left.interrupted for life, (before, now) in zip(case.lives, pairwise(attempts), strict=True))


def statuses_as_they_must_be(case: Case) -> Iterator[str]:
    """S-6.5: an interrupted effect is UNKNOWN unless it may be called again or somebody could tell; any other is OK."""
    broken = frozenset().union(*(life.left.interrupted for life in case.lives if life.killed))
    for stored, intent in case.left.of(facts.IntentStaged):
        kind = intent.tool.rpartition("_")[2]
        certain = intent.intent_id not in broken or kind == "idempotent" or (kind == "told" and intent.intent_id in case.world.moved)
        expected, found = "OK" if certain else "UNKNOWN", case.left.statuses.get(intent.intent_id)
        if found != expected:
            yield f"S-6.5: {stored.stream} {intent.tool} is {found}, expected {expected}"


def turns_as_without_a_kill(case: Case) -> Iterator[str]:
    """S-3.1, S-7.1: every activation took the turns its outcomes call for, once each, in its key's order; state says the same."""
    states = folded(app, case.url)
    for stream in {order.stream for order in case.orders if order.agent == "orders"}:
        orders = [order for order in case.orders if order.stream == stream]
        expected, state = _expected(case.left, stream, orders)
        found = [stored.type for stored, fact in case.left.stream(stream) if not isinstance(fact, ARRIVALS)]
        if found != expected:
            yield f"S-3: {stream} holds {found}, expected {expected}"
        seqs = [fact.seq for _, fact in case.left.stream(stream) if isinstance(fact, facts.Completed)]
        if seqs != list(range(len(orders))):
            yield f"S-3.1: {stream} completed {seqs}"
        if stream not in states or states[stream].state != state:
            yield f"S-8.1: {stream} folds to {states[stream].state if stream in states else None}, expected {state}"


def _expected(left: Read, stream: str, orders: list[Order]) -> tuple[list[str], Orders]:
    types: list[str] = []
    state = Orders()
    for seq, order in enumerate(orders):
        ids = {name: intent_id_for(stream, seq, step) for name, step in (("reserve", 2), ("pay", 3))}
        ids["notify"] = keyed_intent_id(stream, f"notify_{order.kind}", f"notify:{order.order}")
        status = {name: left.statuses.get(intent_id, "") for name, intent_id in ids.items()}
        text = f"answer to the risk of {order.order} at answer to the price of {order.order}, {len(order.order)} left"
        types += ["tool_call.cached", "model_call.cached", "model_call.cached", *FIRST]
        state = state.apply(Priced(order.order, text))
        unclear: tuple[str, ...] = ("reserve", "pay") if (status["reserve"], status["pay"]) != ("OK", "OK") else ()
        if not unclear:
            types += ["model_call.cached", *SECOND]
            state = state.apply(Paid(order.order, f"receipt-{ids['pay'][:8]}"))
            unclear = ("notify",) if status["notify"] != "OK" else ()
        types += UNCLEAR if unclear else LAST
        told = tuple(f"{name}_{order.kind} {status[name]}" for name in unclear)
        state = state.apply(Unclear(order.order, told) if unclear else Closed(order.order))
    return types, state


def looked_back(case: Case) -> Iterator[str]:
    """S-9: the log is sound, it replays the same, and nothing is left to do."""
    with opened(case.url) as log:
        for report in verify_all(log, app):
            yield from (f"S-9.1: {fault.stream} version {fault.version}: {fault.kind.value}: {fault.text}" for fault in report.faults.values())
            yield from (f"S-6: {report.stream}: {intent.tool} {intent.intent_id} has no outcome" for intent in report.open_intents)
        if log.schedule.due(TURNS, now=log.clock()):
            yield "S-3: a stream is still due"
    yield from (f"S-9.2: {text}" for text in not_the_same(app, case.url))


def same_as_unkilled(case: Case, unkilled: Case) -> Iterator[str]:
    """Streams none of whose effects became uncertain are, event for event, what they are without a kill."""
    states, others = folded(app, case.url), folded(app, unkilled.url)
    for stream in others:
        mine = case.left.stream(stream)
        if any(isinstance(fact, facts.IntentSettled) and fact.status != "OK" for _, fact in mine):
            continue
        pairs = zip_longest(_decided(mine), _decided(unkilled.left.stream(stream)))
        different = next(((one, other) for one, other in pairs if one != other), None)
        if different is not None:
            yield f"S-3: {stream}: {different[0]} was decided, without a kill {different[1]}"
        if states[stream].state != others[stream].state:
            yield f"S-8.1: {stream} folds to {states[stream].state}, without a kill to {others[stream].state}"


def _decided(events: list[tuple[Any, Any]]) -> Iterator[str]:
    """What the turns of a stream wrote, without the moments in it and without how much had arrived by then."""
    chance = {"now", "deadline", "expires_at", "fires_at", "due_at", "retry_at", "seen"}
    for stored, fact in events:
        if not isinstance(fact, ARRIVALS):
            yield f"{stored.type} { {field.name: getattr(fact, field.name) for field in attrs.fields(type(fact)) if field.name not in chance} }"


def killed_by_itself(life: Life) -> list[str]:
    """A life that was to die at a boundary did."""
    return [] if life.killed else [f"{life.caller} was to be killed and ended with {life.ended.code}: {life.ended.output[-2000:]}"]
