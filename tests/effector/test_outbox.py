from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from intentlog.agents import facts
from intentlog.agents.app import runtime_codec
from intentlog.effector.outbox import Outbox
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
