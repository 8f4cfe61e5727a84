"""What cannot be taken, or is not authentic: set aside with its bytes, and nothing else is done about it."""

from __future__ import annotations

import asyncio
from typing import Any

import attrs
import pytest

from intentlog.agents import facts
from intentlog.agents.signing import KeyRing, Verifier
from intentlog.effector.bus import MemoryBroker, MessageTooLarge, Outgoing, wire
from intentlog.eventlog.clock import SECOND, system_clock
from tests.effector.bus.scene import CODEC, HOUR, Scene, encoded, intent, question, staged, until
from tests.effector.bus.test_wire import BAD, NEWER

KEYS = KeyRing({"may": b"m" * 32})
OTHERS = KeyRing({"may": b"o" * 32})
REQUIRE = Verifier("require", KEYS)


@pytest.fixture
def scene() -> Scene:
    return Scene(partitions=1)


@pytest.mark.parametrize("case", [*BAD, *NEWER])
def test_what_is_no_intent_is_a_dead_letter_with_its_raw_bytes_and_the_next_message_goes_on(scene: Scene, case: str):
    """Show 3: undecodable, truncated, oversized."""
    bad = {**BAD, **NEWER}[case]
    scene.publish(Outgoing(bad.key, bad.value, {"from": b"somebody"}))
    good = scene.stage("k")
    scene.serve()
    (letter,) = scene.dead()
    assert (bad.key, bad.value, b"somebody") == (letter.key, letter.value, letter.headers["from"])
    assert (b"NewerMessage" if case in NEWER else b"BadMessage", b"0", b"0") == tuple(
        letter.headers[f"dead-letter-{name}"] for name in ("kind", "partition", "offset")
    )
    assert letter.headers["dead-letter-reason"]
    assert ({good: "OK"}, ["claimed"]) == (scene.statuses(), [each for each in scene.boundaries if each == "claimed"])


def test_while_the_sink_of_dead_letters_is_down_nothing_is_acknowledged_and_other_keys_go_on(scene: Scene):
    scene.down.add("dead")
    scene.publish(Outgoing("a-bad", b"junk"))
    good = scene.stage("k")

    async def run() -> None:
        async with scene.serving():
            await until(lambda: scene.heard.failures.count(("dead letters", "BusUnavailable")) >= 2)
            await until(lambda: scene.statuses() == {good: "OK"})
            assert ({}, []) == (scene.broker.acknowledged("intents", "g"), scene.dead())
            scene.down.clear()
            await until(scene.done)

    asyncio.run(run())
    assert [b"junk"] == [each.value for each in scene.dead()]


def test_a_dead_letter_that_its_sink_does_not_take_whole_is_cut_short_and_says_so(scene: Scene):
    scene.publish(Outgoing("a-bad", b"x" * 300_000))
    scene.broker.most_bytes = 100_000
    scene.serve()
    (letter,) = scene.dead()
    assert (b"x" * 50_000, b"300000") == (letter.value, letter.headers["dead-letter-bytes"])


def forged() -> Outgoing:
    return staged(keys=OTHERS)[1]


def of_another_stream() -> Outgoing:
    """A good signature, moved to another stream with all that it stands in."""
    envelope = wire.read_envelope(CODEC, staged(keys=KEYS)[1].value)
    return Outgoing("a-thief", CODEC.encode_value(attrs.evolve(envelope, stream="a-thief"), wire.Envelope))


def altered() -> Outgoing:
    envelope = wire.read_envelope(CODEC, staged(keys=KEYS)[1].value)
    fact = CODEC.decode(envelope.type, envelope.schema, envelope.payload)
    _, _, payload = CODEC.encode(attrs.evolve(fact, args={"name": "more"}))
    return Outgoing("a-k", CODEC.encode_value(attrs.evolve(envelope, payload=payload), wire.Envelope))


def unsigned_question() -> Outgoing:
    return encoded(question(), "a-k")


UNTRUE = {
    "unsigned": lambda: staged()[1],
    "forged": forged,
    "a signature of another stream": of_another_stream,
    "altered": altered,
    "expired and unsigned": lambda: staged(ttl=-SECOND)[1],
    "an unsigned question": unsigned_question,
}


@pytest.mark.parametrize("case", UNTRUE)
def test_what_is_not_authentic_drives_nothing_at_all(scene: Scene, case: str):
    """Show 3, forged: no claim, no attempt, no outcome, not even EXPIRED."""
    message = UNTRUE[case]()
    scene.publish(message)
    scene.serve(scene.effector(verifier=REQUIRE))
    (letter,) = scene.dead()
    assert (message.key, message.value, b"Distrusted") == (letter.key, letter.value, letter.headers["dead-letter-kind"])
    assert ([], [], [], []) == (scene.begun, scene.results(), scene.broker.messages("approvals"), scene.store.asked)


def test_a_signed_intent_that_is_replayed_after_its_outcome_is_carried_out_once(scene: Scene):
    """Show 3, replayed signature: the same bytes on their own stream have their outcome already."""
    name, message = staged(keys=KEYS)
    scene.publish(message)
    scene.serve(scene.effector(verifier=REQUIRE))
    scene.publish(message, message)
    scene.serve(scene.effector(verifier=REQUIRE))
    assert ({name: "OK"}, ["x"], 3, []) == (scene.statuses(), scene.begun, len(scene.results()), scene.dead())


