"""The figures of a range add up to what is in it, and what suspended runs wait for is counted by kind."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from intentlog.agents import Price
from intentlog.agents.stats import stats
from intentlog.agents.stats_events import event_stats, waiting
from tests.agents.world import Ctx, World


async def busy(ctx: Ctx) -> Any:
    await ctx.call_model("how many?")
    if ctx.key == "k":
        return "done"
    return await ctx.gather(ctx.signal("go"), ctx.sleep(timedelta(hours=1)), ctx.approval("really?"), ctx.perform("push", text="x"))


@pytest.fixture
def world():
    with World(busy) as made:
        made.app.prices["model-x"] = Price(input="1", output="2")
        made.send(key="k")
        made.run()
        made.clock.tick(3600)
        made.send(key="waits")
        made.run(effector=False)
        yield made


def test_types_agents_and_bytes_add_up(world):
    found, events = event_stats(world.log), list(world.log.read_all())
    for amounts in (found.types, found.agents):
        assert (len(events), sum(len(event.data) for event in events)) == (sum(a.events for a in amounts.values()), sum(a.bytes for a in amounts.values()))
    assert (found.total.events, found.first_at, found.last_at) == (len(events), events[0].recorded_at, events[-1].recorded_at)
    assert max(len(event.data) for event in events) == found.total.largest


def test_model_calls_are_counted_with_their_cost(world):
    calls = event_stats(world.log).models["model-x"]
    assert (2, 14, 6, 2 * (7 + 2 * 3) * 10**6) == (calls.calls, calls.input_tokens, calls.output_tokens, calls.picos)


def test_a_range_and_a_prefix_narrow_it(world):
    events = list(world.log.read_all())
    later = next(event for event in events if event.stream == "a-waits")
    rest = [event for event in events if event.position >= later.position]
    assert len(rest) == event_stats(world.log, after=later.position - 1).total.events
    assert len(rest) == event_stats(world.log, moment=later.recorded_at).total.events
    assert len(events) - len(rest) == event_stats(world.log, until=later.recorded_at - 1).total.events
    assert sum(event.stream == "a-k" for event in events) == event_stats(world.log, "a-k").total.events
    assert 0 == event_stats(world.log, "b-").total.events


def test_what_is_waited_for_is_counted_by_kind(world):
    assert {"signal": 1, "timer": 1, "approval": 1, "intent": 1} == waiting(world.log)


def test_streams_are_counted_by_length(world):
    assert {0: 2} == stats(world.log).lengths
