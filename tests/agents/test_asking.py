"""What others tell a key: signals, cancellations, answers to approvals."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from intentlog.agents import Client, facts
from intentlog.agents.errors import ActivationCancelled, AnotherQuestion, InputRefused, RequestRefused
from tests.agents.world import Asked, Ctx, World

Code = Callable[..., Any]


@contextlib.contextmanager
def world_of(code: Code, **options: Any) -> Iterator[tuple[World, Client]]:
    with World(code, **options) as world:
        yield world, Client(world.log, world.app)


async def echo(ctx: Ctx, given: Any) -> Any:
    return given if not isinstance(given, Asked) else given.order


async def waits_for_go(ctx: Ctx, given: Any) -> Any:
    return [given, await ctx.signal("go")]


async def asks(ctx: Ctx, given: Any) -> Any:
    verdict = await ctx.approval("Pay?", channel="support", timeout=timedelta(hours=1), amount=given)
    return [verdict.approved, verdict.by, verdict.timed_out]


# ── signal ──


@pytest.mark.parametrize("when", ["before the input", "before the wait", "during the wait"])
def test_a_signal_is_not_lost_whenever_it_comes(when):
    with world_of(waits_for_go) as (world, client):
        if when == "before the input":
            client.signal("a", "k", "go", {"n": 1})
            world.run()
        handle = client.send("a", "k", "in")
        if when == "before the wait":
            client.signal("a", "k", "go", {"n": 1})
        world.run()
        if when == "during the wait":
            client.signal("a", "k", "go", {"n": 1})
            world.run()
        assert ["in", {"n": 1}] == handle.result(timeout=1)


def test_a_signal_after_the_wait_is_kept_for_the_next():
    with world_of(waits_for_go) as (world, client):
        first = client.send("a", "k", 1)
        client.signal("a", "k", "go", "one")
        world.run()
        client.signal("a", "k", "go", "two")
        world.run()
        second = client.send("a", "k", 2)
        world.run()
        assert ([1, "one"], [2, "two"]) == (first.result(timeout=1), second.result(timeout=1))


def test_a_signal_of_one_id_is_told_once():
    with world_of(waits_for_go) as (world, client):
        sent = [client.signal("a", "k", "go", "x", id="s-1") for _ in range(3)]
        assert ([False, True, True], 0) == ([each.duplicate for each in sent], world.log.head("a-k"))
        with pytest.raises(InputRefused, match="signal id 's-1' was used on a-k before"):
            client.signal("a", "k", "go", "y", id="s-1")
        with pytest.raises(InputRefused, match="Invalid signal name"):
            client.signal("a", "k", " ")


# ── cancel ──


def test_a_cancelled_activation_cleans_up_and_its_result_says_so():
    cleaned: list[str] = []

    async def code(ctx: Ctx, given: Any) -> Any:
        try:
            return await ctx.signal("go")
        finally:
            cleaned.append("up")

    with world_of(code) as (world, client):
        handle = client.send("a", "k", 1, id="in")
        world.run()
        asked = client.cancel("a", "k", by="ada", reason="a mistake")
        assert (0, "in", False) == (asked.seq, asked.input_id, asked.duplicate)
        assert client.cancel("a", "k", by="bob").duplicate
        world.run()
        with pytest.raises(ActivationCancelled, match="input 'in', was cancelled"):
            handle.result(timeout=1)
        assert ["up"] == cleaned[-1:]
        assert ["ada"] == [each.by for each in world.facts(facts.CancelRequested)]


def test_one_in_line_may_be_cancelled_and_the_others_go_on():
    with world_of(waits_for_go) as (world, client):
        first, second = client.send("a", "k", 1, id="one"), client.send("a", "k", 2, id="two")
        world.run()
        assert 1 == client.cancel("a", "k", input_id="two", by="ada").seq
        client.signal("a", "k", "go", "!")
        world.run()
        assert [1, "!"] == first.result(timeout=1)
        with pytest.raises(ActivationCancelled):
            second.result(timeout=1)


def test_nothing_open_is_nothing_to_cancel():
    with world_of(echo) as (world, client):
        with pytest.raises(RequestRefused, match="a-k has no open activation"):
            client.cancel("a", "k", by="ada")
        client.send("a", "k", 1, id="in")
        world.run()
        with pytest.raises(RequestRefused, match="no open input 'in': it is over"):
            client.cancel("a", "k", input_id="in", by="ada")
        with pytest.raises(RequestRefused, match="no open activation 7"):
            client.cancel("a", "k", seq=7, by="ada")
        assert [] == world.facts(facts.CancelRequested)


# ── approvals ──


@pytest.mark.parametrize("with_app", [True, False])
def test_a_question_is_found_answered_and_gone(with_app):
    with world_of(asks) as (world, client):
        client = client if with_app else Client(world.log)
        handle = client.send("a", "k", 42)
        world.run()
        (asked,) = client.pending_approvals()
        assert ("a", "k", "Pay?", "support", {"amount": 42}) == (asked.agent, asked.key, asked.question, asked.channel, asked.details)
        assert ([asked], [], [asked]) == (client.pending_approvals("a", "k"), client.pending_approvals("b"), client.pending_approvals(channel="support"))
        assert not client.approve(asked.agent, asked.key, asked.approval_id, by="ada").duplicate
        assert client.approve(asked.agent, asked.key, asked.approval_id, by="ada").duplicate
        assert [] == client.pending_approvals()
        with pytest.raises(RequestRefused, match="was approved by ada already; the first answer is final"):
            client.deny("a", "k", asked.approval_id, by="bob")
        world.run()
        assert [True, "ada", False] == handle.result(timeout=1)
        assert [asked.digest] == [each.digest for each in world.facts(facts.ApprovalDecided)]


def test_an_answer_to_what_is_expired_unknown_or_nobodys_is_a_clear_error():
    async def races(ctx: Ctx, given: Any) -> Any:
        await ctx.first(ctx.approval("Pay?", timeout=timedelta(hours=1)), ctx.signal("never mind"))
        return await ctx.signal("go")

    with world_of(asks) as (world, client):
        handle = client.send("a", "k", 42)
        world.run()
        (asked,) = client.pending_approvals()
        with pytest.raises(RequestRefused, match="has no open approval 'approval-9-9'"):
            client.approve("a", "k", "approval-9-9", by="ada")
        with pytest.raises(RequestRefused, match="it was never asked"):
            client.deny("a", "nobody", "approval-9-9", by="ada")
        world.clock.tick(3601)
        assert [] == client.pending_approvals()
        for digest in (b"", asked.digest, b"\0" * 32):
            with pytest.raises(RequestRefused, match=r"expired at .* UTC and reads as denied"):
                client.approve("a", "k", asked.approval_id, by="ada", digest=digest)
        world.run()
        assert [False, "", True] == handle.result(timeout=1)
        for digest in (b"", b"\0" * 32):
            with pytest.raises(RequestRefused, match=r"expired at .* and reads as denied; its activation is over"):
                client.approve("a", "k", asked.approval_id, by="ada", digest=digest)
    with world_of(races) as (world, client):
        client.send("a", "k", 1)
        world.run()
        (asked,) = client.pending_approvals()
        client.signal("a", "k", "never mind")
        world.run()
        assert [] == client.pending_approvals()
        with pytest.raises(RequestRefused, match="nobody waits"):
            client.approve("a", "k", asked.approval_id, by="ada")


def test_an_answer_that_comes_again_when_the_activation_is_over_changes_nothing_and_another_is_refused_by_name():
    with world_of(asks) as (world, client):
        client.send("a", "k", 42)
        world.run()
        (asked,) = client.pending_approvals()
        client.approve("a", "k", asked.approval_id, by="ada", digest=asked.digest)
        world.run()
        before = world.log.last_position()
        assert client.approve("a", "k", asked.approval_id, by="ada", digest=asked.digest).duplicate
        with pytest.raises(AnotherQuestion, match="the digest of what is asked is"):
            client.approve("a", "k", asked.approval_id, by="ada", digest=b"\0" * 32)
        with pytest.raises(RequestRefused, match="was approved by ada already; the first answer is final"):
            client.deny("a", "k", asked.approval_id, by="bob")
        assert before == world.log.last_position()


def test_a_question_whose_activation_was_cancelled_waits_for_nobody():
    with world_of(asks) as (world, client):
        client.send("a", "k", 42)
        world.run()
        (asked,) = client.pending_approvals()
        client.cancel("a", "k", by="bob")
        world.run()
        with pytest.raises(RequestRefused, match="nobody waits for an answer any more, for its activation is over"):
            client.approve("a", "k", asked.approval_id, by="ada")
