"""What becomes of the runs under way: the preflight says before a deployment what the worker does after it."""

from __future__ import annotations

from typing import Any

import pytest

from intentlog.agents import facts
from intentlog.replay.preflight import Outlook, PreflightSummary, StreamOutlook, preflight_all
from intentlog.replay.reports import outlook_lines, outlook_tree, preflight_line
from tests.agents.world import STREAM, Ctx, World


def code(*, text: str = "x", prompt: str = "first?", guard: str = "", extra: bool = False, waits: str = "go", then: str = "done", raising: bool = False):
    async def inner(ctx: Ctx) -> Any:
        if raising:
            raise KeyError(text)
        await ctx.call_model(prompt)
        if extra:
            await ctx.perform("push", text="more")
        await ctx.perform("push", text=text if not guard or ctx.patched(guard) else "x")
        await ctx.signal(waits)
        return then

    return inner


@pytest.fixture
def suspended():
    with World(code()) as world:
        world.send()
        world.run()
        yield world


def looked(world: World, changed: Any, **options: Any) -> StreamOutlook:
    (found,) = preflight_all(world.log, world.app_of(changed, **options))
    return found


def only(world: World, changed: Any, **options: Any):
    (run,) = looked(world, changed, **options).runs
    return run


def goes_on(world: World, changed: Any) -> bool:
    """Whether the worker, under the changed code, gets the run to its end."""
    world.deploy(changed)
    world.append(facts.SignalReceived("s-1", "go"))
    world.send()
    world.run()
    return not world.facts(facts.ActivationFailed, STREAM)


@pytest.mark.parametrize("changed", [code(), code(then="otherwise"), code(text="y", guard="louder")])
def test_what_goes_on_is_safe(suspended, changed):
    run = only(suspended, changed)
    assert (Outlook.SAFE, "suspended", 0, "") == (run.outlook, run.state, run.seq, run.place)
    assert goes_on(suspended, changed)


@pytest.mark.parametrize(
    ("changed", "place", "field"),
    [
        (code(text="y"), "activation 0, step 1 (push)", "text (character 0)"),
        (code(prompt="second?"), "activation 0, step 0 (model call)", "messages[0].content (character 0)"),
        (code(extra=True), "activation 0, step 1 (push)", "text (character 0)"),
        (code(waits="stop"), "activation 0, turn 1", "waits"),
    ],
)
def test_what_leaves_a_path_that_was_taken_needs_a_patch(suspended, changed, place, field):
    run = only(suspended, changed)
    assert (Outlook.PATCH, place, field) == (run.outlook, run.place, run.field)
    assert not goes_on(suspended, changed)


def test_code_that_fails_where_it_had_gone_on_needs_a_patch(suspended):
    run = only(suspended, code(raising=True))
    assert (Outlook.PATCH, True) == (run.outlook, "KeyError" in run.decided)


def test_a_guard_that_was_taken_away_is_named():
    with World(code(text="y", guard="louder")) as world:
        world.send()
        world.run()
        run = only(world, code(text="x"))
        assert (Outlook.PATCH, True) == (run.outlook, "ctx.patched('louder')" in run.remark)


def test_a_turn_under_way_that_was_paid_for_diverges_for_good():
    async def one(ctx: Ctx) -> Any:
        await ctx.call_model("first?")
        raise KeyError("no")

    async def other(ctx: Ctx) -> Any:
        await ctx.call_model("second?")

    with World(one) as world:
        world.send()
        world.run()
        run = only(world, other)
        assert (Outlook.DIVERGES, "queued", "activation 0, step 0 (model call)", True) == (run.outlook, run.state, run.place, "guard" in run.remark)
        assert Outlook.SAFE is only(world, one).outlook


def test_an_effect_that_nobody_could_carry_out_any_more_diverges(suspended):
    with World(code()) as world:
        world.send()
        world.run(effector=False)
        world.tools = [each for each in world.tools if each.name != "push"]
        run = only(world, code())
        assert (Outlook.DIVERGES, True) == (run.outlook, "the app has no such tool" in run.remark)


def test_a_run_of_the_explicit_style_has_no_past_to_leave():
    from intentlog.agents import Suspend

    async def explicit(ctx: Ctx) -> Any:
        if not ctx.is_resume:
            ctx.act("push", text="x")
            return Suspend()
        return "done"

    async def otherwise(ctx: Ctx) -> Any:
        if not ctx.is_resume:
            ctx.act("push", text="y")
            return Suspend()
        return "done otherwise"

    with World(explicit) as world:
        world.send()
        world.run(effector=False)
        assert Outlook.SAFE is only(world, otherwise).outlook


def test_streams_without_a_run_under_way_are_told_without_runs():
    async def brief(ctx: Ctx) -> Any:
        return "done"

    with World(brief) as world:
        world.send()
        world.run()
        assert () == looked(world, brief).runs


def test_a_history_that_the_code_cannot_read_is_a_reason(suspended):
    from intentlog.agents import App, agent

    async def nothing(ctx: Ctx) -> None:
        return None

    (found,) = preflight_all(suspended.log, App(agents=[agent("b")(nothing)]))
    assert "the app has no agent 'a'; it has: b" == found.reason


def test_the_lines_and_the_sum_say_what_to_do(suspended):
    total = PreflightSummary()
    found = looked(suspended, code(text="y"))
    total.add(found)
    assert (1, "1 run under way: 0 safe 1 needs patch") == (total.exit_code, preflight_line(total))
    assert [
        f"{STREAM}  NEEDS PATCH  at activation 0, step 1 (push), suspended after 2 turns",
        "  text (character 0)",
        "    recorded  'x'",
        "    decided   'y'",
        "               ^",
        '  Keep it on the old path: if ctx.patched("NAME"): the new step, else: the old one.',
    ] == list(outlook_lines(found, width=100, safe=False))
    assert ["needs patch"] == [tree["outlook"] for tree in outlook_tree(found)]
