"""A fork put back: settled beats pending in either direction, what cannot be both is a conflict, nothing is carried out twice."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from intentlog.agents import ActivationContext, facts
from intentlog.agents.appends import EFFECTS, TURNS
from intentlog.agents.asking import answer
from intentlog.agents.intents import attempt_event_id, settlement_event_id
from intentlog.eventlog.errors import LogError
from intentlog.eventlog.log import Claim, Wake
from intentlog.eventlog.versions import ANY
from intentlog.replay import Verdict, replay_stream
from intentlog.replay.bundles import open_bundle
from intentlog.replay.errors import ForkRefused, MergeRefused
from intentlog.replay.forking.bringing_back import carry_out, plan_merge
from intentlog.replay.forking.edits import Edits, parse_edit, parse_inserts
from intentlog.replay.forking.going_on import what_if
from intentlog.replay.forking.merging import _KEYS, _named
from intentlog.replay.forking.writing import live_name, write_copy, write_live
from intentlog.replay.verify import verify_all
from tests.replay.world import STREAM, Account, RefundAsked, World, app_of, refund

FORK = f"{STREAM}~fork1"


async def paying_twice(ctx: ActivationContext[Account], asked: RefundAsked) -> Any:
    """Two effects, one after the other."""
    first = await ctx.perform(refund, order_id=asked.order_id, cents=asked.cents)
    second = await ctx.perform(refund, order_id=first, cents=1)
    return [first, second]


@pytest.fixture
def app() -> Any:
    return app_of(paying_twice)


def forked(world: World, app: Any, at: int = 0) -> None:
    """A live fork at ``at`` of a stream that has its input only, beside the source."""
    if world.log.head(STREAM) < 0:
        world.send(app, RefundAsked("o-1", 4200))
    fork = what_if(world.log, app, STREAM, at, approvals=False)
    write_live(fork, app, world.log, live_name(world.log, STREAM), source_log="memory://", by="ann")


def intents(world: World, app: Any, stream: str) -> dict[str, list[Any]]:
    """Open intents of a stream: id → what befell it."""
    found: dict[str, list[Any]] = {}
    for stored in world.log.read(stream):
        fact = app.codec.decode_stored(stored)
        if hasattr(fact, "intent_id"):
            found.setdefault(fact.intent_id, []).append(fact)
    return found


def open_intent(world: World, app: Any, stream: str) -> tuple[str, int] | None:
    for intent_id, befell in intents(world, app, stream).items():
        if not any(isinstance(fact, facts.IntentSettled) for fact in befell):
            return intent_id, sum(isinstance(fact, facts.IntentAttempted) for fact in befell)
    return None


#: Effects that were begun, by what they are: (seq, step) of their intents.
Begun = Counter[tuple[int, int]]


def append(world: World, app: Any, stream: str, fact: Any, event_id: bytes) -> bool:
    """As an effector would, under the stream's lease; whether the store took it."""
    now = world.clock()
    token = world.log.schedule.acquire(EFFECTS, [stream], "e", now=now, until=now + 1).get(stream)
    if token is None:
        return False
    world.log.schedule.release([Claim(EFFECTS, stream, token, None)])
    try:
        world.log.append(stream, [app.codec.stage(fact, event_id=event_id)], ANY, wakes=[Wake(TURNS, world.clock(), sooner=True)])
    except LogError:
        return False
    return True


def attempt(world: World, app: Any, stream: str) -> bool:
    found = open_intent(world, app, stream)
    if found is None or found[1]:
        return False
    return append(world, app, stream, facts.IntentAttempted(found[0], 1, "e", 1), attempt_event_id(found[0], 1))


def settle(world: World, app: Any, stream: str, status: str = "OK", value: Any = "re_1") -> bool:
    """Attempted and settled; whether there was anything open."""
    attempt(world, app, stream)
    found = open_intent(world, app, stream)
    if found is None:
        return False
    return append(world, app, stream, facts.IntentSettled(found[0], status, value, attempts=1, settled_by="e"), settlement_event_id(found[0], 1))


