"""Inputs that were given up for now: found, explained, put back."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from intentlog.agents import facts
from intentlog.agents.app import runtime_codec
from intentlog.agents.appends import TURNS
from intentlog.agents.commands_dead_letters import _COLUMNS
from intentlog.agents.dead_letters import BlockedStream, ParkedInput, dead_letters, opened, redrive
from intentlog.agents.errors import InputRefused
from intentlog.agents.evolve import take
from intentlog.agents.intents import input_event_id
from intentlog.agents.run import RunState
from intentlog.eventlog import printing
from intentlog.eventlog.events import NewEvent
from intentlog.eventlog.ids import id_maker
from intentlog.eventlog.log import EventLog
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.versions import ANY
from tests.cli.conftest import call, child

CODEC, NEW_ID = runtime_codec(), id_maker()


@pytest.fixture
def log(log_url: str) -> Iterator[EventLog]:
    opened_log = open_log(log_url)
    yield opened_log
    opened_log.close()


def record(log: EventLog, stream: str, *given: object) -> None:
    for fact in given:
        event_id = input_event_id(fact.input_id) if isinstance(fact, facts.InputReceived) else NEW_ID()
        log.append(stream, [CODEC.stage(fact, event_id=event_id)], ANY)


def received(number: int) -> facts.InputReceived:
    return facts.InputReceived(f"i{number}", "", 0, "json", f'{{"n": {number}}}'.encode())


def failed(seq: int, attempt: int = 1, retry_at: int | None = None) -> facts.ActivationFailed:
    return facts.ActivationFailed(seq, f"i{seq}", attempt, facts.Failure("ValueError", "no", "orders:7"), 0, 0, retry_at)


def fold(log: EventLog, stream: str) -> RunState:
    run = RunState()
    for event in log.read(stream):
        take(run, CODEC.decode_stored(event), event.recorded_at)
    return run


def test_an_empty_log_has_none(log):
    assert [] == dead_letters(log)


def test_an_input_that_will_be_tried_again_is_none(log):
    record(log, "orders-a", received(0), failed(0, retry_at=5))
    assert [] == dead_letters(log)


def test_parked_inputs_of_all_streams_are_found_in_the_order_they_were_given_up(log):
    record(log, "orders-b", received(0), failed(0))
    record(log, "orders-a", received(0), received(1), failed(0), failed(1, 3))
    found = dead_letters(log)
    assert [("orders-b", 0, 1), ("orders-a", 0, 1), ("orders-a", 1, 3)] == [
        (each.stream, each.seq, each.attempts) for each in found if isinstance(each, ParkedInput)
    ]
    assert found[1:] == dead_letters(log, "orders-a")
    assert [each.seq for each in fold(log, "orders-a").parked] == [0, 1]


def test_a_redriven_input_is_none_until_it_is_parked_again(log):
    record(log, "orders-a", received(0), failed(0))
    done = redrive(log, "orders-a", by="me", reason="fixed")
    assert (((0, "i0"),), False, []) == (done.inputs, done.woken, dead_letters(log))
    assert facts.InputRedriven(0, "i0", "me", "fixed") == CODEC.decode_stored(list(log.read("orders-a"))[-1])
    assert [0] == fold(log, "orders-a").line
    record(log, "orders-a", failed(0))
    assert [0] == [each.seq for each in dead_letters(log) if isinstance(each, ParkedInput)]
    redrive(log, "orders-a", by="me")
    assert [] == dead_letters(log)


def test_a_redrive_wakes_the_stream(log):
    record(log, "orders-a", received(0), failed(0))
    assert 0 == log.schedule.due(TURNS, now=log.clock())
    redrive(log, "orders-a", by="me")
    assert 1 == log.schedule.due(TURNS, now=log.clock())


def test_one_of_several_may_be_redriven(log):
    record(log, "orders-a", received(0), received(1), failed(0), failed(1))
    redrive(log, "orders-a", 1, by="me")
    assert [0] == [each.seq for each in dead_letters(log) if isinstance(each, ParkedInput)]
    with pytest.raises(InputRefused, match=r"no parked input 1\. Parked there: 0"):
        redrive(log, "orders-a", 1, by="me")


def test_what_is_not_parked_is_not_redriven(log):
    record(log, "orders-a", received(0), failed(0, retry_at=5))
    before = log.last_position()
    with pytest.raises(InputRefused, match="orders-a has no parked input"):
        redrive(log, "orders-a", by="me")
    with pytest.raises(InputRefused, match="orders-none has no parked input"):
        redrive(log, "orders-none", by="me")
    assert before == log.last_position()


def test_a_blocked_stream_is_found_and_woken_until_a_worker_has_taken_a_turn(log):
    record(log, "orders-a", received(0))
    log.append("orders-a", [NewEvent(NEW_ID(), "order.unknown", 1, b"\x80")], ANY)
    record(log, "orders-a", facts.StreamBlocked(1, facts.Failure("UnknownEventType", "no class")), received(1))
    (found,) = dead_letters(log)
    assert isinstance(found, BlockedStream)
    assert ("orders-a", 1, 2) == (found.stream, found.at_version, found.version)
    done = redrive(log, "orders-a", by="me")
    assert ((), True, 1, 3) == (done.inputs, done.woken, log.schedule.due(TURNS, now=log.clock()), log.head("orders-a"))
    record(log, "orders-a", facts.Completed(0, 1, 0, 0, None))
    assert [] == dead_letters(log)


def test_an_opened_one_tells_its_payload_and_every_failure_since_the_last_redrive(log):
    record(log, "orders-a", received(0), received(1), failed(0, 1, 5), failed(0, 2))
    redrive(log, "orders-a", by="me")
    record(log, "orders-a", failed(0, 1, 6), failed(0, 2))
    found = opened(log, "orders-a")
    assert ({"n": 0}, [1, 2]) == (found.payload, [each.attempt for each in found.failures])


def test_which_one_is_meant_must_be_said_when_there_are_several(log):
    record(log, "orders-a", received(0), received(1), failed(0), failed(1))
    with pytest.raises(InputRefused, match="2 parked inputs; say which one with --seq: 0, 1"):
        opened(log, "orders-a")
    assert {"n": 1} == opened(log, "orders-a", 1).payload


# ── the commands ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def angry(shop):
    """A shop with one parked order."""
    call("send", "orders", "k", "order.placed", '{"order_id": "o", "mood": "angry"}', "--id", "one", "--app", "shop:app")
    while not call("dead-letters", "list", "--json").stdout:
        assert 0 == child("run", "shop:app", "--until-idle").returncode
    return shop


def test_the_list_says_why(angry):
    assert "ValueError: o is angry" in call("dead-letters", "list").stdout
    (line,) = call("dead-letters", "list", "--json").stdout.splitlines()
    found = json.loads(line)
    assert ("parked", "orders-k", 0, "one", 2) == tuple(found[each] for each in ("kind", "stream", "seq", "id", "attempts"))
    assert "ValueError" == found["failure"]["type"]


def test_one_is_shown_with_its_payload_its_tries_and_the_way_out(angry):
    shown = call("dead-letters", "show", "orders-k").stdout
    assert [True] * 4 == [part in shown for part in ('"order_id": "o"', "try 1", "try 2", "eventlog dead-letters redrive orders-k --seq 0")]
    whole = json.loads(call("dead-letters", "show", "orders-k", "--json").stdout)
    assert ({"order_id": "o", "mood": "angry"}, "order.placed", [1, 2]) == (whole["payload"], whole["type"], [each["attempt"] for each in whole["failures"]])


def test_a_redriven_one_goes_through_once_the_cause_is_gone(angry):
    done = call("dead-letters", "redrive", "orders-k", "--by", "me", "--reason", "they calmed down")
    assert (0, True) == (done.exit_code, "one is in line again" in done.stdout)
    assert 0 == child("run", "shop:app", "--until-idle", CALM="1").returncode
    assert ("No dead letters.\n", True) == (call("dead-letters", "list").stdout, '"completed"' in call("streams", "--json").stdout)


def test_what_is_not_parked_cannot_be_shown_or_redriven(shop):
    for verb in ("show", "redrive"):
        done = call("dead-letters", verb, "orders-k")
        assert (3, True) == (done.exit_code, "orders-k has no parked input" in done.stderr)
    assert 2 == call("dead-letters", "show", "nonsense").exit_code


@pytest.mark.parametrize("columns", [80, 100])
def test_no_line_of_the_list_is_wider_than_the_terminal(capsys, monkeypatch, columns):
    monkeypatch.setattr(printing, "on_terminal", lambda: True)
    monkeypatch.setattr(printing, "width", lambda: columns)
    monkeypatch.setenv("NO_COLOR", "1")
    printing.table(_COLUMNS, [("accounts-" + "k" * 60, 1, "9a38d629-7137-4aff-8015-0970d826d00b", 3, "03-02 09:14", "ValueError: " + "y" * 200)])
    assert columns >= max(map(len, capsys.readouterr().out.splitlines()))