def test_permissive_takes_what_is_unsigned_and_refuses_what_is_forged(scene: Scene):
    name, message = staged()
    scene.publish(message, forged())
    scene.serve(scene.effector(verifier=Verifier("permissive", KEYS)))
    assert ({name: "OK"}, 1) == (scene.statuses(), len(scene.dead()))


def test_another_intent_under_an_id_that_has_its_outcome_gets_nobody_elses_answer(scene: Scene):
    name, message = staged("k", named="order 7", name="first")
    scene.publish(message)
    same, other = staged("k", named="order 7", name="second")
    scene.publish(other)
    scene.serve()
    assert (["first"], {name: "OK"}, 1, name) == (scene.begun, scene.statuses(), len(scene.results()), same)
    assert [b"IntentConflict"] == [each.headers["dead-letter-kind"] for each in scene.dead()]


ONE = intent("a-k", "work", {"name": "x"}, system_clock() + HOUR, seq=3, step=5)
KEYED = intent("a-k", "work", {"name": "x"}, system_clock() + HOUR, seq=3, step=5, key="order 7")
ASKED = question(details={"cents": 1}, ttl=HOUR)
DAMAGED: dict[str, tuple[Any, dict[str, Any]]] = {
    "an argument": (ONE, {"args": {"name": "y"}}),
    "the tool": (ONE, {"tool": "push"}),
    "the digest": (ONE, {"digest": b"d" * 32}),
    "no digest": (ONE, {"digest": b""}),
    "the id": (ONE, {"intent_id": ONE.intent_id[:-1] + "x"}),
    "the turn": (ONE, {"seq": 4}),
    "the step": (ONE, {"step": 6}),
    "the business key": (KEYED, {"key": "order 8"}),
    "a business key out of nowhere": (ONE, {"key": "order 7"}),
    "no business key": (KEYED, {"key": ""}),
    "what is asked": (ASKED, {"details": {"cents": 2}}),
    "the id of a question": (ASKED, {"approval_id": "approval-0-1"}),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_intent_is_a_dead_letter_with_its_raw_bytes_and_the_genuine_one_is_carried_out(scene: Scene, case: str):
    genuine, changes = DAMAGED[case]
    bad, good = encoded(attrs.evolve(genuine, **changes), "a-k"), encoded(genuine, "a-k")
    scene.publish(bad, good)
    scene.serve()
    (letter,) = scene.dead()
    assert (bad.key, bad.value, b"BadMessage") == (letter.key, letter.value, letter.headers["dead-letter-kind"])
    assert b"it is damaged: its " in letter.headers["dead-letter-reason"]
    if isinstance(genuine, facts.IntentStaged):
        assert (["x"], {genuine.intent_id: "OK"}) == (scene.begun, scene.statuses())
    else:
        assert [good.value] == [each.value for each in scene.broker.messages("approvals")]


def test_whichever_bit_of_a_message_flips_it_drives_nothing(scene: Scene):
    """Deadline, event id, schema and correlation too: the header is of all bytes."""
    genuine = encoded(ONE, "a-k")
    for place in range(len(genuine.value)):
        value = bytearray(genuine.value)
        value[place] ^= 1 << place % 8
        scene.publish(attrs.evolve(genuine, value=bytes(value)))
    scene.publish(genuine)
    scene.serve()
    assert (["x"], {ONE.intent_id: "OK"}, len(genuine.value)) == (scene.begun, scene.statuses(), len(scene.dead()))


def test_a_message_without_the_header_is_an_intent_when_all_of_it_fits(scene: Scene):
    scene.publish(attrs.evolve(encoded(ONE, "a-k"), headers={}))
    scene.publish(attrs.evolve(encoded(KEYED, "a-k"), headers={}))
    scene.serve()
    assert ({ONE.intent_id: "OK", KEYED.intent_id: "OK"}, []) == (scene.statuses(), scene.dead())


def test_outcomes_are_signed_where_there_are_keys(scene: Scene):
    scene.stage("k")
    scene.serve(scene.effector(keys=KEYS))
    envelope, _ = wire.decode_result(CODEC, scene.broker.messages("results")[0].value)
    assert (None, True) == (wire.verify_result(KEYS, envelope), bool(wire.verify_result(OTHERS, envelope)))


def test_where_the_sink_takes_not_even_that_an_outcome_is_too_large_the_intent_is_a_dead_letter(scene: Scene, monkeypatch):
    publish = MemoryBroker.publish

    def refuses(self, topic, messages):
        if topic == "results":
            raise MessageTooLarge("nothing fits")
        publish(self, topic, messages)

    monkeypatch.setattr(MemoryBroker, "publish", refuses)
    name, message = staged()
    scene.publish(message)
    scene.serve()
    (letter,) = scene.dead()
    assert (message.value, b"MessageTooLarge", ["x"]) == (letter.value, letter.headers["dead-letter-kind"], scene.begun)
    assert "OK" == scene.store.look(name, now=system_clock()).status  # type: ignore[union-attr]