def cancel(world: World, app: Any, stream: str) -> bool:
    found = open_intent(world, app, stream)
    if found is None or found[1]:
        return False
    return append(world, app, stream, facts.IntentSettled(found[0], "CANCELLED", settled_by="bob"), settlement_event_id(found[0], 0))


def turn(world: World, app: Any) -> None:
    """Every turn that is due, on both sides."""
    world.run(app, effector=False)


def merged(world: World, app: Any) -> Any:
    plan = plan_merge(world.log, world.log, app, FORK)
    if not plan.plan.conflicts:
        carry_out(plan, world.log, world.log, app, by="ann")
    return plan.plan


def sound(world: World, app: Any) -> None:
    for stream in (STREAM, FORK):
        assert (Verdict.SAME, "") == ((found := replay_stream(world.log, app, stream)).verdict, found.reason or str(found.divergence or ""))
    assert [] == [report.faults for report in verify_all(world.log, app, [STREAM, FORK]) if not report.sound]


def test_settled_on_the_fork_beats_pending_on_the_source(world, app):
    forked(world, app)
    turn(world, app)
    settle(world, app, FORK)
    plan = merged(world, app)
    assert (["intent.attempted", "intent.settled"], (), ()) == ([piece.type for piece in plan.bring], plan.settle_fork, plan.conflicts)
    assert open_intent(world, app, STREAM) is None
    sound(world, app)
    turn(world, app)
    (befell,) = [befell for befell in intents(world, app, STREAM).values() if isinstance(befell[-1], facts.IntentSettled)]
    assert ["re_1"] == [fact.value for fact in befell if isinstance(fact, facts.IntentSettled)]
    sound(world, app)


def test_settled_on_the_source_beats_pending_on_the_fork(world, app):
    forked(world, app)
    turn(world, app)
    settle(world, app, STREAM)
    plan = merged(world, app)
    assert ((), ["OK"], ()) == (plan.bring, [each.settled.status for each in plan.settle_fork], plan.conflicts)
    assert open_intent(world, app, FORK) is None
    sound(world, app)


def test_pending_on_both_sides_is_carried_out_by_the_source(world, app):
    forked(world, app)
    turn(world, app)
    plan = merged(world, app)
    assert ((), ["CANCELLED"]) == (plan.bring, [each.settled.status for each in plan.settle_fork])
    assert (None, True) == (open_intent(world, app, FORK), open_intent(world, app, STREAM) is not None)
    assert not attempt(world, app, FORK)
    sound(world, app)


@pytest.mark.parametrize("cancelled", [STREAM, FORK])
def test_cancelled_against_settled_is_a_conflict_that_shows_both(world, app, cancelled):
    forked(world, app)
    turn(world, app)
    cancel(world, app, cancelled)
    settle(world, app, FORK if cancelled == STREAM else STREAM)
    before = list(world.log.read_all())
    (conflict,) = [each for each in merged(world, app).conflicts if "intent" in each.what]
    assert "cancelled" in conflict.why
    sides = (conflict.source, conflict.fork) if cancelled == STREAM else (conflict.fork, conflict.source)
    assert ("CANCELLED" in sides[0], "OK" in sides[1]) == (True, True)
    assert before == list(world.log.read_all())


@pytest.mark.parametrize("cancelled", [STREAM, FORK])
def test_cancelled_beats_pending(world, app, cancelled):
    forked(world, app)
    turn(world, app)
    cancel(world, app, cancelled)
    plan = merged(world, app)
    assert () == plan.conflicts
    assert (None, None) == (open_intent(world, app, STREAM), open_intent(world, app, FORK))
    sound(world, app)


def test_two_outcomes_are_a_conflict_and_one_outcome_twice_is_noted(world, app):
    forked(world, app)
    turn(world, app)
    settle(world, app, STREAM, value="re_1")
    settle(world, app, FORK, value="re_1")
    plan = plan_merge(world.log, world.log, app, FORK).plan
    assert ((), 1) == (plan.conflicts, len(plan.notes))
    assert "on both sides" in plan.notes[0]


