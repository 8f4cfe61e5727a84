"""A fork is its source until something is changed, uses what was recorded where it fits, and stops where nothing was."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from intentlog.agents import ActivationContext
from intentlog.agents.asking import answer as decide
from intentlog.replay import NoSuchVersion, Verdict, replay_stream, state_at
from intentlog.replay.errors import ForkRefused
from intentlog.replay.forking.edits import Edits, parse_edit, parse_inserts
from intentlog.replay.forking.going_on import Why, what_if
from intentlog.replay.forking.pieces import JOURNAL, append_around, is_told
from intentlog.replay.verify import verify_all
from tests.replay.histories import moves, played
from tests.replay.world import STREAM, Account, RefundAsked, World, app_of, lookup, paying, refund, unanswered


@pytest.fixture
def app() -> Any:
    return app_of(paying, unanswered())


@pytest.fixture
def told(world: World) -> World:
    world.story(app_of(paying), RefundAsked("o-1", 4200), RefundAsked("o-2", 7))
    return world


def changed(*edits: tuple[int, str], drops: tuple[int, ...] = (), inserts: str = "[]") -> Edits:
    return Edits(tuple(parse_edit(*each) for each in edits), drops, parse_inserts(inserts))


def kinds(fork: Any) -> list[str]:
    return [piece.type for piece in fork.pieces[fork.first :]]


def decided(fork: Any, app: Any, kind: str) -> list[Any]:
    return [app.codec.decode(piece.type, piece.schema, piece.data) for piece in fork.pieces if piece.type == kind]


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(happened=moves)
def test_without_a_change_a_fork_is_its_source_at_every_version(happened):
    app = app_of(paying)
    world = played(app, happened)
    events = list(world.log.read(STREAM))
    before = list(world.log.read_all())
    for at in range(len(events)):
        if at != append_around(app.codec, events, at)[1]:
            continue  # inside of an append nobody has seen the stream
        fork = what_if(world.log, app_of(paying, unanswered()), STREAM, at)
        assert [(e.type, e.data, e.event_id, e.recorded_at) for e in events[: at + 1]] == [
            (p.type, p.data, p.event_id, p.recorded_at) for p in fork.pieces[: at + 1]
        ]
        assert Verdict.SAME is replay_stream(fork.log, app, STREAM).verdict
        assert all(report.sound or {"NO_WAKE"} == {kind.name for kind in report.faults} for report in verify_all(fork.log, app))
        assert fork.state.state == state_at(fork.log, app, STREAM).state
    assert before == list(world.log.read_all())
    world.log.close()


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(happened=moves)
def test_whatever_it_is_not_told_a_fork_is_a_history_that_replays_the_same(happened):
    app = app_of(paying)
    world = played(app, happened)
    events = list(world.log.read(STREAM))
    for event in events:
        if event.type not in JOURNAL and not is_told(app.codec, event.type, event.schema, event.data):
            continue
        if [0] == [each.version for each in events if each.type == "input.received"] and event.version == 0:
            with pytest.raises(ForkRefused, match="Nothing is left"):
                what_if(world.log, app, STREAM, None, Edits(drops=(0,)))
            continue
        fork = what_if(world.log, app_of(paying, unanswered()), STREAM, None, Edits(drops=(event.version,)))
        assert fork.stop.why not in (Why.LEFT, Why.IMPOSSIBLE), fork.stop
        found = replay_stream(fork.log, app, STREAM)
        assert (Verdict.SAME, "") == (found.verdict, found.reason or str(found.divergence or ""))
        assert all(report.sound or {"NO_WAKE"} == {kind.name for kind in report.faults} for report in verify_all(fork.log, app))
    world.log.close()


@pytest.mark.parametrize(("at", "length"), [(0, 11), (1, 11), (2, 11), (6, 11), (7, 11), (10, 11), (11, 22), (21, 22)])
def test_recorded_outcomes_carry_a_fork_to_where_its_source_was(told, app, at, length):
    fork = what_if(told.log, app, STREAM, at)
    assert (Why.DONE, length, False) == (fork.stop.why, len(fork.pieces), fork.differs)


def test_another_outcome_leads_to_another_state(told, app):
    fork = what_if(told.log, app, STREAM, 10, changed((8, "status=ERROR"), (8, 'failure={"type":"ValueError","message":"no"}')))
    assert (8, Why.DONE, ["intent.settled", "activation.completed"]) == (fork.first, fork.stop.why, kinds(fork))
    assert (["gave up"], 0) == ([each.output for each in decided(fork, app, "activation.completed")], fork.state.state.refunded_cents)
    assert Verdict.SAME is replay_stream(fork.log, app, STREAM).verdict


def test_an_edited_answer_is_what_the_code_is_told(told, app):
    fork = what_if(told.log, app, STREAM, 10, changed((2, "response.text=no")))
    assert "no" == decided(fork, app, "traced")[0].fields["answer"]
    assert (True, Why.DONE) == (fork.differs, fork.stop.why)


def test_a_step_without_a_recorded_answer_stops_the_fork_and_shows_itself(told, app):
    fork = what_if(told.log, app, STREAM, 10, changed((0, "cents=5")))
    assert (Why.MISS, 0, True) == (fork.stop.why, fork.stop.step, "Refund 5 for o-1" in fork.stop.text)
    assert ["input.received", "tool_call.cached"] == kinds(fork)
    fork = what_if(told.log, app, STREAM, 10, changed(drops=(1,)))
    assert (Why.MISS, True) == (fork.stop.why, "read lookup" in fork.stop.text)


def test_an_effect_without_a_recorded_outcome_is_waited_for(told, app):
    fork = what_if(told.log, app, STREAM, 10, changed(drops=(7, 8)))
    assert (Why.WAITS, True) == (fork.stop.why, "refund" in fork.stop.text)
    assert "intent.settled" not in kinds(fork)


def test_an_outcome_is_not_used_for_other_arguments(world):
    async def by_answer(ctx: ActivationContext[Account], asked: RefundAsked) -> Any:
        answer = await ctx.call_model("How much?")
        return await ctx.perform(refund, order_id=asked.order_id, cents=len(answer.text))

    world.story(app_of(by_answer), RefundAsked("o-1", 1))
    app = app_of(by_answer, unanswered())
    fork = what_if(world.log, app, STREAM, None, changed((1, "response.text=no")))
    assert (Why.WAITS, True) == (fork.stop.why, '"cents":2' in fork.stop.text.replace(" ", ""))
    assert "another one there" in fork.stop.text
    assert ["intent.attempted", "intent.settled"] == [piece.type for piece in fork.unused]


def test_without_its_first_input_the_second_finds_its_own_outcome(world):
    async def plain(ctx: ActivationContext[Account], asked: RefundAsked) -> Any:
        ctx.emit(asked)
        await ctx.run_tool(lookup, order_id=asked.order_id)
        return await ctx.perform(refund, order_id=asked.order_id, cents=asked.cents)

    world.story(app_of(plain), RefundAsked("o-1", 1), RefundAsked("o-2", 2))
    app = app_of(plain, unanswered())
    fork = what_if(world.log, app, STREAM, None, changed(drops=(0,)))
    assert (Why.DONE, {"o-2"}, ["re_o-2"]) == (
        fork.stop.why,
        fork.state.state.orders,
        [each.output for each in decided(fork, app, "activation.completed")],
    )
    assert Verdict.SAME is replay_stream(fork.log, app, STREAM).verdict


def test_what_is_inserted_is_told_where_it_is_put(told, app):
    settled = '{"type": "intent.settled", "fields": {"intent_id": "%s", "status": "OK", "value": "re_x"}}'
    intent_id = decided(what_if(told.log, app, STREAM, 6), app, "intent.staged")[0].intent_id
    fork = what_if(told.log, app, STREAM, 6, changed(inserts=settled % intent_id))
    assert (7, "re_x", Why.DONE) == (fork.first, decided(fork, app, "activation.completed")[0].output, fork.stop.why)
    fork = what_if(told.log, app, STREAM, 10, changed(inserts='[{"type": "refund.asked", "fields": {"order_id": "o-1", "cents": 4200}, "before": 1}]'))
    assert 2 == [piece.type for piece in fork.pieces].count("input.received")


def test_inputs_behind_the_fork_have_not_happened(told, app):
    fork = what_if(told.log, app, STREAM, 8)
    assert 1 == [piece.type for piece in fork.pieces].count("input.received")


def test_other_code_goes_on_from_the_fork(told):
    async def stingy(ctx: ActivationContext[Account], asked: RefundAsked) -> Any:
        return "no refunds today"

    app = app_of(stingy, unanswered())
    fork = what_if(told.log, app, STREAM, 0)
    assert (["input.received", "activation.completed"], Why.DONE) == ([piece.type for piece in fork.pieces], fork.stop.why)


def test_code_that_fails_or_leaves_the_path_stops_the_fork(told):
    async def failing(ctx: ActivationContext[Account], asked: RefundAsked) -> Any:
        raise KeyError("nothing")

    fork = what_if(told.log, app_of(failing, unanswered()), STREAM, 0)
    assert (Why.FAILED, True) == (fork.stop.why, "KeyError" in fork.stop.text)

    async def asking_otherwise(ctx: ActivationContext[Account], asked: RefundAsked) -> Any:
        await ctx.run_tool(lookup, order_id="other")

    fork = what_if(told.log, app_of(asking_otherwise, unanswered()), STREAM, 2)
    assert (Why.LEFT, True) == (fork.stop.why, "order_id" in fork.stop.text)


def test_a_fork_inside_of_an_append_is_refused_with_the_places_beside_it(told, app):
    with pytest.raises(ForkRefused, match=r"versions 3 to 6.*--at 2 or --at 6"):
        what_if(told.log, app, STREAM, 4)
    with pytest.raises(NoSuchVersion):
        what_if(told.log, app, STREAM, 99)


def test_a_decision_of_a_person_can_be_used_or_asked_for_again(world):
    async def asking(ctx: ActivationContext[Account], asked: RefundAsked) -> Any:
        if not await ctx.approval("Pay?", channel="support", timeout=timedelta(hours=1)):
            return "denied"
        return await ctx.perform(refund, order_id=asked.order_id, cents=asked.cents)

    app = app_of(asking)
    world.story(app, RefundAsked("o-1", 1))
    decide(world.log, app.codec, STREAM, "approval-0-0", approved=True, by="ann", reason="")
    world.run(app, effector=False)
    used = what_if(world.log, app, STREAM)
    assert (Why.WAITS, True) == (used.stop.why, "approval.decided" in [piece.type for piece in used.pieces])
    again = what_if(world.log, app, STREAM, approvals=False)
    assert (Why.WAITS, False) == (again.stop.why, "approval.decided" in [piece.type for piece in again.pieces])
    assert "approval-0-0" in again.stop.text
