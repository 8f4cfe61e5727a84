"""``ctx.compensate``: what is undone, in which order, and how often."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from intentlog.agents import App, Complete, Suspend, ToolSet, agent, tool
from intentlog.agents.errors import DefinitionError, EffectFailed
from tests.agents.world import Ctx, World
from tests.linear.common import linear, sound


@attrs.frozen
class Room:
    hotel: str
    nights: int


class Trip:
    """Tools that book, each with one that cancels, and what they were called with."""

    def __init__(self) -> None:
        self.done: list[tuple[Any, ...]] = []
        self.full: set[str] = set()

        @tool(side_effect=True)
        def leave(room: Room, result: str) -> None:
            self.done.append(("leave", room, result))

        @tool(side_effect=True, compensate=leave)
        def stay(room: Room, guest: str) -> str:
            self.done.append(("stay", room))
            if "stay" in self.full:
                raise ValueError("no room")
            return f"room of {guest}"

        @tool(side_effect=True, idempotent=True)
        def land(flight: str, result: str | None = None) -> None:
            self.done.append(("land", flight, result))

        @tool(side_effect=True, compensate=land)
        def fly(flight: str) -> str:
            self.done.append(("fly", flight))
            if "fly" in self.full:
                raise ValueError("no seat")
            return f"seat on {flight}"

        @tool(side_effect=True)
        def tell(text: str) -> None:
            self.done.append(("tell", text))

        self.tools = [stay, fly, tell]


ROOM = Room("Ritz", 2)
BOOKED = [("stay", ROOM), ("fly", "LH1"), ("tell", "soon")]


async def booking(ctx: Ctx, given: Any) -> Any:
    try:
        await ctx.perform("stay", room=ROOM, guest="ann")
        await ctx.perform("fly", flight="LH1")
        await ctx.perform("tell", text="soon")
        await ctx.perform("fragile", what="visa")
    except EffectFailed:
        undone = ctx.compensate()
        return [(await ctx.outcome_of(each)).tool for each in undone]


def test_what_was_done_is_undone_in_reverse_with_the_arguments_and_the_result():
    trip = Trip()
    with linear(booking, tools=trip.tools) as world:
        world.hands.script = [ValueError("no visa")]
        world.send()
        world.run()
        assert [*BOOKED, ("land", "LH1", "seat on LH1"), ("leave", ROOM, "room of ann")] == trip.done
        assert [["land", "leave"]] == world.outputs()


def test_what_never_happened_is_not_undone():
    trip = Trip()
    trip.full = {"fly"}
    with linear(booking, tools=trip.tools) as world:
        world.send()
        world.run()
        assert [("stay", ROOM), ("fly", "LH1"), ("leave", ROOM, "room of ann")] == trip.done


def test_what_may_have_happened_is_undone_when_that_is_asked_for():
    async def code(ctx: Ctx, given: Any) -> Any:
        await ctx.outcome_of(ctx.act("fly", flight="LH1"))
        undone = ctx.compensate(uncertain=True)
        return [(await ctx.outcome_of(each)).status for each in undone]

    trip = Trip()
    trip.full = {"fly"}
    with linear(code, tools=trip.tools) as world:
        world.send()
        world.run()
        assert [("fly", "LH1"), ("land", "LH1", None)] == trip.done
        assert [["OK"]] == world.outputs()


def test_each_effect_is_undone_once_however_often_it_is_asked_for():
    async def code(ctx: Ctx, given: Any) -> Any:
        await ctx.perform("fly", flight="LH1")
        first = ctx.compensate()
        assert first == ctx.compensate()
        await ctx.outcome_of(first[0])
        await ctx.perform("fly", flight="LH2")
        second = ctx.compensate()
        for each in second:
            await ctx.outcome_of(each)
        return [first[0] in second, len(second)]

    trip = Trip()
    with linear(code, tools=trip.tools) as world:
        world.send()
        world.run()
        assert [[True, 2]] == world.outputs()
        assert [("fly", "LH1"), ("land", "LH1", "seat on LH1"), ("fly", "LH2"), ("land", "LH2", "seat on LH2")] == trip.done


def test_an_effect_whose_outcome_comes_later_is_left_alone_and_a_rerun_takes_the_same_way():
    async def code(ctx: Ctx, given: Any) -> Any:
        ctx.act("fly", flight="LH1")
        nothing = ctx.compensate()
        await ctx.perform("tell", text="later")
        undone = ctx.compensate()
        for each in undone:
            await ctx.outcome_of(each)
        return [nothing, len(undone)]

    trip = Trip()
    with linear(code, tools=trip.tools) as world:
        world.send()
        world.run()
        assert [[[], 1]] == world.outputs()


def test_an_agent_that_suspends_by_itself_undoes_what_its_earlier_turns_did():
    async def code(ctx: Ctx) -> Any:
        if not ctx.is_resume:
            ctx.act("stay", room=ROOM, guest="ann")
            return Suspend(b"booked")
        if ctx.snapshot == b"booked":
            ctx.act("fly", flight="LH1")
            return Suspend(b"flown")
        if ctx.snapshot == b"flown":
            assert ctx.resume_result is not None and not ctx.resume_result.ok
            ctx.compensate()
            return Suspend(b"undone")
        return Complete("sorry")

    trip = Trip()
    trip.full = {"fly"}
    with World(code, tools=trip.tools) as world:
        world.send()
        world.run()
        assert (["sorry"], ("leave", ROOM, "room of ann")) == (world.outputs(), trip.done[-1])
        assert [] == sound(world)


def test_a_tool_brings_the_one_that_undoes_it():
    stay = Trip().tools[0]

    async def code(ctx: Any) -> None: ...

    assert {"stay", "leave"} == {each.name for each in ToolSet([stay])} == {each.name for each in App(agents=[agent("a")(code)], tools=[stay]).tools}


def plain(x: str) -> None: ...


def needing(other: str) -> None: ...


def with_result(x: str, result: str = "") -> None: ...


@pytest.mark.parametrize(
    "undo, side_effect",
    [(lambda: plain, True), (lambda: tool(plain), True), (lambda: tool(side_effect=True)(needing), True), (lambda: tool(side_effect=True)(plain), False)],
    ids=["a function", "a read-only tool", "one that needs what is not there", "for a read-only tool"],
)
def test_an_undoing_that_could_only_fail_later_fails_where_it_is_declared(undo: Callable[[], Any], side_effect: bool):
    with pytest.raises(DefinitionError, match="compensate="):
        tool(side_effect=side_effect, compensate=undo())(with_result)
