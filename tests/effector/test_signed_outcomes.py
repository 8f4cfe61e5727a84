"""Signed outcomes, from the effector that settles to the worker that insists; and intents that a person vouches for."""

from __future__ import annotations

from typing import Any

import pytest

from intentlog.agents import facts
from intentlog.agents.client import Client
from intentlog.agents.errors import RequestRefused
from intentlog.agents.intents import readmission_event_id, settlement_event_id
from intentlog.agents.operating import cancel, readmit, settle, standing, standings, vouch
from intentlog.agents.signing import KeyRing, Signature, verifier
from intentlog.agents.vouching import outcome_verifier
from intentlog.effector.outbox import Outbox
from intentlog.eventlog.clock import SECOND
from intentlog.eventlog.versions import ANY
from intentlog.replay import Verdict, replay_all
from intentlog.replay.verify import FaultKind, verify_all
from tests.effector.test_signed import BOTH, NEW, NEW_ID, OLD, Shop

STREAM = "orders-ann"


@pytest.fixture
def shop() -> Any:
    made = Shop("memory://")
    yield made
    made.log.close()


def work(shop: Shop, mode: str = "require", ring: KeyRing = NEW) -> None:
    """A worker alone that looks at outcomes."""
    shop.serve_worker(outcome_verifier(mode, ring, shop.app.codec), ring)


def hands(shop: Shop, ring: KeyRing | None) -> None:
    shop.serve(keys=ring, verifies=verifier("off", ring))


def kinds(shop: Shop) -> list[str]:
    return [each.type for each in shop.log.read(STREAM)]


def ids(shop: Shop) -> list[str]:
    return [each.intent_id for each in shop.facts("intent.staged")]


def forge(shop: Shop, *, signed: bytes | None = None, value: str = "paid 1000000") -> None:
    """Outcomes for both intents by somebody who may write to the log."""
    for intent_id in ids(shop):
        settled = shop.app.codec.stage(facts.IntentSettled(intent_id, "OK", value, settled_by="x"), event_id=settlement_event_id(intent_id, 1))
        events = [settled]
        if signed is not None:
            events.append(shop.app.codec.stage(facts.OutcomeSigned(intent_id, "new", signed), event_id=NEW_ID()))
        shop.log.append(STREAM, events, ANY)
    shop.log.schedule.wake("turn", STREAM, 0)


def blocked(shop: Shop) -> list[str]:
    return [each.failure.message for each in shop.facts("stream.blocked")]


def completed(shop: Shop, stream: str = STREAM) -> list[Any]:
    return [each.output for each in shop.facts("activation.completed", stream)]


# ── signing and looking ─────────────────────────────────────────────────────────────────────────────────────────────


def test_an_effector_with_keys_signs_each_outcome_in_the_append_that_settles_it(shop):
    shop.stage(NEW)
    hands(shop, NEW)
    settled, signed = shop.events("intent.settled"), shop.facts("outcome.signed")
    assert ([each.version + 1 for each in settled], 2) == ([each.version for each in shop.events("outcome.signed")], len(signed))
    for outcome, vouched in zip(settled, signed, strict=True):
        assert NEW.verify_outcome(Signature(vouched.key_id, vouched.signature), STREAM, outcome.schema, outcome.data) is None
        assert NEW.verify_intent(Signature(vouched.key_id, vouched.signature), STREAM, outcome.schema, outcome.data)
    assert [["OK", "OK"]] == completed(shop)
    assert shop.replays()


def test_without_keys_nothing_more_is_written(shop):
    shop.stage(None)
    hands(shop, None)
    assert "outcome.signed" not in kinds(shop)


@pytest.mark.parametrize("mode", ["permissive", "require"])
def test_a_worker_that_insists_goes_on_with_signed_outcomes(shop, mode):
    shop.stage(NEW)
    shop.serve_hands(NEW)
    work(shop, mode)
    assert ([["OK", "OK"]], []) == (completed(shop), blocked(shop))
    assert shop.replays()


FORGED: dict[str, tuple[str, bytes | None, str]] = {
    "unsigned": ("require", None, "it is not signed"),
    "signed wrongly": ("require", bytes(32), "its signature with the key new is not one of these bytes on this stream"),
    "signed wrongly, where unsigned ones are taken": ("permissive", bytes(32), "its signature with the key new is not one of these bytes"),
}


