"""What the tests of linear agents share: a world that is checked for replaying the same when it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from intentlog.agents import facts
from intentlog.eventlog.clock import SECOND
from intentlog.replay import Verdict, replay_all
from intentlog.replay.verify import verify_all
from tests.agents.world import STREAM, World

__all__ = ["STREAM", "decide", "linear", "signal", "sound"]


@contextmanager
def linear(code: Callable[..., Any], **options: Any) -> Iterator[World]:
    """A world with this agent; at its end every run must replay the same and the log be sound."""
    with World(code, **options) as world:
        yield world
        assert [] == sound(world)


def sound(world: World) -> list[str]:
    """What is wrong with the log: runs that come out otherwise, ids that do not fit."""
    replayed = [
        f"{each.stream}: {each.verdict.value} {each.reason} {each.divergence}" for each in replay_all(world.log, world.app) if each.verdict is not Verdict.SAME
    ]
    return replayed + [str(report) for report in verify_all(world.log, world.app) if not report.sound]


def signal(world: World, name: str, payload: Any = None, *, id: str = "s-1") -> None:
    """Somebody tells the key something."""
    world.append(facts.SignalReceived(id, name, payload))


def decide(world: World, approved: bool, *, digest: bytes | None = None) -> None:
    """Somebody answers the last question."""
    asked = world.facts(facts.ApprovalRequested)[-1]
    world.append(facts.ApprovalDecided(asked.approval_id, digest or asked.digest, approved, "ada", "because"))


def seconds_between(first: int, second: int) -> float:
    """Seconds between two moments in µs."""
    return (second - first) / SECOND
