"""S-4: model calls and read-only tools are journalled before they are seen, and never asked for twice."""

from __future__ import annotations

import asyncio
from typing import Any

import attrs
import pytest

from intentlog.agents import ModelRequest, ModelResponse, ToolCall, Usage, facts
from intentlog.agents.errors import ModelFailed, WrongToolKind
from intentlog.replay import Kind, Verdict, replay_stream
from tests.agents.world import STREAM, Asked, Ctx, Model, World, waiting


def asking(*prompts: Any, **changes: Any):
    async def code(ctx: Ctx) -> list[str]:
        return [(await ctx.call_model(prompt, **changes)).text for prompt in prompts]

    return code


def test_an_answer_is_in_the_log_before_the_agent_has_it():
    """S-4.1"""
    seen: list[list[str]] = []

    async def code(ctx: Ctx) -> str:
        answer = await ctx.call_model("hi")
        seen.append(world.types())
        return str(answer.text)

    with World(code) as world:
        world.send()
        world.run()
        assert [["input.received", "model_call.cached"]] == seen
        (cached,) = world.facts(facts.ModelCallCached)
        assert (0, 0, "yes", Usage(7, 3), [{"role": "user", "content": "hi"}]) == (
            cached.seq,
            cached.step,
            cached.response.text,
            cached.response.usage,
            cached.request.messages,
        )
        assert ("scripted", "model-x") == (cached.request.provider, cached.request.model)


def test_the_agent_gets_the_answer_as_it_was_stored_live_and_again():
    """S-4.1"""
    given = ModelResponse("yes", "m", [ToolCall("1", "pay", "{}")], Usage(1, 2), "stop")
    seen: list[ModelResponse] = []

    async def code(ctx: Ctx) -> str:
        seen.append(await ctx.call_model("hi"))
        return "done"

    with World(code, model=Model(given)) as world:
        world.send()
        world.run(crash="turn.decided")
        world.run()
        assert [given, given] == seen
        assert all(each is not given for each in seen)


def test_the_same_request_is_a_hit_and_the_provider_is_not_asked_again():
    """S-4.2"""
    with World(asking("one", "two")) as world:
        world.model.answers = ["a", "b"]
        world.send()
        world.run(crash="model.journalled")
        world.run()
        assert [["a", "b"]] == world.outputs()
        assert ["one", "two"] == [request.messages[0]["content"] for request in world.model.asked]


@pytest.mark.parametrize(
    "prompt, changes, field",
    [
        ("Refund 43?", {}, "messages[0].content (character 8)"),
        ("Refund 42?", {"model": "other"}, "model (character 0)"),
        ("Refund 42?", {"provider": "other"}, "provider (character 0)"),
        ("Refund 42?", {"params": {"temperature": 0.1}}, "params.temperature"),
        ("Refund 42?", {"params": {"temperature": 0, "seed": 1}}, "params.seed"),
        ("Refund 42?", {"tools": [{"name": "x"}]}, "tools[0]"),
        ("Refund 42?", {"response_format": {"type": "json_object"}}, "response_format"),
        ("Refund 42?", {"tenant": "evil"}, "tenant"),
    ],
)
def test_another_request_at_a_recorded_step_is_drift_that_names_the_first_field_that_differs(prompt, changes, field):
    """S-4.2, S-4.3"""
    params = {} if "params" not in changes else {"params": {"temperature": 0}}
    with World(asking("Refund 42?", **params)) as world:
        world.send()
        world.run(crash="model.journalled")
        world.deploy(asking(prompt, **changes))
        world.run()
        (failure,) = world.failures()
        assert "ModelDrift" == failure.type
        assert f"first difference: {field}" in failure.message
        assert f"{STREAM}, activation 0, step 0" in failure.message
        assert 1 == len(world.model.asked)


def test_an_answer_that_is_no_longer_asked_for_is_drift():
    """S-4.2"""
    with World(asking("one", "two")) as world:
        world.send()
        world.run(crash="turn.decided")
        world.deploy(asking("one"))
        world.run()
        (failure,) = world.failures()
        assert ("StepDrift", 2) == (failure.type, len(world.model.asked))


def test_drift_cannot_be_caught_away():
    """S-4.2"""

    async def careless(ctx: Ctx) -> str:
        try:
            await ctx.call_model("changed")
        except Exception:
            return "fine"
        return "?"

    with World(asking("one")) as world:
        world.send()
        world.run(crash="model.journalled")
        world.deploy(careless)
        world.run()
        assert (["ModelDrift"], []) == ([failure.type for failure in world.failures()], world.outputs())