@pytest.mark.parametrize("case", FORGED)
def test_an_outcome_that_nobody_vouches_for_is_told_to_no_agent_and_other_keys_go_on(shop, case):
    mode, signed, why = FORGED[case]
    shop.stage(NEW)
    forge(shop, signed=signed)
    Client(shop.log, shop.app).send("orders", "bob", 7, id="o-2")
    work(shop, mode)
    assert ([], 1) == (completed(shop), len(blocked(shop)))
    first = shop.events("intent.settled")[0]
    assert f"{STREAM} version {first.version}: the outcome of intent {ids(shop)[0]} is not authentic: {why}" in blocked(shop)[0]
    assert [first.version] == [each.at_version for each in shop.facts("stream.blocked")]
    assert ["OutcomeDistrusted"] == [each.failure.type for each in shop.facts("stream.blocked")]
    shop.serve_hands(NEW)
    work(shop, mode)
    assert ([["OK", "OK"]], []) == (completed(shop, "orders-bob"), completed(shop))
    shop.log.schedule.wake("turn", STREAM, 0)
    work(shop, mode)
    assert 1 == len(blocked(shop))  # said once
    for intent_id in ids(shop):
        assert not vouch(shop.log, STREAM, NEW, intent_id=intent_id, by="ada")
        assert vouch(shop.log, STREAM, NEW, intent_id=intent_id, by="ada")
    work(shop, mode)
    assert [["OK", "OK"]] == completed(shop)
    assert {Verdict.SAME} == {each.verdict for each in replay_all(shop.log, shop.app)}


def test_permissive_takes_outcomes_without_a_signature_and_off_looks_at_none(shop):
    shop.stage(NEW)
    forge(shop)
    work(shop, "permissive")
    assert [["OK", "OK"]] == completed(shop)


def test_an_outcome_signed_elsewhere_is_of_no_use_here(shop):
    shop.stage(NEW)
    made = NEW.sign_outcome("orders-bob", 1, b"whatever")
    forge(shop, signed=made.signature)
    work(shop)
    assert ([], 1) == (completed(shop), len(blocked(shop)))


def test_what_a_person_says_is_signed_with_the_persons_keys(shop):
    shop.stage(NEW)
    first, second = ids(shop)
    settle(shop.log, first, "OK", "re_1", by="ada", keys=NEW)
    cancel(shop.log, second, by="ada")
    work(shop)
    assert (1, [first]) == (len(blocked(shop)), [each.intent_id for each in shop.facts("outcome.signed")])
    vouch(shop.log, STREAM, NEW, intent_id=second, by="ada")
    work(shop)
    assert [["OK", "CANCELLED"]] == completed(shop)


def test_only_an_outcome_that_is_there_can_be_vouched_for(shop):
    shop.stage(NEW)
    for name in ({"intent_id": ids(shop)[0]}, {"approval_id": "approval-0-0"}):
        with pytest.raises(RequestRefused, match="no outcome of .* to vouch for".replace(".*", next(iter(name.values())))):
            vouch(shop.log, STREAM, NEW, by="ada", **name)


# ── vouching for intents ────────────────────────────────────────────────────────────────────────────────────────────


def distrusted(shop: Shop) -> list[str]:
    shop.stage(OLD)
    shop.serve(verifies=verifier("require", NEW))
    assert ["DISTRUSTED"] * 2 == [each.status for each in standings(shop.log)]
    return ids(shop)


def test_an_intent_that_a_person_vouches_for_is_carried_out_once_by_who_insists(shop):
    first, second = distrusted(shop)
    done = readmit(shop.log, first, NEW, by="ada", reason="the old key was retired too early")
    assert ("STAGED", 1, False) == (done.intent.status, done.intent.readmissions, done.duplicate)
    for _ in range(2):
        shop.serve(keys=NEW, verifies=verifier("require", NEW))
    assert ([5], ["OK"]) == (shop.paid, [each.status for each in shop.facts("intent.settled")])
    (fact,) = shop.facts("intent.readmitted")
    assert (first, 1, "ada", "the old key was retired too early", 0) == (fact.intent_id, fact.number, fact.by, fact.reason, fact.attempts)
    assert "DISTRUSTED" == standing(shop.log, second).status
    with pytest.raises(RequestRefused, match="is OK; only one that is DISTRUSTED"):
        readmit(shop.log, first, NEW, by="ada", reason="again")
    readmit(shop.log, second, BOTH, by="ada", reason="this one, too")
    shop.serve(keys=NEW, verifies=verifier("require", NEW))
    assert ([5, 6], [["OK", "OK"]]) == (shop.paid, completed(shop))
    assert shop.replays()
    (report,) = verify_all(shop.log, shop.app, [STREAM])
    assert report.sound, report.faults


