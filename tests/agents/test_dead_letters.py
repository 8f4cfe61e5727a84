from __future__ import annotations

import pytest

from intentlog.agents.dead_letters import BlockedStream, ParkedInput, dead_letters, opened, redrive
from intentlog.agents.errors import InputRefused
from intentlog.eventlog.codec import Codec
from intentlog.eventlog.registry import EventRegistry, event
from tests.agents.world import STREAM, Asked, Ctx, World


async def picky(ctx: Ctx) -> object:
    if ctx.input in ("bad", "worse"):
        raise ValueError(f"{ctx.input} it is")
    return ctx.input


def sick() -> World:
    world = World(picky)
    for payload in ("bad", "good", "worse"):
        world.send(payload)
    for _ in range(8):
        world.later(10)
    return world


def test_an_empty_log_has_none():
    with World(picky) as world:
        assert [] == dead_letters(world.log)
        with pytest.raises(InputRefused, match=r"a-k has no parked input\. See what is: eventlog dead-letters list"):
            redrive(world.log, STREAM, by="me")


def test_a_parked_input_tells_what_happened_to_it():
    with sick() as world:
        one, other = dead_letters(world.log)
        assert isinstance(one, ParkedInput)
        assert isinstance(other, ParkedInput)
        assert [(0, "in-1", 3, "bad it is"), (2, "in-3", 3, "worse it is")] == [
            (each.seq, each.input_id, each.attempts, each.failure.message) for each in (one, other)
        ]
        letter = opened(world.log, STREAM, 2)
        assert ("worse", "", [1, 2, 3]) == (letter.payload, letter.type, [each.attempt for each in letter.failures])
        assert ["good"] == world.outputs()


def test_one_of_several_has_to_be_named_to_be_opened():
    with sick() as world:
        with pytest.raises(InputRefused, match="2 parked inputs; say which one with --seq: 0, 2"):
            opened(world.log, STREAM)
        with pytest.raises(InputRefused, match=r"no parked input 1\. Parked there: 0, 2"):
            redrive(world.log, STREAM, 1, by="me")


def test_a_redriven_input_is_no_dead_letter_until_it_fails_again():
    with sick() as world:
        assert ((2, "in-3"),) == redrive(world.log, STREAM, 2, by="me").inputs
        assert [0] == [each.seq for each in dead_letters(world.log) if isinstance(each, ParkedInput)]
        for _ in range(4):
            world.later(10)
        assert [0, 2] == [each.seq for each in dead_letters(world.log) if isinstance(each, ParkedInput)]
        assert 3 == len(opened(world.log, STREAM, 2).failures)


def test_redriving_all_keeps_their_order():
    with sick() as world:
        world.deploy(lambda_of("healed"))
        redrive(world.log, STREAM, by="me", reason="repaired")
        world.run()
        assert (["good", "healed bad", "healed worse"], []) == (world.outputs(), dead_letters(world.log))


def lambda_of(word: str):
    async def code(ctx: Ctx) -> object:
        return f"{word} {ctx.input}"

    return code


def test_somebody_who_redrives_what_was_just_redriven_is_told_so():
    with sick() as world:
        redrive(world.log, STREAM, by="me")
        with pytest.raises(InputRefused, match="no parked input"):
            redrive(world.log, STREAM, by="you")
        assert 2 == world.types().count("input.redriven")


def test_a_typed_payload_is_shown_without_its_class():
    async def failing(ctx: Ctx, asked: Asked) -> None:
        raise ValueError

    with World(failing) as world:
        world.send(Asked("o-1", 3))
        for _ in range(3):
            world.later(10)
        letter = opened(world.log, STREAM)
        assert ("order.asked", {"order": "o-1", "cents": 3}) == (letter.type, letter.payload)


def test_a_blocked_stream_is_a_dead_letter_too():
    @event("never.heard.of")
    class Stranger:
        x: int

    with World(picky) as world:
        world.append(Stranger(1), codec=Codec(EventRegistry(Stranger)))
        world.send("good")
        world.run()
        (letter,) = dead_letters(world.log)
        assert isinstance(letter, BlockedStream)
        assert (STREAM, 0, "UnknownEventType") == (letter.stream, letter.at_version, letter.failure.type)
        with pytest.raises(InputRefused, match=r"no parked input 0\. There is: the stream itself, blocked: without --seq\."):
            redrive(world.log, STREAM, 0, by="me")
        assert redrive(world.log, STREAM, by="me").woken
