"""A real effector that publishes, killed where it hurts: no question is lost, none changes places with another of its key."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from intentlog.agents.approvals import opened
from intentlog.eventlog.clock import system_clock
from intentlog.eventlog.owners import is_dead
from tests.effector.approvals.surface import RING, Delivery, Surface, ask
from tests.effector.service.replicas import Replica, World, eventually

KEYS = bytes(range(32)).hex()


@pytest.fixture
def world(shared_url: str, tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, shared_url)
    yield made
    made.close()


@pytest.fixture
def local(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, f"sqlite:///{tmp_path}/log.db")
    yield made
    made.close()


def start(world: World, surface: Surface, **environment: str) -> Replica:
    return world.start("--signing-keys", "env:RING", EFFECTOR_APPROVALS_TO=surface.url, RING=f"may:{KEYS}", **environment)


def published(world: World, surface: Surface, expected: int) -> bool:
    return len({each.id for each in list(surface.came)}) == expected


@pytest.mark.parametrize("boundary", ["approval.published", "approval.published:4", "approvals.checkpointed"])
def test_whatever_the_moment_of_its_death_every_question_comes_and_those_of_a_key_in_order(world, boundary):
    for number in range(3):
        for key in ("ann", "bob"):
            ask(world.log, key, number)
    with Surface() as surface:
        dies = start(world, surface, EVENTLOG_CRASH_AT=boundary)
        assert -signal.SIGKILL == dies.process.wait(60)
        if boundary != "approval.published":  # that lease runs out, as it does where nobody sees a death; the others need not be waited for
            for owner in filter(is_dead, world.log.schedule.owners()):
                world.log.schedule.evict(owner)
        lives = start(world, surface)
        eventually(lambda: published(world, surface, 6), 60)
        eventually(lambda: world.log.checkpoints.load("approvals") >= world.log.last_position(), 60)
        for key in ("ann", "bob"):
            first = dict.fromkeys(name for stream, name in surface.asked() if stream == f"desk-{key}")
            assert ["approval-0-0", "approval-1-0", "approval-2-0"] == list(first)
        bodies = {each.id: each.body for each in surface.came}
        assert all(bodies[each.id] == each.body for each in surface.came)  # the same question comes with the same bytes
        assert max(Counter(each.id for each in surface.came).values()) <= 2
        for each in surface.came:
            assert opened(each.body, each.headers["intentlog-signature"], RING, now=system_clock()).id == each.id
        assert 0 == lives.end()


def test_a_surface_that_is_down_shows_in_health_and_holds_up_no_intent_and_no_secret_is_told(local):
    down = [True]

    def answers(delivery: Delivery) -> int:
        return 503 if down else 200

    with Surface(answers) as surface:
        replica = start(local, surface)
        ask(local.log, "ann")
        eventually(lambda: replica.health()["parts"]["approvals"]["state"] == "failing")
        intent = local.stage("bob")
        eventually(local.settled)
        assert ["OK"] == local.statuses(intent)
        told = replica.health()
        assert (False, True, 1) == (told["ready"], told["live"], told["approvals"]["retrying"])
        assert f"webhook+http://127.0.0.1:{surface.port}/… answered 503" == told["approvals"]["last_error"]
        down.clear()
        eventually(lambda: replica.health()["ready"])
        assert (1, None) == (replica.health()["approvals"]["published"], replica.health()["approvals"]["last_error"])
        everything = replica.errors.read_text() + str(told)
        assert 0 == replica.end()
    assert not any(secret in everything for secret in ("hunter2", "s3cr3t", "t0k3n", "SECRET", KEYS))
    assert replica.lines("approval published")[0]["approval_id"] == "approval-0-0"


def test_two_replicas_publish_each_question_once_while_nobody_dies(local):
    with Surface() as surface:
        replicas = [start(local, surface) for _ in range(2)]
        assert all(each.url for each in replicas)
        for number in range(5):
            ask(local.log, "ann", number)
        eventually(lambda: published(local, surface, 5))
        assert 5 == len(surface.came)
        assert [0, 0] == [each.end() for each in replicas]
