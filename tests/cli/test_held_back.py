"""A tail that somebody holds back: every command that reads says so, and nothing that is in order is called damaged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import cast

import psycopg
import pytest

from intentlog.agents import facts
from intentlog.agents.app import runtime_codec
from intentlog.eventlog.held_back import held_back
from intentlog.eventlog.log import EventLog
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.versions import ANY
from tests.cli.conftest import call, child

INTENT = "5f0c"


@pytest.fixture
def held(postgres_url: str, shop: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[psycopg.Connection]:
    """A log with one stream that can be shown, and one with an intent in it that was begun behind somebody's open transaction."""
    monkeypatch.setenv("EVENTLOG_URL", postgres_url)
    assert 0 == call("init").exit_code
    call("send", "notes", "before", '"x"')
    with psycopg.connect(postgres_url, application_name="forgotten") as session:
        session.execute("SELECT pg_current_xact_id()")
        call("send", "orders", "ann", "order.placed", '{"order_id": "o-1"}')
        with closing(open_log(postgres_url)) as log:
            log.append("orders-ann", [runtime_codec().stage(facts.IntentStaged(INTENT, 0, 0, "ship", {}, b"", 9), event_id=bytes(16))], ANY)
        yield session
        session.rollback()


READING = [
    ("tail",),
    ("streams",),
    ("stats",),
    ("show", "orders-ann"),
    ("verify",),
    ("dead-letters", "list"),
    ("intents", "list"),
    ("intents", "show", INTENT, "--stream", "orders-ann"),
    ("projections", "lag"),
    ("replay", "--all", "--app", "shop:app"),
    ("state", "orders-ann", "--app", "shop:app"),
]


def test_every_command_that_reads_says_who_holds_the_tail_back(held):
    for words in READING:
        done = call(*words)
        (line,) = (each for each in done.stderr.splitlines() if "cannot be shown" in each)
        assert line.startswith("eventlog: 2 events cannot be shown before an older transaction ends: pid "), words
        assert str(held.info.backend_pid) in line and "forgotten" in line, words
        assert "cannot be shown before" not in done.stdout, words


def test_what_is_printed_as_json_is_the_same(held):
    (line,) = call("tail", "--json").stdout.splitlines()
    assert "notes-before" == json.loads(line)["stream"]


def test_nobody_is_told_of_anything_once_it_is_over(held):
    held.rollback()
    for words in READING:
        assert "cannot be shown" not in call(*words).stderr, words


def test_no_line_is_printed_into_the_one_that_is_being_completed(held):
    done = child(_EVENTLOG_COMPLETE="bash_complete", COMP_WORDS="eventlog show orders-a", COMP_CWORD="2")
    assert ("plain,orders-ann\n", "") == (done.stdout, done.stderr)


def test_a_healthy_stream_that_was_begun_meanwhile_is_sound(held):
    call("send", "orders", "bob", "order.placed", '{"order_id": "o-2"}')
    for app in ((), ("--app", "shop:app")):
        done = call("verify", "notes-before", "orders-bob", *app)
        assert (0, True) == (done.exit_code, "2 streams, 2 events: sound" in done.stdout)


def test_the_list_of_intents_does_not_say_that_all_have_their_outcome(held):
    said = call("intents", "list").stdout
    assert "Every intent has its outcome" not in said
    assert "Of the intents that can be shown now every one has its outcome" in said


def test_an_intent_that_cannot_be_found_yet_is_found_by_its_stream(held):
    refused = call("intents", "show", INTENT)
    assert 3 == refused.exit_code
    assert "Naming its stream finds it" in refused.stderr
    assert "STAGED" in call("intents", "show", INTENT, "--stream", "orders-ann").stdout


class Horizons:
    """A log that answers with one holder after the other."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)

    def horizon(self) -> object:
        return self.answers.pop(0)


class Somebody:
    def __init__(self, transaction: int, age: float | None) -> None:
        self.transaction, self.age = transaction, age

    def __str__(self) -> str:
        return f"it is {self.transaction}"


@pytest.mark.parametrize(
    "answers, told",
    [
        ([None], ""),
        ([Somebody(1, 7.0)], "it is 1"),
        ([Somebody(1, 0.0), Somebody(1, 0.3)], "it is 1"),
        ([Somebody(1, None), Somebody(1, None)], "it is 1"),
        ([Somebody(1, 0.0), None], ""),
        ([Somebody(1, 0.0), Somebody(2, 0.0)], ""),
    ],
)
def test_an_append_that_is_being_made_is_not_told_of(answers, told):
    log = Horizons(*answers)
    assert (told, []) == (held_back(cast(EventLog, log)), log.answers)
