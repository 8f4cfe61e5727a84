from __future__ import annotations

import msgspec
import pytest

from intentlog.agents import ModelRequest, ModelResponse
from intentlog.agents.errors import InputRefused
from intentlog.agents.models import as_request, idempotency_key
from tests.agents.world import Asked, Ctx, Model, World


class Verdict(msgspec.Struct):
    approve: bool
    why: str = ""


def test_a_prompt_messages_or_a_request_make_a_request():
    messages = [{"role": "user", "content": "hi"}]
    assert messages == as_request("hi").messages == as_request(messages).messages == as_request(ModelRequest(messages)).messages
    assert "m" == as_request(ModelRequest(messages), model="m").model


def test_the_apps_model_fills_in_what_a_request_leaves_open():
    async def code(ctx: Ctx) -> None:
        await ctx.call_model(ModelRequest([], model="mine"))
        await ctx.call_model("hi", params={"temperature": 0})

    with World(code) as world:
        world.send()
        world.run()
        assert [("scripted", "mine", {}), ("scripted", "model-x", {"temperature": 0})] == [(r.provider, r.model, r.params) for r in world.model.asked]


def test_a_reply_is_asked_for_by_its_schema_and_read_from_the_text():
    async def code(ctx: Ctx) -> object:
        verdict = await ctx.call_model("hi", reply=Verdict)
        return [type(verdict).__name__, verdict.approve, verdict.why]

    with World(code, model=Model('{"approve": true, "why": "fine"}')) as world:
        world.send()
        world.run()
        assert [["Verdict", True, "fine"]] == world.outputs()
        asked = world.model.asked[0].response_format
        assert asked is not None
        assert "json_schema" == asked["type"]
        assert "approve" in str(asked)


@pytest.mark.parametrize("text", ["yes", "{}", '{"approve": "yes"}', ""])
def test_an_answer_that_does_not_fit_the_reply_is_refused_and_kept(text):
    async def code(ctx: Ctx) -> object:
        try:
            await ctx.call_model("hi", reply=Verdict)
        except InputRefused as problem:
            return str(problem)
        return "?"

    with World(code, model=Model(text)) as world:
        world.send()
        world.run()
        assert "does not fit Verdict" in world.outputs()[0]
        assert 1 == world.types().count("model_call.cached")


def test_an_app_without_a_model_says_what_is_missing():
    async def code(ctx: Ctx, asked: Asked) -> None:
        await ctx.call_model("hi")

    with World(code) as world:
        world.app.models = None
        world.send(Asked("o"))
        world.run()
        assert "App(…, models=…)" in world.failures()[0].message


def test_the_idempotency_key_is_a_function_of_stream_seq_step_and_digest():
    keys = {idempotency_key(*parts) for parts in [("a-k", 0, 0, b"x"), ("a-l", 0, 0, b"x"), ("a-k", 1, 0, b"x"), ("a-k", 0, 1, b"x"), ("a-k", 0, 0, b"y")]}
    assert 5 == len(keys)
    assert {40} == {len(key) for key in keys}
    assert idempotency_key("a-k", 0, 0, b"x") in keys


def test_an_answer_at_hand_and_an_awaited_one_are_the_same_to_the_agent():
    class Slow(Model):
        async def complete(self, request: ModelRequest, *, idempotency_key: str) -> ModelResponse:
            response: ModelResponse = super().complete(request, idempotency_key=idempotency_key)
            return response

    async def code(ctx: Ctx) -> str:
        return str((await ctx.call_model("hi")).text)

    outputs = []
    for model in (Model("yes"), Slow("yes")):
        with World(code, model=model) as world:
            world.send()
            world.run()
            outputs.append(world.outputs())
    assert [["yes"], ["yes"]] == outputs
