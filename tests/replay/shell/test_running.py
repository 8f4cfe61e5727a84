"""A turn is run again by the journal, and stepped through."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from intentlog.agents import ActivationContext, Complete, Suspend
from intentlog.eventlog.console import FOUND, OK, USAGE
from tests.replay.shell.conftest import session_over
from tests.replay.world import STREAM, Account, RefundAsked, World, app_of, copy_of, lookup, notify, paying, refund, unanswered


def test_a_turn_is_listed_as_its_code_did_it(session, tell):
    session.open(STREAM, 4)
    said = tell("run").splitlines()
    assert "versions 0 to 6: same as recorded" == said[0]
    assert ["emit", "read 0", "step 0", "trace", "step 1"] == [line[6:14].strip() for line in said[1:6]]
    assert 'lookup  {"order_id": "o-1"}  → {\'items\': 3}' in said[2]


def test_the_event_may_stand_anywhere_in_its_turn_or_lead_to_it(session, tell):
    spans = {}
    for at in (0, 6, 7, 10, 11, 21):
        session.open(STREAM, at)
        spans[at] = tell("run").split(":")[0].removeprefix("versions ")
    assert {0: "0 to 6", 6: "0 to 6", 7: "7 to 10", 10: "7 to 10", 11: "11 to 17", 21: "18 to 21"} == spans


def test_a_step_shows_the_line_the_answer_and_the_names(session, tell):
    session.open(STREAM, 4)
    tell("step")
    tell("step")
    said = tell("step")
    assert "answer = await ctx.call_model(" in said.splitlines()[0]
    assert "    with  model-x  Refund 4200 for o-1, 3 items, 0 before?\n    gets  'yes'\n" in said
    assert "    found =  {'items': 3}\n" in said
    assert f"at 4  {STREAM}  step 3/5 › " == session.prompt


def test_steps_go_back_and_to_a_number_and_end(session, tell):
    session.open(STREAM, 4)
    tell("step 5")
    assert "trace  decided" in tell("step back")
    tell("step")
    assert tell("step").endswith("that is all: 5 steps\n")
    assert FOUND == session.do("step 17").code


def test_moving_ends_the_stepping(session, tell):
    tell("step")
    tell("back")
    assert f"at 20  {STREAM} › " == session.prompt


def test_what_a_step_shows_is_what_was_there_then(world, told_by):
    async def growing(ctx: ActivationContext[Account], asked: RefundAsked) -> Any:
        seen: list[str] = []
        for place in range(3):
            ctx.trace("now", place=place)
            seen.append(str(place))
        return Complete(len(seen))

    app = app_of(growing)
    world.story(app, RefundAsked("o-1", 1))
    session = session_over(world.log, app)
    session.open(STREAM)
    tell = told_by(session)
    tell("step 3")
    assert "seen =   ['0', '1']" in tell("step 3")
    assert "seen =   []" in tell("step 1")


async def asking_more(ctx: ActivationContext[Account], asked: RefundAsked) -> Any:
    if ctx.is_resume:
        return await paying(ctx, asked)
    ctx.emit(asked)
    found = await ctx.run_tool(lookup, order_id=asked.order_id)
    await ctx.call_model(f"Please refund {asked.cents} for {asked.order_id}, {found['items']} items")
    return Suspend(timeout=timedelta(minutes=5))


def test_changed_code_is_shown_up_to_where_it_leaves_the_path(recorded, told_by):
    session = session_over(recorded, app_of(asking_more))
    session.open(STREAM, 2)
    said = told_by(session)("run")
    assert (True, True) == (said.startswith(f"{STREAM}  diverged at version 2"), "step 0" in said)
    assert FOUND == session.do("run").code
    assert "Please refund" in told_by(session)("step 3") or "ModelDrift" in told_by(session)("step 3")


def test_linear_code_is_shown_from_its_beginning_with_its_outcomes(world, told_by):
    async def linear(ctx: ActivationContext[Account], asked: RefundAsked) -> Any:
        receipt = await ctx.perform(refund, order_id=asked.order_id, cents=asked.cents)
        said, _ = await ctx.gather(ctx.perform(notify, text="paid"), ctx.call_model("Thank them?"))
        return f"{receipt} {said}"

    app = app_of(linear)
    world.story(app, RefundAsked("o-1", 1))
    session = session_over(world.log, app)
    session.open(STREAM)
    said = told_by(session)("run").splitlines()
    assert ["step 0", "outcome", "step 1", "step 2", "outcome"] == [line[6:14].strip() for line in said[1:6]]
    assert "OK 're_o-1'" in said[2]


def test_a_failed_turn_fails_again_before_ones_eyes(world, told_by):
    async def failing(ctx: ActivationContext[Account], asked: RefundAsked) -> Any:
        ctx.emit(asked)
        raise ValueError("no")

    app = app_of(failing)
    world.story(app, RefundAsked("o-1", 1))
    session = session_over(world.log, app)
    session.open(STREAM)
    said = told_by(session)("run")
    assert (True, OK) == ("same as recorded" in said and "emit" in said, session.do("run").code)


def test_a_turn_that_was_cut_off_is_run_as_far_as_it_is_recorded(recorded, events, app, told_by):
    with copy_of([each for each in events if each.stream == STREAM and each.version <= 1]) as world:
        session = session_over(world.log, app)
        session.open(STREAM)
        said = told_by(session)("run")
    assert "a turn that was not committed, versions 0 to 1: it stops at the first step without a recorded answer: a model call (model-x)" in " ".join(
        said.split()
    )
    assert "read 0" in said


def test_what_waits_has_no_turn_to_run(events, app, told_by):
    with copy_of([each for each in events if each.stream == STREAM and each.version <= 7]) as world:
        session = session_over(world.log, app)
        session.open(STREAM)
        assert "no turn to run: nothing has begun after version 7, and nothing is due\n" == told_by(session)("run")


def test_running_takes_the_code(recorded, told_by):
    session = session_over(recorded, None)
    session.open(STREAM)
    assert "Running a turn takes the agent's code" in told_by(session)("run")
    assert USAGE == session.do("run").code


@pytest.mark.parametrize("running", [True, False])
def test_no_provider_is_asked_and_no_tool_is_called(recorded, running, told_by):
    model = unanswered()
    app = app_of(paying, model)
    session = session_over(recorded, app)
    session.open(STREAM, 4)
    told_by(session)("run" if running else "step")
    assert [] == model.asked


def test_running_works_where_an_event_loop_runs(session):
    import asyncio

    async def within() -> int:
        return int(session.do("run").code)

    assert OK == asyncio.run(within())


def test_the_world_is_as_it_was(session, events, world: World):
    session.do("run")
    session.do("step")
    assert [each[:9] for each in events] == [each[:9] for each in session.log.read_all()]
