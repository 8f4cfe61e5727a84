"""``trace``, ``search`` and the figures of a range, as a person meets them on each store."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import call


@pytest.fixture
def sold(elsewhere: str) -> str:
    """Two orders, one of them shipped, the other given up."""
    call("send", "orders", "bob", "order.placed", '{"order_id": "o-1"}', "--id", "order-o-1", "--app", "shop:app")
    call("send", "orders", "eve", "order.placed", '{"order_id": "o-2", "mood": "angry"}', "--id", "order-o-2", "--app", "shop:app")
    assert 0 == call("run", "shop:app", "--until-idle").exit_code
    return elsewhere


def lines(*words: str) -> list[dict]:
    done = call(*words, "--json")
    assert 0 == done.exit_code, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_trace_is_drawn_as_a_tree_and_marks_what_was_asked_for(sold):
    settled = next(each for each in lines("search", "--type", "intent.settled"))
    drawn = call("trace", settled["event_id"]).stdout.splitlines()
    assert [6, True, True] == [len(drawn[1:]), drawn[1].endswith("(order-o-1)"), drawn[2][14:].startswith("├─ 1 IntentStaged")]
    (marked,) = [line for line in drawn if line.endswith("◀")]
    assert (True, "│  └─ 4 IntentSettled") == ("shipped o-1" in marked, marked[14:35])


def test_a_trace_as_json_is_a_line_an_event_with_its_parent(sold):
    found = lines("trace", "order-o-1")
    assert [None, 0, 1, 1] == [each["parent"] for each in found[:4]]
    assert (["orders-bob"] * len(found), [True] + [False] * 5) == ([each["stream"] for each in found], [each["asked"] for each in found])


def test_an_id_that_is_nowhere_is_told(sold):
    done = call("trace", "order-o-9")
    assert (3, "", True) == (done.exit_code, done.stdout, "has no input 'order-o-9'" in done.stderr)


def test_a_search_shows_where_the_text_stands(sold):
    (found,) = call("search", "shipped o-1", "--type", "intent.settled").stdout.splitlines()
    assert "orders-bob 4  intent.settled  value: shipped o-1" == found[25:]
    assert [("orders-eve", 0)] == [(each["stream"], each["version"]) for each in lines("search", "--field", "payload.mood=angry", "--key", "e*")]
    assert [] == lines("search", "angry", "--key", "bob")


def test_a_search_ends_with_its_limit_and_says_so(sold):
    done = call("search", "o-", "--limit", "2")
    assert (0, 2, True) == (done.exit_code, len(done.stdout.splitlines()), "There are more" in done.stderr)


@pytest.mark.parametrize(
    "words", [("search",), ("search", "--field", "args"), ("search", "--field", "a[=1"), ("search", "--since", "soon"), ("stats", "--until", "later")]
)
def test_what_cannot_be_looked_for_is_a_usage_error(sold, words):
    done = call(*words)
    assert (2, "") == (done.exit_code, done.stdout), done.output


def test_figures_of_a_range_count_what_is_in_it(sold):
    everything = json.loads(call("stats", "--events", "--json").stdout)
    assert everything["events"] == everything["range"]["events"] == sum(each["events"] for each in everything["range"]["types"])
    position = lines("search", "order-o-2", "--type", "input.received")[0]["position"]
    later = json.loads(call("stats", "--since", f"@{position}", "--json").stdout)["range"]["events"]
    assert 0 < later < everything["events"]
    assert 0 == json.loads(call("stats", "--until", "2000-01-01", "--json").stdout)["range"]["events"]
    shown = call("stats", "--since", "1h").stdout
    assert "bytes of payload, recorded from" in shown
    assert "intent.staged" in shown
