"""A path says which part of a state is meant, and reads the same back."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intentlog.replay.errors import BadPath
from intentlog.replay.paths import ABSENT, look, parse_path, path_text, paths_of, what_there_is
from tests.replay.world import Account

INTENT = {"tool": "refund", "args": {"cents": 42}}
TREE = {
    "state": Account(refunded_cents=7, orders=frozenset({"o-1", "o-2"})),
    "run": {"line": [3, 4], "intents": {"5f0c1e2d-1": INTENT, "77aa": INTENT, "77ab": INTENT}, "activations": {"7": {"turns": 1}}},
    "version": 9,
}

keys = st.one_of(st.text(max_size=6), st.integers(-9, 9), st.booleans(), st.none(), st.binary(max_size=3), st.tuples(st.integers(), st.text(max_size=2)))


@given(st.sampled_from(["state", "run", "version", "stream"]), st.lists(keys, max_size=4))
def test_a_path_reads_back_as_it_was_written(root, rest):
    path = (root, *rest)
    assert path == parse_path(path_text(path))


def test_a_path_into_the_aggregate_needs_no_state_before_it():
    assert ("state", "refunded_cents") == parse_path("refunded_cents") == parse_path("state.refunded_cents") == parse_path(" st.refunded_cents ")
    assert ("refunded_cents", "state.run") == (path_text(("state", "refunded_cents")), path_text(("state", "run")))


def test_keys_that_are_no_names_stand_in_brackets_or_behind_a_dot():
    assert ("state", "orders", "o-1", "cents") == parse_path("orders.o-1.cents") == parse_path("orders['o-1'].cents") == parse_path("orders[o-1].cents")
    assert ("state", "odd", "a]b.c") == parse_path("odd['a]b.c']")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it is empty"),
        ("a..b", "expected a name at character 2"),
        ("a.", "expected a name at character 2, found its end"),
        ("a b", r"expected '\.' or '\[' at character 1"),
        ("a[", "expected a key in brackets"),
        ("a['b]", "expected a key in brackets"),
        ("a" * 1001, "longer than 1000 characters"),
    ],
)
def test_what_is_no_path_is_told_with_the_place(text, said):
    with pytest.raises(BadPath, match=said):
        parse_path(text)


def test_looking_finds_fields_keys_places_and_elements():
    found = [look(TREE, parse_path(text)) for text in ("refunded_cents", "orders['o-1']", "run.line[1]", "run.line[-1]", "run.activations[7].turns", "version")]
    assert [7, "o-1", 4, 4, 1, 9] == found


@pytest.mark.parametrize("text", ["nothing", "orders['o-3']", "run.line[2]", "run.line.x", "refunded_cents.x", "run.activations[8]", "orders[[]"])
def test_where_nothing_stands_is_absent(text):
    try:
        path = parse_path(text)
    except BadPath:
        path = ("state", "orders", 3)
    assert ABSENT is look(TREE, path)


def test_an_intent_may_be_named_by_the_beginning_of_its_id_when_only_one_begins_like_that():
    found = [look(TREE, ("run", "intents", name)) for name in ("5f0c", "5f0c…", "5f0", "77aa", "77a")]
    assert [INTENT, INTENT, ABSENT, INTENT, ABSENT] == found


def test_a_field_of_an_object_is_never_taken_for_what_is_no_field():
    assert [ABSENT, ABSENT] == [look(TREE, ("state", name)) for name in ("evolve", "__class__")]


def test_paths_are_completed_by_one_key():
    assert ("refunded_cents", "run") == paths_of(TREE, "r")
    assert ("orders['o-1']", "orders['o-2']") == tuple(sorted(paths_of(TREE, "orders[")))
    assert ("run.line", "run.intents", "run.activations") == paths_of(TREE, "run.")
    assert ("run.intents['5f0c1e2d-1'].tool", "run.intents['5f0c1e2d-1'].args") == paths_of(TREE, "run.intents['5f0c1e2d-1'].")
    assert () == paths_of(TREE, "a..b.")


@given(st.text(max_size=12))
def test_completing_anything_gives_paths_that_begin_with_it(prefix):
    for text in paths_of(TREE, prefix):
        assert text.startswith(prefix)
        assert ABSENT is not look(TREE, parse_path(text))


def test_what_there_is_instead_is_named_where_a_path_leaves_the_tree():
    assert "nothing stands at refundd_cents; state has refunded_cents …" == what_there_is(TREE, ("state", "refundd_cents"))
    assert "nothing stands at run.line[9]; run.line has 0 to 1" == what_there_is(TREE, ("run", "line", 9))


def test_keys_that_are_no_literals_are_found_by_their_text():
    from datetime import date

    @attrs.frozen
    class Held:
        by_day: dict[date, int]

    tree = {"state": Held({date(2026, 1, 2): 5})}
    assert 5 == look(tree, parse_path("by_day['2026-01-02']"))
    assert "by_day['2026-01-02']" == path_text(("state", "by_day", date(2026, 1, 2)))


@pytest.mark.parametrize(("held", "said"), [([], "ids is empty"), (["a"], "ids has 0 only"), (list("abcdefghij"), "ids has 0 to 9")])
def test_what_a_list_holds_is_said_as_its_first_and_last_place(held, said):
    assert f"nothing stands at ids[99]; {said}" == what_there_is({"state": {"ids": held}}, ("state", "ids", 99))
