"""Answers that come back signed: which are taken, which drive nothing, and what is left of those."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import attrs
import pytest

from intentlog.agents import Client, facts
from intentlog.agents.approvals_answers import MOST_BYTES, STREAM, answer_signed, distrusted_answers, redrive_answer, sign_answer
from intentlog.agents.asking import PendingApproval
from intentlog.agents.errors import InputRefused, NotAuthentic, RequestRefused
from intentlog.agents.signing import KeyRing
from intentlog.replay import Verdict, replay_all
from tests.agents.world import Ctx, World

MAY, JUNE = KeyRing({"may": bytes(range(32))}), KeyRing({"june": bytes(32)})
BOTH = KeyRing({"june": bytes(32), "may": bytes(range(32))})


async def asks(ctx: Ctx, given: Any) -> Any:
    verdict = await ctx.approval("Pay?", channel="support", timeout=timedelta(hours=1), amount=given)
    return [verdict.approved, verdict.by, verdict.timed_out]


@contextlib.contextmanager
def asked() -> Iterator[tuple[World, PendingApproval]]:
    with World(asks) as world:
        client = Client(world.log)
        for key in ("k", "other"):
            client.send("a", key, 42)
        world.run()
        yield world, client.pending_approvals("a", "k")[0]


def signed(world: World, found: Any, keys: KeyRing = MAY, *, approved: bool = True, **named: Any) -> bytes:
    return sign_answer(keys, found, approved=approved, by="ada", reason="it is due", now=world.log.clock(), **named)


def verdicts(world: World) -> list[tuple[str, bool, str, str]]:
    found = list(world.log.read_all(types=["approval.decided"]))
    return [(each.stream, fact.approved, fact.by, fact.reason) for each in found for fact in (world.app.codec.decode_stored(each),)]


@pytest.mark.parametrize("approved", [True, False])
def test_a_signed_answer_is_recorded_once_by_name_and_reason_and_the_run_goes_on(approved):
    with asked() as (world, found):
        raw = signed(world, found, approved=approved)
        assert not answer_signed(world.log, raw, MAY).duplicate
        assert answer_signed(world.log, raw, BOTH).duplicate
        assert [("a-k", approved, "ada", "it is due")] == verdicts(world)
        world.run()
        assert [[approved, "ada", False]] == [each.output for each in world.facts(facts.Completed)]
        assert ([], []) == (distrusted_answers(world.log), list(world.log.read(STREAM)))


def test_whoever_answers_has_a_name():
    with asked() as (world, found), pytest.raises(InputRefused, match="say who it is"):
        sign_answer(MAY, found, approved=True, by=" ", now=world.log.clock())


def changed(**fields: Any) -> Callable[[World, PendingApproval], bytes]:
    return lambda world, found: json.dumps(json.loads(signed(world, found)) | fields).encode()


def elsewhere(**fields: Any) -> Callable[[World, PendingApproval], bytes]:
    """Signed by a surface that mistakes what was asked."""
    return lambda world, found: signed(world, attrs.evolve(found, **fields))


def late(world: World, found: PendingApproval) -> bytes:
    raw = signed(world, found)
    world.clock.tick(16 * 60)
    return raw


def early(world: World, found: PendingApproval) -> bytes:
    return sign_answer(MAY, found, approved=True, by="ada", now=world.log.clock() + 120_000_000)


FORGED: dict[str, tuple[Callable[[World, PendingApproval], bytes], str]] = {
    "replayed on another stream": (changed(stream="a-other"), "not one of this answer"),
    "replayed on another approval": (changed(approval="approval-1-0"), "not one of this answer"),
    "a no that became a yes": (lambda world, found: signed(world, found, approved=False).replace(b'"approved":false', b'"approved":true'), "not one of this"),
    "another name": (changed(by="eve"), "not one of this answer"),
    "another reason": (changed(reason=""), "not one of this answer"),
    "dated anew": (changed(decided_at=1), "not one of this answer"),
    "a digest of something else": (changed(digest="00" * 32), "not one of this answer"),
    "a digest that is none": (changed(digest="zz"), "not hexadecimal"),
    "a signature that is none": (changed(signature="zz"), "not hexadecimal"),
    "no signature": (changed(signature=""), "not one of this answer"),
    "a retired key": (lambda world, found: signed(world, found, JUNE), "the key 'june', which is not in the ring"),
    "another secret under this id": (lambda world, found: signed(world, found, KeyRing({"may": bytes(40)})), "not one of this answer"),
    "too old": (late, "was given 960 s ago; at most 900 s"),
    "from tomorrow": (early, "120 s ahead"),
    "signed for another question": (elsewhere(digest=b"\1" * 32), "the digest of what is asked is"),
    "signed for no stream": (elsewhere(stream="nonsense"), "Invalid stream"),
    "a word too many": (changed(more=1), "no signed answer"),
    "no answer at all": (lambda world, found: b"\xff\x00rubbish", "no signed answer"),
    "far too long": (lambda world, found: b"[" * (MOST_BYTES + 7), "65,543 bytes, and an answer at most 65,536"),
    "nested too deep": (lambda world, found: b"[" * 60_000, "no signed answer"),
}


@pytest.mark.parametrize("case", FORGED)
def test_what_is_not_authentic_drives_nothing_and_is_kept_with_its_bytes(case):
    make, said = FORGED[case]
    with asked() as (world, found):
        raw = make(world, found)
        for _ in range(2):
            with pytest.raises(NotAuthentic, match=said):
                answer_signed(world.log, raw, MAY)
        world.run()
        assert ([], []) == (verdicts(world), world.facts(facts.Completed))
        (letter,) = distrusted_answers(world.log)
        assert (raw[:MOST_BYTES], len(raw), 0) == (letter.raw, letter.size, letter.version)
        assert not any(secret.hex() in letter.why for secret in (bytes(range(32)), bytes(32)))
        assert {Verdict.SAME} == {each.verdict for each in replay_all(world.log, world.app)}


def test_an_authentic_answer_that_comes_too_late_or_second_is_refused_and_is_no_dead_letter():
    with asked() as (world, found):
        raw = signed(world, found)
        Client(world.log).deny("a", "k", found.approval_id, by="bob")
        with pytest.raises(RequestRefused, match="was denied by bob already; the first answer is final"):
            answer_signed(world.log, raw, MAY)
    with asked() as (world, found):
        world.clock.tick(3601)
        with pytest.raises(RequestRefused, match=r"expired at .* and reads as denied"):
            answer_signed(world.log, signed(world, found), MAY)
        world.run()
        assert [[False, "", True]] == [each.output for each in world.facts(facts.Completed)]
        with pytest.raises(RequestRefused, match="its activation is over"):
            answer_signed(world.log, signed(world, found), MAY)
        assert [] == distrusted_answers(world.log)


def test_rubbish_cannot_fill_the_log(monkeypatch):
    from intentlog.agents import approvals_answers

    monkeypatch.setattr(approvals_answers, "MOST_KEPT", 3)
    with asked() as (world, _):
        for number in range(5):
            with pytest.raises(NotAuthentic, match="eventlog dead-letters list" if number < 3 else "is not kept"):
                answer_signed(world.log, b"rubbish %d" % number, MAY)
        assert 3 == len(distrusted_answers(world.log))


def test_an_answer_by_a_key_that_was_missing_is_looked_at_again_as_of_when_it_came():
    with asked() as (world, found):
        with pytest.raises(NotAuthentic):
            answer_signed(world.log, signed(world, found, JUNE), MAY)
        world.clock.tick(30 * 60)
        with pytest.raises(NotAuthentic, match="still not authentic"):
            redrive_answer(world.log, 0, MAY, by="bob")
        assert redrive_answer(world.log, 0, BOTH, by="bob", reason="the ring had no June").approved
        assert ([("a-k", True, "ada", "it is due")], []) == (verdicts(world), distrusted_answers(world.log))
        assert facts.AnswerRedriven(0, "bob", "the ring had no June") == world.app.codec.decode_stored(list(world.log.read(STREAM))[-1])
        with pytest.raises(InputRefused, match="no distrusted answer 0"):
            redrive_answer(world.log, 0, BOTH, by="bob")
