from __future__ import annotations

import pytest

from intentlog.agents import Input, facts, send
from intentlog.agents.app import runtime_codec
from intentlog.agents.doors import checked_input, checked_json, plain_json
from intentlog.agents.errors import DefinitionError, InputRefused
from intentlog.agents.sending import check_input_id, deliver, json_input, typed_input
from intentlog.eventlog.errors import Unencodable
from tests.agents.world import Asked, Ctx, World


async def code(ctx: Ctx, asked: Asked) -> object:
    return [asked.order, asked.cents]


async def anything(ctx: Ctx) -> object:
    return ctx.input


def test_json_and_an_event_of_the_same_content_are_the_same_input():
    with World(code) as world:
        world.send(Asked("o-1", 3), id="x")
        stream, event = checked_json(world.app, "a", "k", "order.asked", '{"cents": 3, "order": "o-1"}', "x")
        (receipt,) = deliver(world.log, [(stream, event)], ["x"])
        assert True is receipt.duplicate  # type: ignore[union-attr]
        world.run()
        assert [["o-1", 3]] == world.outputs()


def test_equal_json_is_an_equal_input_whatever_its_spacing_and_order():
    codec = runtime_codec()
    one = json_input(codec, "a", "k", "order.asked", '{"order":"o","cents":1}', "x")
    other = json_input(codec, "a", "k", "order.asked", b' { "cents" : 1 , "order" : "o" } ', "x")
    assert one == other


def test_json_given_without_the_app_is_read_when_it_is_handled():
    with World(code) as world:
        good = plain_json(None, "a", "k", "order.asked", '{"order": "o-1"}', "x")
        bad = plain_json(None, "a", "k", "order.asked", '{"order": 1}', "y")
        unknown = plain_json(None, "a", "k", "no.such", "{}", "z")
        deliver(world.log, [good, bad, unknown], ["x", "y", "z"])
        world.log.schedule.wake("turn", "a-k", world.clock())
        world.run()
        assert [["o-1", 0]] == world.outputs()
        assert ["InputRefused"] * 2 == [failure.type for failure in world.failures()]
        assert "input 'y' (order.asked) cannot be read" in world.failures()[0].message


@pytest.mark.parametrize("payload", ["text", 7, None, [1, {"a": b"x"}], {"k": 1.5}])
def test_a_plain_value_comes_as_it_was_sent(payload):
    with World(anything) as world:
        send(world.app, world.log, Input("a", "k", payload, "x"))
        world.run()
        assert [payload] == world.outputs()


@pytest.mark.parametrize("text", ["", "{", "nul", "\ud800", b"\xff", '{"order": 1}', '{"cents": 1}', "[1]"], ids=ascii)
def test_json_that_does_not_fit_is_refused_at_the_door_and_shown(text):
    with World(code) as world, pytest.raises(InputRefused, match="payload of input 'x'"):
        checked_json(world.app, "a", "k", "order.asked", text, "x")


def test_json_nested_without_end_is_refused():
    with World(anything) as world, pytest.raises(InputRefused):
        checked_json(world.app, "a", "k", "", "[" * 100_000 + "]" * 100_000, "x")


def test_a_door_with_the_app_knows_its_agents_types_and_what_they_take():
    with World(code) as world:
        with pytest.raises(DefinitionError, match="no agent 'b'; it has: a"):
            checked_json(world.app, "b", "k", "", "1", "x")
        with pytest.raises(InputRefused, match=r"no event type 'no.such'; it has: order.asked, order.paid"):
            checked_json(world.app, "a", "k", "no.such", "1", "x")
        for refused in (lambda: checked_json(world.app, "a", "k", "", "1", "x"), lambda: checked_input(world.app, Input("a", "k", 1, "x"))):
            with pytest.raises(InputRefused, match=r"agent a takes order\.asked"):
                refused()


@pytest.mark.parametrize("input_id", ["", " \n", "x" * 513, "é" * 257, None, 7, b"x"], ids=ascii)
def test_an_id_that_is_none_is_refused_at_every_door(input_id):
    with World(anything) as world:
        for door in (
            lambda: check_input_id(input_id),
            lambda: typed_input(world.app, Input("a", "k", 1, input_id)),
            lambda: json_input(world.app.codec, "a", "k", "", "1", input_id),
        ):
            with pytest.raises(InputRefused, match="Invalid input id"):
                door()


@pytest.mark.parametrize("input_id", ["x", "x" * 512, "\x00", "Straße", "delivery 7"], ids=ascii)
def test_any_other_text_is_an_id(input_id):
    assert input_id == check_input_id(input_id)


def test_ids_that_differ_in_case_or_blanks_are_different_inputs():
    with World(anything) as world:
        for input_id in ("x", "X", "x ", " x"):
            world.send(1, id=input_id)
        world.run()
        assert 4 == len(world.outputs())


def test_a_payload_that_cannot_be_recorded_is_refused_at_the_door():
    with World(anything) as world:
        with pytest.raises(Unencodable):
            world.send(object())
        assert 0 == world.log.last_position()


def test_an_input_stands_on_its_stream_under_its_own_correlation():
    with World(anything) as world:
        world.send("hello", id="x")
        (stored,) = world.log.read("a-k")
        assert stored.event_id == stored.correlation
        assert isinstance(world.facts()[0], facts.InputReceived)
