"""A guard that was put in after a run had passed its place: the old turns replay on the old path, the new ones on the new."""

from __future__ import annotations

from intentlog.agents import facts
from intentlog.replay import Verdict, replay_all
from tests.agents.world import STREAM, Ctx, World


def code(guarded: bool):
    async def inner(ctx: Ctx) -> object:
        new = guarded and ctx.patched("louder")
        await ctx.perform("push", text="x!" if new else "x")
        return await ctx.signal("go")

    return inner


def test_turns_from_before_a_guard_replay_as_they_were():
    with World(code(False)) as world:
        world.send()
        world.run()
        world.deploy(code(True))
        for number in range(2):
            world.append(facts.SignalReceived(f"s-{number}", "go"))
            world.send()
            world.run()
        assert (["x", "x!", "x!"], 2) == ([text for _, text in world.hands.calls], len(world.facts(facts.Patched, STREAM)))
        assert [Verdict.SAME] == [each.verdict for each in replay_all(world.log, world.app)]


def test_turns_from_before_a_new_version_replay_under_their_own():
    async def pinned(ctx: Ctx) -> object:
        await ctx.perform("push", text=f"version {ctx.version}")
        return await ctx.signal("go")

    with World(pinned) as world:
        world.send()
        world.run()
        world.deploy(pinned, version=2)
        for number in range(2):
            world.append(facts.SignalReceived(f"s-{number}", "go"))
            world.send()
            world.run()
        assert ["version 1", "version 2", "version 2"] == [text for _, text in world.hands.calls]
        assert [Verdict.SAME] == [each.verdict for each in replay_all(world.log, world.app)]


def test_a_guard_taken_away_again_is_a_divergence():
    with World(code(True)) as world:
        world.send()
        world.run()
        world.deploy(code(False))
        assert [Verdict.DIVERGED] == [each.verdict for each in replay_all(world.log, world.app)]