def test_other_outcomes_are_a_conflict(world, app):
    forked(world, app)
    turn(world, app)
    settle(world, app, STREAM, value="re_1")
    settle(world, app, FORK, value="re_2")
    (conflict,) = merged(world, app).conflicts
    assert ("re_1" in conflict.source, "re_2" in conflict.fork) == (True, True)


@pytest.mark.parametrize("begun", [STREAM, FORK])
def test_an_attempt_under_way_is_waited_for(world, app, begun):
    forked(world, app)
    turn(world, app)
    attempt(world, app, begun)
    settle(world, app, FORK if begun == STREAM else STREAM)
    assert any("under way" in each.why for each in merged(world, app).conflicts)


def test_the_turns_of_a_fork_are_brought_to_a_source_that_stood_still(world, app):
    world.send(app, RefundAsked("o-1", 4200))
    fork = what_if(world.log, app, STREAM, 0, approvals=False)
    log_of_its_own = World()
    write_live(fork, app, log_of_its_own.log, FORK, source_log="memory://", by="ann")
    for _ in range(2):
        turn(log_of_its_own, app)
        settle(log_of_its_own, app, FORK)
    turn(log_of_its_own, app)
    merge = plan_merge(world.log, log_of_its_own.log, app, FORK)
    assert () == merge.plan.conflicts
    carry_out(merge, world.log, log_of_its_own.log, app, by="ann")
    assert [each.type for each in log_of_its_own.log.read(FORK)] == world.types()
    found = replay_stream(world.log, app, STREAM)
    assert (Verdict.SAME, 3) == (found.verdict, found.turns)
    assert all(report.sound for report in verify_all(world.log, app))
    with pytest.raises(MergeRefused, match="was merged"):
        plan_merge(world.log, log_of_its_own.log, app, FORK)
    log_of_its_own.log.close()


def test_an_input_that_came_meanwhile_is_handled_after_what_is_brought(world, app):
    forked(world, app)
    turn(world, app)
    settle(world, app, FORK)
    world.send(app, RefundAsked("o-2", 1))
    plan = merged(world, app)
    assert ((), 2) == (plan.conflicts, len(plan.bring))
    sound(world, app)


def test_other_payloads_are_a_conflict_with_both_shown(world):
    cents = [1]

    async def deciding(ctx: ActivationContext[Account], asked: RefundAsked) -> Any:
        return await ctx.perform(refund, order_id=asked.order_id, cents=cents[0])

    app = app_of(deciding)
    world.send(app, RefundAsked("o-1", 1))
    turn(world, app)
    other = World()
    cents[0] = 2
    fork = what_if(world.log, app, STREAM, 0, approvals=False)
    write_live(fork, app, other.log, FORK, source_log="memory://", by="ann")
    conflict = plan_merge(world.log, other.log, app, FORK).plan.conflicts[0]
    assert "the first turn of activation 0 behind the fork" == conflict.what
    assert ('"cents":1' in conflict.source.replace(" ", ""), '"cents":2' in conflict.fork.replace(" ", "")) == (True, True)
    other.log.close()


def test_both_sides_going_on_is_a_conflict(world, app):
    forked(world, app)
    turn(world, app)
    settle(world, app, STREAM, value="a")
    settle(world, app, FORK, value="a")
    turn(world, app)
    assert () == plan_merge(world.log, world.log, app, FORK).plan.conflicts
    settle(world, app, STREAM, status="ERROR")
    settle(world, app, FORK)
    assert 1 == len(merged(world, app).conflicts)


