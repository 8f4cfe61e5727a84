"""What a person may do to an intent, and what the log decides when an effector is at it, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from intentlog.agents import facts
from intentlog.agents.app import runtime_codec
from intentlog.agents.errors import InputRefused, RequestRefused
from intentlog.agents.evolve import take
from intentlog.agents.intents import STATUSES, attempt_event_id, fact_id, settlement_event_id
from intentlog.agents.operating import OPEN, STANDINGS, Changed, cancel, resolved_signal, retry, settle, standing, standings
from intentlog.agents.queues import EFFECTS, TURNS
from intentlog.agents.run import RunState
from intentlog.eventlog.clock import SECOND
from intentlog.eventlog.ids import id_maker
from intentlog.eventlog.log import Claim, EventLog
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.versions import ANY

CODEC, NEW_ID = runtime_codec(), id_maker()
STREAM = "orders-a"


@pytest.fixture
def log(log_url: str) -> Iterator[EventLog]:
    opened = open_log(log_url)
    yield opened
    opened.close()


def record(log: EventLog, fact: object, event_id: bytes | None = None, stream: str = STREAM) -> None:
    log.append(stream, [CODEC.stage(fact, event_id=event_id or NEW_ID())], ANY)


def stage(log: EventLog, intent_id: str = "x", stream: str = STREAM) -> None:
    record(log, facts.InputReceived(f"i-{intent_id}", "", 0, "json", b"1"), stream=stream)
    record(log, facts.IntentStaged(intent_id, 0, 0, "pay", {"cents": 5}, b"d", log.clock() + 3600 * SECOND), stream=stream)


def attempt(log: EventLog, number: int = 1, intent_id: str = "x") -> None:
    record(log, facts.IntentAttempted(intent_id, number, "e", 1), attempt_event_id(intent_id, number))


def postpone(log: EventLog, number: int = 1) -> None:
    failure = facts.Failure("Busy", "later")
    record(log, facts.IntentPostponed("x", number, failure, log.clock() + 600 * SECOND, "e"), fact_id("postponed", "x", number))


def distrust(log: EventLog) -> None:
    record(log, facts.IntentDistrusted("x", "it is not signed", "e", 1, b"bytes"))


def end(log: EventLog, status: str, attempts: int = 1) -> None:
    record(log, facts.IntentSettled("x", status, attempts=attempts, settled_by="e"), settlement_event_id("x", attempts))


def fold(log: EventLog) -> RunState:
    run = RunState()
    for event in log.read(STREAM):
        run.at = event.version
        take(run, CODEC.decode_stored(event), event.recorded_at)
    return run


def due(log: EventLog) -> bool:
    return log.schedule.due(TURNS, now=log.clock()) > 0


def written(log: EventLog) -> int:
    return log.last_position()


def unheld(log: EventLog) -> bool:
    now = log.clock()
    tokens = log.schedule.acquire(EFFECTS, [STREAM], "me", now=now, until=now + SECOND)
    log.schedule.release([Claim(EFFECTS, STREAM, token, None) for token in tokens.values()])
    return STREAM in tokens


# ── finding ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def ended(status: str) -> Callable[[EventLog], None]:
    return lambda log: end(log, status)


def settle_ok(log: EventLog, intent_id: str, **named: Any) -> Changed:
    return settle(log, intent_id, "OK", **named)


STANDING: dict[str, list[Callable[[EventLog], None]]] = {"STAGED": [], "ATTEMPTED": [attempt], "POSTPONED": [attempt, postpone], "DISTRUSTED": [distrust]}
STANDING |= {status: [attempt, ended(status)] for status in STATUSES}
CHANGES = [retry, cancel, settle_ok]


@pytest.mark.parametrize("status", STANDINGS)
def test_every_intent_stands_as_the_log_says_and_those_that_need_somebody_are_found(log, status):
    stage(log)
    for happens in STANDING[status]:
        happens(log)
    assert [status] == [each.status for each in standings(log, settled=True)]
    needs = status in (*OPEN, "UNKNOWN")
    assert (["x"] if needs else []) == [each.intent.intent_id for each in standings(log)]
    assert needs == standing(log, "x").needs_somebody


def test_an_attempt_after_a_postponed_one_is_under_way(log):
    stage(log)
    attempt(log)
    postpone(log)
    attempt(log, 2)
    assert ("ATTEMPTED", 2) == (standing(log, "x").status, standing(log, "x").attempts)


def test_they_are_found_in_the_order_they_were_staged_and_by_stream(log):
    for number, stream in enumerate(("orders-b", "orders-a", "orders-b")):
        stage(log, f"x{number}", stream)
    assert ["x0", "x1", "x2"] == [each.intent.intent_id for each in standings(log)]
    assert ["x0", "x2"] == [each.intent.intent_id for each in standings(log, "orders-b")]


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_not_there_cannot_be_changed(log, change):
    stage(log)
    for stream in (None, "orders-b", STREAM):
        with pytest.raises(RequestRefused, match="no intent 'y'"):
            change(log, "y", by="ada", stream=stream)


@pytest.mark.parametrize("change", CHANGES)
def test_whoever_changes_something_has_a_name(log, change):
    stage(log)
    with pytest.raises(InputRefused, match="say who it is"):
        change(log, "x", by=" ")


# ── taking back ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_nobody_attempted_is_taken_back_and_the_agent_is_told(log):
    stage(log)
    done = cancel(log, "x", by="ada", reason="sent by mistake", patience=0.0)
    assert facts.IntentSettled("x", "CANCELLED", settled_by="person:ada", reason="sent by mistake") == done.intent.settled == fold_settled(log)
    assert (False, True, True) == (done.duplicate, due(log), unheld(log))


def fold_settled(log: EventLog) -> facts.IntentSettled | None:
    return fold(log).intents["x"].settled


def test_what_nobody_may_carry_out_is_taken_back_so_that_its_agent_hears(log):
    stage(log)
    distrust(log)
    assert ("CANCELLED", True) == (cancel(log, "x", by="ada", patience=0.0).intent.status, due(log))


def test_taking_back_twice_changes_nothing(log):
    stage(log)
    cancel(log, "x", by="ada", patience=0.0)
    before = written(log)
    assert (True, before) == (cancel(log, "x", by="ada", patience=0.0).duplicate, written(log))
    with pytest.raises(RequestRefused, match="settled CANCELLED; the first outcome is final"):
        cancel(log, "x", by="bob", patience=0.0)
    assert before == written(log)


@pytest.mark.parametrize("status", [each for each in STANDINGS if each not in ("STAGED", "DISTRUSTED")])
def test_what_was_begun_or_ended_cannot_be_taken_back(log, status):
    stage(log)
    for happens in STANDING[status]:
        happens(log)
    before = written(log)
    with pytest.raises(RequestRefused, match="Nothing was written"):
        cancel(log, "x", by="ada", patience=0.0)
    assert (before, True) == (written(log), unheld(log))


# ── trying again ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_postponed_intent_is_due_at_once_under_its_id_and_with_its_attempts(log):
    stage(log)
    attempt(log)
    postpone(log)
    found = retry(log, "x", by="ada", reason="they are back", patience=0.0).intent
    assert found.postponed is not None
    assert found.postponed.retry_at <= log.clock()
    assert ("POSTPONED", 1, "person:ada") == (found.status, found.attempts, found.postponed.effector)
    assert facts.Failure("Busy", "later", "tried again at once for ada: they are back") == found.postponed.failure
    before = written(log)
    assert (True, before) == (retry(log, "x", by="bob", patience=0.0).duplicate, written(log))
    attempt(log, 2)
    assert 2 == fold(log).intents["x"].attempts


@pytest.mark.parametrize("status", [each for each in STANDINGS if each != "POSTPONED"])
def test_nothing_else_is_tried_again(log, status):
    """S-6.2: an agent may have acted on an outcome it was told, UNKNOWN among them."""
    stage(log)
    for happens in STANDING[status]:
        happens(log)
    before = written(log)
    with pytest.raises(RequestRefused, match="eventlog intents settle x" if status == "UNKNOWN" else "Nothing was written"):
        retry(log, "x", by="ada", patience=0.0)
    assert before == written(log)


# ── saying how it ended ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("status", OPEN)
@pytest.mark.parametrize(("told", "value"), [("OK", {"id": "re_91"}), ("ERROR", None)])
def test_how_an_open_intent_ended_is_its_outcome(log, status, told, value):
    stage(log)
    for happens in STANDING[status]:
        happens(log)
    found = settle(log, "x", told, value, by="ada", reason="seen there", patience=0.0).intent.settled
    assert found == fold_settled(log)
    assert found is not None
    assert (told, value, "person:ada", "seen there") == (found.status, found.value, found.settled_by, found.reason)
    assert (found.failure is None) == (told == "OK")
    assert (True, True) == (due(log), unheld(log))
    before = written(log)
    assert settle(log, "x", told, value, by="ada", reason="seen there", patience=0.0).duplicate
    with pytest.raises(RequestRefused, match=f"was settled {told} by person:ada; the first outcome is final"):
        settle(log, "x", "OK", "other", by="bob", patience=0.0)
    assert before == written(log)


@pytest.mark.parametrize("status", [each for each in STATUSES if each != "UNKNOWN"])
def test_an_outcome_that_is_known_is_final(log, status):
    """S-6.2"""
    stage(log)
    for happens in STANDING[status]:
        happens(log)
    before = written(log)
    with pytest.raises(RequestRefused, match=f"was settled {status} by e"):
        settle(log, "x", "OK", by="ada", patience=0.0)
    assert before == written(log)


def test_what_is_found_out_about_an_unknown_one_stands_beside_its_outcome_and_is_sent_to_the_key(log):
    stage(log)
    attempt(log)
    end(log, "UNKNOWN")
    assert not due(log)
    done = settle(log, "x", "OK", "re_91", by="ada", reason="seen there", patience=0.0)
    assert done.intent.settled is not None
    assert done.intent.resolution is not None
    assert ("UNKNOWN", "OK", "re_91", "ada", False) == (
        done.intent.settled.status,
        done.intent.resolution.status,
        done.intent.resolution.value,
        done.intent.resolution.by,
        done.intent.needs_somebody,
    )
    run = fold(log)
    (signal,) = [signal for _, signal in run.signals]
    payload = {"intent_id": "x", "status": "OK", "value": "re_91", "by": "ada", "reason": "seen there"}
    assert (resolved_signal("x"), payload) == (signal.name, signal.payload)
    assert ([], True) == (standings(log), due(log))


def test_the_first_word_about_an_unknown_one_is_final(log):
    stage(log)
    attempt(log)
    end(log, "UNKNOWN")
    settle(log, "x", "ERROR", by="ada", patience=0.0)
    before = written(log)
    assert settle(log, "x", "ERROR", by="ada", patience=0.0).duplicate
    with pytest.raises(RequestRefused, match="was resolved as ERROR by ada already"):
        settle(log, "x", "OK", by="bob", patience=0.0)
    assert before == written(log)


@pytest.mark.parametrize("payload", [None, {"status": "OK"}, {"status": "MAYBE"}])
def test_a_signal_that_an_agents_peer_sent_under_such_a_name_resolves_nothing(log, payload):
    stage(log)
    attempt(log)
    end(log, "UNKNOWN")
    record(log, facts.SignalReceived("their-id", resolved_signal("x"), payload))
    assert ["x"] == [each.intent.intent_id for each in standings(log)]


@pytest.mark.parametrize(("status", "value"), [("UNKNOWN", None), ("EXPIRED", None), ("ok", None), ("ERROR", 5)])
def test_a_person_says_ok_or_error_and_an_error_has_no_value(log, status, value):
    stage(log)
    with pytest.raises(InputRefused):
        settle(log, "x", status, value, by="ada", patience=0.0)


# ── races ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("change", CHANGES)
def test_while_an_effector_holds_the_key_nothing_is_changed(log, change):
    stage(log)
    now = log.clock()
    log.schedule.acquire(EFFECTS, [STREAM], "e", now=now, until=now + 60 * SECOND)
    before = written(log)
    with pytest.raises(RequestRefused, match="an effector is at work on this key"):
        change(log, "x", by="ada", patience=0.0)
    assert before == written(log)


Meanwhile = Callable[[EventLog], None]


@pytest.mark.parametrize(
    ("happens", "change", "then"),
    [
        (attempt, lambda log: cancel(log, "x", by="ada", patience=0.0), "ATTEMPTED"),
        (attempt, lambda log: settle(log, "x", "OK", by="ada", patience=0.0), "ATTEMPTED"),
        (lambda log: end(log, "EXPIRED", 0), lambda log: settle(log, "x", "OK", by="ada", patience=0.0), "EXPIRED"),
    ],
)
def test_whoever_reaches_the_log_first_has_decided(log, monkeypatch, happens: Meanwhile, change: Callable[[EventLog], object], then):
    stage(log)
    append_batch = log.append_batch

    def somebody_else(requests: object) -> object:
        monkeypatch.undo()
        happens(log)
        return append_batch(requests)

    monkeypatch.setattr(type(log), "append_batch", lambda self, requests: somebody_else(requests))
    with pytest.raises(RequestRefused, match=f"somebody else was faster; intent x is {then} now"):
        change(log)
    assert (then, True) == (standing(log, "x").status, unheld(log))


def test_a_person_whose_hold_ran_out_writes_nothing(log, monkeypatch):
    stage(log)
    append_batch = log.append_batch

    def overtaken(requests: list[object]) -> object:
        monkeypatch.undo()
        later = log.clock() + 3600 * SECOND
        log.schedule.acquire(EFFECTS, [STREAM], "e", now=later, until=later + SECOND)
        return append_batch(requests)

    monkeypatch.setattr(type(log), "append_batch", lambda self, requests: overtaken(requests))
    with pytest.raises(RequestRefused, match="somebody else was faster; intent x is STAGED now"):
        cancel(log, "x", by="ada", patience=0.0)


def test_an_event_is_made_in_answer_to_the_intent_it_is_about(log):
    stage(log)
    cancel(log, "x", by="ada", patience=0.0)
    *_, intent, done = log.read(STREAM)
    assert intent.event_id == done.causation
