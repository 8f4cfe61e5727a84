"""One run of the gate: intents are staged, effectors carry them out, die where the plan says, and others take their place."""

from __future__ import annotations

import random
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import attrs

from intentlog.agents.intents import intent_id_for
from intentlog.effector.demo.servers import Ledger as Provider
from intentlog.effector.demo.servers import servers
from tests.effector.gate.plans import ANY_MOMENT, Death, Plan
from tests.effector.service.replicas import Replica

PATIENCE = 90.0
PAUSE = 0.05


@attrs.frozen
class Intent:
    """What was staged."""

    #: The same of all intents of a run, and of no other run.
    turn: int
    key: str
    #: Which of its key's it is, from 0.
    place: int
    tool: str

    @property
    def id(self) -> str:
        return intent_id_for(f"a-{self.key}", self.turn, self.place)

    @property
    def args(self) -> dict[str, Any]:
        return {"customer_id": self.key} | ({"amount_cents": 100} if self.tool == "charge" else {})


@attrs.frozen
class Outcome:
    """How an intent ended, as whoever waits for it is told."""

    status: str
    value: Any
    attempts: int
    #: The life that settled it.
    by: str
    #: What kind of failure, if any.
    failure: str = ""


class Ground(Protocol):
    """What effectors of one run work on: a log, or a bus with a dedup store."""

    def lease_ms(self, plan: Plan) -> int:
        """How long a dead effector keeps what it held. Where nobody waits for that, longer than a busy machine holds anybody up."""
        ...

    def stage(self, intents: list[Intent]) -> None:
        """Have these carried out, those of a key in this order."""
        ...

    def effector(self, words: list[str], environment: dict[str, str], folder: Path, name: str) -> Replica:
        """One more effector."""
        ...

    def outcomes(self) -> dict[str, list[Outcome]]:
        """Every outcome so far, by intent."""
        ...

    def over(self) -> bool:
        """Whether nothing that was delivered is still to be done with, once everything has its outcome."""
        ...

    def end_leases(self) -> None:
        """End those of effectors that are dead, if somebody who saw their end can."""
        ...

    def faults(self, run: Run) -> list[str]:
        """What it says against a run that has been lived."""
        ...

    def close(self) -> None:
        """It is looked at no more."""
        ...


@attrs.define(eq=False)
class Life:
    """One effector from its start to its end."""

    name: str
    slot: int
    death: Death | None
    environment: dict[str, str]
    replica: Replica
    #: Its exit code, negative for a signal, when it has ended.
    code: int | None = None
    #: It was asked to end before it did.
    asked: bool = False

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL


@attrs.frozen
class Call:
    """A line of the tools' ledger."""

    what: str
    intent_id: str
    attempt: int
    life: str


