"""An effector on a memory bus, in this process, where every moment can be held."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
import zlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from intentlog.agents import IntentInfo, ToolSet, facts, tool
from intentlog.agents.app import runtime_codec
from intentlog.agents.intents import content_digest, intent_id_for, keyed_intent_id
from intentlog.agents.signing import KeyRing
from intentlog.agents.tool_policies import Retryable
from intentlog.effector.bus import BusUnavailable, MemoryBroker, MemoryBus, Message, Outgoing, wire
from intentlog.effector.bus.engine import BusEffector
from intentlog.effector.bus.means import BusSettings
from intentlog.effector.dedup import StoreUnavailable
from intentlog.effector.dedup.memory import MemoryStore
from intentlog.effector.watching import Watching
from intentlog.eventlog.clock import SECOND, system_clock
from intentlog.eventlog.events import StoredEvent

CODEC = runtime_codec()
HOUR = 3600 * SECOND
MINUTE = 60 * SECOND


def encoded(fact: Any, stream: str, keys: KeyRing | None = None) -> Outgoing:
    """A fact of the log as a message."""
    name, schema, payload = CODEC.encode(fact)
    event = StoredEvent(1, stream, 0, uuid.uuid4().bytes, name, schema, payload, system_clock(), b"c" * 16, None)
    return wire.encode_intent(CODEC, event, keys.sign_intent(stream, schema, payload) if keys is not None else None)


def intent(stream: str, tool: str, args: dict[str, Any], expires_at: int, seq: int = -1, step: int = 0, key: str = "") -> facts.IntentStaged:
    """An intent as a turn stages it; of a turn that no other intent is of, unless it is said which."""
    seq = uuid.uuid4().int >> 80 if seq < 0 else seq
    digest = content_digest(tool, CODEC.encode_value(args, dict[str, Any]))
    intent_id = keyed_intent_id(stream, tool, key) if key else intent_id_for(stream, seq, step)
    return facts.IntentStaged(intent_id, seq, step, tool, args, digest, expires_at, key)


def question(text: str = "Pay?", details: dict[str, Any] | None = None, ttl: int = MINUTE, seq: int = 0) -> facts.ApprovalRequested:
    """A question as a turn asks it."""
    said = {"question": text, "channel": "support", "details": details or {}}
    digest = content_digest("approval", CODEC.encode_value(said, dict[str, Any]))
    return facts.ApprovalRequested(f"approval-{seq}-0", seq, 0, text, "support", details or {}, digest, system_clock() + ttl)


def staged(key: str = "k", tool: str = "work", ttl: int = HOUR, *, named: str = "", keys: KeyRing | None = None, **args: Any) -> tuple[str, Outgoing]:
    """An intent's id and its message; ``named``: its business key."""
    fact = intent(f"a-{key}", tool, args or {"name": "x"}, system_clock() + ttl if ttl else 0, key=named)
    return fact.intent_id, encoded(fact, f"a-{key}", keys)


class Moody(MemoryStore):
    """A store that can be away."""

    def __init__(self) -> None:
        super().__init__()
        self.away = threading.Event()
        self.asked: list[str] = []

    def _tried(self, doing: str, transition: Callable[[], Any]) -> Any:
        self.asked.append(doing)
        if self.away.is_set():
            raise StoreUnavailable("the store is away")
        return transition()


class Heard(Watching):
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.failures: list[tuple[str, str]] = []
        self.told: list[tuple[Any, ...]] = []
        self.beats: list[str] = []
        self.waits: dict[str, int] = {}

    def beat(self, part: str) -> None:
        self.beats.append(part)

    def failed(self, part: str, problem: BaseException) -> None:
        self.failures.append((part, type(problem).__name__))

    def set_aside(self, partition: int, offset: int, kind: str, why: str) -> None:
        self.told.append(("set aside", kind))

    def distrusted(self, pending: Any, why: str) -> None:
        self.told.append(("distrusted", pending.intent.intent_id))

    def lost(self, stream: str, pending: Any) -> None:
        self.told.append(("lost", pending.intent.intent_id))

    def refused(self, pending: Any, outcome: Any) -> None:
        self.told.append(("refused", pending.intent.intent_id))

    def abandoned(self, pending: Any, seconds: float) -> None:
        self.told.append(("abandoned", pending.intent.intent_id))

    def left(self, pending: Any) -> None:
        self.told.append(("left", pending.intent.intent_id))

    def repeated(self, pending: Any, status: str) -> None:
        self.told.append(("repeated", status))

    def waiting(self, reasons: Any) -> None:
        self.waits = dict(reasons)


class Odd(BaseException):
    """What no tool should raise."""


