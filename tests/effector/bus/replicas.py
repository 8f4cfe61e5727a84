"""Replicas as real processes on one bus: the command itself, which finds the bus of the tests among what is installed."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from intentlog.agents.app import runtime_codec
from intentlog.effector.bus import Outgoing, wire
from intentlog.effector.dedup import open_dedup
from intentlog.eventlog.clock import SECOND, system_clock
from intentlog.eventlog.events import StoredEvent
from tests.effector.bus.scene import intent
from tests.effector.service.replicas import TOOLS, Replica
from tests.house.tree import ROOT
from tests.services.bus import BusServer, TcpBus

CODEC = runtime_codec()
GROUP = "effector"
ENTRY_POINTS = "[intentlog.buses]\ntcp = tests.services.bus:TcpBus\n"


class World:
    """A folder with tools, a bus, a dedup store, and the replicas on them."""

    def __init__(self, folder: Path, dedup: str, server: BusServer, partitions: int = 4) -> None:
        self.folder, self.dedup, self.server, self.partitions = folder, dedup, server, partitions
        (folder / "tools.py").write_text(TOOLS)
        installed = folder / "test_bus-1.0.dist-info"
        installed.mkdir()
        (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: test-bus\nVersion: 1.0\n")
        (installed / "entry_points.txt").write_text(ENTRY_POINTS)
        self.replicas: list[Replica] = []
        self.store = open_dedup(dedup)

    def close(self) -> None:
        """End what still runs."""
        for each in self.replicas:
            each.close()
        self.store.close()

    def url(self, topic: str) -> str:
        return self.server.url(topic, self.partitions)

    def publish(self, *messages: Outgoing) -> None:
        bus = TcpBus()
        sink = bus.sink(self.url("intents"))
        sink.publish(messages)
        sink.close()

    def message(self, key: str, tool: str = "work", ttl: int = 3600 * SECOND, **args: Any) -> tuple[str, Outgoing]:
        """One intent's id and its message."""
        stream = f"a-{key}"
        fact = intent(stream, tool, args or {"name": key}, system_clock() + ttl)
        name, schema, payload = CODEC.encode(fact)
        event = StoredEvent(1, stream, 0, uuid.uuid4().bytes, name, schema, payload, system_clock(), b"c" * 16, None)
        return fact.intent_id, wire.encode_intent(CODEC, event)

    def stage(self, key: str, tool: str = "work", ttl: int = 3600 * SECOND, **args: Any) -> str:
        """One intent on the bus; its id."""
        intent_id, message = self.message(key, tool, ttl, **args)
        self.publish(message)
        return intent_id

    def start(self, *words: str, **environment: str) -> Replica:
        """A replica, left running."""
        name = f"r{len(self.replicas)}"
        given = ["--registry", "tools:TOOLS", "--owner", name, "--poll-ms", "50", "--log-level", "debug"]
        for option, topic in (("intents-from", "intents"), ("results-to", "results"), ("approvals-to", "approvals"), ("dead-letters-to", "dead")):
            given += [f"--{option}", self.url(topic)]
        # The dedup URL may hold credentials; and the folder of the tests is where the bus's client is.
        replica = Replica(self.folder, name, [*given, *words], {"EFFECTOR_DEDUP": self.dedup, "PYTHONPATH": str(ROOT), **environment})
        self.replicas.append(replica)
        return replica

    def done(self) -> bool:
        """Whether everything that was published is acknowledged."""
        return len(self.server.broker.messages("intents")) == sum(self.server.broker.acknowledged("intents", GROUP).values())

    def results(self) -> dict[str, list[bytes]]:
        """Intent → what was published for it, as often as it was."""
        found: dict[str, list[bytes]] = {}
        for each in self.server.broker.messages("results"):
            found.setdefault(wire.decode_result(CODEC, each.value)[1].intent_id, []).append(each.value)
        return found

    def statuses(self, *intents: str) -> list[str]:
        """The one status of each, in order; fails on an intent with two different outcomes."""
        results = self.results()
        assert [] == [each for each, values in results.items() if len(set(values)) > 1]
        return [wire.decode_result(CODEC, results[each][0])[1].status if each in results else "" for each in intents]

    def ledger(self, what: str = "begun") -> list[str]:
        """Ids of the intents whose tool began, or ended."""
        file = self.folder / "ledger.txt"
        lines = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
        return [words[1] for words in lines if words[0] == what]

    def open_gate(self) -> None:
        """Let every ``gated`` tool end."""
        (self.folder / "open").touch()


OpenWorld = Callable[[], World]
