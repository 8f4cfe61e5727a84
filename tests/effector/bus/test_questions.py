"""Approvals on their way to people: published as they came, once, and never after their deadline."""

from __future__ import annotations

import asyncio

import pytest

from intentlog.agents.signing import KeyRing, Verifier
from intentlog.effector.bus import wire
from intentlog.eventlog.clock import system_clock
from tests.effector.bus.scene import CODEC, Scene, encoded, question, until


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_question_is_published_as_it_came_and_once(scene: Scene):
    asked = question(details={"cents": 1})
    message = encoded(asked, "a-k")
    scene.publish(message, message, message)
    scene.serve()
    (published,) = scene.broker.messages("approvals")
    assert (message.key, message.value, message.headers) == (published.key, published.value, published.headers)
    name = wire.question_name(wire.decode_intent(CODEC, published))  # type: ignore[arg-type]
    assert ([], [], "ASKED") == (scene.results(), scene.begun, scene.store.look(name, now=system_clock()).status)  # type: ignore[union-attr]


def test_questions_of_the_same_place_on_two_streams_are_both_asked(scene: Scene):
    scene.publish(encoded(question(), "a-k"), encoded(question(), "a-other"))
    scene.serve()
    assert ["a-k", "a-other"] == sorted(str(each.key) for each in scene.broker.messages("approvals"))


def test_a_question_past_its_deadline_is_asked_of_nobody(scene: Scene):
    scene.publish(encoded(question(ttl=-1), "a-k"))
    scene.serve()
    assert ([], [], []) == (scene.broker.messages("approvals"), scene.results(), scene.dead())


def test_while_nobody_takes_questions_they_wait_and_nothing_else_does(scene: Scene):
    scene.partitions = 1
    scene.down.add("approvals")
    scene.publish(encoded(question(), "a-k"))
    scene.stage("other")

    async def run() -> None:
        async with scene.serving():
            await until(lambda: scene.heard.failures.count(("approvals", "BusUnavailable")) >= 2)
            assert (1, {}) == (len(scene.results()), scene.broker.acknowledged("intents", "g"))
            scene.down.clear()
            await until(scene.done)

    asyncio.run(run())
    assert 1 == len(scene.broker.messages("approvals"))


def test_a_signed_question_is_asked_where_signatures_are_required(scene: Scene):
    keys = KeyRing({"may": b"m" * 32})
    asked = question()
    scene.publish(encoded(asked, "a-k", keys))
    scene.serve(scene.effector(verifier=Verifier("require", keys)))
    assert (1, []) == (len(scene.broker.messages("approvals")), scene.dead())


def test_a_question_that_its_sink_does_not_take_is_a_dead_letter_and_its_key_goes_on(scene: Scene):
    asked = question("Pay?" * 1000)
    scene.publish(encoded(asked, "a-k"))
    name = scene.stage("k")
    scene.broker.most_bytes = 3_000
    scene.serve()
    assert ([b"MessageTooLarge"], {name: "OK"}) == ([each.headers["dead-letter-kind"] for each in scene.dead()], scene.statuses())
