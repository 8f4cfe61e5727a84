"""The list of streams, and how things stand in each."""

from __future__ import annotations

import json

import pytest

from intentlog.agents import facts
from intentlog.agents.app import runtime_codec
from intentlog.agents.listing import listed
from intentlog.eventlog.events import NewEvent
from intentlog.eventlog.ids import id_maker
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.versions import ANY
from tests.cli.conftest import call

CODEC, NEW_ID = runtime_codec(), id_maker()

ASKED = facts.InputReceived("i", "", 0, "json", b"1")
ANSWERED = facts.TimerArmed("t", 0, 0, 9)
STAGED = facts.IntentStaged("x", 0, 0, "ship", {}, b"", 9)
WAITS = facts.Suspended(0, 1, 1, 0, ("x", "y"), "all", 9)
ANY_OF = facts.Suspended(0, 1, 1, 0, ("x", "y"), "any", 9)
SETTLED = facts.IntentSettled("x", "OK")
OVER = facts.Completed(0, 1, 1, 0, None)
NO = facts.Failure("ValueError", "no")
RETRY = facts.ActivationFailed(0, "i", 1, NO, 0, 0, 9)
PARKED = facts.ActivationFailed(0, "i", 1, NO, 0, 0, None)
HELD = facts.ActivationFailed(0, "i", 1, NO, 0, 0, None, True)
BACK = facts.InputRedriven(0, "i", "me", "")
BLOCKED = facts.StreamBlocked(1, NO)


@pytest.mark.parametrize(
    "story, state",
    [
        ([ASKED], "queued"),
        ([ASKED, ANSWERED], "running"),
        ([ASKED, STAGED, WAITS], "suspended"),
        ([ASKED, STAGED, WAITS, SETTLED], "suspended"),
        ([ASKED, STAGED, WAITS, SETTLED, SETTLED], "due"),
        ([ASKED, STAGED, ANY_OF, SETTLED], "due"),
        ([ASKED, STAGED, WAITS, ASKED], "suspended"),
        ([ASKED, OVER], "completed"),
        ([ASKED, ASKED, OVER], "queued"),
        ([ASKED, OVER, ASKED], "queued"),
        ([ASKED, RETRY], "retrying"),
        ([ASKED, PARKED], "parked"),
        ([ASKED, PARKED, ASKED], "queued"),
        ([ASKED, HELD, ASKED], "parked"),
        ([ASKED, PARKED, BACK], "queued"),
        ([ASKED, BLOCKED], "blocked"),
        ([ASKED, BLOCKED, ASKED], "blocked"),
    ],
    ids=str,
)
def test_how_things_stand_is_told_from_the_end_of_the_stream(story, state):
    log = open_log("memory://")
    for fact in story:
        log.append("orders-a", [CODEC.stage(fact, event_id=NEW_ID())], ANY)
    (found,) = listed(log)
    assert ("orders-a", len(story), state) == (found.stream, found.events, found.state)


def test_a_stream_of_somebody_elses_events_is_listed_too():
    log = open_log("memory://")
    log.append("theirs-a", [NewEvent(NEW_ID(), "thing.happened", 1, b"not ours")], ANY)
    (found,) = listed(log)
    assert ("theirs-a", 1, "thing.happened", "") == (found.stream, found.events, found.last_type, found.state)


def test_users_events_between_the_runtimes_do_not_matter():
    log = open_log("memory://")
    log.append("orders-a", [CODEC.stage(ASKED, event_id=NEW_ID()), CODEC.stage(OVER, event_id=NEW_ID()), NewEvent(NEW_ID(), "thing.happened", 1, b"\xc1")], ANY)
    assert ["completed"] == [each.state for each in listed(log)]


def test_a_long_stream_is_not_read_whole(monkeypatch):
    log = open_log("memory://")
    log.append("orders-a", [CODEC.stage(ASKED, event_id=NEW_ID()) for _ in range(5_000)], ANY)
    read, seen = log.read, 0

    def counted(*args, **settings):
        nonlocal seen
        for event in read(*args, **settings):
            seen += 1
            yield event

    monkeypatch.setattr(log, "read", counted)
    assert [(5_000, "queued")] == [(each.events, each.state) for each in listed(log)]
    assert seen < 100


def test_streams_are_listed_by_prefix(shop):
    for key in ("b", "a"):
        call("send", "notes", key, '"x"')
    call("send", "orders", "a", "order.placed", '{"order_id": "o"}')
    assert ["notes-a", "notes-b"] == [json.loads(line)["stream"] for line in call("streams", "notes-", "--json").stdout.splitlines()]
    assert ["stream", "notes-a", "notes-b", "orders-a"] == [line.split()[0] for line in call("streams").stdout.splitlines()]
    assert "No stream begins with 'x'." in call("streams", "x").stdout


def test_an_empty_log_says_what_to_do_next(shop):
    assert "eventlog send" in call("streams").stdout
    assert "" == call("streams", "--json").stdout
