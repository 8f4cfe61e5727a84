"""A condition says what Python would say, reaches nothing, and does not hold of what is not there."""

from __future__ import annotations

import ast
import enum
from contextlib import suppress
from decimal import Decimal

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from intentlog.replay.errors import BadExpression
from intentlog.replay.expressions import parse_expression
from tests.replay.world import Account


class Level(enum.Enum):
    LOW = "low"


@attrs.frozen
class Order:
    cents: int
    level: Level = Level.LOW
    note: str | None = None


TREE = {
    "state": {"orders": {"o-1": Order(5), "o-2": Order(900, note="late")}, "price": Decimal("1.50"), "nobody": None, "names": ["b", "a"]},
    "run": {"intents": {"x": {"status": "OK", "attempts": 1}, "y": {"attempts": 0}}, "line": [0, 1]},
    "version": 7,
}
EVENT = {"type": "intent.settled", "status": "OK", "version": 7}


def holds(text: str, tree=TREE, event=EVENT) -> bool:
    return parse_expression(text).holds(tree, event)


@pytest.mark.parametrize(
    "text",
    [
        "len(st.orders) == 2 and 'o-1' in st.orders",
        "st.orders['o-2'].cents > 100",
        "st.orders['o-1'].level == 'low'",
        "any(o.cents > 100 for o in st.orders.values())",
        "[k for k, o in st.orders.items() if o.cents < 10] == ['o-1']",
        "sum(o.cents for o in st.orders.values()) == 905",
        "{k for k in run.intents} == {'x', 'y'}",
        "sorted(st.names)[0] == 'a' and st.names[-1] == 'a' and st.names[:1] == ['b']",
        "ev.type.startswith('intent.') and ev.status != 'ERROR'",
        "1 < version < 9 and version % 2 == 1 and -version == -7",
        "st.nobody is None and not st.nobody == 3",
        "st.price * 2 == 3",
        "('late' if st.orders['o-2'].note else 'early') == 'late'",
        "max(run.line) == 1 and min(1, 2) == 1 and abs(-3) == 3 and int('4') == 4 and str(5) == '5'",
        "{'a': 1}['a'] == 1",
        "state.price > 1",
        "all(x < y for x in [1, 2] for y in (3, 4))",
    ],
)
def test_it_says_what_python_would_say(text):
    assert holds(text)


@pytest.mark.parametrize(
    "text",
    [
        "st.orders['o-3'].cents > 1",
        "not st.orders['o-3'].cents > 1",
        "ev.nothing == 1",
        "not ev.nothing",
        "st.nobody > 3",
        "st.nobody.cents == 1",
        "run.line[9] == 0",
        "sum(i.value for i in run.intents.values()) == 0",
        "max(x for x in st.names if x == 'z') == 1",
    ],
)
def test_what_is_not_there_yet_does_not_hold_either_way(text):
    assert not holds(text)


def test_or_and_any_are_content_with_what_is_there():
    assert holds("ev.nothing == 1 or version == 7")
    assert holds("any(i.status == 'OK' for i in run.intents.values())")
    assert not holds("all(i.status == 'OK' for i in run.intents.values())")
    assert not holds("not (ev.nothing == 1 and version == 7)")
    assert holds("not (ev.nothing == 1 and version == 8)")


def test_without_an_event_nothing_is_said_of_it():
    assert (False, True) == (holds("ev.type == 'x'", event=None), holds("version == 7", event=None))


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "st.__class__",
        "st.orders.__len__()",
        "(lambda: 1)()",
        "open('/etc/passwd')",
        "f'{st}'",
        "st.orders.pop('o-1')",
        "''.join(st.names)",
        "'%s' % st",
        "2 ** 9 ** 9",
        "1 << 99",
        "[x for st in run.line]",
        "x := 3",
        "(x for x in run.line).gi_frame",
        "await st",
        "[*st.names]",
        "len(st.names, *st.names)",
        "sorted(st.names, key=len)",
        "{**st.orders}",
        "...",
        "1j",
        "print(1)",
        "globals",
        "",
        "1 +",
        "a b",
        "\0",
    ],
)
def test_nothing_is_reached_that_is_not_on_the_list(text):
    with pytest.raises(BadExpression):
        holds(text)


