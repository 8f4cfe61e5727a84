"""People's answers, signed on the log: a worker that insists hears of no other."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from intentlog.agents import App, Client, agent, facts
from intentlog.agents.approvals_answers import answer_signed, sign_answer
from intentlog.agents.intents import fact_id
from intentlog.agents.operating import vouch
from intentlog.agents.signing import KeyRing, KeysRefused, Signature
from intentlog.agents.vouching import outcome_verifier
from intentlog.effector.process import Process
from intentlog.eventlog.log import EventLog
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.versions import ANY
from intentlog.replay import Verdict, replay_all
from intentlog.replay.verify import FaultKind, verify_all

MAY, JUNE = KeyRing({"may": bytes(range(32))}), KeyRing({"june": bytes(32)})
STREAM = "desk-ann"


@agent("desk")
async def desk(ctx: Any, cents: int) -> Any:
    first = await ctx.approval("Pay?", timeout=timedelta(hours=1), cents=cents)
    second = await ctx.approval("Really?", timeout=timedelta(hours=1), cents=cents)
    return [first.approved, second.approved]


APP = App(agents=[desk])


class Desk:
    """A key that asks twice."""

    def __init__(self) -> None:
        self.log: EventLog = open_log("memory://")
        Client(self.log).send("desk", "ann", 5, id="i")
        self.serve()

    def serve(self, mode: str = "require", keys: KeyRing = MAY) -> None:
        made = Process(APP, self.log, "w", outcomes=outcome_verifier(mode, keys, APP.codec), with_effector=False)
        asyncio.run(asyncio.wait_for(made.run(until_idle=True), 20))

    def facts(self, kind: Any) -> list[Any]:
        return [fact for each in self.log.read(STREAM) if isinstance(fact := APP.codec.decode_stored(each), kind)]

    def asked(self) -> Any:
        return Client(self.log).pending_approvals()[0]

    def answer(self, keys: KeyRing | None) -> None:
        Client(self.log, keys=keys).approve("desk", "ann", self.asked().approval_id, by="ada")
        self.serve()


@pytest.fixture
def at() -> Any:
    made = Desk()
    yield made
    made.log.close()


def test_an_answer_with_keys_is_signed_in_its_append_and_one_without_is_not(at):
    at.answer(MAY)
    events = list(at.log.read(STREAM))
    (place,) = [number for number, each in enumerate(events) if each.type == "approval.decided"]
    signed = APP.codec.decode_stored(events[place + 1])
    assert MAY.verify_decision(Signature(signed.key_id, signed.signature), STREAM, events[place].schema, events[place].data) is None
    Client(at.log).approve("desk", "ann", at.asked().approval_id, by="ada")
    assert 1 == len(at.facts(facts.ApprovalSigned))


def test_a_worker_that_insists_goes_on_with_signed_answers(at):
    at.answer(MAY)
    raw = sign_answer(MAY, at.asked(), approved=True, by="ada", now=at.log.clock())
    answer_signed(at.log, raw, MAY)
    at.serve()
    assert ([[True, True]], []) == ([each.output for each in at.facts(facts.Completed)], at.facts(facts.StreamBlocked))
    assert {Verdict.SAME} == {each.verdict for each in replay_all(at.log, APP)}
    (report,) = verify_all(at.log, APP, keys=MAY)
    assert (True, 0) == (report.sound, report.unsigned)
    (report,) = verify_all(at.log, APP, keys=JUNE)
    assert (2, True) == ((fault := report.faults[FaultKind.SIGNATURE]).count, "the answer to approval-0-0" in fault.text)


@pytest.mark.parametrize("keys", [None, JUNE])
def test_a_yes_that_nobody_vouches_for_is_told_to_no_agent_until_somebody_does(at, keys):
    at.answer(keys)
    (blocked,) = at.facts(facts.StreamBlocked)
    why = "it is not signed" if keys is None else "the key 'june', which is not in the ring"
    assert (1, True, True) == (len(at.facts(facts.ApprovalRequested)), why in blocked.failure.message, "--approval approval-0-0" in blocked.failure.message)
    assert not vouch(at.log, STREAM, MAY, approval_id="approval-0-0", by="bob")
    at.serve()
    assert 2 == len(at.facts(facts.ApprovalRequested))


def test_permissive_takes_an_unsigned_answer_and_no_forged_one(at):
    Client(at.log).approve("desk", "ann", at.asked().approval_id, by="ada")
    at.serve("permissive")
    asked = at.asked()
    forged = facts.ApprovalDecided(asked.approval_id, asked.digest, True, "eve")
    events = [forged, facts.ApprovalSigned(asked.approval_id, "may", bytes(32))]
    at.log.append(STREAM, [APP.codec.stage(each, event_id=fact_id("x", n)) for n, each in enumerate(events)], ANY)
    at.log.schedule.wake("turn", STREAM, 0)
    at.serve("permissive")
    assert ([], 1) == (at.facts(facts.Completed), len(at.facts(facts.StreamBlocked)))


def test_nothing_is_verified_without_keys():
    assert outcome_verifier("off", None, APP.codec) is None
    with pytest.raises(KeysRefused, match="give --signing-keys"):
        outcome_verifier("require", None, APP.codec)
