"""The gate on a bus: a topic brings intents, a dedup store decides, another topic takes the outcomes."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import attrs

from intentlog.agents import facts
from intentlog.agents.intents import content_digest
from intentlog.effector.bus import wire
from intentlog.eventlog.clock import SECOND, system_clock
from intentlog.eventlog.events import StoredEvent
from tests.effector.bus.replicas import ENTRY_POINTS, GROUP
from tests.effector.gate.plans import Plan
from tests.effector.gate.runs import Intent, Outcome, Run, forked
from tests.effector.service.replicas import CODEC, Replica
from tests.services.bus import BusServer, TcpBus

TOPICS = {"intents-from": "intents", "results-to": "results", "approvals-to": "approvals", "dead-letters-to": "dead"}


@attrs.define(eq=False)
class BusGround:
    """A bus of its own, and a store."""

    dedup: str
    folder: Path
    server: BusServer = attrs.field(factory=BusServer, init=False)
    _read: set[tuple[int, int]] = attrs.field(factory=set, init=False)
    _outcomes: dict[str, list[Outcome]] = attrs.field(factory=dict, init=False)
    _bytes: dict[str, set[bytes]] = attrs.field(factory=dict, init=False)

    def lease_ms(self, plan: Plan) -> int:
        return 5000

    def __attrs_post_init__(self) -> None:
        installed = self.folder / "gate_bus-1.0.dist-info"
        installed.mkdir(parents=True)
        (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: gate-bus\nVersion: 1.0\n")
        (installed / "entry_points.txt").write_text(ENTRY_POINTS)
        self.server.start()

    def close(self) -> None:
        self.server.stop()

    def stage(self, intents: list[Intent]) -> None:
        until = system_clock() + 3600 * SECOND
        sink = TcpBus().sink(self.server.url("intents"))
        sink.publish([wire.encode_intent(CODEC, _stored(each, until)) for each in intents])
        sink.close()

    def effector(self, words: list[str], environment: dict[str, str], folder: Path, name: str) -> Replica:
        urls = [word for option, topic in TOPICS.items() for word in (f"--{option}", self.server.url(topic))]
        return forked([*words, *urls], {**environment, "EFFECTOR_DEDUP": self.dedup}, folder, name)

    def outcomes(self) -> dict[str, list[Outcome]]:
        for each in self.server.broker.messages("results"):
            if (each.partition, each.offset) in self._read:
                continue
            self._read.add((each.partition, each.offset))
            fact = wire.decode_result(CODEC, each.value)[1]
            outcome = Outcome(fact.status, fact.value, fact.attempts, fact.settled_by.rpartition("/")[2], fact.failure.type if fact.failure else "")
            self._outcomes.setdefault(fact.intent_id, []).append(outcome)
            self._bytes.setdefault(fact.intent_id, set()).add(each.value)
        return self._outcomes

    def over(self) -> bool:
        broker = self.server.broker
        return len(broker.messages("intents")) == sum(broker.acknowledged("intents", GROUP).values())

    def end_leases(self) -> None:
        """Nobody can: they run out."""

    def faults(self, run: Run) -> list[str]:
        """What the bus says against it."""
        found = [f"dead letter: {each}" for each in self.server.broker.messages("dead")]
        if not self.over():
            found.append("not everything that was published is acknowledged")
        found += [f"{intent_id} was published with {len(values)} different outcomes" for intent_id, values in self._bytes.items() if len(values) > 1]
        order: dict[str, list[int]] = {}
        place = {each.id: (each.key, each.place) for each in run.intents}
        for intent_id in self._outcomes:  # by when the first was published
            key, number = place[intent_id]
            order.setdefault(key, []).append(number)
        return found + [f"{key}: outcomes were first published in the order {numbers}" for key, numbers in order.items() if numbers != sorted(numbers)]


def _stored(intent: Intent, until: int) -> StoredEvent:
    digest = content_digest(intent.tool, CODEC.encode_value(intent.args, dict[str, Any]))
    fact: Any = facts.IntentStaged(intent.id, intent.turn, intent.place, intent.tool, intent.args, digest, until)
    name, schema, payload = CODEC.encode(fact)
    return StoredEvent(1, f"a-{intent.key}", intent.place, uuid.uuid4().bytes, name, schema, payload, system_clock(), b"c" * 16, None)
