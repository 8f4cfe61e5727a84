"""Intents and outcomes that are not authentic, at the command line: found, shown with their bytes, vouched for by whoever has keys."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from intentlog.agents import facts
from intentlog.agents.app import runtime_codec
from intentlog.agents.intents import settlement_event_id
from intentlog.eventlog.ids import id_maker
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.versions import ANY
from tests.cli.conftest import call

STREAM = "orders-ann"


@pytest.fixture
def keys(shop: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (shop / "keys").write_text(f"may:{bytes(range(32)).hex()}\n")
    (shop / "others").write_text(f"june:{bytes(32).hex()}\n")
    monkeypatch.delenv("EVENTLOG_SIGNING_KEYS", raising=False)
    assert 0 == call("send", "orders", "ann", "order.placed", '{"order_id": "o-1"}', "--id", "o-1").exit_code
    return shop


def ring(folder: Path, name: str = "keys") -> tuple[str, str]:
    return "--signing-keys", f"file:{folder / name}"


def letters(*words: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in call("dead-letters", "list", "--json", *words).stdout.splitlines()]


@pytest.fixture
def distrusted(keys: Path) -> tuple[Path, str]:
    """An intent that was staged without keys and met an effector that insists."""
    assert 0 == call("worker", "shop:app", "--until-idle").exit_code
    assert 0 == call("run", "shop:app", "--until-idle", *ring(keys), "--verify-intents", "require").exit_code
    (found,) = letters()
    return keys, str(found["intent"])


def test_a_distrusted_intent_is_among_the_dead_letters_with_all_its_bytes(distrusted):
    _, intent = distrusted
    (found,) = letters("--status", "distrusted", "--tool", "ship", "--key", "ann")
    assert (STREAM, "distrusted", "ship", "it is not signed", 0) == (found["stream"], found["kind"], found["tool"], found["why"], found["attempts"])
    (staged,) = [json.loads(line) for line in call("tail", "--json", "--type", "intent.staged").stdout.splitlines()]
    raw = base64.b64decode(found["payload"]["$bytes"])
    assert staged["fields"] == {**runtime_codec().tree(raw), "digest": staged["fields"]["digest"]}
    assert ([], [], []) == (letters("--tool", "pay"), letters("--key", "bob"), letters("--older-than", "1h"))
    assert "No such dead letter." in call("dead-letters", "list", "--status", "parked").stdout
    assert f"intent {intent}" in call("dead-letters", "list").stdout
    shown = call("dead-letters", "show", STREAM).stdout
    assert [True] * 4 == [each in shown for each in (intent, "base64 ", "signed    not at all", f"redrive {STREAM} --intent {intent}")]
    assert intent == json.loads(call("dead-letters", "show", STREAM, "--intent", intent, "--json").stdout)["intent"]
    assert intent == json.loads(call("dead-letters", "show", STREAM, "--intent", intent[:6], "--json").stdout)["intent"]
    for nobody in ("nobody", intent[:5]):
        assert 3 == call("dead-letters", "show", STREAM, "--intent", nobody).exit_code


def test_whoever_has_no_keys_or_no_reason_vouches_for_nothing(distrusted):
    folder, intent = distrusted
    words = ("dead-letters", "redrive", STREAM, "--intent", intent)
    assert (2, True) == ((done := call(*words, "--reason", "please")).exit_code, "whoever has keys" in done.stderr)
    assert (2, True) == ((done := call(*words, *ring(folder))).exit_code, "say why, with --reason" in done.stderr)
    assert 2 == call(*words, *ring(folder), "--seq", "0", "--reason", "x").exit_code
    for wrong in (("redrive", STREAM), ("redrive", STREAM, "--seq", "7"), ("show", STREAM, "--seq", "7"), ("show", STREAM, "--intent", "nobody")):
        done = call("dead-letters", *wrong)
        assert (3, True) == (done.exit_code, f"There is: intent {intent}, distrusted: --intent {intent}." in done.stderr), done.stderr
    assert not [line for line in call("tail", "--json").stdout.splitlines() if "readmitted" in line]


def test_an_intent_that_is_vouched_for_is_carried_out_and_the_log_says_by_whom(distrusted):
    folder, intent = distrusted
    words = ("dead-letters", "redrive", STREAM, "--intent", intent[:6], "--by", "ada", "--reason", "before there were keys", *ring(folder))
    assert "effectors that know the key may carry it out" in call(*words).stdout
    assert (3, True) == ((done := call(*words)).exit_code, "is STAGED; only one that is DISTRUSTED" in done.stderr)
    assert [] == letters()
    assert 0 == call("run", "shop:app", "--until-idle", *ring(folder), "--verify-intents", "require", "--verify-outcomes", "require").exit_code
    assert 1 == (folder / "ledger.txt").read_text().count(intent)
    before = call("tail", "--json").stdout
    for _ in range(2):  # the same words again are done before, whichever of the two they were for
        done = call(*words)
        assert (0, True, before) == (done.exit_code, "done before: nothing was written" in done.stdout, call("tail", "--json").stdout), done.stderr
    story = call("show", STREAM).stdout
    assert [True] * 3 == [each in story for each in ("IntentReadmitted", "by ada with key may: before there were keys", "OutcomeSigned")]
    assert "completed" in call("streams", STREAM).stdout
    assert 0 == call("replay", "--all", "--app", "shop:app").exit_code
    assert 0 == call("verify", "--app", "shop:app", *ring(folder)).exit_code


def test_one_that_is_vouched_for_with_a_strange_key_is_distrusted_again(distrusted):
    folder, intent = distrusted
    assert 0 == call("dead-letters", "redrive", STREAM, "--intent", intent, "--reason", "please", *ring(folder, "others")).exit_code
    assert 0 == call("run", "shop:app", "--until-idle", *ring(folder), "--verify-intents", "require").exit_code
    assert ([True], False) == (["june" in each["why"] for each in letters()], (folder / "ledger.txt").exists())


def test_an_outcome_that_nobody_signed_blocks_its_stream_until_somebody_vouches_for_it(keys):
    assert 0 == call("worker", "shop:app", "--until-idle", *ring(keys)).exit_code
    with_codec, new_id = runtime_codec(), id_maker()
    (staged,) = [json.loads(line)["fields"] for line in call("tail", "--json", "--type", "intent.staged").stdout.splitlines()]
    intent = staged["intent_id"]
    log = open_log("sqlite:///eventlog.db")
    forged = with_codec.stage(facts.IntentSettled(intent, "OK", "shipped to me", settled_by="x"), event_id=settlement_event_id(intent, 1))
    log.append(STREAM, [forged], ANY)
    log.append(STREAM, [with_codec.stage(facts.SignalReceived("s", "go"), event_id=new_id())], ANY)
    log.schedule.wake("turn", STREAM, 0)
    log.close()
    assert 0 == call("worker", "shop:app", "--until-idle", *ring(keys), "--verify-outcomes", "require").exit_code
    (found,) = letters("--status", "blocked")
    assert ("OutcomeDistrusted", True) == (found["failure"]["type"], "it is not signed" in found["failure"]["message"])
    assert f"--intent {intent}" in call("dead-letters", "show", STREAM).stdout
    told = call("verify", *ring(keys))
    assert (0, True) == (told.exit_code, "1 intents, outcomes and answers are not signed" in told.stderr)
    done = call("dead-letters", "redrive", STREAM, "--intent", intent, "--reason", "seen there", *ring(keys))
    assert (0, True) == (done.exit_code, f"the outcome of intent {intent} is vouched for" in done.stdout)
    assert 0 == call("worker", "shop:app", "--until-idle", *ring(keys), "--verify-outcomes", "require").exit_code
    assert ([], True) == (letters(), "completed" in call("streams", STREAM).stdout)


def test_a_signature_that_is_wrong_is_found_by_verify(keys):
    assert 0 == call("run", "shop:app", "--until-idle", *ring(keys)).exit_code
    assert 0 == call("verify", *ring(keys)).exit_code
    told = call("verify", *ring(keys, "others"))
    assert (1, True) == (told.exit_code, "not signed by who seems to have signed it" in told.stdout)


@pytest.mark.parametrize("command", ["run", "worker"])
def test_outcomes_are_verified_with_keys_or_not_at_all(keys, command):
    done = call(command, "shop:app", "--until-idle", "--verify-outcomes", "require")
    assert (2, True) == (done.exit_code, "--verify-outcomes require needs keys" in done.stderr)


@pytest.mark.parametrize("words", [("settle", "OK", '"shipped"'), ("cancel",)])
def test_what_a_person_says_of_an_intent_is_signed_with_the_persons_keys(keys, words):
    assert 0 == call("worker", "shop:app", "--until-idle", *ring(keys)).exit_code
    (staged,) = [json.loads(line)["fields"] for line in call("tail", "--json", "--type", "intent.staged").stdout.splitlines()]
    assert 0 == call("intents", words[0], staged["intent_id"], *words[1:], *ring(keys)).exit_code
    assert [STREAM] == [json.loads(line)["stream"] for line in call("tail", "--json", "--type", "outcome.signed").stdout.splitlines()]


def test_a_question_that_a_surface_refused_is_a_dead_letter_until_it_is_answered_or_over(shop):
    log = open_log("sqlite:///eventlog.db")
    codec, new_id = runtime_codec(), id_maker()

    def record(fact: object) -> None:
        log.append("desk-ann", [codec.stage(fact, event_id=new_id())], ANY)

    for name, seconds in (("a1", 3600), ("a2", -1)):
        record(facts.ApprovalRequested(name, 0, 0, "Pay?", "c", {}, b"d", log.clock() + seconds * 1_000_000))
        record(facts.ApprovalUndelivered(name, "webhook+https://chat.example/…", "webhook+https://chat.example/… answered 410", 5, "e"))
    (found,) = letters()
    assert ("undelivered", "a1", 5) == (found["kind"], found["approval"], found["tries"])
    assert "eventlog approvals show desk-ann a1" in call("dead-letters", "show", "desk-ann").stdout
    assert "undelivered: webhook" in call("dead-letters", "list", "--status", "undelivered").stdout
    assert "after 5 tries" in call("show", "desk-ann").stdout
    redrive = ("dead-letters", "redrive", "desk-ann", "--approval")
    for wrong in (("redrive", "desk-ann"), (*redrive[1:], "a7"), ("show", "desk-ann", "--seq", "0")):
        assert (3, True) == (
            (done := call("dead-letters", *wrong)).exit_code,
            "There is: question a1, undelivered; to redrive it: --approval a1." in done.stderr,
        )
    assert "a1 will be published again" in call(*redrive, "a1", "--by", "ada", "--reason", "mended").stdout
    assert ([], [3, 3]) == (letters(), [call(*redrive, name).exit_code for name in ("a1", "a2")])
    assert "ApprovalRedriven" in call("show", "desk-ann").stdout
    record(facts.ApprovalUndelivered("a1", "webhook+https://chat.example/…", "webhook+https://chat.example/… answered 410", 5, "e"))
    assert 1 == len(letters())
    record(facts.ApprovalDecided("a1", b"d", True, "ada"))
    log.close()
    assert [] == letters()
