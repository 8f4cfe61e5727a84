"""One log, lived on by one child after the other; what is durable is taken down at the end of each life."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import attrs

from intentlog.agents import facts
from intentlog.agents.models import idempotency_key
from intentlog.eventlog import StoredEvent
from tests.acceptance.forking import Forked
from tests.acceptance.harness import Ended, child, decoded, end_of, events, forked
from tests.acceptance.kill.orders import app
from tests.acceptance.kill.world import World, world
from tests.stores import Store

CHILD = "tests.acceptance.kill.child"
#: Lives at a time; the machine these tests are sized for has two cores.
AT_ONCE = 2


@attrs.frozen
class Order:
    """One line of the input file."""

    key: str
    order: str
    kind: str
    agent: str = "orders"

    @property
    def stream(self) -> str:
        return f"{self.agent}-{self.key}"

    def line(self) -> str:
        payload = {"order": self.order, "kind": self.kind}
        return json.dumps({"agent": self.agent, "key": self.key, "type": "order.placed", "payload": payload, "id": self.order}) + "\n"


def orders_of(kinds: Iterable[str], keys: int, each: int) -> list[Order]:
    """``each`` orders for every one of ``keys`` keys of every kind, keys taking turns."""
    names = [(f"{kind}{number}", kind) for number in range(keys) for kind in kinds]
    return [Order(key, f"{key}.{place}", kind) for place in range(each) for key, kind in names]


@attrs.frozen
class Read:
    """What is in a log at one moment, as far as the laws ask."""

    events: list[tuple[StoredEvent, Any]]

    def of(self, kind: type) -> list[tuple[StoredEvent, Any]]:
        return [(stored, fact) for stored, fact in self.events if isinstance(fact, kind)]

    @property
    def journal(self) -> frozenset[str]:
        """Idempotency keys of the model calls whose answers are durable."""
        return frozenset(idempotency_key(stored.stream, fact.seq, fact.step, fact.digest) for stored, fact in self.of(facts.ModelCallCached))

    @property
    def attempts(self) -> Counter[str]:
        return Counter(fact.intent_id for _, fact in self.of(facts.IntentAttempted))

    @property
    def statuses(self) -> dict[str, str]:
        return {fact.intent_id: fact.status for _, fact in self.of(facts.IntentSettled)}

    @property
    def interrupted(self) -> frozenset[str]:
        """Intents of which an attempt was begun and no end was seen."""
        return frozenset(self.attempts) - frozenset(self.statuses)

    def stream(self, name: str) -> list[tuple[StoredEvent, Any]]:
        return [(stored, fact) for stored, fact in self.events if stored.stream == name]


def read(url: str) -> Read:
    """The log at ``url``; empty when a child died before it made one."""
    return Read([(stored, decoded(app, stored)) for stored in events(url)])


@attrs.frozen
class Life:
    """One child from start to end, and the log it left."""

    caller: str
    ended: Ended
    left: Read

    @property
    def killed(self) -> bool:
        return self.ended.killed


@attrs.define(eq=False)
class Case:
    """One log with its world, and the lives that were lived on it."""

    folder: Path
    orders: list[Order]
    world: World
    store: Store
    url: str
    lives: list[Life] = attrs.field(factory=list)
    counts: dict[str, int] = attrs.field(factory=dict)
    begun_again: int = 0
    #: Whether its lives are forked from a process that has read all modules.
    forks: bool = True

    @property
    def file(self) -> Path:
        return self.folder / "orders.jsonl"

    def words(self, *more: str, verb: str = "run") -> list[str]:
        """`eventlog run` over the whole input file, until idle; or another command on the same log."""
        given = ["--input", str(self.file)] if verb == "run" else []
        return [verb, "tests.acceptance.kill.orders:app", "--log", self.url, *given, "--until-idle", *more]

    def env(self, caller: str, crash: str | None = None, habit: str | None = None) -> dict[str, str]:
        env = {"KILL_WORLD": str(self.world.port), "KILL_CALLER": caller, "KILL_COUNTS": str(self.folder / "counts.json"), "PYTHONDONTWRITEBYTECODE": "1"}
        return env | ({"EVENTLOG_CRASH_AT": crash} if crash else {}) | ({"KILL_HABIT": habit} if habit else {})

    def start(
        self, caller: str, *more: str, crash: str | None = None, habit: str | None = None, verb: str = "run"
    ) -> AbstractContextManager[subprocess.Popen[str] | Forked]:
        """A child whose end is the caller's business; tell ``buried`` of it."""
        words, env = self.words(*more, verb=verb), self.env(caller, crash, habit)
        return forked(CHILD, words, env) if self.forks else child([sys.executable, "-m", CHILD, *words], env)

    def live(self, *more: str, crash: str | None = None, kill_after: float | None = None, habit: str | None = None, verb: str = "run") -> Life:
        """One life from start to end."""
        caller = f"life-{len(self.lives) + 1}"
        with self.start(caller, *more, crash=crash, habit=habit, verb=verb) as started:
            return self.buried(caller, end_of(started, kill_after))

    def buried(self, caller: str, ended: Ended) -> Life:
        """Take down what a life left, and let go of what it held."""
        if ended.killed:
            self.store.after_a_death(self.url)
        self.lives.append(Life(caller, ended, read(self.url)))
        if not ended.killed and (counts := self.folder / "counts.json").exists():
            self.counts = json.loads(counts.read_text("utf-8"))
        return self.lives[-1]

    def forget(self) -> None:
        """Begin again with another log, as if nobody had lived."""
        self.begun_again += 1
        self.url = self.store.url(self.folder / f"log-{self.begun_again}")
        self.lives.clear()
        self.world.calls.clear()
        self.world.moved.clear()

    @property
    def left(self) -> Read:
        """What the last life left."""
        return self.lives[-1].left


def killed(made: Case, boundary: str, n: int) -> int:
    """Let the first life die when it reaches the boundary the n-th time, or the last time before; returns which it was.

    How often a checkpoint is saved depends on what happened to be in flight, so a last one is found by trying.
    """
    while True:
        life = made.live(crash=f"{boundary}:{n}")
        if life.killed or n == 1:
            return n
        n -= 1
        made.forget()


@contextmanager
def case(store: Store, folder: Path, orders: list[Order]) -> Iterator[Case]:
    """A case with a fresh world, in a folder of its own."""
    folder.mkdir(parents=True)
    with world() as around:
        made = Case(folder, orders, around, store, store.url(folder / "log"))
        made.file.write_text("".join(order.line() for order in orders), "utf-8")
        yield made


def faults_in_all(cells: Mapping[str, Any], look: Any) -> dict[str, list[str]]:
    """``look(name, cell)`` for every cell, two at a time; the names of those with faults."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = dict(zip(cells, pool.map(lambda item: look(*item), cells.items()), strict=True))
    return {name: faults for name, faults in found.items() if faults}
