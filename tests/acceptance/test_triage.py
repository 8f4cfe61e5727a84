"""Show 2: an agent chews through real webhook traffic, and a second run finds nothing to do."""

from __future__ import annotations

import pytest

from examples.triage import app
from tests.acceptance.harness import count_types, faults_of, longest_silence, opened
from tests.acceptance.harness_triage import final_states, triage, world

DELIVERIES = 329
#: Deliveries by which a person opens, reopens or comments on something.
ASKED = 19


@pytest.fixture(scope="module")
def around(tmp_path_factory, shared_store):
    with world(tmp_path_factory.mktemp("servers")) as servers:
        yield servers


@pytest.fixture(scope="module")
def url(tmp_path_factory, around, shared_data, shared_store):
    made = shared_store.url(tmp_path_factory.mktemp("triage"))
    ended = triage(made, shared_data, around)
    assert 0 == ended.code, ended.output
    return made


def test_all_deliveries_are_handled_and_none_is_a_dead_letter(url):
    assert [] == faults_of(app, url, DELIVERIES)


def test_nothing_waits_for_a_lease_to_run_out(url):
    assert longest_silence(url) < 10  # a lease is 30 s


def test_each_is_counted_in_the_state_of_its_key(url):
    states = final_states(url)
    assert (29, DELIVERIES) == (len(states), sum(state.deliveries for state in states.values()))
    assert 153 == states["triage-Codertocat/Hello-World"].deliveries
    thread = states["triage-Codertocat/Hello-World#1"]
    assert (33, {"issues": 24, "issue_comment": 9}, 10) == (thread.deliveries, thread.by_event, len(thread.comment_ids))


def test_where_a_person_speaks_the_model_is_asked_once_and_the_answer_carried_out(url, around):
    counts = count_types(url)
    assert (ASKED, ASKED) == (counts["model_call.cached"], counts["tool_call.cached"])
    assert ASKED == len(around.chats()) == len({each["key"] for each in around.chats()})
    effects = around.effects()
    assert counts["intent.settled"] == len(effects) == len(around.ledger())
    assert ASKED == sum(each["kind"] == "comments" for each in effects)
    assert ASKED <= sum(each["kind"] == "labels" for each in effects)


def test_a_second_run_adds_no_event(url, around, shared_data):
    with opened(url) as log:
        before = log.last_position()
    ended = triage(url, shared_data, around, "again")
    assert 0 == ended.code, ended.output
    with opened(url) as log:
        assert before == log.last_position()
    assert [] == [each for each in around.chats() + around.effects() if each["caller"] == "again"]
