"""A fork put back: settled beats pending in either direction, what cannot be both is a conflict, nothing is carried out twice."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from intentlog.agents import ActivationContext, facts
from intentlog.agents.asking import answer
from intentlog.replay import Verdict, replay_stream
from intentlog.replay.bundles import open_bundle
from intentlog.replay.errors import ForkRefused, MergeRefused
from intentlog.replay.forking.bringing_back import carry_out, plan_merge
from intentlog.replay.forking.edits import Edits, parse_edit, parse_inserts
from intentlog.replay.forking.going_on import what_if
from intentlog.replay.forking.merging import _KEYS, _named
from intentlog.replay.forking.writing import write_copy, write_live
from intentlog.replay.verify import verify_all
from tests.replay.forking.sides import FORK, Begun, attempt, cancel, effect, forked, intents, merged, open_intent, paying_twice, settle, sound, turn
from tests.replay.world import STREAM, Account, RefundAsked, World, app_of, refund


@pytest.fixture
def app() -> Any:
    return app_of(paying_twice)


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
