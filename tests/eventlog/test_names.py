"""Keys, agents and streams: one grammar, one error, nothing replaced (S-1.1, S-1.2)."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intentlog.eventlog.errors import InvalidName, TerminalError
from intentlog.eventlog.names import MAX_KEY_BYTES, category_of, check_agent, check_key, check_stream, split_stream, stream_name
from intentlog.eventlog.testing import StoreMaker
from intentlog.eventlog.testing.maker import event, fresh

BAD_KEYS = {
    "empty": "",
    "a blank": " ",
    "blanks": " \u00a0\u3000",
    "NUL": "a\x00b",
    "a line feed": "a\n",
    "a C1 control": "a\x85",
    "10,000 characters": "k" * 10_000,
    "513 bytes": "k" * 513,
    "513 bytes in 171 characters": "日" * 171,
    "decomposed": "e\u0301",
    "the Angstrom sign": "\u212b",
    "a lone surrogate": "a\ud800",
}


@pytest.mark.parametrize("key", BAD_KEYS.values(), ids=BAD_KEYS.keys())
def test_a_bad_key_is_refused_and_shown(key):
    with pytest.raises(InvalidName) as refused:
        check_key(key)
    assert repr(key)[:20].rstrip("'") in str(refused.value)
    assert len(str(refused.value)) < 500
    with pytest.raises(InvalidName):
        stream_name("agent", key)
    with pytest.raises(InvalidName):
        check_stream(f"agent-{key}")


@pytest.mark.parametrize("key", [None, 7, b"bytes", ["a"]], ids=repr)
def test_a_key_that_is_no_string_is_refused(key):
    with pytest.raises(InvalidName) as refused:
        check_key(key)
    assert type(key).__name__ in str(refused.value)


@pytest.mark.parametrize("key", ["a", "-", "a-b", "k" * MAX_KEY_BYTES, "日" * 170, "\u00e9", " a ", "a%_b", "\U0001f600", "\u200b", "İ", "ﬁ"], ids=ascii)
def test_a_good_key_is_given_back_as_it_is(key):
    assert key == check_key(key)
    assert ("agent", key) == split_stream(stream_name("agent", key))


def test_a_key_in_another_normal_form_is_told_the_right_spelling():
    with pytest.raises(InvalidName, match="'\u00e9'"):
        check_key("e\u0301")


@given(st.text(max_size=600))
def test_a_key_is_either_kept_or_refused_by_the_stated_rule(key):
    size = len(key.encode("utf-8", "surrogatepass"))
    controls = any(unicodedata.category(char) in ("Cc", "Cs") for char in key)
    good = bool(key.strip()) and size <= MAX_KEY_BYTES and not controls and unicodedata.normalize("NFC", key) == key
    try:
        kept = check_key(key)
    except InvalidName:
        assert not good
    else:
        assert good
        assert key == kept


@given(st.text(min_size=1, max_size=40))
def test_case_and_normal_forms_are_never_folded_together(key):
    for variant in {key.upper(), key.lower(), key.casefold(), *(unicodedata.normalize(form, key) for form in ("NFC", "NFD", "NFKC", "NFKD"))}:
        try:
            assert variant == split_stream(stream_name("agent", variant))[1]
        except InvalidName:
            continue


@given(st.from_regex(r"[a-z][a-z0-9_.]*", fullmatch=True), st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=40))
def test_a_stream_is_split_where_it_was_joined(agent, text):
    key = unicodedata.normalize("NFC", f"k{text}")
    stream = stream_name(agent, key)
    assert (agent, key) == split_stream(stream)
    assert agent == category_of(stream)
    assert stream == check_stream(stream)


@pytest.mark.parametrize("name", ["", "A", "1a", "a-b", "a b", "é", "a\n", "_a", ".a", None, 3], ids=repr)
def test_a_bad_agent_is_refused_with_the_grammar(name):
    with pytest.raises(InvalidName, match=r"\[a-z\]\[a-z0-9_\.\]\*"):
        check_agent(name)


@pytest.mark.parametrize("stream", ["", "plain", "-key", "agent-", "Agent-key", None, 3], ids=repr)
def test_a_bad_stream_is_refused(stream):
    with pytest.raises(TerminalError):
        check_stream(stream)


@pytest.mark.parametrize("key", BAD_KEYS.values(), ids=BAD_KEYS.keys())
def test_the_store_is_a_door_too(maker: StoreMaker, key):
    with fresh(maker) as log:
        with pytest.raises(InvalidName):
            log.append(f"agent-{key}", [event()], -1)
        assert 0 == log.last_position()
