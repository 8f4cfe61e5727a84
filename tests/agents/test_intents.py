from __future__ import annotations

import uuid

from hypothesis import given
from hypothesis import strategies as st

from intentlog.agents.intents import NAMESPACE, content_digest, fact_id, input_event_id, intent_id_for, keyed_intent_id

TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(TEXT, st.integers(0, 2**40), st.integers(0, 2**40))
def test_an_intent_id_is_what_the_uuid_module_makes_of_the_same_name(stream, seq, step):
    assert str(uuid.uuid5(NAMESPACE, f"{stream}|{seq}|{step}")) == intent_id_for(stream, seq, step)


@given(TEXT, TEXT, TEXT)
def test_a_keyed_intent_id_is_what_the_uuid_module_makes_of_the_same_name(stream, tool, key):
    assert str(uuid.uuid5(NAMESPACE, f"{stream}|{tool}|{key}")) == keyed_intent_id(stream, tool, key)


def test_the_namespace_never_changes():
    assert "4b5f2c0e-8f0b-5b0a-9d5e-6f2c6a1e9b77" == str(NAMESPACE)
    assert "25ddf24b-d820-53e2-acac-e3a9906b9fd8" == intent_id_for("accounts-acct-42", 0, 1)


def test_a_digest_tells_where_the_name_ends():
    assert content_digest("ab", b"c") != content_digest("a", b"bc")
    assert content_digest("a", b"1:b") != content_digest("a1", b":b")
    assert 32 == len(content_digest("", b""))


def test_event_ids_are_16_bytes_made_of_what_they_are_about():
    assert 16 == len(input_event_id("in-1")) == len(fact_id("settled", "i"))
    assert input_event_id("in-1") == input_event_id("in-1") != input_event_id("in-2")
    assert fact_id("settled", "i") != fact_id("redriven", "i")