def test_a_readmission_that_no_key_vouches_for_is_distrusted_again(shop):
    first, _ = distrusted(shop)
    readmit(shop.log, first, OLD, by="eve", reason="please")
    shop.serve(verifies=verifier("require", NEW))
    assert ([], "DISTRUSTED", 3) == (shop.paid, standing(shop.log, first).status, len(shop.facts("intent.distrusted")))
    assert "the key 'old', which is not in the ring" in shop.facts("intent.distrusted")[-1].why
    readmit(shop.log, first, NEW, by="ada", reason="now by one that you know")
    shop.serve(verifies=verifier("require", NEW))
    assert [5] == shop.paid


def test_a_readmission_is_of_no_use_a_second_time_or_for_another_intent(shop):
    first, second = distrusted(shop)
    readmit(shop.log, first, NEW, by="ada", reason="fine")
    shop.serve(verifies=verifier("require", NEW))
    (fact,) = shop.facts("intent.readmitted")
    copies = [facts.IntentReadmitted(first, number, fact.by, fact.reason, 0, fact.schema, fact.payload, fact.key_id, fact.signature) for number in (1, 2)]
    copies.append(facts.IntentReadmitted(second, 1, fact.by, fact.reason, 0, fact.schema, fact.payload, fact.key_id, fact.signature))
    for copy in copies:
        shop.log.append(STREAM, [shop.app.codec.stage(copy, event_id=NEW_ID())], ANY)
    for copy in copies[1:]:  # under the id that the store has once for each
        shop.log.append(STREAM, [shop.app.codec.stage(copy, event_id=readmission_event_id(STREAM, copy.intent_id, copy.number))], ANY)
    shop.serve(verifies=verifier("require", NEW))
    assert ([5], 1) == (shop.paid, len(shop.facts("intent.attempted")))


def test_what_is_past_its_deadline_or_altered_is_not_readmitted(shop):
    first, second = distrusted(shop)
    cancel(shop.log, second, by="ada")
    with pytest.raises(RequestRefused, match="only one that is DISTRUSTED"):
        readmit(shop.log, second, NEW, by="ada", reason="no")
    shop.log.append(STREAM, [shop.app.codec.stage(facts.IntentDistrusted(first, "made up", "x", 1, b"other bytes"), event_id=NEW_ID())], ANY)
    with pytest.raises(RequestRefused, match="not those of intent"):
        readmit(shop.log, first, NEW, by="ada", reason="no")
    clock = shop.log.clock
    shop.log.clock = lambda: clock() + 7200 * SECOND
    with pytest.raises(RequestRefused, match="past its deadline"):
        readmit(shop.log, first, NEW, by="ada", reason="no")


def test_a_readmitted_intent_is_found_though_the_checkpoint_lies_behind_its_staging(shop):
    first, _ = distrusted(shop)
    after = shop.log.last_position()
    readmit(shop.log, first, NEW, by="ada", reason="fine")
    outbox = Outbox(shop.app.codec, after)
    for event in shop.log.read_all(after=after):
        outbox.take(event)
    pending = outbox.first(STREAM)
    assert pending is not None
    assert (first, {"cents": 5}, 1) == (pending.intent.intent_id, pending.intent.args, len(outbox))
    assert after == outbox.low_water


# ── looking back ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_verify_with_keys_finds_what_is_signed_wrongly_and_counts_what_is_not_signed(shop):
    shop.stage(NEW)
    hands(shop, NEW)
    (report,) = verify_all(shop.log, shop.app, [STREAM], keys=NEW)
    assert (True, 0) == (report.sound, report.unsigned)
    (report,) = verify_all(shop.log, shop.app, [STREAM], keys=OLD)
    fault = report.faults[FaultKind.SIGNATURE]
    assert (4, True) == (fault.count, "the key 'new', which is not in the ring (old)" in fault.text)
    (report,) = verify_all(shop.log, shop.app, [STREAM])
    assert (True, 0) == (report.sound, report.unsigned)
    Client(shop.log, shop.app).send("orders", "bob", 7, id="o-2")
    hands(shop, None)
    (report,) = verify_all(shop.log, shop.app, ["orders-bob"], keys=NEW)
    assert (True, 4) == (report.sound, report.unsigned)


def test_verify_calls_an_intent_that_is_set_aside_no_fault_of_a_checkpoint(shop):
    distrusted(shop)
    assert shop.log.checkpoints.all()
    (report,) = verify_all(shop.log, shop.app, [STREAM])
    assert (True, [True, True]) == (report.sound, [each.distrusted for each in report.open_intents])