def test_what_a_copy_without_effects_imagined_is_nobodys(world, app, tmp_path):
    world.send(app, RefundAsked("o-1", 4200))
    turn(world, app)
    (intent_id,) = intents(world, app, STREAM)
    inserted = f'{{"type": "intent.settled", "fields": {{"intent_id": "{intent_id}", "status": "OK", "value": "imagined"}}}}'
    fork = what_if(world.log, app, STREAM, None, Edits(inserts=parse_inserts(inserted)))
    write_copy(fork, f"{tmp_path}/fork.bundle", source_log="memory://", by="ann")
    (conflict,) = plan_merge(world.log, open_bundle(f"{tmp_path}/fork.bundle"), app, STREAM).plan.conflicts
    assert "nobody's" in conflict.why


def test_another_past_and_another_stream_are_refused(world, app, tmp_path):
    world.send(app, RefundAsked("o-1", 4200))
    turn(world, app)
    fork = what_if(world.log, app, STREAM, None, Edits((parse_edit(0, "cents=1"),)))
    write_copy(fork, f"{tmp_path}/fork.bundle", source_log="memory://", by="ann")
    with pytest.raises(MergeRefused, match="another past"):
        plan_merge(world.log, open_bundle(f"{tmp_path}/fork.bundle"), app, STREAM)
    with pytest.raises(ForkRefused, match="is no fork"):
        plan_merge(world.log, world.log, app, STREAM)


def test_somebody_who_is_quicker_wins_and_nothing_is_written(world, app):
    forked(world, app)
    turn(world, app)
    settle(world, app, FORK)
    plan = plan_merge(world.log, world.log, app, FORK)
    attempt(world, app, STREAM)
    before = list(world.log.read_all())
    with pytest.raises(MergeRefused, match="went on while"):
        carry_out(plan, world.log, world.log, app, by="ann")
    assert before == list(world.log.read_all())


def settled_on_both(world: World, app: Any) -> None:
    """The source has carried out its first effect before it is forked; the tool ran once."""
    world.send(app, RefundAsked("o-1", 4200))
    turn(world, app)
    settle(world, app, STREAM)
    turn(world, app)


@pytest.mark.parametrize("kind", ["input.received", "intent.settled"])
def test_an_outcome_that_the_fork_only_copied_was_not_carried_out_twice(world, app, kind):
    settled_on_both(world, app)
    forked(world, app, world.types().index(kind))
    assert "intent.settled" in [each.type for each in world.log.read(FORK)]
    assert ((), ()) == ((plan := plan_merge(world.log, world.log, app, FORK).plan).notes, plan.conflicts)


def test_an_attempt_that_a_copy_only_copied_is_the_sources(world, app, tmp_path):
    world.send(app, RefundAsked("o-1", 4200))
    turn(world, app)
    attempt(world, app, STREAM)
    write_copy(what_if(world.log, app, STREAM, None), f"{tmp_path}/fork.bundle", source_log="memory://", by="ann")
    fork = open_bundle(f"{tmp_path}/fork.bundle")
    assert () == plan_merge(world.log, fork, app, STREAM).plan.conflicts
    settle(world, app, STREAM)
    assert () == plan_merge(world.log, fork, app, STREAM).plan.conflicts


async def asking(ctx: ActivationContext[Account], asked: RefundAsked) -> Any:
    verdict = await ctx.approval("Pay?", channel="support", timeout=timedelta(hours=1))
    return verdict.approved


def test_a_decision_on_the_fork_is_a_conflict_until_the_source_has_it_too(world):
    app = app_of(asking)
    world.send(app, RefundAsked("o-1", 4200))
    turn(world, app)
    forked(world, app, world.log.head(STREAM))
    answer(world.log, app.codec, FORK, "approval-0-0", approved=True, by="ann", reason="")
    turn(world, app)
    conflict, *others = plan_merge(world.log, world.log, app, FORK).plan.conflicts
    assert "the decision about approval-0-0" == conflict.what
    assert conflict.why.endswith(f"Decide it on the source, too, then merge again: eventlog approvals show {STREAM} approval-0-0")
    assert [] == others
    answer(world.log, app.codec, STREAM, "approval-0-0", approved=True, by="ann", reason="")
    turn(world, app)
    assert () == merged(world, app).conflicts
    sound(world, app)