class Scene:
    """A broker, a store, tools that note what they do, and any number of effectors."""

    def __init__(self, partitions: int = 4) -> None:
        self.broker = MemoryBroker(session=60.0)
        self.bus = MemoryBus({"m": self.broker})
        self.partitions = partitions
        self.store = Moody()
        self.down: set[str] = set()
        self.begun: list[str] = []
        self.attempts: list[int] = []
        self.do: dict[str, Callable[[], Any]] = {}
        self.heard = Heard()
        self.watching: Watching = self.heard
        self.errors: list[tuple[str, BaseException]] = []
        self.boundaries: list[str] = []
        self.tools = ToolSet(self._tools())

    def _tools(self) -> list[Any]:
        def note(name: str, intent: IntentInfo) -> Any:
            self.begun.append(name)
            self.attempts.append(intent.attempt)
            return self.do[name]() if name in self.do else name

        @tool(side_effect=True)
        def work(name: str, *, intent: IntentInfo) -> Any:
            return note(name, intent)

        @tool(side_effect=True, idempotent=True)
        def push(name: str, *, intent: IntentInfo) -> Any:
            return note(name, intent)

        @tool(side_effect=True, timeout=timedelta(milliseconds=60))
        def brief(name: str, *, intent: IntentInfo) -> Any:
            return note(name, intent)

        @tool(side_effect=True)
        async def nap(name: str, seconds: float, *, intent: IntentInfo) -> str:
            note(name, intent)
            await asyncio.sleep(seconds)
            return name

        return [work, push, brief, nap]

    def url(self, topic: str) -> str:
        return f"memory://m/{topic}?partitions={self.partitions}"

    def key_in(self, partition: int) -> str:
        """A key of that partition; with two members, the odd ones are the second one's."""
        return next(f"k{n}" for n in range(1000) if zlib.crc32(f"a-k{n}".encode()) % self.partitions == partition)

    def publish(self, *messages: Outgoing) -> None:
        self.bus.sink(self.url("intents")).publish(messages)

    def stage(self, key: str = "k", tool: str = "work", ttl: int = HOUR, **more: Any) -> str:
        """One intent on the bus; its id."""
        name, message = staged(key, tool, ttl, **more)
        self.publish(message)
        return name

    def effector(
        self,
        *,
        clock: Callable[[], int] = system_clock,
        tools: ToolSet | None = None,
        store: Any = None,
        keys: KeyRing | None = None,
        verifier: Any = None,
        owner: str = "",
        lease: float = 30.0,
        **settings: Any,
    ) -> BusEffector:
        """One more member of the group."""
        member = owner or f"e{len(self.errors)}-{uuid.uuid4().hex[:6]}"
        return BusEffector(
            CODEC,
            tools or self.tools,
            store or self.store,
            lambda: self.bus.source(self.url("intents"), group="g", member=member),
            results=lambda: self._sink("results"),
            approvals=lambda: self._sink("approvals"),
            dead_letters=lambda: self._sink("dead"),
            owner=member,
            clock=clock,
            settings=BusSettings(**{"poll": 0.01, "lease": int(lease * SECOND), **settings}),
            boundary=lambda name, stream: self.boundaries.append(name),
            on_error=lambda doing, problem: self.errors.append((doing, problem)),
            watching=self.watching,
            verifier=verifier,
            keys=keys,
        )

    def _sink(self, topic: str) -> Any:
        scene, sink = self, self.bus.sink(self.url(topic))

        class Fragile:
            most_bytes = sink.most_bytes

            def publish(self, messages: Sequence[Outgoing]) -> None:
                if topic in scene.down:
                    raise BusUnavailable(f"{topic} is down")
                sink.publish(messages)

            def close(self) -> None:
                sink.close()

        return Fragile()

    @asynccontextmanager
    async def serving(self, *effectors: BusEffector) -> AsyncIterator[BusEffector]:
        """With effectors running, one unless they are given."""
        members = effectors or (self.effector(),)
        running = [asyncio.create_task(each.run()) for each in members]
        try:
            yield members[0]
        finally:
            for each in members:
                each.stop()
            await asyncio.gather(*running)
            for each in members:
                each.close()

    def serve(self, *effectors: BusEffector) -> None:
        """Until everything that is on the bus is done with."""

        async def run() -> None:
            async with self.serving(*effectors):
                await until(self.done)

        asyncio.run(run())

    def done(self) -> bool:
        """Whether the group has acknowledged everything."""
        acknowledged = self.broker.acknowledged("intents", "g")
        return len(self.broker.messages("intents")) == sum(acknowledged.values())

    def results(self) -> list[tuple[str, facts.IntentSettled]]:
        """What was published: stream and settlement, each as often as it was."""
        found = []
        for each in self.broker.messages("results"):
            envelope, fact = wire.decode_result(CODEC, each.value)
            assert each.key == envelope.stream
            found.append((envelope.stream, fact))
        return found

    def statuses(self) -> dict[str, str]:
        """Intent → its status; fails when two different outcomes of one were published."""
        blobs: dict[str, set[bytes]] = {}
        for each in self.broker.messages("results"):
            blobs.setdefault(wire.decode_result(CODEC, each.value)[1].intent_id, set()).add(each.value)
        assert [] == [name for name, values in blobs.items() if len(values) > 1]
        return {fact.intent_id: fact.status for _, fact in self.results()}

    def dead(self) -> list[Message]:
        """Dead letters."""
        return self.broker.messages("dead")


async def until(holds: Callable[[], Any], seconds: float = 30.0) -> None:
    """Fails when it never holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it never came to hold"
        await asyncio.sleep(0.005)


def retryable(times: int, then: Any = "at last") -> Callable[[], Any]:
    """Fails so many times in a way that may heal."""
    left = [times]

    def do() -> Any:
        left[0] -= 1
        if left[0] >= 0:
            raise Retryable("busy")
        return then

    return do
