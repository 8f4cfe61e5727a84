"""The same story on each store, ended at each boundary and begun again: S-3.2, S-3.4, S-4.1, S-4.10, S-6.4, S-6.5 together."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from intentlog.agents import WorkerSettings, facts
from intentlog.agents.errors import EffectUnknown
from intentlog.effector.crash import BOUNDARIES
from intentlog.replay import Verdict, replay_stream
from tests.agents.world import START, STREAM, Account, Asked, Ctx, Paid, World, told, waiting


async def paying(ctx: Ctx, asked: Asked) -> object:
    """A read, two model calls, an idempotent effect and one that is not; then the receipt."""
    if not ctx.is_resume:
        ctx.emit(asked)
        found = await ctx.run_tool("read", what=asked.order)
        first = await ctx.call_model(f"{found}?")
        second = await ctx.call_model(f"{first.text}?")
        ctx.act("push", text=second.text)
        ctx.act("pay", order=asked.order)
        return waiting(snapshot=b"half way")
    notified, paid = ctx.resume_results
    try:
        receipt = paid.value
    except EffectUnknown:
        receipt = "unknown"
    ctx.emit(Paid(receipt))
    return [notified.value, receipt, told(ctx).status]


@pytest.fixture
def world(log_url: str) -> Iterator[World]:
    with World(paying, state=Account, url=log_url) as made:
        made.model.answers = ["a", "b"]
        yield made


INSIDE = [boundary for boundary in BOUNDARIES if not boundary.startswith("input.") and boundary != "checkpointed"]


@pytest.mark.parametrize("boundary", ["", *INSIDE])
def test_a_death_at_any_boundary_costs_no_answer_that_was_paid_for_and_repeats_no_effect(world, boundary):
    world.send(Asked("o-1", 3))
    if boundary:
        world.run(crash=boundary)
    world.run()
    # The idempotent effect comes first and meets the crash; the other one is settled by a life that saw all of it.
    assert 1 == len(world.outputs())
    assert ["push", "pay"] == [name for name, _ in dict.fromkeys(world.hands.calls)]
    assert 1 == world.hands.calls.count(("pay", "o-1"))
    assert (2 if boundary == "tool.called" else 1) == len(world.hands.calls) - 1
    assert (3 if boundary == "model.answered" else 2) == len(world.model.asked)
    assert 1 == len(world.facts(facts.ToolCallCached)) == world.hands.reads
    assert 2 == len({fact.intent_id for fact in world.facts(facts.IntentStaged)}) == len(world.facts(facts.IntentSettled))
    assert (("o-1",), ("re_o-1",)) == (world.fold().state.orders, world.fold().state.receipts)
    assert [START] * 2 == [fact.now for fact in world.facts(facts.ModelCallCached)]
    assert (set(), []) == (world.log.schedule.owners(), world.errors)


@pytest.mark.parametrize("boundary", INSIDE)
def test_whatever_happened_the_history_replays(world, boundary):
    world.send(Asked("o-1", 3))
    world.run(crash=boundary)
    world.clock.tick(1)
    world.run()
    replayed = replay_stream(world.log, world.app, STREAM)
    assert replayed.verdict is Verdict.SAME, replayed


def test_death_after_death_still_ends_in_the_same_place(world):
    world.send(Asked("o-1", 3))
    for boundary in INSIDE:
        world.run(crash=boundary)
    world.run()
    assert 1 == len(world.outputs())
    assert world.hands.calls.count(("pay", "o-1")) <= 1
    assert (("o-1",), 1) == (world.fold().state.orders, len(world.fold().state.receipts))


def test_a_snapshot_at_every_turn_changes_nothing(world):
    world.send(Asked("o-1", 3))
    settings = WorkerSettings(poll=0.005, snapshot_every=1)
    world.run(effector=False, settings=settings)
    world.run(settings=settings)
    assert [["B", "re_o-1", "OK"]] == world.outputs()
    assert STREAM in world.log.snapshots.load([STREAM])
