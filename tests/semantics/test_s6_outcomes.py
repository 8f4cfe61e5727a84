"""S-6: what becomes of an intent."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from intentlog.agents import IntentInfo, Tool, facts, tool
from intentlog.agents.errors import ImpossibleHistory
from intentlog.agents.intents import CANCELLED, ERROR, EXPIRED, OK, REJECTED, UNKNOWN, fact_id
from intentlog.eventlog.errors import EventIdConflict
from intentlog.eventlog.versions import ANY
from tests.agents.world import START, STREAM, Ctx, World, told, waiting


def acting(name: str, **args: Any):
    async def code(ctx: Ctx) -> object:
        if ctx.is_resume:
            return [told(ctx).status, told(ctx).attempts]
        ctx.act(name, args, ttl=timedelta(minutes=1))
        return waiting()

    return code


def settled(world: World) -> facts.IntentSettled:
    (fact,) = world.facts(facts.IntentSettled)
    assert isinstance(fact, facts.IntentSettled)
    return fact


def test_ok_means_it_ran_and_its_result_is_recorded():
    """S-6.1"""
    with World(acting("pay", order="o-1")) as world:
        world.send()
        world.run()
        assert (OK, "re_o-1", 1) == (settled(world).status, settled(world).value, settled(world).attempts)
        assert ["intent.staged", "activation.suspended", "intent.attempted", "intent.settled"] == world.types()[1:5]


@pytest.mark.parametrize(
    "done, said",
    [(ValueError("no such card"), "no such card"), (object(), "cannot be recorded"), (SystemExit(1), "1"), (ValueError("\ud800"), "ValueError")],
    ids=["raised", "unencodable", "exit", "odd text"],
)
def test_error_means_it_ran_or_may_have(done, said):
    """S-6.1"""
    with World(acting("fragile", what="x")) as world:
        world.hands.script = [done]
        world.send()
        world.run()
        assert (ERROR, 1) == (settled(world).status, settled(world).attempts)
        assert said in str(settled(world).failure)
        assert [[ERROR, 1]] == world.outputs()


def test_error_also_when_it_ran_out_of_time():
    """S-6.1"""

    @tool(side_effect=True, timeout=timedelta(milliseconds=50))
    async def slow() -> None:
        import asyncio

        await asyncio.sleep(30)

    with World(acting("slow"), tools=[slow]) as world:
        world.send()
        world.run()
        assert (ERROR, "TimedOut") == (settled(world).status, settled(world).failure.type)  # type: ignore[union-attr]


def staged(world: World, name: str, **args: Any) -> None:
    """An intent as an app with other tools would have staged it."""
    world.send()
    world.run(worker=False)
    intent = facts.IntentStaged("i-1", 0, 0, name, args, b"digest", START + 60_000_000)
    world.append(intent, facts.Suspended(0, START, 1, 0, ("i-1",), "all", START + 60_000_000))


@pytest.mark.parametrize(
    "name, args, failure",
    [
        ("gone", {}, "UnknownTool"),
        ("read", {"what": "x"}, "WrongToolKind"),
        ("pay", {"order": 1}, "ArgumentRefused"),
        ("pay", {"order": "o", "intent": 1}, "ArgumentRefused"),
    ],
)
def test_rejected_means_it_never_ran(name, args, failure):
    """S-6.1"""
    with World(acting("pay", order="o-1")) as world:
        staged(world, name, **args)
        world.run()
        assert (REJECTED, failure, 0) == (settled(world).status, settled(world).failure.type, settled(world).attempts)  # type: ignore[union-attr]
        assert ([], 0) == (world.hands.calls, world.hands.reads)
        assert [[REJECTED, 0]] == world.outputs()


def test_expired_means_it_was_past_its_deadline_when_first_looked_at():
    """S-6.1, S-6.3"""
    with World(acting("pay", order="o-1")) as world:
        world.send()
        world.run(effector=False)
        world.later(60)
        assert (EXPIRED, 0, []) == (settled(world).status, settled(world).attempts, world.hands.calls)


def test_an_intent_is_run_up_to_the_moment_before_its_deadline():
    """S-6.3"""
    with World(acting("pay", order="o-1")) as world:
        world.send()
        world.run(effector=False)
        world.later(59.999)
        assert OK == settled(world).status


def test_cancelled_is_what_a_withdrawn_intent_reads():
    """S-6.1"""
    with World(acting("pay", order="o-1")) as world:
        world.send()
        world.run(effector=False)
        world.append(facts.IntentSettled(world.facts(facts.IntentStaged)[0].intent_id, CANCELLED, settled_by="a person"))
        world.run()
        assert ([[CANCELLED, 0]], []) == (world.outputs(), world.hands.calls)


def test_unknown_is_an_attempt_whose_end_was_never_seen():
    """S-6.1, S-6.5"""
    with World(acting("pay", order="o-1")) as world:
        world.send()
        world.run(crash="tool.called")
        world.run()
        assert (UNKNOWN, 1, [("pay", "o-1")]) == (settled(world).status, settled(world).attempts, world.hands.calls)


def test_the_first_settlement_is_final_and_the_log_itself_refuses_another():
    """S-6.2"""
    with World(acting("pay", order="o-1")) as world:
        world.send()
        world.run()
        intent_id = settled(world).intent_id
        other = world.app.codec.stage(facts.IntentSettled(intent_id, ERROR), event_id=fact_id("settled", intent_id))
        with pytest.raises(EventIdConflict):
            world.log.append(STREAM, [other], ANY)


def test_a_second_settlement_is_no_history():
    """S-6.2"""
    with World(acting("pay", order="o-1")) as world:
        world.send()
        world.run(effector=False)
        intent_id = world.facts(facts.IntentStaged)[0].intent_id
        world.append(facts.IntentSettled(intent_id, OK), facts.IntentSettled(intent_id, ERROR))
        with pytest.raises(ImpossibleHistory, match=r"a-k version 4: .*settled"):
            world.fold()


@pytest.mark.parametrize("name, args, status", [("pay", {"order": "o"}, UNKNOWN), ("push", {"text": "x"}, ERROR)])
def test_past_the_deadline_an_attempt_without_an_end_is_unknown_or_the_idempotent_tools_error(name, args, status):
    """S-6.3"""
    with World(acting(name, **args)) as world:
        world.send()
        world.run(crash="tool.called")
        calls = len(world.hands.calls)
        world.later(61)
        assert (status, calls) == (settled(world).status, len(world.hands.calls))


def test_a_stored_outcome_is_reported_after_the_deadline_as_it_is():
    """S-6.3"""
    with World(acting("pay", order="o-1")) as world:
        world.send()
        world.run(effector=False)
        world.run(worker=False, crash="settled")
        world.later(61)
        assert [[OK, 1]] == world.outputs()


def test_an_attempt_is_durable_before_the_tool_is_called_with_who_which_and_token():
    """S-6.4"""
    with World(acting("pay", order="o-1")) as world:
        world.send()
        world.run(crash="attempt.recorded")
        (attempt,) = world.facts(facts.IntentAttempted)
        assert ([], 1, "e") == (world.hands.calls, attempt.attempt, attempt.effector)
        assert attempt.token > 0


def test_after_a_crash_an_idempotent_tool_is_attempted_again_with_the_same_id():
    """S-6.5"""
    with World(acting("push", text="x")) as world:
        world.send()
        world.run(crash="tool.called")
        world.run()
        assert [("push", "x")] * 2 == world.hands.calls
        assert [1, 2] == [info.attempt for info in world.hands.intents]
        assert 1 == len({info.intent_id for info in world.hands.intents})
        assert (OK, 2) == (settled(world).status, settled(world).attempts)


def with_reconcile(answer: Any) -> tuple[Tool, list[Any]]:
    asked: list[Any] = []

    def look(info: IntentInfo, order: str) -> Any:
        asked.append((info.intent_id, order))
        if isinstance(answer, Exception):
            raise answer
        return answer

    @tool(side_effect=True, reconcile=look)
    async def transfer(order: str) -> str:
        asked.append("called")
        return "tr_1"

    return transfer, asked


@pytest.mark.parametrize(
    "answer, status, value", [("tr_9", OK, "tr_9"), (None, UNKNOWN, None), (RuntimeError("down"), UNKNOWN, None)], ids=["told", "could not tell", "failed"]
)
def test_after_a_crash_another_tools_reconcile_function_is_asked_and_the_tool_is_never_called_again(answer, status, value):
    """S-6.5"""
    transfer, asked = with_reconcile(answer)
    with World(acting("transfer", order="o-1"), tools=[transfer]) as world:
        world.send()
        world.run(crash="tool.called")
        world.run()
        intent_id = world.facts(facts.IntentStaged)[0].intent_id
        assert ["called", (intent_id, "o-1")] == asked
        assert (status, value) == (settled(world).status, settled(world).value)


def test_order_within_a_key_is_kept_and_a_poisoned_intent_blocks_no_other():
    """S-6.6"""

    async def code(ctx: Ctx) -> object:
        for what in "abc":
            ctx.act("fragile", what=what)
        return "done"

    with World(code) as world:
        world.hands.script = [ValueError("poison"), "x", "y"]
        world.send()
        world.run()
        assert [("fragile", what) for what in "abc"] == world.hands.calls
        assert [ERROR, OK, OK] == [fact.status for fact in world.facts(facts.IntentSettled)]


def test_a_settlement_is_durable_before_the_agent_hears_of_it():
    """S-6.8"""
    seen: list[list[str]] = []

    async def code(ctx: Ctx) -> object:
        if ctx.is_resume:
            await ctx.run(lambda: seen.append(world.types()))
            return "done"
        ctx.act("pay", order="o-1")
        return waiting()

    with World(code) as world:
        world.send()
        world.run()
        assert "intent.settled" == seen[0][-1]
