"""Aggregates of the `eventsourcing` library, changed by an agent and by an application on the same log."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from eventsourcing.application import Application
from eventsourcing.domain import Aggregate as UuidAggregate
from eventsourcing.domain import BaseAggregate, CanInitAggregate, CanMutateAggregate, event

from intentlog.agents import facts
from intentlog.replay import replay_all
from tests.agents.world import Ctx, Model, World


@dataclass(frozen=True)
class Recorded:
    originator_id: str
    originator_version: int
    timestamp: datetime


class Ledger(BaseAggregate[str]):
    @dataclass(frozen=True)
    class Event(CanMutateAggregate[str], Recorded):
        pass

    @dataclass(frozen=True)
    class Opened(CanInitAggregate[str], Event):
        originator_topic: str
        number: str
        owner: str

    @dataclass(frozen=True)
    class Booked(Event):
        cents: int

    @event(Opened)
    def __init__(self, number: str, owner: str) -> None:
        self.number = number
        self.owner = owner
        self.cents = 0

    @staticmethod
    def create_id(number: str) -> str:
        return number

    @event(Booked)
    def book(self, cents: int) -> None:
        self.cents += cents


class Dog(UuidAggregate):
    @event("Named")
    def __init__(self, name: str) -> None:
        self.name = name
        self.tricks: list[str] = []

    @staticmethod
    def create_id(name: str) -> UUID:
        return UUID(int=len(name))

    @event("TrickAdded")
    def learn(self, trick: str) -> None:
        self.tricks.append(trick)


class Bank(Application[str]):
    pass


def bank(url: str) -> Bank:
    return Bank(env={"PERSISTENCE_MODULE": "intentlog.eventlog.recorders", "EVENTLOG_URL": url, "ORIGINATOR_ID_TYPE": "text", "EVENTLOG_CATEGORY": "ledgers"})


def same(world: World) -> bool:
    return ["same"] == [each.verdict.value for each in replay_all(world.log, world.app)]


async def booking(ctx: Ctx, cents: int) -> int:
    ledger = await ctx.load(Ledger, "l-1", category="ledgers")
    await ctx.call_model("may I?")
    ledger.book(cents)
    return ledger.cents


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'log.db'}"


def test_an_application_and_an_agent_change_the_same_aggregate(url):
    with bank(url) as application:
        ledger = Ledger(number="l-1", owner="ann")
        ledger.book(10)
        application.save(ledger)
        with World(booking, url=url) as world:
            world.send(5)
            world.run()
            assert ([15], []) == (world.outputs(), world.failures())
            seen: Any = application.repository.get("l-1")
            assert (15, 3, "ann") == (seen.cents, seen.version, seen.owner)
            assert world.clock.now == int(seen.modified_on.timestamp() * 1_000_000)
            seen.book(100)
            application.save(seen)
            world.send(1)
            world.run()
            assert [15, 116] == world.outputs()
            assert [1, 3] == [loaded.version for loaded in world.facts(facts.AggregateLoaded)]
            assert same(world)


def test_a_conflict_with_the_application_runs_the_turn_again(url):
    with bank(url) as application:
        application.save(Ledger(number="l-1", owner="ann"))

        class Meddler(Model):
            def complete(self, request: Any, *, idempotency_key: str) -> Any:
                ledger: Any = application.repository.get("l-1")
                ledger.book(100)
                application.save(ledger)
                return super().complete(request, idempotency_key=idempotency_key)

        model = Meddler()
        with World(booking, url=url, model=model) as world:
            world.send(5)
            world.run()
            assert ([105], 1, []) == (world.outputs(), len(model.asked), world.failures())
            assert same(world)


def test_a_new_aggregate_begins_its_stream_and_a_taken_id_parks_the_input(url):
    async def opening(ctx: Ctx, owner: str) -> None:
        ledger = Ledger(number="l-2", owner=owner)
        ledger.book(3)
        ctx.add(ledger, category="ledgers")

    with World(opening, url=url) as world, bank(url) as application:
        world.send("ann")
        world.run()
        made: Any = application.repository.get("l-2")
        assert ("ann", 3, 2) == (made.owner, made.cents, made.version)
        assert made.created_on == made.modified_on
        world.send("bob")
        world.run()
        assert ["AggregateExists"] == [failure.type for failure in world.failures()]
        assert 2 == application.repository.get("l-2").version
        assert same(world)


def test_an_aggregate_with_a_uuid_stands_where_its_application_expects_it(url):
    async def teaching(ctx: Ctx, trick: str) -> list[str]:
        dog = await ctx.load(Dog, UUID(int=3), category="dogs")
        dog.learn(trick)
        return list(dog.tricks)

    env = {"PERSISTENCE_MODULE": "intentlog.eventlog.recorders", "EVENTLOG_URL": url, "EVENTLOG_CATEGORY": "dogs"}
    with Application[UUID](env=env) as kennel, World(teaching, url=url) as world:
        kennel.save(Dog(name="rex"))
        world.send("sit")
        world.run()
        dog: Any = kennel.repository.get(UUID(int=3))
        assert (["sit"], [["sit"]]) == (dog.tricks, world.outputs())
        assert same(world)


def test_what_cannot_be_loaded_says_so(url):
    async def code(ctx: Ctx, which: str) -> None:
        if which == "absent":
            await ctx.load(Ledger, "nobody", category="ledgers")
        elif which == "number":
            await ctx.load(Ledger, 7, category="ledgers")
        elif which == "old":
            ctx.add(await ctx.load(Ledger, "l-1", category="ledgers"), category="others")
        else:
            ctx.add(Model())

    with World(code, url=url) as world, bank(url) as application:
        application.save(Ledger(number="l-1", owner="ann"))
        for which in ("absent", "number", "old", "plain"):
            world.send(which)
        world.run()
        assert ["AggregateNotFound", "DefinitionError", "DefinitionError", "DefinitionError"] == [failure.type for failure in world.failures()]
        assert same(world)


def test_changed_after_a_wait_it_is_refused(url):
    async def code(ctx: Ctx) -> None:
        ledger = await ctx.load(Ledger, "l-1", category="ledgers")
        await ctx.sleep(timedelta(seconds=60))
        ledger.book(1)

    with World(code, url=url) as world, bank(url) as application:
        application.save(Ledger(number="l-1", owner="ann"))
        world.send()
        world.run()
        world.later(61)
        assert ["StaleAggregate"] == [failure.type for failure in world.failures()]


def test_the_library_is_imported_only_when_one_of_its_classes_is_loaded():
    program = "import sys, intentlog.agents.context, intentlog.agents.worker, intentlog.replay; assert 'eventsourcing' not in sys.modules"
    assert 0 == subprocess.run([sys.executable, "-c", program], check=False).returncode
