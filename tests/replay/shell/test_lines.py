"""A typed line is a command or Python, and nobody has to say which."""

from __future__ import annotations

import click
import pytest

from intentlog.replay.shell import COMMANDS
from intentlog.replay.shell.lines import Code, Command, number_of, read_line, unquoted, words_of

TYPED = {
    "next": Command("next"),
    "  next  ": Command("next"),
    "back 3": Command("back", "3"),
    'back until "not st.open_orders"': Command("back", 'until "not st.open_orders"'),
    "until st.cents > 3": Command("until", "st.cents > 3"),
    "until (st.a or st.b) and not st.c": Command("until", "(st.a or st.b) and not st.c"),
    "until -st.cents < 0": Command("until", "-st.cents < 0"),
    "break [x for x in st.orders]": Command("break", "[x for x in st.orders]"),
    "log -n 3": Command("log", "-n 3"),
    "trace in-1": Command("trace", "in-1"),
    "search is": Command("search", "is"),
    "dead-letters": Command("dead-letters"),
    "bundle -o case.bundle": Command("bundle", "-o case.bundle"),
    "st": Command("st"),
    "st.orders": Code("st.orders"),
    "st == prev": Code("st == prev"),
    "st is prev": Code("st is prev"),
    "log[3]": Code("log[3]"),
    "next(iter(log))": Code("next(iter(log))"),
    "ev, prev": Code("ev, prev"),
    "watch = 3": Code("watch = 3"),
    "until += 1": Code("until += 1"),
    "1 + 1": Code("1 + 1"),
    "len(st.orders)": Code("len(st.orders)"),
    "nonsense 3": Code("nonsense 3"),
    "": None,
    "   ": None,
    "# a remark": None,
}


@pytest.mark.parametrize("text", TYPED)
def test_a_line_is_what_it_looks_like(text):
    assert TYPED[text] == read_line(text, COMMANDS)


def test_an_expression_may_be_quoted_as_on_a_command_line():
    assert ["not st.a", "st.name == 'a'", "'a' == st.name"] == [unquoted(each) for each in ('"not st.a"', "st.name == 'a'", "'a' == st.name")]


def test_a_quote_that_is_not_closed_is_told():
    with pytest.raises(click.UsageError, match="no closing quotation"):
        words_of("bundle 'case")


@pytest.mark.parametrize("text", ["0", "x", "1.5", "-1", "9" * 30])
def test_what_is_no_number_of_events_is_told(text):
    with pytest.raises(click.UsageError, match="no number of events"):
        number_of(text, default=1, most=2**63 - 1)