steps = st.lists(st.sampled_from(["attempt", "settle", "turn", "cancel"]), max_size=7)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=steps, data=st.data(), after=st.lists(st.tuples(st.sampled_from(["attempt", "settle", "turn"]), st.sampled_from([STREAM, FORK])), max_size=6))
def test_what_is_said_to_be_carried_out_on_both_sides_was(before, data, after):
    world, app = World(), app_of(paying_twice)
    ran: dict[str, Begun] = {STREAM: Begun(), FORK: Begun()}

    def happens(what: str, stream: str) -> None:
        if what == "turn":
            turn(world, app)
        else:
            ran[stream] += effect(world, app, stream, what)

    try:
        world.send(app, RefundAsked("o-1", 4200))
        turn(world, app)
        for what in before:
            happens(what, STREAM)
        try:
            forked(world, app, data.draw(st.integers(0, world.log.head(STREAM))))
        except ForkRefused:
            assume(False)
        for what, stream in after:
            happens(what, stream)
        plan = plan_merge(world.log, world.log, app, FORK).plan
        places = {(fact.seq, fact.step): each for each, (fact, *_) in intents(world, app, STREAM).items()}
        both = {places[place] for place in ran[STREAM] if ran[STREAM][place] and ran[FORK][place] and place in places}
        noted = {note.split()[1] for note in plan.notes}
        assert noted <= both
        assert all(any(f"intent {each} " in text for text in (*plan.notes, *(c.what + " " for c in plan.conflicts))) for each in both)
        assert () == plan.notes or "on both sides" in plan.notes[0]
    finally:
        world.log.close()


def test_every_kind_of_thing_has_a_name_in_words():
    for kind, (name, fields) in _KEYS.items():
        told = _named((name, *(f"<{field}>" for field in fields)))
        assert (kind, [], True) == (kind, [field for field in fields if f"<{field}>" not in told], told.split()[0] in ("the", "what", "attempt", "failure"))
        assert told + ", once more" == _named((name, *(f"<{field}>" for field in fields), "again"))
    assert "the second turn of activation 3 behind the fork" == _named(("turn", 3, 1))


moves = st.lists(st.tuples(st.sampled_from(["attempt", "settle", "cancel"]), st.sampled_from([STREAM, FORK])) | st.just(("turn", "")), max_size=7)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(happened=moves)
def test_after_any_merge_nothing_is_carried_out_twice(happened):
    world, app, begun = World(), app_of(paying_twice), Begun()
    forked(world, app)
    for what, stream in [("turn", ""), *happened]:
        if what == "turn":
            turn(world, app)
        else:
            begun += effect(world, app, stream, what)
    twice_before = {place for place, count in begun.items() if count > 1}
    plan = merged(world, app)
    if not plan.conflicts:
        sound(world, app)
        assert open_intent(world, app, FORK) is None
        for _ in range(3):  # whatever is still open anywhere is carried out
            turn(world, app)
            for stream in (STREAM, FORK):
                begun += effect(world, app, stream, "settle")
        sound(world, app)
        assert twice_before == {place for place, count in begun.items() if count > 1}
        assert {"activation.completed", "activation.failed"} & set(world.types())  # a cancelled effect raises
    world.log.close()


def effect(world: World, app: Any, stream: str, what: str) -> Begun:
    """Do it, and say which effect was begun by that."""
    found = open_intent(world, app, stream)
    if what == "cancel":
        cancel(world, app, stream)
    elif found is not None and not found[1]:
        began = attempt(world, app, stream)
        if what == "settle":
            settle(world, app, stream)
        staged = next(fact for fact in intents(world, app, stream)[found[0]] if isinstance(fact, facts.IntentStaged))
        return Begun({(staged.seq, staged.step): int(began)})
    elif what == "settle":
        settle(world, app, stream)
    return Begun()
