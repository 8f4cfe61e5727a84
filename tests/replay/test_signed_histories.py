"""Histories with signatures, readmissions and questions that a surface refused: the code decides the same again, and every command reads them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from intentlog.agents import Client, facts
from intentlog.replay import Verdict, replay_stream
from intentlog.replay.story import story
from intentlog.replay.verify import verify_all
from tests.agents.world import STREAM, Ctx, World

BESIDE = {
    "outcome.signed": facts.OutcomeSigned("x", "may", b"s"),
    "approval.signed": facts.ApprovalSigned("approval-0-0", "may", b"s"),
    "intent.readmitted": facts.IntentReadmitted("x", 1, "ada", "fine", 0, 1, b"p", "may", b"s"),
    "intent.distrusted": facts.IntentDistrusted("x", "it is not signed", "e", 1, b"p"),
    "approval.redriven": facts.ApprovalRedriven("approval-0-0", "ada", "mended"),
    "approval.undelivered": facts.ApprovalUndelivered("approval-0-0", "webhook+https://chat.example/…", "answered 410", 5, "e"),
}


async def code(ctx: Ctx, given: Any) -> Any:
    verdict = await ctx.approval("Pay?", timeout=timedelta(hours=1))
    read = await ctx.run_tool("read", what="rate")
    paid = await ctx.perform("pay", order=str(given))
    return [verdict.approved, read, paid, await ctx.signal("go")]


def day(*beside: object) -> World:
    """A run with ``beside`` appended wherever others may append."""
    world = World(code)
    client = Client(world.log, world.app)
    world.append(*beside)
    world.send(1)
    world.append(*beside)
    world.run(effector=False)
    world.append(*beside)
    client.approve("a", "k", "approval-0-0", by="ada")
    world.append(*beside)
    world.run(effector=False)
    world.append(*beside)
    world.run()
    world.append(*beside)
    client.signal("a", "k", "go", "on")
    world.append(*beside)
    world.run()
    world.append(*beside)
    return world


def state(world: World) -> tuple[Any, ...]:
    """What the runtime knows in the end, places left out."""
    run = world.fold().run
    return run.inputs, run.completed, run.line, list(run.open), list(run.intents), run.late, len(run.signals), run.blocked


@pytest.mark.parametrize("kind", BESIDE)
def test_what_no_run_depends_on_changes_no_decision_and_no_state(kind):
    with day() as plain, day(BESIDE[kind]) as world:
        assert (8, 0) == (world.types().count(kind), plain.types().count(kind))
        assert plain.facts(facts.Completed)[0].output == world.facts(facts.Completed)[0].output
        assert (state(plain), []) == (state(world), world.errors)
        replayed = replay_stream(world.log, world.app, STREAM)
        assert Verdict.SAME is replayed.verdict, replayed
        (report,) = verify_all(world.log, world.app, [STREAM])
        assert report.sound, report.faults
        assert 8 == sum(line.stored.type == kind and bool(line.summary) for line in story(world.log, STREAM, world.app))
