"""The outbox example, forked and merged: one intent, one mail, whichever side had sent it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from examples.outbox.shop import STREAM, Mail, Shop
from intentlog.effector.process import Process
from intentlog.eventlog import open_log
from intentlog.replay import Verdict, replay_all
from intentlog.replay.forking.bringing_back import carry_out, plan_merge
from intentlog.replay.forking.going_on import what_if
from intentlog.replay.forking.writing import live_name, write_live

FORK = f"{STREAM}~fork1"


@pytest.fixture
def sides() -> Iterator[tuple[Shop, Shop]]:
    """A shop with an order that nobody has looked at, and its live fork in a log of its own; one mail for both."""
    mail = Mail()
    source, fork = Shop(open_log("memory://"), mail), Shop(open_log("memory://"), mail)
    source.confirm("in-1")
    made = what_if(source.log, source.app, STREAM, approvals=False)
    write_live(made, source.app, fork.log, live_name(fork.log, STREAM), source_log="memory://", by="ann")
    yield source, fork
    source.log.close()
    fork.log.close()


def decides(shop: Shop) -> None:
    """The worker's part only: the intent is staged, and nobody carries it out."""
    asyncio.run(Process(shop.app, shop.log, "worker", with_effector=False).run(until_idle=True))


def merge(source: Shop, fork: Shop) -> None:
    plan = plan_merge(source.log, fork.log, source.app, FORK)
    assert () == plan.plan.conflicts
    carry_out(plan, source.log, fork.log, source.app, by="ann")


def run_out(source: Shop, fork: Shop) -> None:
    """Everything that is left to do anywhere, by whole processes, and then nothing is."""
    source.run()
    fork.run()
    assert [Verdict.SAME] * 2 == [each.verdict for shop in (source, fork) for each in replay_all(shop.log, shop.app)]


def test_what_the_fork_had_sent_the_source_does_not_send(sides):
    source, fork = sides
    decides(source)
    fork.run()
    assert ["notify:42"] == source.mail.sent
    merge(source, fork)
    run_out(source, fork)
    assert (["notify:42"], [["sent 42"]]) == (source.mail.sent, source.outputs())


def test_what_the_source_had_sent_the_fork_does_not_send(sides):
    source, fork = sides
    decides(fork)
    source.run()
    assert ["notify:42"] == source.mail.sent
    merge(source, fork)
    run_out(source, fork)
    assert (["notify:42"], [["sent 42"]]) == (source.mail.sent, source.outputs())


def test_what_neither_had_sent_the_source_sends_once(sides):
    source, fork = sides
    decides(source)
    decides(fork)
    merge(source, fork)
    run_out(source, fork)
    assert (["notify:42"], [["sent 42"]]) == (source.mail.sent, source.outputs())


def test_what_the_fork_decided_and_the_source_had_not_looked_at_is_the_sources(sides):
    source, fork = sides
    fork.run()
    merge(source, fork)
    run_out(source, fork)
    assert (["notify:42"], [["sent 42"]]) == (source.mail.sent, source.outputs())
