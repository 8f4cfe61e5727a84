from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intentlog.agents import facts
from intentlog.agents.app import runtime_codec
from intentlog.agents.intents import readmission_event_id
from intentlog.agents.signing import Signature
from intentlog.effector.outbox import Outbox
from intentlog.effector.tailing import take_in
from intentlog.eventlog.events import StoredEvent

CODEC = runtime_codec()


def stored(position: int, fact: Any, stream: str = "a-k") -> StoredEvent:
    kind, schema, blob = CODEC.encode(fact)
    return StoredEvent(position, stream, position, position.to_bytes(16, "big"), kind, schema, blob, 0, b"c", None)


def staged(intent: str) -> facts.IntentStaged:
    return facts.IntentStaged(intent, 0, 0, "pay", {}, b"", 9)


def settled(intent: str) -> facts.IntentSettled:
    return facts.IntentSettled(intent, "OK")


def outbox(*events: StoredEvent, after: int = 0) -> Outbox:
    made = Outbox(CODEC, after)
    for each in events:
        made.take(each)
    return made


def test_an_empty_outbox_has_come_as_far_as_it_has_read():
    made = outbox(after=7)
    assert (0, [], 7, None) == (len(made), made.streams(), made.low_water, made.first("a-k"))


def test_intents_of_a_stream_stand_in_the_order_they_were_staged():
    made = outbox(stored(1, staged("x")), stored(2, staged("y")), stored(3, staged("z"), "a-l"))
    assert ["a-k", "a-l"] == made.streams()
    assert "x" == made.first("a-k").intent.intent_id  # type: ignore[union-attr]
    made.settled("a-k", "x")
    assert "y" == made.first("a-k").intent.intent_id  # type: ignore[union-attr]
    made.settled("a-k", "y")
    assert (["a-l"], None) == (made.streams(), made.first("a-k"))


def test_the_low_water_stands_before_the_oldest_open_intent():
    made = outbox(stored(1, staged("x")), stored(5, staged("y")), stored(8, settled("y")))
    assert (0, 8) == (made.low_water, made.cursor)
    made.take(stored(9, settled("x")))
    assert (9, 0) == (made.low_water, len(made))


def test_an_outcome_told_twice_or_of_an_intent_from_before_changes_nothing():
    made = outbox(stored(1, staged("x")), stored(2, settled("x")), stored(3, settled("x")), stored(4, settled("from before")))
    made.settled("a-k", "x")
    assert (0, 4) == (len(made), made.low_water)


def test_attempts_are_counted_by_their_number():
    made = outbox(
        stored(1, staged("x")), *(stored(n, facts.IntentAttempted("x", n - 1, "e", n)) for n in (2, 3)), stored(4, facts.IntentAttempted("gone", 1, "e", 1))
    )
    assert 2 == made.first("a-k").attempts  # type: ignore[union-attr]


def test_an_event_that_cannot_be_read_blocks_its_stream_alone():
    damaged = stored(3, staged("y"))._replace(data=b"\xc1")
    newer = stored(4, staged("z"), "a-m")._replace(schema=99)
    made = outbox(stored(1, staged("x")), stored(2, staged("w"), "a-l"), damaged, newer)
    assert (["a-l"], None, {"a-k", "a-m"}) == (made.streams(), made.first("a-k"), set(made.blocked))
    assert "a-m version 4" in made.blocked["a-m"]


def test_no_checkpoint_passes_an_event_that_cannot_be_read():
    """Code that reads it, started later, reads it then: an intent that this code cannot read is not lost."""
    newer = stored(2, staged("y"), "a-m")._replace(schema=99)
    made = outbox(stored(1, staged("x")), newer, stored(3, staged("z"), "a-l"), stored(4, settled("x")), stored(5, settled("z"), "a-l"))
    assert (1, 5, 0) == (made.low_water, made.cursor, len(made))
    made.take(stored(6, staged("v"), "a-n")._replace(data=b""))
    assert (1, {"a-m", "a-n"}) == (made.low_water, set(made.blocked))


