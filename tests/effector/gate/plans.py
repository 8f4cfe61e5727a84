"""A seed decides which intents there are, and where which effector dies."""

from __future__ import annotations

import os
import random

import attrs

from tests.effector.gate.moments import BEGUN, MADE

#: Every boundary that an effector meets from a claim on, the two moments inside a tool, and any moment at all.
ANY_MOMENT = "any moment"
INSIDE = (BEGUN, MADE)
ON_LOG = ("claimed", "attempt.recorded", "tool.called", "postponed", "settled", "checkpointed", *INSIDE, ANY_MOMENT)
ON_BUS = ("claimed", "attempt.recorded", "tool.called", "postponed", "completed", "published", "acknowledged", *INSIDE, ANY_MOMENT)
TOOLS = ("charge", "mail", "print_label", "transfer")
KEYS = 8
EACH = 5
SEEDS = range(20)


@attrs.frozen
class Death:
    """Where a life ends, unless it never comes so far."""

    at: str
    nth: int

    def environment(self) -> dict[str, str]:
        """What tells an effector."""
        if self.at == ANY_MOMENT:
            return {}
        return {"GATE_DIE" if self.at in INSIDE else "EVENTLOG_CRASH_AT": f"{self.at}:{self.nth}"}


@attrs.frozen
class Plan:
    """One run of the gate."""

    seed: int
    #: For each replica, how its lives end, one after the other; the last one of each is not killed.
    deaths: tuple[tuple[Death, ...], ...]
    #: For each key, the tools of its intents, in order.
    tools: tuple[tuple[str, ...], ...]
    #: How many milliseconds an effect takes.
    pace: int

    @property
    def leases_run_out(self) -> bool:
        """Whether nobody ends the leases of the dead, as where replicas are on many machines. It takes its time, so not every seed does."""
        return self.seed % 5 == 0

    @property
    def replicas(self) -> int:
        return len(self.deaths)


def plan_of(seed: int, replicas: int, deaths: tuple[str, ...]) -> Plan:
    """Four or five deaths, going round all there are from seed to seed, dealt to the replicas in turn."""
    moments = random.Random(f"{seed} {replicas}")
    chosen = [deaths[(4 * seed + n) % len(deaths)] for n in range(moments.randint(4, 5))]
    moments.shuffle(chosen)
    dealt = tuple(tuple(Death(at, moments.randint(1, 1 if at == "checkpointed" else 3)) for at in chosen[slot::replicas]) for slot in range(replicas))
    return Plan(seed, dealt, tuple(tuple(moments.choice(TOOLS) for _ in range(EACH)) for _ in range(KEYS)), moments.choice((0, 5, 20)))


def seeds_of(cell: int, cells: int) -> list[int]:
    """A cell's share of the seeds; with ``GATE_SEEDS=N`` in the environment, the first N."""
    wanted = os.environ.get("GATE_SEEDS")
    return list(SEEDS)[cell::cells] if wanted is None else list(range(int(wanted)))
