"""A client from outside: send, signal, cancel, answer, and what becomes of it, sync and async."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from intentlog.agents import AsyncClient, Client, Complete, RetryPolicy, facts
from intentlog.agents.errors import ActivationParked, DefinitionError, InputRefused, ResultTimedOut
from tests.agents.world import Account, Asked, Ctx, Paid, World

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


# ── send and result ──


def test_what_was_sent_ends_with_its_result():
    with world_of(echo) as (world, client):
        handle = client.send("a", "k", Asked("o-1"), id="in")
        world.run()
        assert ("o-1", "in", "a", "k", False) == (handle.result(timeout=1), handle.id, handle.agent, handle.key, handle.duplicate)


def test_the_same_id_is_accepted_once_and_another_payload_under_it_is_refused():
    with world_of(echo) as (world, client):
        first, again = client.send("a", "k", 1, id="in"), client.send("a", "k", 1, id="in")
        world.run()
        assert ((False, True), 1) == ((first.duplicate, again.duplicate), again.result(timeout=1))
        with pytest.raises(InputRefused, match="used on a-k before"):
            client.send("a", "k", 2, id="in")


def test_without_the_app_an_event_is_written_as_with_it():
    with world_of(echo) as (world, client):
        assert not Client(world.log).send("a", "k", Asked("o-1"), id="in").duplicate
        assert client.send("a", "k", Asked("o-1"), id="in").duplicate


def test_with_the_app_what_its_agent_cannot_take_is_not_accepted():
    async def strict(ctx: Ctx, given: Asked) -> None: ...

    with world_of(strict) as (world, client):
        with pytest.raises(InputRefused):
            client.send("a", "k", Paid("re"))
        with pytest.raises(DefinitionError, match="no agent 'b'"):
            client.send("b", "k", 1)
        assert -1 == world.log.head("a-k")


def test_a_handle_may_be_made_of_an_id_alone():
    with world_of(echo) as (world, client):
        client.send("a", "k", 1, id="other")
        client.send("a", "k", 2, id="in")
        world.run()
        assert 2 == Client(world.log).handle("a", "k", "in").result(timeout=1)


def test_a_result_that_does_not_come_in_time_says_how_things_stand():
    with world_of(echo) as (_, client):
        with pytest.raises(ResultTimedOut, match="it has not ended"):
            client.send("a", "k", 1, id="in").result(timeout=0.02)
        with pytest.raises(TimeoutError, match="it is not on the stream"):
            client.handle("a", "k", "nobody").result(timeout=0.02)


def test_a_dead_letter_names_its_error_and_a_redriven_one_is_waited_for_again():
    from intentlog.agents.dead_letters import redrive

    async def fails(ctx: Ctx, given: Any) -> Any:
        raise ValueError("the bank is closed")

    with world_of(fails, retry=RetryPolicy(max_attempts=1)) as (world, client):
        handle = client.send("a", "k", 1, id="in")
        world.run()
        with pytest.raises(ActivationParked, match=r"a-k, input 0 \(in\), is parked: ValueError: the bank is closed"):
            handle.result(timeout=1)
        world.deploy(echo)
        redrive(world.log, "a-k", by="me")
        with pytest.raises(ResultTimedOut):
            handle.result(timeout=0.02)
        world.run()
        assert 1 == handle.result(timeout=1)


def test_an_activation_that_goes_on_as_another_is_followed_to_its_end():
    async def counts(ctx: Ctx, given: int) -> Any:
        return Complete("done") if given >= 3 else ctx.continue_with(given + 1)

    with world_of(counts) as (world, client):
        handle = client.send("a", "k", 0, id="in")
        other = client.send("a", "k", 9, id="other")
        world.run()
        assert ("done", "done", 4) == (handle.result(timeout=1), other.result(timeout=1), len(world.facts(facts.Continued)) + 1)


def test_a_result_is_waited_for_while_the_agent_runs():
    with world_of(echo) as (world, client), ThreadPoolExecutor() as threads:
        waiting = threads.submit(client.send("a", "k", 5, id="in").result, 10)
        world.run()
        assert 5 == waiting.result(timeout=10)


# ── state ──


def test_the_state_of_a_key_is_its_aggregate():
    async def code(ctx: Ctx, given: Asked) -> None:
        ctx.emit(given)

    with world_of(code, state=Account) as (world, client):
        assert Account() == client.state("a", "k")
        client.send("a", "k", Asked("o-1"))
        world.run()
        assert Account(orders=("o-1",)) == client.state("a", "k")
        with pytest.raises(DefinitionError, match="give the client the app"):
            Client(world.log).state("a", "k")


# ── async ──


def test_a_web_handler_awaits_the_same():
    with world_of(echo, state=None) as (world, _):

        async def handler(client: AsyncClient) -> list[Any]:
            handle = await client.send("a", "k", 7, id="in")
            serving = asyncio.create_task(world.until_idle())
            result = await handle.result(timeout=10)
            await serving
            later = await client.handle("a", "k", "in")
            return [result, await later.result(timeout=1), handle.id, await client.state("a", "k"), await client.pending_approvals()]

        async def main() -> list[Any]:
            async with AsyncClient(world.log, world.app) as client:
                return await handler(client)

        assert [7, 7, "in", None, []] == asyncio.run(main())


def test_a_hundred_handlers_wait_without_a_thread_each():
    with world_of(echo) as (world, _):

        async def main() -> list[Any]:
            client = AsyncClient(world.log, world.app)
            handles = [await client.send("a", f"k{n}", n) for n in range(100)]
            waiting = [asyncio.create_task(handle.result(timeout=20)) for handle in handles]
            await world.until_idle()
            return await asyncio.gather(*waiting)

        assert list(range(100)) == asyncio.run(main())


def test_an_async_result_times_out_and_can_be_cancelled():
    with world_of(echo) as (world, _):

        async def main() -> None:
            client = AsyncClient(world.log, world.app)
            handle = await client.send("a", "k", 1)
            with pytest.raises(ResultTimedOut):
                await handle.result(timeout=0.02)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(handle.result(), 0.05)

        asyncio.run(main())
        world.run()
        assert [1] == world.outputs()