@attrs.define(eq=False)
class Run:
    """A plan, and what came of it."""

    plan: Plan
    folder: Path
    ground: Ground
    url: str
    provider: Provider
    intents: list[Intent]
    lives: list[Life] = attrs.field(factory=list)
    outcomes: dict[str, list[Outcome]] = attrs.field(factory=dict)
    random: random.Random = attrs.field(init=False, factory=random.Random)

    @property
    def kills(self) -> list[Life]:
        return [each for each in self.lives if each.killed]

    @property
    def gone(self) -> frozenset[str]:
        """Lives that did not get to say what became of their calls."""
        return frozenset(each.name for each in self.kills) | frozenset(self.overtaken)

    @property
    def overtaken(self) -> list[str]:
        """Who says that it lost a lease, once for each: a machine may hold a life up for so long, and what it says then is refused."""
        return [life.name for life in self.lives for _ in life.replica.lines("lease lost")]

    @property
    def ledger(self) -> list[Call]:
        """What the tools wrote down, in order."""
        file = self.folder / "ledger"
        lines = file.read_text().splitlines() if file.exists() else []
        return [Call(what, intent_id, int(attempt), life) for what, intent_id, attempt, life in map(str.split, lines)]

    def live(self) -> None:
        """The whole run; raises ``AssertionError`` when it does not come to an end."""
        self.random.seed(self.plan.seed)
        half = [each for each in self.intents if each.place < 2]
        self.ground.stage(half)
        for slot in range(self.plan.replicas):
            self._begin(slot)
        self._until(lambda: self._settled() >= len(half) // 2)
        self.ground.stage([each for each in self.intents if each.place >= 2])
        self._until(lambda: self._settled() >= len(self.intents) and self.ground.over())
        self._stop()
        if any(life.killed and life.asked for life in self.lives):  # killed while it was ending: what it left must do for another
            self._begin(0, EFFECTOR_UNTIL_IDLE="1")
            self._until(lambda: self.lives[-1].code is not None)
        self.outcomes = self.ground.outcomes()

    def close(self) -> None:
        """End what still runs."""
        for each in self.lives:
            each.replica.close()

    def _begin(self, slot: int, **more: str) -> None:
        before = sum(life.slot == slot for life in self.lives)
        deaths = self.plan.deaths[slot]
        death = deaths[before] if before < len(deaths) else None
        name = f"r{slot}.{before}"
        environment = {
            "GATE_LEDGER": str(self.folder / "ledger"),
            "GATE_LIFE": name,
            "GATE_PACE": str(self.plan.pace),
            "CHARGE_PROVIDER": self.url,
            "NO_PROXY": "127.0.0.1",
            **(death.environment() if death is not None else {}),
            **more,
        }
        words = ["--registry", "tests.effector.gate.tools:TOOLS", "--owner", name, "--poll-ms", "50", "--max-concurrent-partitions", "3"]
        lease = self.ground.lease_ms(self.plan)
        words += ["--lease-ms", str(lease), "--tool-timeout-ms", str(lease - 500)]
        life = Life(name, slot, death, environment, self.ground.effector(words, environment, self.folder, name))
        self.lives.append(life)
        if death is not None and death.at == ANY_MOMENT:
            threading.Thread(target=self._kill_at_any_moment, args=(life, self.random.uniform(0.0, 0.1)), daemon=True).start()

    def _kill_at_any_moment(self, life: Life, seconds: float) -> None:
        """Some time after the first call that this life has made."""
        while life.code is None and all(each.life != life.name for each in self.ledger):
            time.sleep(0.005)
        time.sleep(seconds)
        life.replica.process.kill()

    def _settled(self) -> int:
        return len(self.ground.outcomes())

    def _until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not holds():
            self._bury(begin=True)
            if time.monotonic() > deadline:
                raise AssertionError(f"{self.plan}: {self._settled()} of {len(self.intents)} have their outcome after {PATIENCE:g} s\n{self.said()}")
            time.sleep(PAUSE)

    def _bury(self, *, begin: bool) -> None:
        for life in [each for each in self.lives if each.code is None]:
            life.code = life.replica.process.poll()
            if life.killed and not self.plan.leases_run_out:
                self.ground.end_leases()
            if life.killed and begin:
                self._begin(life.slot)
            elif life.code is not None and begin and "EFFECTOR_UNTIL_IDLE" not in life.environment:
                raise AssertionError(f"{self.plan}: {life.name} ended with {life.code}\n{self.said()}")

    def _stop(self) -> None:
        for life in self.lives:
            if life.code is None and not life.asked:
                life.asked = True
                life.replica.process.send_signal(signal.SIGTERM)
        for life in self.lives:
            life.code = life.replica.process.wait(PATIENCE)

    def said(self) -> str:
        """The last lines of every life that was not killed."""
        return "\n".join(f"{life.name} ({life.code}): {life.replica.errors.read_text()[-1500:]}" for life in self.lives if not life.killed)


def intents_of(plan: Plan) -> list[Intent]:
    """What a plan has carried out; the first of every key, then the second of every key, and so on."""
    turn = uuid.uuid4().int >> 80
    found = [Intent(turn, f"k{key}", place, tool) for key, tools in enumerate(plan.tools) for place, tool in enumerate(tools)]
    return sorted(found, key=lambda each: each.place)


@contextmanager
def run_of(plan: Plan, folder: Path, ground: Ground) -> Iterator[Run]:
    """A run that is yet to be lived, against a payment provider of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    provider = Provider()
    with servers(provider) as url:
        made = Run(plan, folder, ground, url, provider, intents_of(plan))
        try:
            yield made
        finally:
            made.close()


def forked(words: list[str], environment: dict[str, str], folder: Path, name: str) -> Replica:
    """An effector of the command `eventlog effector`."""
    return Replica(folder, name, words, environment, "tests.effector.gate.child")
