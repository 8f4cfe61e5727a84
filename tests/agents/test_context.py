from __future__ import annotations

import uuid
from typing import Any

import pytest

from intentlog.agents.context import ActivationContext
from intentlog.agents.errors import DefinitionError, InputRefused
from intentlog.agents.intents import NAMESPACE
from intentlog.eventlog.registry import event
from tests.agents.world import START, STREAM, Asked, Ctx, World


async def code(ctx: Ctx) -> None: ...


def context(payload: Any = 1, seq: int = 0, fn: Any = code) -> ActivationContext[Any]:
    with World(fn) as world:
        for n in range(seq + 1):
            world.send(payload, id=f"in-{n}")
        state = world.fold()
        return ActivationContext(world.app.definitions["a"], state.run, state.run.open[seq], state.state, STREAM, START, state.version)


def test_a_first_turn_knows_where_it_is():
    ctx = context("hello", seq=1)
    assert ("k", STREAM, 1, 0, "in-1", "hello") == (ctx.key, ctx.stream, ctx.seq, ctx.step_index, ctx.input_id, ctx.input)
    assert (False, None, (), b"", False) == (ctx.is_resume, ctx.resume_result, ctx.resume_results, ctx.snapshot, ctx.timed_out)
    assert "2025-11-29T09:14:00+00:00" == ctx.now.isoformat()


def test_a_named_stream_of_chance_depends_on_stream_seq_and_name_alone():
    one, other, later = context(), context(), context(seq=1)
    other.random("noise").random()
    other.uuid("noise")
    assert one.random("dice").random() == other.random("dice").random() != later.random("dice").random()
    assert one.random("dice").random() != one.random("cards").random()
    assert one.uuid("ids") == other.uuid("ids") != later.uuid("ids")
    assert one.uuid("ids") == uuid.uuid5(NAMESPACE, f"{STREAM}|0|uuid|ids|1")


def test_chance_shifts_no_step_and_no_intent_id():
    plain, lucky = context(), context()
    lucky.random().random()
    lucky.uuid()
    lucky.trace("a remark")
    assert plain.act("pay", order="o") == lucky.act("pay", order="o")


def test_emitting_what_is_no_event_of_the_app_is_refused():
    @event("never.registered")
    class Stranger:
        x: int

    ctx = context()
    for thing in (Stranger(1), "text", Asked):
        with pytest.raises(DefinitionError, match="not an event of this app"):
            ctx.emit(thing)
    assert [] == ctx.staged


def test_the_runtimes_own_facts_cannot_be_emitted():
    from intentlog.agents.facts import Completed

    with pytest.raises(DefinitionError):
        context().emit(Completed(0, 0, 0, 0, None))


def test_an_input_of_another_type_than_the_agent_takes_is_refused_with_both_names():
    async def picky(ctx: Ctx, asked: Asked) -> None: ...

    with pytest.raises(InputRefused, match=r"agent a takes order\.asked; input 'in-0' is str"):
        _ = context("text", fn=picky).input


def test_an_outcome_is_none_while_there_is_none():
    ctx = context()
    assert ctx.outcome("no such intent") is None
