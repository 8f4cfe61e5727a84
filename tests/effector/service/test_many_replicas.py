"""One, two and three replicas on one log: real processes, real signals."""

from __future__ import annotations

import signal
import time

import pytest

from tests.effector.service.replicas import World, eventually


@pytest.mark.parametrize("count", [1, 2, 3])
def test_replicas_share_the_work_and_touch_every_key_once(world: World, count: int):
    intents = [world.stage(f"k{n}") for n in range(60)] + [world.stage(f"nap{n}", "nap", seconds=0.2) for n in range(12)]
    replicas = [world.start() for _ in range(count)]
    eventually(lambda: len(world.settled()) == len(intents))
    assert {"OK"} == set(world.statuses(*intents))
    assert sorted(intents) == sorted(world.ledger())
    did = [each.metric('attempts_total{tool="nap"}') for each in replicas]
    assert 12 == sum(did)
    assert [0] * count == [each.end() for each in replicas]


def test_of_five_hundred_keys_each_is_touched_once_and_nothing_is_left_behind(local: World):
    intents = [local.stage(f"k{n}") for n in range(500)]
    replicas = [local.start("--max-concurrent-partitions", "64") for _ in range(2)]
    eventually(lambda: len(local.settled()) == 500)
    assert sorted(intents) == sorted(local.ledger())
    assert {"OK"} == set(local.statuses(*intents))
    eventually(lambda: [(0, 0)] * 2 == [(each.metric("keys_in_flight"), each.metric("open_intents")) for each in replicas])
    assert [0, 0] == [each.end() for each in replicas]


def test_one_intent_and_four_replicas_make_one_call(world: World):
    """Show 5"""
    replicas = [world.start() for _ in range(4)]
    for each in replicas:
        assert each.url
    intent = world.stage("k", "nap", seconds=0.3)
    eventually(world.settled)
    eventually(lambda: [0] * 4 == [each.metric("open_intents") for each in replicas])
    assert ([intent], ["OK"]) == (world.ledger(), world.statuses(intent))
    assert 1 == sum(each.metric('outcomes_total{status="OK",tool="nap"}') for each in replicas)


def test_a_tool_that_sleeps_three_times_the_lease_is_called_once(world: World):
    """Show 4: its timeout, which is shorter than the lease, ends the wait for it; nobody calls it again."""
    replicas = [world.start("--lease-ms", "600", "--tool-timeout-ms", "500") for _ in range(3)]
    intent = world.stage("k", "nap", seconds=1.8)
    begun = time.monotonic()
    eventually(world.settled)
    eventually(lambda: time.monotonic() - begun > 2.4)  # longer than the nap and another lease
    assert ([intent], ["ERROR"]) == (world.ledger(), world.statuses(intent))
    failure = world.settled()[intent][0].failure
    assert failure is not None
    assert "TimedOut" == failure.type
    assert [0, 0, 0] == [each.end() for each in replicas]


def test_what_a_replica_says_that_was_stopped_beyond_its_lease_is_refused_and_counted(world: World):
    """Show 2"""
    stale = world.start("--lease-ms", "800", "--tool-timeout-ms", "700")
    assert stale.url
    intent = world.stage("k", "gated", name="x")
    eventually(world.ledger)
    world.stop_between_commits(stale)
    stopped, taken = time.monotonic(), world.settled()
    next_one = world.start("--lease-ms", "800", "--tool-timeout-ms", "700")
    eventually(world.settled)
    assert ({}, ["UNKNOWN"], [intent]) == (taken, world.statuses(intent), world.ledger())
    world.open_gate()
    eventually(lambda: time.monotonic() - stopped > 6.5)  # nor is a tool called deaf that could not hear, because all of its process stood still
    stale.send(signal.SIGCONT)
    eventually(lambda: stale.metric("leases_lost_total"))
    assert ([], [1]) == (stale.lines("tool deaf to its timeout"), [line["attempt"] for line in stale.lines("lease lost")])
    eventually(lambda: stale.health()["keys_in_flight"] == 0)
    assert ["r1"] == [each.settled_by.rpartition("/")[2] for each in world.settled()[intent]]
    assert (1, 0) == (stale.metric("leases_lost_total"), stale.metric('settlements_refused_total{reason="settled before"}'))
    assert [0, 0] == [each.end() for each in (stale, next_one)]
