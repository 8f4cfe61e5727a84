"""The core, driven by hand: no worker, no store but the fold, no event loop."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Generator
from typing import Any

import pytest

from intentlog.agents import ModelResponse, facts
from intentlog.agents.activation import run_turn
from intentlog.agents.context import ActivationContext
from intentlog.agents.errors import AgentExited, DefinitionError, ForeignAwait, ModelDrift, StepDrift, Superseded
from intentlog.agents.requests import NeedModel, NeedRead, TurnEnd
from tests.agents.world import Asked, Ctx, World, waiting


def turn(world: World) -> tuple[ActivationContext[Any], Generator[Any, Any, TurnEnd]]:
    state = world.fold()
    activation = state.run.current
    assert activation is not None
    ctx: ActivationContext[Any] = ActivationContext(world.app.definitions["a"], state.run, activation, state.state, "a-k", world.clock(), state.version)
    return ctx, run_turn(ctx)


def begun(code: Any, *recorded: object) -> tuple[ActivationContext[Any], Generator[Any, Any, TurnEnd]]:
    with World(code) as world:
        world.send(Asked("o-1"))
        world.append(*recorded)
        return turn(world)


def end_of(core: Generator[Any, Any, TurnEnd], answer: Any = None) -> TurnEnd:
    with pytest.raises(StopIteration) as stop:
        core.send(answer)
    value: TurnEnd = stop.value.value
    return value


def test_a_turn_asks_for_what_it_needs_and_ends_with_what_it_staged():
    async def code(ctx: Ctx) -> str:
        answer = await ctx.call_model("hi")
        ctx.trace(answer.text)
        ctx.act("pay", order=await ctx.run_tool("read", what="x"))
        return "done"

    ctx, core = begun(code)
    need = next(core)
    assert isinstance(need, NeedModel)
    assert (0, "hi") == (need.step, need.request.messages[0]["content"])
    read = core.send(ModelResponse("yes"))
    assert isinstance(read, NeedRead)
    assert (0, "read", {"what": "x"}) == (read.index, read.tool, read.args)
    end = end_of(core, facts.ToolCallCached(0, 0, 0, "read", read.digest, read.args, "o-9"))
    assert [facts.Traced, facts.IntentStaged, facts.Completed] == [type(each) for each in end.staged]
    assert (2, 1, "done") == (end.closing.step, end.closing.index, end.closing.output)  # type: ignore[union-attr]
    assert {"order": "o-9", "cents": 0} == end.staged[1].args  # type: ignore[attr-defined]
    assert ctx.position() == (2, 1)


def test_a_plain_value_completes_and_none_does_too():
    async def code(ctx: Ctx) -> None: ...

    assert end_of(begun(code)[1]).closing.output is None  # type: ignore[union-attr]


def test_a_suspension_states_its_waits_and_its_deadline():
    async def code(ctx: Ctx) -> object:
        ctx.act("pay", order="o-1")
        return waiting(snapshot=b"s", adapter="me", wait="any")

    ctx, core = begun(code)
    closing = end_of(core).closing
    assert isinstance(closing, facts.Suspended)
    (intent,) = ctx.staged
    assert isinstance(intent, facts.IntentStaged)
    assert ((intent.intent_id,), "any", ctx.now_us + 300_000_000, b"s", "me") == (
        closing.waits,
        closing.mode,
        closing.deadline,
        closing.snapshot,
        closing.adapter,
    )


def test_an_exception_thrown_in_for_an_answer_reaches_agent_code_as_it_is():
    async def code(ctx: Ctx) -> str:
        try:
            await ctx.call_model("hi")
        except LookupError as problem:
            return repr(problem)
        return "?"

    _, core = begun(code)
    next(core)
    with pytest.raises(StopIteration) as stop:
        core.throw(LookupError("nothing there"))
    assert "LookupError('nothing there')" == stop.value.value.closing.output


def test_what_agent_code_raises_comes_out():
    async def code(ctx: Ctx) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        next(begun(code)[1])


@pytest.mark.parametrize(
    "problem", [SystemExit(2), asyncio.CancelledError(), GeneratorExit(), KeyboardInterrupt(), BaseException("odd")], ids=lambda p: type(p).__name__
)
def test_what_would_end_the_worker_comes_out_as_an_error_of_the_turn(problem):
    async def code(ctx: Ctx) -> None:
        raise problem

    with pytest.raises(AgentExited, match=type(problem).__name__):
        next(begun(code)[1])


def test_losing_the_key_cannot_be_caught_as_an_exception():
    async def code(ctx: Ctx) -> str:
        try:
            await ctx.call_model("hi")
        except Exception:
            return "caught"
        return "?"

    _, core = begun(code)
    next(core)
    with pytest.raises(Superseded):
        core.throw(Superseded("gone"))


def awaiting(what: Any):
    async def deep() -> None:
        await what()  # this very line

    async def code(ctx: Ctx) -> str:
        try:
            await deep()
        except ForeignAwait:
            return "caught it"
        return "?"

    return code


class Odd:
    def __await__(self) -> Generator[Any, Any, Any]:
        yield 42


@pytest.mark.parametrize(
    "what",
    [Odd, lambda: asyncio.sleep(0), lambda: asyncio.sleep(9), lambda: asyncio.get_running_loop().create_future()],
    ids=["yields", "sleep 0", "sleep", "future"],
)
def test_a_foreign_await_is_refused_even_when_caught_and_the_message_names_the_agents_line(what):
    async def inside_a_loop() -> None:
        with pytest.raises(ForeignAwait, match="await what\\(\\)  # this very line"):
            begun(awaiting(what))[1].send(None)

    asyncio.run(inside_a_loop())


def recorded_call(world_code: Any, text: str) -> facts.ModelCallCached:
    _, core = begun(world_code)
    need = next(core)
    core.close()
    return facts.ModelCallCached(0, 0, 1, need.digest, need.request, ModelResponse(text))


async def one_question(ctx: Ctx) -> str:
    return str((await ctx.call_model("one")).text)


def test_a_recorded_answer_is_given_without_asking():
    assert "kept" == end_of(begun(one_question, recorded_call(one_question, "kept"))[1]).closing.output  # type: ignore[union-attr]


def test_a_drift_that_agent_code_swallows_is_raised_all_the_same():
    async def careless(ctx: Ctx) -> str:
        try:
            await ctx.call_model("two")
        except Exception:
            ctx.act("pay", order="o-1")
        return "fine"

    with pytest.raises(ModelDrift, match=r"messages\[0\]\.content"):
        next(begun(careless, recorded_call(one_question, "kept"))[1])


def test_a_step_of_another_kind_and_one_that_is_not_reached_are_drift():
    async def acts(ctx: Ctx) -> str:
        return ctx.act("pay", order="o-1")

    async def ends(ctx: Ctx) -> None: ...

    for code in (acts, ends):
        with pytest.raises(StepDrift):
            next(begun(code, recorded_call(one_question, "kept"))[1])


def test_what_a_turn_holds_survives_a_collection_at_every_await():
    async def inner(ctx: Ctx, n: int) -> str:
        return str((await ctx.call_model(f"q{n}")).text)

    async def code(ctx: Ctx) -> list[str]:
        return [await inner(ctx, n) + str(await ctx.run_tool("read", what="x")) for n in range(3)]

    _, core = begun(code)
    need, answers = next(core), 0
    try:
        while True:
            gc.collect()
            answers += 1
            answer: Any = ModelResponse("a") if isinstance(need, NeedModel) else facts.ToolCallCached(0, need.index, 0, "read", need.digest, need.args, "b")
            need = core.send(answer)
    except StopIteration as stop:
        end = stop.value
    assert (["ab"] * 3, 6) == (end.closing.output, answers)


def test_closing_the_core_runs_agent_codes_own_clean_up():
    left: list[str] = []

    async def code(ctx: Ctx) -> None:
        try:
            await ctx.call_model("hi")
        finally:
            left.append("cleaned up")

    _, core = begun(code)
    next(core)
    core.close()
    assert ["cleaned up"] == left


def test_an_agent_that_is_no_coroutine_after_all_is_told_so():
    async def code(ctx: Ctx) -> None: ...

    ctx, _ = begun(code)
    object.__setattr__(ctx._definitions.agent, "fn", lambda ctx: 7)
    with pytest.raises(DefinitionError, match="returned int instead of a coroutine"):
        next(run_turn(ctx))
