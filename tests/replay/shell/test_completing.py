"""How a line may go on."""

from __future__ import annotations

import pytest

from intentlog.replay.shell.completing import complete
from tests.replay.shell.conftest import session_over
from tests.replay.world import STREAM


def ways(session, text):
    return [text[: len(text) - each.replaces] + each.text for each in complete(session, text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("unt", ["until"]),
        ("open accounts-acct-4", ["open accounts-acct-42", "open accounts-acct-43"]),
        ("show accounts-acct-42", ["show accounts-acct-42"]),
        ("next intent.se", ["next intent.settled"]),
        ("next RefundP", ["next RefundPaid"]),
        ("watch ref", ["watch refunded_cents"]),
        ("st run.int", ["st run.intents"]),
        ("until st.ref", ["until st.refunded_cents"]),
        ("until not st.ord", ["until not st.orders"]),
        ("back until st.ord", ["back until st.orders"]),
        ("break 3 < st.ref", ["break 3 < st.refunded_cents"]),
        ("goto en", ["goto end"]),
        ("help unt", ["help until"]),
        ("st.refu", ["st.refunded_cents"]),
        ("len(st.ord", ["len(st.orders"]),
        ("ev.recei", ["ev.receipt"]),
        ("prev.ord", ["prev.orders"]),
    ],
)
def test_a_line_goes_on(session, text, expected):
    session.open(STREAM, 9)
    assert expected == ways(session, text)


def test_every_command_is_offered_with_what_it_does(session):
    found = {each.text: each.says for each in complete(session, "")}
    assert ("one event on, N, or to the next of a type", True) == (found["next"], set(session.commands) <= set(found))


def test_files_are_offered_for_load(session, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "account.py").write_text("")
    assert ["load account.py"] == ways(session, "load acc")


@pytest.mark.parametrize("text", ["until st.", "st.", "st.refunded_cents.", "next x", "open ", "nope.", "st[0].", "watch [", "'", "until ("])
def test_nothing_spoils_the_line(session, recorded, app, text):
    assert isinstance(ways(session, text), list)
    assert isinstance(ways(session_over(recorded, app), text), list)
