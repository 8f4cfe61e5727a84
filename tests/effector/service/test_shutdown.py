"""SIGTERM: no new intents, running tools within the grace, everything else at once somebody else's."""

from __future__ import annotations

import signal
import subprocess
import time

import pytest

from tests.acceptance.forking import PROGRAM
from tests.effector.service.replicas import World, eventually

pytestmark = pytest.mark.alone


def test_with_eight_tools_in_flight_the_next_replica_goes_on_at_once_with_those_not_begun(world: World):
    """Show 6: the lease is half a minute, and nothing waits for it but the keys whose tool was called."""
    slow = [world.stage(f"slow{n}", "gated", name="x") for n in range(8)]
    rest = [world.stage(f"rest{n}") for n in range(8)]
    first = world.start("--lease-ms", "30000", "--tool-timeout-ms", "20000", "--grace-ms", "300")
    eventually(lambda: len(world.ledger()) == 8)
    begun = time.monotonic()
    assert 0 == first.end(signal.SIGTERM, 15)
    assert sorted(slow) == sorted(world.ledger())
    assert {} == world.settled()
    assert sorted(slow) == sorted(line["intent_id"] for line in first.lines("left to its lease"))
    world.start("--lease-ms", "30000", "--tool-timeout-ms", "20000", "--max-concurrent-partitions", "32")
    eventually(lambda: {"OK"} == set(world.statuses(*rest)))
    assert time.monotonic() - begun < 25
    assert sorted([*slow, *rest]) == sorted(world.ledger())


def test_a_tool_that_ends_within_the_grace_is_settled_before_the_replica_ends(world: World):
    intents = [world.stage(f"k{n}", "gated", name="x") for n in range(8)]
    later = world.stage("k0")
    replica = world.start()
    eventually(lambda: len(world.ledger()) == 8)
    replica.send(signal.SIGTERM)
    eventually(lambda: replica.lines("stopping"))
    world.open_gate()
    assert 0 == replica.process.wait(30)
    assert (["OK"] * 8, [""]) == (world.statuses(*intents), world.statuses(later))
    assert [(signal.SIGTERM, True)] == [(line["signal"], line["clean"]) for line in replica.lines("stopped")]
    keys = [f"a-k{n}" for n in range(8)]
    assert keys == list(world.log.schedule.acquire("effect", keys, "next", now=0, until=1))


@pytest.mark.parametrize("number, code", [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_an_idle_replica_ends_quickly(local: World, number: int, code: int):
    replica = local.start()
    assert replica.url
    assert code == replica.end(number, 10)
    (line,) = replica.lines("signal")
    assert ({"replica", "signal", "text", "event", "level", "timestamp"}, "r0", "info") == (set(line), line["replica"], line["level"])
    assert all(set(each) >= {"event", "level", "timestamp", "replica"} for each in replica.lines())


def test_a_replica_that_is_told_to_end_before_it_serves_ends_well(local: World):
    """Its tools take long to load."""
    (local.folder / "slow.py").write_text("import pathlib, time\npathlib.Path('loading').touch()\ntime.sleep(30)\n")
    replica = local.start(registry="slow:TOOLS")
    eventually((local.folder / "loading").exists)
    replica.send(signal.SIGTERM)
    assert 0 == replica.process.wait(10)
    assert [] == replica.lines()


@pytest.mark.parametrize("words, code", [(["run"], 0), (["worker"], 0), (["run", "--until-idle"], 3)])
def test_so_does_whatever_else_serves_unless_it_had_a_work_to_finish(local: World, words: list[str], code: int):
    (local.folder / "slow.py").write_text("import pathlib, time\npathlib.Path('loading').touch()\ntime.sleep(30)\n")
    command = [*PROGRAM, *words, "slow:app", "--log", local.url]
    with subprocess.Popen(command, cwd=local.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        eventually((local.folder / "loading").exists)
        process.send_signal(signal.SIGTERM)
        assert code == process.wait(10)


@pytest.mark.parametrize("number, code", [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_second_signal_ends_it_at_once_even_while_a_tool_holds_up_the_whole_process(local: World, number: int, code: int):
    local.stage("k", "stone", name="x")
    replica = local.start()
    eventually(local.ledger)
    replica.send(number)
    eventually(lambda: replica.lines("signal"))
    replica.send(number)
    assert code == replica.process.wait(10)


@pytest.mark.parametrize("boundary, called", [("attempt.recorded", 0), ("tool.called", 1), ("settled", 1)])
def test_a_replica_that_is_killed_leaves_the_next_one_what_the_log_says(local: World, boundary: str, called: int):
    intent = local.stage("k")
    killed = local.start(EVENTLOG_CRASH_AT=boundary)
    assert -signal.SIGKILL == killed.process.wait(30)
    local.start()
    eventually(local.settled)
    assert ["OK" if boundary == "settled" else "UNKNOWN"] == local.statuses(intent)
    assert [intent] * called == local.ledger()
