"""A field that nothing under ``run`` can have is an error that names the nearest, when the expression is read."""

from __future__ import annotations

import pytest

from intentlog.agents.run import Activation
from intentlog.replay.errors import BadExpression
from intentlog.replay.expressions import parse_expression
from intentlog.replay.fold import activation_as_tree, state_as_tree
from intentlog.replay.shapes import ACTIVATION, INTENT, RUN
from intentlog.replay.walking import Walk
from tests.replay.test_code import eventlog
from tests.replay.world import STREAM, RefundAsked, app_of, paying

APP = app_of(paying)


@pytest.mark.parametrize(
    "text, meant",
    [
        ("len(run.intnts) > 0", "run.intents"),
        ("run['intnts']", "run.intents"),
        ("run.spent.tokns > 3", "run.spent.tokens"),
        ("run.activations[0].trns", "run.activations[0].turns"),
        ("run.activations['0'].input.typ == 'x'", "run.activations['0'].input.type"),
        ("run.intents['5f0c'].atempts", "run.intents['5f0c'].attempts"),
        ("any(i.statsu == 'OK' for i in run.intents.values())", "i.status"),
        ("any(i.statsu == 'OK' for k, i in run.intents.items())", "i.status"),
        ("[i for i in run.intents.values() if i['sttings']]", ""),
    ],
)
def test_a_misspelt_field_is_refused_when_the_expression_is_read(text, meant):
    with pytest.raises(BadExpression) as refused:
        parse_expression(text)
    assert (f"Did you mean {meant}?" if meant else "It has: tool") in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "run.intents['5f0c'].args.whatever",
        "any(i.args['x'] for i in run.intents.values())",
        "any(k.startswith('a') for k in run.intents)",
        "[i for i in st.orders.values() if i.sttings]",
        "run.activations[0].last_failure.type",
        "ev.sttings",
    ],
)
def test_what_may_be_there_is_waited_for(text):
    parse_expression(text)


def test_the_fields_are_those_that_states_are_shown_with(world):
    world.send(APP, RefundAsked("o-1", 1))
    world.run(APP)
    walk, seen = Walk(world.log, APP, STREAM), set()
    for _, state in walk.each():
        tree = state_as_tree(state)["run"]
        assert set(RUN.fields) == set(tree)
        for kind, shape in (("activations", ACTIVATION), ("intents", INTENT)):
            for each in tree[kind].values():
                assert set() == set(each) - set(shape.fields)
                seen |= set(each)
    open_one = next(activation for _, state in Walk(world.log, APP, STREAM).each() for activation in state.run.open.values())
    assert isinstance(open_one, Activation)
    open_one.failures, open_one.turns, open_one.retry_at = 1, 1, 1
    seen |= set(activation_as_tree(open_one))
    assert {"status", "waits", "last_failure"} <= seen
    assert set(ACTIVATION.fields) | set(INTENT.fields) == seen | {"key"}


def test_the_command_says_so(tmp_path):
    code, out, err = eventlog(tmp_path, "bisect", "orders-a", "len(run.intnts) > 0", "--app", "x:app", apart=True)
    assert (2, "", True) == (code, out, "Did you mean run.intents?" in err)
