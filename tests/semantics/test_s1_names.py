"""S-1: keys, agents, streams, versions, positions, seqs, steps and event types."""

from __future__ import annotations

from itertools import pairwise

import pytest

from intentlog.agents import App, Input, agent, facts, send
from intentlog.agents.doors import checked_json
from intentlog.agents.errors import DefinitionError
from intentlog.eventlog.errors import InvalidName, RegistrationError
from intentlog.eventlog.names import category_of, stream_name
from intentlog.eventlog.registry import EventRegistry, event
from tests.agents.world import STREAM, Account, Asked, Ctx, World, waiting

BAD_KEYS = ["", " ", "\t", "a\x00b", "a\nb", "x" * 513, "é" * 257, "e\u0301", "\ud800", "\x7f"]


async def idle(ctx: Ctx) -> str:
    return "done"


@pytest.mark.parametrize("key", BAD_KEYS, ids=ascii)
def test_a_bad_key_is_refused_with_the_same_words_at_every_door_and_nothing_is_written(key):
    """S-1.1"""
    with World(idle) as world:
        said = []
        for door in (
            lambda: send(world.app, world.log, Input("a", key, 1, "in-1")),
            lambda: checked_json(world.app, "a", key, "", "1", "in-1"),
            lambda: stream_name("a", key),
        ):
            with pytest.raises(InvalidName) as refused:
                door()
            said.append(str(refused.value))
        assert 1 == len(set(said))
        assert 0 == world.log.last_position()


@pytest.mark.parametrize("key", ["k", "Ключ", "鍵", "a-b-c", "a b", "owner/repo#7", "x" * 512, "é" * 256, "🙂"], ids=ascii)
def test_any_other_unicode_text_is_a_key_and_reaches_the_agent_unchanged(key):
    """S-1.1"""

    async def code(ctx: Ctx) -> str:
        return ctx.key

    with World(code) as world:
        world.send(key=key)
        world.run()
        assert [key] == world.outputs(f"a-{key}")


@pytest.mark.parametrize("name", ["", "A", "1a", "a-b", "a b", "ä", "a\n", "_a"], ids=ascii)
def test_an_agents_name_is_checked_where_it_is_declared(name):
    """S-1.2"""
    with pytest.raises(DefinitionError, match="Invalid agent name"):
        agent(name)(idle)


def test_a_stream_is_the_agent_a_dash_and_the_key_and_the_first_dash_ends_the_category():
    """S-1.2"""
    assert "refunds.eu-acct-42" == stream_name("refunds.eu", "acct-42")
    assert "refunds.eu" == category_of("refunds.eu-acct-42")


def test_versions_count_from_zero_without_holes_and_positions_only_grow():
    """S-1.3"""

    async def code(ctx: Ctx) -> object:
        if ctx.is_resume:
            return "done"
        await ctx.call_model("hi")
        ctx.act("push", text="x")
        return waiting()

    with World(code) as world:
        for key in ("k", "l", "k"):
            world.send(key=key)
        world.run()
        for stream in (STREAM, "a-l"):
            versions = [stored.version for stored in world.log.read(stream)]
            assert list(range(len(versions))) == versions
        positions = [stored.position for stored in world.log.read_all()]
        assert all(one < other for one, other in pairwise(positions))


def test_seq_counts_activations_and_step_index_counts_the_steps_of_one():
    """S-1.4"""

    async def code(ctx: Ctx) -> object:
        steps = [ctx.step_index]
        if not ctx.is_resume:
            await ctx.call_model("one")
            steps.append(ctx.step_index)
            ctx.act("push", text="x")
            steps.append(ctx.step_index)
            return waiting(snapshot=bytes(steps))
        return [ctx.seq, list(ctx.snapshot), ctx.step_index]

    with World(code) as world:
        world.send()
        world.send()
        world.run()
        assert [[0, [0, 1, 2], 2], [1, [0, 1, 2], 2]] == world.outputs()


def test_reads_are_counted_apart_from_steps():
    """S-1.4"""

    async def code(ctx: Ctx) -> int:
        await ctx.run_tool("read", what="x")
        await ctx.run(len, "four")
        return ctx.step_index

    with World(code) as world:
        world.send()
        world.run()
        assert [0] == world.outputs()
        assert [0, 1] == [fact.index for fact in world.facts(facts.ToolCallCached)]


def test_the_log_holds_registered_names_and_versions_and_no_python_path():
    """S-1.5"""

    async def code(ctx: Ctx, asked: Asked) -> object:
        ctx.emit(asked)
        if ctx.is_resume:
            return "done"
        ctx.act("pay", order=asked.order)
        await ctx.run_tool("read", what="x")
        return waiting()

    with World(code, state=Account) as world:
        world.send(Asked("o-1", 3))
        world.run()
        for stored in world.log.read(STREAM):
            assert world.app.registry.get(stored.type) is not None
            assert 1 == stored.schema
            assert not any(path in stored.data for path in (b"tests.", b"intentlog", b"__main__"))


def test_two_classes_under_one_name_are_refused_when_they_are_registered():
    """S-1.5"""

    @event("order.asked")
    class Other:
        order: str

    with pytest.raises(RegistrationError, match=r"order\.asked"):
        EventRegistry(Asked, Other)
    with pytest.raises(RegistrationError, match=r"order\.asked"):
        App(agents=[agent("a")(idle)], events=[Asked, Other])


def test_a_class_without_a_name_is_refused_when_it_is_registered():
    """S-1.5"""
    with pytest.raises(RegistrationError):
        EventRegistry(dict)
