"""S-2.4, under random arrivals, crashes and pauses: every input is handled once, in its policy's order, and replays the same."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest

from intentlog.agents import facts
from intentlog.agents.errors import ActivationCancelled
from intentlog.agents.run import WHILE_SUSPENDED
from tests.agents.test_policies import ends, not_the_same
from tests.agents.world import Ctx, World


@pytest.mark.parametrize("policy", WHILE_SUSPENDED)
@pytest.mark.parametrize("seed", range(6))
def test_random_arrivals_are_all_handled_once_and_replay_the_same(policy, seed):
    async def code(ctx: Ctx, asked: Any) -> object:
        try:
            for kind, seconds in asked:
                if kind == "sleep":
                    await ctx.sleep(timedelta(seconds=seconds))
                elif kind == "pay":
                    await ctx.perform("push", text=f"{ctx.seq} {seconds}")
                elif kind == "ask":
                    await ctx.call_model(f"{ctx.seq} {ctx.step_index}")
                else:
                    await ctx.first(ctx.signal("go"), ctx.sleep(timedelta(seconds=seconds)))
        except ActivationCancelled:
            await ctx.perform("push", text=f"{ctx.seq} undone")
            raise
        return "done"

    chance = random.Random(f"{policy} {seed}")
    with World(code, while_suspended=policy) as world:
        sent = 0
        for round_ in range(12):
            for _ in range(chance.choice((0, 1, 1, 2))):
                world.send([[chance.choice(("sleep", "pay", "ask", "wait")), chance.randrange(1, 30)] for _ in range(chance.randrange(4))])
                sent += 1
            if chance.random() < 0.3:
                world.append(facts.SignalReceived(f"s-{round_}", "go"))
            crash = chance.choice(("", "", "turn.decided", "turn.appended", "model.journalled", "attempt.recorded"))
            world.later(chance.randrange(8), effector=chance.random() < 0.7, crash=crash)
        for _ in range(4 * sent):
            world.later(30)
        done = ends(world)
        assert list(range(sent)) == sorted(seq for seq, _, _ in done)
        assert policy == "interrupt" or not any(cancelled for _, _, cancelled in done)
        assert policy == "concurrent" or [seq for seq, _, _ in done] == sorted(seq for seq, _, _ in done)
        assert ([], []) == (world.fold().run.line, world.failures())
        asked = [request.messages[0]["content"] for request in world.model.asked]
        assert len(world.facts(facts.ModelCallCached)) == len(set(asked)) == len(asked)
        assert [] == not_the_same(world)
