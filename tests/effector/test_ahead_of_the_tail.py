"""A tail that is held back: what was committed above it is there, and an effector must neither do it again nor call it all done."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from intentlog.agents import ActivationContext, App, Complete, Input, Suspend, agent, send, tool
from intentlog.effector import Process
from intentlog.effector.ahead import ahead_of_tail
from intentlog.effector.outbox import TYPES, Outbox
from intentlog.eventlog.opening import open_log
from tests.effector.test_effector import CODEC, Outside


@contextmanager
def held(url: str) -> Iterator[psycopg.Connection]:
    """A transaction of somebody else that has an id and does not end: no tail passes it."""
    with psycopg.connect(url) as foreign:
        foreign.execute("SELECT pg_current_xact_id()")
        yield foreign
        foreign.rollback()


@pytest.mark.parametrize("name", ["work", "again"])
def test_the_next_owner_knows_what_the_last_one_did_above_the_tail(postgres_url, name):
    with Outside(postgres_url) as outside:
        outside.stage("x", tool=name)
        with held(postgres_url):
            outside.serve(owners=("one",), until=lambda: outside.statuses() == ["OK"])
            outside.serve(owners=("two",), until=None)
            (late,) = outside.serve(owners=("three",))
        assert ["x"] == outside.begun
        assert (0, 0, 0, 0) == (late.counts.attempts, late.counts.settled, late.counts.refused, late.counts.stale)


def test_an_intent_that_comes_out_of_the_tail_after_its_outcome_is_not_begun_again():
    """Its staging, its attempts and its outcome come one by one, with a look at the stream before the first."""
    with Outside() as outside:
        outside.stage("x", "y", tool="again")
        outside.serve(owners=("one",))
        told = list(outside.log.read_all(types=TYPES))
        outbox = Outbox(CODEC)
        outbox.take(told[0])
        assert {"a-k": 0} == outbox.seen(["a-k", "a-other"])
        ahead = ahead_of_tail(outside.log, outbox, outbox.seen(["a-k"]))
        for _ in range(2):
            outbox.learn("a-k", ahead["a-k"])
        assert outbox.first("a-k") is None
        for event in told[1:]:
            outbox.take(event)
            assert outbox.first("a-k") is None
        assert (0, told[-1].position, {}) == (len(outbox), outbox.low_water, outbox.seen(["a-k"]))


def test_a_run_until_idle_does_not_end_before_the_tail_shows_what_it_has_staged(postgres_url):
    done: list[str] = []

    @tool(side_effect=True)
    async def ship(what: str) -> str:
        done.append(what)
        return what

    @agent("orders")
    async def orders(ctx: ActivationContext, what: str) -> Complete | Suspend:
        if not ctx.is_resume:
            ctx.act(ship, what=what)
            return Suspend(timeout_ms=60_000)
        return Complete(what)

    app, log = App([orders], tools=[ship]), open_log(postgres_url)
    send(app, log, Input("orders", "k", "ball", "i"))
    turned = threading.Event()
    with held(postgres_url) as foreign:

        def let_go() -> None:
            assert turned.wait(10)
            threading.Event().wait(0.5)  # long enough for many looks at whether all is done
            foreign.rollback()

        letting = threading.Thread(target=let_go)
        letting.start()

        def boundary(name: str, stream: str) -> None:
            if name == "turn.appended":
                turned.set()

        asyncio.run(asyncio.wait_for(Process(app, log, "p", boundary=boundary).run(until_idle=True), 20))
        letting.join()
    assert ["ball"] == done
    assert "activation.completed" in [event.type for event in log.read("orders-k")]
    log.close()
