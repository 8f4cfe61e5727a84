"""What surprised people who had only the docs."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from intentlog.agents import Aggregate, Client
from intentlog.eventlog.errors import StoreSchemaError
from tests.agents.world import Ctx, Paid, World


def test_a_slip_in_a_clients_url_does_not_begin_a_second_log(tmp_path: Path):
    with pytest.raises(StoreSchemaError, match="eventlog init"):
        Client(f"sqlite:///{tmp_path}/evnetlog.db")
    assert [] == list(tmp_path.iterdir())


class Shelf(Aggregate):
    items: list[str] = []
    by_name: dict[str, int] = {"one": 1}
    names: set[str] = set()


def test_no_two_states_share_a_default():
    one, other = Shelf(), Shelf()
    one.items.append("a")
    one.by_name["two"] = 2
    one.names.add("n")
    assert ([], {"one": 1}, set()) == (other.items, other.by_name, other.names)


def test_nothing_is_sent_to_an_agent_that_the_app_does_not_have():
    async def code(ctx: Ctx) -> object:
        return await ctx.call("nosuch", "k", "x")

    with World(code) as world:
        world.send(key="k")
        world.run(seconds=5)
        (failure,) = world.failures("a-k")
        assert "this app has no agent 'nosuch' to send to; it has: a" in failure.message


def test_a_step_that_nobody_awaits_fails_the_turn():
    async def code(ctx: Ctx) -> object:
        ctx.emit(Paid("r"))
        ctx.sleep(timedelta(days=1))  # type: ignore[unused-coroutine]
        return "done"

    with World(code) as world:
        world.send(key="k")
        world.run(seconds=5)
        (failure,) = world.failures("a-k")
        assert "ctx.sleep(…) was called and never awaited" in failure.message
        assert [] == world.outputs("a-k")


def test_the_losers_of_a_race_count_as_awaited():
    async def code(ctx: Ctx) -> object:
        return (await ctx.first(ctx.first(ctx.sleep(timedelta(0)), ctx.sleep(timedelta(days=1))), ctx.signal("never")))[0]

    with World(code) as world:
        world.send(key="k")
        world.run(seconds=5)
        world.later(1)
        assert [0] == world.outputs("a-k")