def test_a_replay_never_calls_out_and_a_step_it_does_not_find_is_a_miss():
    """S-4.2"""
    with World(asking("one")) as world:
        world.send()
        world.run()
        world.deploy(asking("one", "two"))
        found = replay_stream(world.log, world.app, STREAM)
        assert found.divergence is not None
        assert (Verdict.DIVERGED, Kind.MISS, 1) == (found.verdict, found.divergence.kind, found.divergence.step)
        assert 1 == len(world.model.asked)


def test_equal_requests_from_other_objects_are_hits():
    """S-4.3"""
    one = {"b": [1, 2], "a": "x"}
    other = dict(reversed([(k, list(v) if isinstance(v, list) else str(v)) for k, v in one.items()]))
    with World(asking("hi", params=one)) as world:
        world.send()
        world.run(crash="model.journalled")
        world.deploy(asking([{"content": "hi", "role": "user"}], params=other))
        world.run()
        assert ([["yes"]], 1) == (world.outputs(), len(world.model.asked))


def test_every_field_of_a_request_is_in_the_digest():
    """S-4.3"""
    with World(asking("hi")) as world:
        made = world.app.definitions["a"]
        request = ModelRequest([{"role": "user", "content": "hi"}], "p", "m")
        changed: dict[str, Any] = {"messages": [], "provider": "q", "model": "n", "tools": [{}], "params": {"n": 1}, "response_format": {}, "tenant": "t"}
        assert {field.name for field in attrs.fields(ModelRequest)} == set(changed)
        digests = [made.model_digest(request)[0], *(made.model_digest(attrs.evolve(request, **{name: value}))[0] for name, value in changed.items())]
        assert len(changed) + 1 == len(set(digests))


def test_a_journalled_answer_is_no_part_of_the_state_and_outlives_a_failed_turn():
    """S-4.4"""
    broken = True

    async def code(ctx: Ctx) -> str:
        answer = await ctx.call_model("hi")
        if broken:
            raise RuntimeError("no")
        return str(answer.text)

    with World(code) as world:
        world.model.answers = ["first", "second"]
        world.send()
        world.run()
        broken = False
        world.later(1)
        assert (["first"], 1) == (world.outputs(), len(world.model.asked))


def test_the_same_request_twice_is_two_steps_with_two_answers():
    """S-4.5"""
    with World(asking("toss", "toss", "toss")) as world:
        world.model.answers = ["heads", "tails", "edge"]
        world.send()
        world.run(crash="turn.decided")
        world.run()
        assert ([["heads", "tails", "edge"]], 3) == (world.outputs(), len(world.model.asked))
        assert [0, 1, 2] == [fact.step for fact in world.facts(facts.ModelCallCached)]
        assert 1 == len({fact.digest for fact in world.facts(facts.ModelCallCached)})


def test_an_error_of_the_provider_is_never_kept_as_an_answer():
    """S-4.6"""
    with World(asking("hi")) as world:
        world.model.answers = [ModelFailed("503"), "better now"]
        world.send()
        world.run()
        assert ["input.received", "activation.failed"] == world.types()
        world.later(1)
        assert [["better now"]] == world.outputs()


def test_a_read_only_tool_is_journalled_on_its_own_counter_and_runs_once():
    """S-4.7"""

    async def code(ctx: Ctx) -> list[Any]:
        first = await ctx.run_tool("read", what="x")
        await ctx.call_model("hi")
        second = await ctx.run_tool("read", '{"what": "x"}')
        return [first, second]

    with World(code) as world:
        world.send()
        world.run(crash="turn.decided")
        world.run()
        assert ([["x 1", "x 2"]], 2) == (world.outputs(), world.hands.reads)
        assert [0, 1] == [fact.index for fact in world.facts(facts.ToolCallCached)]


def test_a_read_with_other_arguments_at_a_recorded_place_is_drift():
    """S-4.7"""

    def reading(what: str):
        async def code(ctx: Ctx) -> Any:
            found = await ctx.run_tool("read", what=what)
            await ctx.call_model("hi")
            return found

        return code

    with World(reading("x")) as world:
        world.send()
        world.run(crash="model.answered")
        world.deploy(reading("y"))
        world.run()
        (failure,) = world.failures()
        assert "ToolDrift" == failure.type
        assert "first difference: args.what" in failure.message


