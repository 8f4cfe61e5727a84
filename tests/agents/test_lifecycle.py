from __future__ import annotations

import itertools

import pytest

from intentlog.agents import facts
from intentlog.agents.errors import ImpossibleHistory
from intentlog.agents.lifecycle import ACTIVATION, INTENT, ActivationState, IntentState, next_activation_state, next_intent_state

EVENTS = [vars(fact)["__event_type__"] for fact in facts.FACTS]


@pytest.mark.parametrize("state, event, target", list(itertools.product(ActivationState, EVENTS, ActivationState)), ids=str)
def test_an_activation_moves_as_its_table_says_and_never_otherwise(state, event, target):
    if target in ACTIVATION.get((state, event), ()):
        assert target is next_activation_state(0, state, event, target)
    else:
        with pytest.raises(ImpossibleHistory, match=f"activation 0 is {state.value}: {event}"):
            next_activation_state(0, state, event, target)


@pytest.mark.parametrize("state, event", list(itertools.product(IntentState, EVENTS)), ids=str)
def test_an_intent_moves_as_its_table_says_and_never_otherwise(state, event):
    if (state, event) in INTENT:
        assert INTENT[state, event] is next_intent_state("i", state, event)
    else:
        with pytest.raises(ImpossibleHistory, match=f"intent i is {state.value}: {event}"):
            next_intent_state("i", state, event)


def test_every_event_in_the_tables_is_a_fact():
    assert {event for _, event in [*ACTIVATION, *INTENT]} <= set(EVENTS)


def test_nothing_leads_out_of_an_end():
    assert [] == [event for state, event in ACTIVATION if state is ActivationState.COMPLETED]
    assert [] == [event for state, event in INTENT if state is IntentState.SETTLED]


def test_every_state_can_be_reached():
    assert set(ActivationState) == {ActivationState.QUEUED} | {target for targets in ACTIVATION.values() for target in targets}
    assert set(IntentState) == {IntentState.STAGED} | set(INTENT.values())