def test_what_is_too_large_or_too_deep_is_refused():
    for text in ("1+" * 600 + "1", "(" * 90 + "1" + ")" * 90 + " + " + "-" * 60 + "1", "not " * 200 + "1", "1" * 2001):
        with pytest.raises(BadExpression):
            parse_expression(text)


def test_what_would_take_too_long_is_given_up():
    tree = {"state": {"l": list(range(600))}}
    with pytest.raises(BadExpression, match="more than 250,000 steps"):
        holds("any(a == b + 5000 for a in st.l for b in st.l)", tree)
    with pytest.raises(BadExpression, match="more than 10000 bits"):
        holds("st.n * st.n * st.n > 0", {"state": {"n": 1 << 9000}})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("st.refunded > 4", "st.refunded: Account has no 'refunded'; it has: refunded_cents, orders"),
        ("st.refunded_cents > 'a'", "st.refunded_cents > 'a': '>' not supported"),
        ("st.refunded_cents.x > 1", "st.refunded_cents.x: a int has no fields"),
        ("1 / st.refunded_cents > 1", "1 / st.refunded_cents: "),
        ("len(st.refunded_cents)", "len(st.refunded_cents): "),
        ("[x for x in st.refunded_cents]", "one cannot go through a int"),
    ],
)
def test_what_cannot_be_evaluated_is_told_with_the_part(text, said):
    with pytest.raises(BadExpression) as told:
        holds(text, {"state": Account()})
    assert said in str(told.value)


def test_a_slip_in_a_name_is_told_with_the_close_one():
    with pytest.raises(BadExpression, match=r"evt: there is no such name\. Did you mean ev\?"):
        parse_expression("evt.type == 'x'")


def test_it_knows_what_it_speaks_of():
    assert (frozenset({"st", "ev"}), frozenset()) == (parse_expression("state.x == ev.x or st.x").names, parse_expression("1 == 1").names)


numbers = st.integers(-99, 99)
variables = st.sampled_from(["st.a", "st.b", "version"])
leaves = st.one_of(numbers.map(str), variables)
arithmetic = st.recursive(leaves, lambda inner: st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"), max_leaves=6)
compared = st.tuples(arithmetic, st.sampled_from(["<", "<=", "==", "!=", ">", ">="]), arithmetic).map(" ".join)
conditions = st.recursive(
    compared,
    lambda inner: st.one_of(inner.map(lambda t: f"(not {t})"), st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda t: f"({' '.join(t)})")),
    max_leaves=5,
)


@given(conditions, numbers, numbers, numbers)
@example("(not 1 < 2)", 0, 0, 0)
def test_conditions_over_what_is_there_hold_exactly_when_python_says_so(text, a, b, version):
    expected = eval(  # the oracle
        compile(ast.parse(text, mode="eval"), "x", "eval"), {"__builtins__": {}}, {"st": type("S", (), {"a": a, "b": b}), "version": version}
    )
    assert bool(expected) == parse_expression(text).holds({"state": {"a": a, "b": b}, "version": version})


@given(st.text(max_size=40))
def test_any_text_is_a_condition_or_is_refused_in_words(text):
    with suppress(BadExpression):
        assert parse_expression(text).holds(TREE, EVENT) in (True, False)


def test_a_name_that_nothing_may_have_is_not_recommended():
    with pytest.raises(BadExpression) as raised:
        parse_expression("__class__")
    assert "st.__class__" not in str(raised.value)
    with pytest.raises(BadExpression, match=r"xyz: there is no such name\. A field of the state is st\.xyz\. Names: st, "):
        parse_expression("xyz")
