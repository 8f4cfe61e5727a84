"""Random linear agents under random completion orders, kills and redelivery: what must hold whatever happens (S-7.6).

``PROGRAMS=5000 pytest tests/acceptance/programs`` runs more of them, ``PROGRAM_SEED=17`` only that one; a failure names its seed.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from intentlog.agents import facts
from intentlog.agents.lifecycle import ActivationState
from intentlog.agents.models import idempotency_key
from intentlog.agents.streams import Folder
from intentlog.eventlog.names import category_of
from intentlog.replay import Verdict, replay_stream
from intentlog.replay.verify import verify_all
from tests.acceptance.programs.living import STREAM, World, lived
from tests.stores import Store, usual

PROGRAMS = int(os.environ.get("PROGRAMS", "600"))
BATCH = 50
ONLY = os.environ.get("PROGRAM_SEED")
BATCHES = [range(int(ONLY), int(ONLY) + 1)] if ONLY else [range(first, min(first + BATCH, PROGRAMS)) for first in range(0, PROGRAMS, BATCH)]


@pytest.mark.parametrize("seeds", BATCHES, ids=lambda seeds: f"{seeds.start}-{seeds.stop - 1}")
def test_a_random_program_ends_once_and_replays_the_same(seeds: range):
    for seed in seeds:
        ends_once_and_replays_the_same(lived(seed))
        usual.over()


@pytest.mark.parametrize("seeds", BATCHES, ids=lambda seeds: f"{seeds.start}-{seeds.stop - 1}")
def test_so_does_a_third_of_them_where_others_may_look(seeds: range, shared_store: Store, tmp_path: Path):
    for seed in seeds[::3]:
        folder = tmp_path / str(seed)
        ends_once_and_replays_the_same(lived(seed, url=shared_store.url(folder)))
        shared_store.over(folder)


def ends_once_and_replays_the_same(world: World) -> None:
    try:
        faults = [*world.errors, *everything_is_over(world), *effects_are_once(world), *answers_are_paid_once(world), *the_log_is_sound(world)]
        assert [] == faults, f"PROGRAM_SEED={world.seed}, died at {world.deaths}"
    finally:
        world.log.close()


def test_without_kills_and_in_the_same_order_the_intents_are_the_same():
    """Nothing that a process does before it dies, and nobody hears of, leaves a trace in what is decided."""
    alike = 0
    for seed in range(0, PROGRAMS, 10):
        killed, whole = lived(seed), lived(seed, kills=False)
        if history(killed) == history(whole):
            alike += 1
            assert intents(killed) == intents(whole), f"PROGRAM_SEED={seed}"
        killed.log.close()
        whole.log.close()
    assert alike > 0


def test_the_same_seed_is_the_same_run():
    first, second = lived(11), lived(11)
    assert first.deaths != []
    assert [(e.stream, e.type, e.data, e.recorded_at) for e in first.log.read_all()] == [
        (e.stream, e.type, e.data, e.recorded_at) for e in second.log.read_all()
    ]
    first.log.close()
    second.log.close()


def test_the_programs_go_everywhere():
    """What a test at random proves depends on what it meets."""
    met: Counter[str] = Counter()
    for seed in range(60):
        world = lived(seed)
        met.update(e.type for e in world.log.read_all())
        met.update(f"died at {place}" for place in world.deaths)
        for fact in decoded(world):
            if isinstance(fact, facts.IntentSettled):
                met[f"{fact.status}{' by its agent' if fact.settled_by == 'agent' else ''}"] += 1
            elif isinstance(fact, facts.Completed) and fact.cancelled:
                met["cancelled"] += 1
        world.log.close()
    places = (
        "commit.before",
        "commit.after",
        "model.answered",
        "model.journalled",
        "turn.decided",
        "turn.appended",
        "attempt.recorded",
        "tool.called",
        "settled",
    )
    expected = {f"died at {place}" for place in places} | {"OK", "ERROR", "CANCELLED by its agent", "cancelled"}
    expected |= {"activation.continued", "approval.decided", "signal.taken", "input.sent", "reply.received", "model_call.failed", "program.noted"}
    assert set() == expected - set(met)


# ── what must hold ──────────────────────────────────────────────────────────────────────────────────────────────────────


def everything_is_over(world: World) -> list[str]:
    """No activation waits for what cannot come, none was given up, and every intent has its outcome."""
    faults = []
    for stream in world.log.streams():
        folder = Folder(world.app.definitions[category_of(stream)])
        run = folder.fold(folder.empty(stream), world.log.rows_of({stream: -1})[stream]).run
        faults += [f"{stream}: activation {each.seq} is {each.state.value}: {each.last_failure}" for each in run.open.values()]
        faults += [f"{stream}: {intent.intent_id} has no outcome" for intent in run.intents.values() if intent.settled is None]
        assert all(each.state is not ActivationState.COMPLETED for each in run.open.values())
    allowed = {"ModelFailed"}
    faults += [f"{fact}" for fact in decoded(world) if isinstance(fact, facts.ActivationFailed) and fact.failure.type not in allowed]
    inputs = sum(isinstance(fact, facts.InputReceived) for fact in decoded(world)) + sum(isinstance(fact, facts.Continued) for fact in decoded(world))
    ends = sum(isinstance(fact, facts.Completed | facts.Continued) for fact in decoded(world))
    return [*faults, *([f"{inputs} inputs, {ends} ends"] if inputs != ends else [])]


def effects_are_once(world: World) -> list[str]:
    """Every effect that happened was staged, with these arguments, and is recorded; what was withdrawn never began."""
    staged = {fact.intent_id: fact for fact in decoded(world) if isinstance(fact, facts.IntentStaged)}
    settled = {fact.intent_id: fact for fact in decoded(world) if isinstance(fact, facts.IntentSettled)}
    faults = []
    for intent_id, calls in world.ledger.items():
        intent, outcome = staged.get(intent_id), settled.get(intent_id)
        if intent is None or {(intent.tool, intent.args["text"])} != set(calls):
            faults.append(f"{intent_id}: {calls} happened, {intent} was staged")
        elif outcome is None or outcome.attempts < len(calls):
            faults.append(f"{intent_id}: called {len(calls)} times, {outcome} is recorded")
        elif intent.tool == "once" and len(calls) > 1:
            faults.append(f"{intent_id}: {calls} though it is not idempotent")
        elif len(calls) > 1 + len(world.deaths):
            faults.append(f"{intent_id}: called {len(calls)} times in {len(world.deaths)} crashes")
    faults += [f"{fact} but it did not happen" for fact in settled.values() if fact.status == "OK" and fact.intent_id not in world.ledger]
    faults += [f"{fact} but it happened" for fact in settled.values() if fact.status == "CANCELLED" and fact.intent_id in world.ledger]
    return faults


def answers_are_paid_once(world: World) -> list[str]:
    """A journalled answer is never asked for again; one that a crash came before may be, under the same key (S-4.10)."""
    faults = []
    for key, times in Counter(world.answered).items():
        if times > 1 + len(world.deaths):
            faults.append(f"{key} was answered {times} times in {len(world.deaths)} crashes")
    journalled = [
        idempotency_key(stored.stream, fact.seq, fact.step, fact.digest)
        for stored, fact in ((stored, world.app.codec.decode_stored(stored)) for stored in world.log.read_all(types=["model_call.cached"]))
    ]
    faults += [f"{key} is journalled {times} times" for key, times in Counter(journalled).items() if times > 1]
    faults += [f"{key} was asked for again after it was journalled" for key in world.asked_again]
    return faults


def the_log_is_sound(world: World) -> list[str]:
    """Every run replays the same, every id and digest fits, and every snapshot is the fold from zero."""
    faults = []
    for stream in world.log.streams():
        replayed = replay_stream(world.log, world.app, stream)
        if replayed.verdict is not Verdict.SAME:
            faults.append(f"{stream}: {replayed.verdict.value} {replayed.reason} {replayed.divergence}")
    return faults + [str(report) for report in verify_all(world.log, world.app) if not report.sound or report.open_intents]


# ── looking ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def decoded(world: World) -> list[object]:
    return [world.app.codec.decode_stored(stored) for stored in world.log.read_all()]


def intents(world: World) -> list[str]:
    return sorted(fact.intent_id for fact in decoded(world) if isinstance(fact, facts.IntentStaged))


def history(world: World) -> list[str]:
    """What happened on the program's stream, in order, but for attempts and failed turns."""
    return [stored.type for stored in world.log.read(STREAM) if stored.type not in ("intent.attempted", "activation.failed")]