def test_a_tool_with_a_side_effect_cannot_be_called_or_run_directly():
    """S-4.7"""
    with World(asking("hi")) as world:
        with pytest.raises(WrongToolKind, match=r"stage it with ctx\.act"):
            world.app.tools.named("pay")(order="o-1")

        async def code(ctx: Ctx) -> Any:
            return await ctx.run_tool("pay", order="o-1")

        world.deploy(code)
        world.send()
        world.run()
        assert ["WrongToolKind"] == [failure.type for failure in world.failures()]
        assert [] == world.hands.calls


@pytest.mark.parametrize(
    "problem",
    [
        ValueError("closed"),
        KeyError("k"),
        OSError(2, "gone"),
        ZeroDivisionError(),
        UnicodeDecodeError("utf-8", b"x", 0, 1, "bad"),
        ExceptionGroup("g", [ValueError("a")]),
    ],
    ids=lambda p: type(p).__name__,
)
def test_what_a_read_raised_is_raised_again_with_the_same_type_and_text_live_and_replayed(problem):
    """S-4.7"""
    seen: list[tuple[str, str, str]] = []

    async def code(ctx: Ctx) -> str:
        try:
            await ctx.run_tool("read", what="x")
        except Exception as raised:
            seen.append((type(raised).__name__, str(raised), repr(raised.args)))
        return "done"

    with World(code) as world:
        world.hands.script = [problem]
        world.send()
        world.run(crash="turn.decided")
        world.run()
        assert (2, 1) == (len(seen), world.hands.reads)
        assert seen[0] == seen[1]
        if not isinstance(problem, UnicodeError | ExceptionGroup):
            assert (type(problem).__name__, str(problem)) == seen[0][:2]


class Ending(BaseException):
    pass


@pytest.mark.parametrize("problem", [StopIteration(), SystemExit(1), asyncio.CancelledError(), Ending("all")], ids=lambda p: type(p).__name__)
def test_a_read_that_raises_what_ends_programs_fails_and_ends_nothing(problem):
    """S-4.7"""

    async def code(ctx: Ctx) -> str:
        try:
            await ctx.run_tool("read", what="x")
        except Exception as raised:
            return f"{type(raised).__name__}: {raised}"
        return "?"

    with World(code) as world:
        world.hands.script = [problem]
        world.send()
        world.run()
        (output,) = world.outputs()
        assert type(problem).__name__ in output
        assert [] == world.errors


def test_ctx_run_journals_any_other_read():
    """S-4.8"""
    calls = 0

    def count(step: int) -> int:
        nonlocal calls
        calls += step
        return calls

    async def code(ctx: Ctx) -> int:
        return int(await ctx.run(count, 5))

    with World(code) as world:
        world.send()
        world.run(crash="turn.decided")
        world.run()
        assert ([5], 5) == (world.outputs(), calls)


def test_whatever_else_agent_code_awaits_is_refused_with_the_line_that_did_it():
    """S-4.8"""

    async def deeper() -> None:
        await asyncio.sleep(1)  # the line

    async def code(ctx: Ctx) -> str:
        try:
            await deeper()
        except Exception:
            return "caught it"
        return "slept"

    with World(code) as world:
        world.send()
        world.run()
        (failure,) = world.failures()
        assert "ForeignAwait" == failure.type
        assert "await asyncio.sleep(1)  # the line" in failure.message
        assert [] == world.outputs()


def test_the_one_window_repeats_the_call_under_the_same_idempotency_key():
    """S-4.10"""
    with World(asking("one", "two")) as world:
        world.send()
        world.run(crash="model.answered")
        world.run()
        assert 3 == len(world.model.keys)
        assert world.model.keys[0] == world.model.keys[1] != world.model.keys[2]


def test_each_step_of_each_activation_of_each_key_has_its_own_idempotency_key():
    """S-4.10"""

    async def code(ctx: Ctx) -> object:
        await ctx.call_model("hi")
        if ctx.is_resume:
            return "done"
        ctx.act("push", text="x")
        await ctx.call_model("hi")
        return waiting()

    with World(code) as world:
        for key in ("k", "l"):
            for _ in range(2):
                world.send(Asked("o"), key=key)
        world.run()
        assert 12 == len(world.model.keys) == len(set(world.model.keys))
