"""``eventlog effector`` on a bus: real processes, real signals, each dedup store that several may share."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from intentlog.effector.bus import Outgoing
from intentlog.effector.crash import ON_BUS
from intentlog.effector.dedup import Busy, Free
from intentlog.eventlog.clock import system_clock
from tests.effector.bus.replicas import World
from tests.effector.service.replicas import eventually
from tests.services.bus import BusServer

SHORT = ("--lease-ms", "800", "--tool-timeout-ms", "700")


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """On each dedup store that several processes may share."""
    url = f"sqlite:///{tmp_path}/dedup.db" if request.param == "sqlite" else request.getfixturevalue(f"{request.param}_url")
    yield from _world(tmp_path, url)


@pytest.fixture
def local(tmp_path: Path) -> Iterator[World]:
    """The same on one file, where the store makes no difference."""
    yield from _world(tmp_path, f"sqlite:///{tmp_path}/dedup.db")


def _world(folder: Path, url: str) -> Iterator[World]:
    with BusServer() as server:
        made = World(folder, url, server)
        yield made
        made.close()


def test_twenty_deliveries_of_one_intent_and_four_replicas_make_one_dispatch_and_the_same_outcome_everywhere(world: World):
    """Show 5"""
    intent, message = world.message("k", "nap", seconds=0.3)
    replicas = [world.start() for _ in range(4)]
    eventually(lambda: all(each.health()["partitions"] for each in replicas))
    world.publish(*[message] * 20)
    eventually(world.done)
    assert ([intent], ["OK"]) == (world.ledger(), world.statuses(intent))
    assert 20 == len(world.results()[intent])
    assert 1 == sum(each.metric('outcomes_total{status="OK",tool="nap"}') for each in replicas)
    assert 19 == sum(each.metric("repeated_total") for each in replicas)
    assert [0] * 4 == [each.end() for each in replicas]


def test_twenty_deliveries_while_partitions_go_round_make_one_dispatch_too(local: World):
    """Show 5, with members that come and go, so that one delivery is with several replicas at the same time."""
    intent, message = local.message("k", "gated", name="x")
    local.publish(*[message] * 20)
    first = local.start()
    eventually(local.ledger)
    others = [local.start() for _ in range(3)]
    eventually(lambda: all(each.health()["partitions"] for each in others))
    first.send(signal.SIGSTOP)
    time.sleep(0.2)
    first.send(signal.SIGCONT)
    local.open_gate()
    eventually(local.done)
    assert ([intent], ["OK"]) == (local.ledger(), local.statuses(intent))
    assert 1 == sum(each.metric('outcomes_total{status="OK",tool="gated"}') for each in (first, *others))


def test_replicas_share_the_work_and_each_key_keeps_its_order(local: World):
    intents = [local.stage(f"k{n % 20}", name=f"{n}") for n in range(100)]
    replicas = [local.start() for _ in range(3)]
    eventually(local.done)
    assert (["OK"] * 100, sorted(intents)) == (local.statuses(*intents), sorted(local.ledger()))
    for key in range(20):
        mine = set(intents[key::20])
        assert intents[key::20] == [each for each in local.ledger() if each in mine]
    assert 100 == sum(each.metric('attempts_total{tool="work"}') for each in replicas)
    assert [0, 0, 0] == [each.end() for each in replicas]


@pytest.mark.parametrize("boundary", ["claimed", "attempt.recorded", "tool.called", *ON_BUS])
def test_a_replica_that_is_killed_leaves_the_next_one_what_store_and_bus_say(local: World, boundary: str):
    if boundary == "dead_lettered":
        local.publish(Outgoing("a-k", b"junk"))
    intent = local.stage("k")
    killed = local.start(*SHORT, EVENTLOG_CRASH_AT=boundary)
    assert -signal.SIGKILL == killed.process.wait(30)
    local.start(*SHORT)
    eventually(local.done)
    unknown = boundary in ("attempt.recorded", "tool.called")
    assert ["UNKNOWN" if unknown else "OK"] == local.statuses(intent)
    assert [intent] * (boundary != "attempt.recorded") == local.ledger()
    assert 2 * (boundary == "dead_lettered") == len(local.server.broker.messages("dead"))


def test_what_a_replica_says_that_was_stopped_beyond_its_lease_is_refused_and_counted(world: World):
    """Show 2"""
    intent = world.stage("k", "gated", name="x")
    stale = world.start(*SHORT, "--tool-timeout-ms", "700")
    eventually(world.ledger)
    stale.send(signal.SIGSTOP)
    world.server.broker._session = 0.5
    next_one = world.start(*SHORT)
    eventually(lambda: world.statuses(intent) == ["UNKNOWN"])
    world.open_gate()
    world.server.broker._session = 60.0
    stale.send(signal.SIGCONT)
    eventually(lambda: stale.metric("leases_lost_total"))
    eventually(world.done)
    assert (1, 0) == (stale.metric("leases_lost_total"), stale.metric('settlements_refused_total{reason="settled before"}'))
    assert ([intent], ["UNKNOWN"]) == (world.ledger(), world.statuses(intent))
    assert [0, 0] == [each.end() for each in (stale, next_one)]


def test_with_tools_in_flight_the_next_replica_goes_on_at_once_with_those_not_begun(local: World):
    """Show 6: the lease is half a minute, and nothing waits for it but the keys whose tool was called."""
    budgets = ("--lease-ms", "30000", "--tool-timeout-ms", "20000")
    local.partitions = 8
    slow = [local.stage(f"slow{n}", "gated", name="x") for n in range(40)]
    first = local.start(*budgets, "--grace-ms", "300")
    eventually(lambda: len(local.ledger()) == 8)
    called = local.ledger()
    assert 0 == first.end(signal.SIGTERM, 15)
    assert (sorted(called), {}) == (sorted(line["intent_id"] for line in first.lines("left to its lease")), local.results())
    rest = [each for each in slow if each not in called]
    now = system_clock()
    assert {Free(0)} == {local.store.look(each, now=now) for each in rest}
    assert {Busy} == {type(local.store.look(each, now=now)) for each in called}
    begun = time.monotonic()
    local.open_gate()
    local.start(*budgets)
    eventually(lambda: {"OK"} == set(local.statuses(*rest)))
    assert time.monotonic() - begun < 20


def test_health_shows_what_is_down_and_that_it_is_there_again(local: World):
    local.server.refused.add("results")
    intent = local.stage("k")
    replica = local.start()
    eventually(lambda: replica.get("/readyz")[0] == 503)
    health = replica.health()
    assert ("failing", "BusUnavailable", {"results": 1}) == (
        health["parts"]["results"]["state"],
        health["parts"]["results"]["error"].partition(":")[0],
        health["keys_waiting"],
    )
    assert 200 == replica.get("/healthz")[0]
    eventually(lambda: replica.metric("open_intents") == 1)
    local.server.refused.clear()
    eventually(local.done)
    eventually(lambda: replica.get("/readyz")[0] == 200)
    assert (["OK"], [intent]) == (local.statuses(intent), local.ledger())
    assert 0 == replica.end()


def test_a_bus_that_goes_away_and_comes_back_costs_time_and_nothing_else(local: World):
    first = local.stage("k")
    replica = local.start()
    eventually(local.done)
    local.server.stop()
    eventually(lambda: replica.health()["parts"]["source"]["state"] == "failing")
    local.server.start()
    second = local.stage("k")
    eventually(local.done, 60)
    assert (["OK", "OK"], [first, second]) == (local.statuses(first, second), local.ledger())
    eventually(lambda: replica.get("/readyz")[0] == 200)
    assert 0 == replica.end()


def test_every_line_about_an_intent_names_it_and_the_first_line_says_where_it_stands(local: World):
    intent = local.stage("k")
    local.publish(Outgoing("a-k", b"s3cret junk"))
    replica = local.start()
    eventually(local.done)
    (serving,) = replica.lines("serving")
    assert (local.url("intents"), local.dedup, "effector") == (serving["intents_from"], serving["dedup"], serving["group"])
    about = [line for line in replica.lines() if line["event"] in ("attempted", "called", "settled")]
    assert [(intent, "a-k", "k", "work", 1)] * 3 == [tuple(line[name] for name in ("intent_id", "stream", "key", "tool", "attempt")) for line in about]
    (letter,) = replica.lines("dead letter")
    assert ("BadMessage", "error", 1) == (letter["kind"], letter["level"], replica.metric('dead_letters_total{kind="BadMessage"}'))
    assert "s3cret" not in replica.errors.read_text()
    assert 0 == replica.end()


def test_a_memory_store_on_a_bus_that_others_can_reach_is_refused_at_the_start(local: World):
    replica = local.start(EFFECTOR_DEDUP="memory://")
    assert 2 == replica.process.wait(30)
    assert "a second replica on this bus would carry every intent out again" in replica.errors.read_text()