@pytest.mark.parametrize("fact", [facts.IntentAttempted("x", 1, "e", 1), settled("x"), facts.IntentDistrusted("x", "", "e", 1, b"")])
def test_what_a_stream_tells_ahead_of_the_tail_and_cannot_be_read_stops_it_as_well(fact):
    made = outbox(stored(1, staged("x")))
    ahead = stored(2, fact)._replace(position=0, data=b"\xc1")
    made.learn("a-k", [(ahead, made.read(ahead))])
    assert (["a-k"], None, 0) == (list(made.blocked), made.first("a-k"), made.low_water)


def test_a_readmission_of_what_newer_code_staged_is_left_to_that_code():
    fact = facts.IntentReadmitted("x", 1, "ada", "why", 0, 99, b"newer", "k", b"s")
    made = outbox(stored(4, fact)._replace(event_id=readmission_event_id("a-k", "x", 1)))
    assert (["a-k"], 3) == (list(made.blocked), made.low_water)


def test_a_damaged_signature_is_none_and_only_that_of_the_intent_in_front_of_it():
    signed = stored(2, facts.IntentSigned("x", "k", b"s"))._replace(data=b"\xc1garbage")
    again = stored(4, facts.IntentSigned("x", "k", b"s"))
    made = outbox(stored(1, staged("x")), signed, stored(3, staged("y")), again)
    first = made.first("a-k")
    assert first is not None
    assert ({}, Signature("", b"\xc1garbage")) == (made.blocked, first.signature)
    assert "a-k version 2: intent.signed" in first.unsigned
    made.settled("a-k", "x")
    second = made.first("a-k")
    assert second is not None
    assert (None, "") == (second.signature, second.unsigned)


def test_a_signature_of_a_newer_schema_is_left_to_the_code_that_can_read_it():
    made = outbox(stored(1, staged("x")), stored(2, facts.IntentSigned("x", "k", b"s"))._replace(schema=2))
    assert (["a-k"], None) == (list(made.blocked), made.first("a-k"))


def test_an_intent_comes_from_the_tail_together_with_its_signature_whatever_the_helping():
    class Fold:
        cursor = 0
        given: list[str] = []

        def take(self, event: StoredEvent, fact: Any) -> None:
            self.cursor = event.position
            self.given.append(event.type)

    class Tail:
        """Tells how much was given before each helping."""

        before: list[int] = []

        def last_position(self) -> int:
            return 6

        def read_all(self, *, after: int, limit: int, **_: Any) -> list[StoredEvent]:
            self.before.append(len(fold.given))
            pairs = [each for n in (1, 3, 5) for each in (stored(n, staged(str(n))), stored(n + 1, facts.IntentSigned(str(n), "k", b"s")))]
            return [each for each in pairs if each.position > after][:limit]

    fold, tail = Fold(), Tail()
    asyncio.run(take_in(tail, fold, lambda event: None, (), (), 3))  # type: ignore[arg-type]
    assert (["intent.staged", "intent.signed"] * 3, [0, 2, 4, 6]) == (fold.given, sorted(set(tail.before) | {6}))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("123456"), st.booleans()), max_size=40))
def test_after_any_history_it_holds_exactly_what_is_open(history):
    seen: dict[str, str] = {}
    events, gone = [], set()
    for position, (key, intent, ends) in enumerate(history, 1):
        if ends and intent in seen and intent not in gone:
            gone.add(intent)
            events.append(stored(position, settled(intent), seen[intent]))
        elif intent not in seen:
            seen[intent] = f"a-{key}"
            events.append(stored(position, staged(intent), f"a-{key}"))
    made = outbox(*events)
    assert set(seen) - gone == {pending for stream in made.streams() for pending in made._lanes[stream]}
    assert len(seen) - len(gone) == len(made)
    assert all(event.position > made.low_water for event in events if event.type == "intent.staged" and CODEC.decode_stored(event).intent_id not in gone)


def test_what_is_staged_again_under_an_id_that_is_open_is_passed_over():
    made = outbox(stored(1, staged("x")), stored(2, staged("x")), stored(3, staged("x"), "a-other"))
    assert (2, 0) == (len(made), made.low_water)
    made.settled("a-other", "x")
    made.settled("a-k", "x")
    assert (0, 3, None) == (len(made), made.low_water, made.first("a-k"))
