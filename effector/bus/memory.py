"""The memory bus: a real bus for one process, and the shortest reading of the protocol. ``memory://NAME/TOPIC?partitions=N``.

A ``MemoryBroker`` holds topics and consumer groups, and every message for as long as it lives. Whoever wants to share one hands it
in; nothing is found by itself.
"""

from __future__ import annotations

import itertools
import re
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final
from urllib.parse import parse_qsl

import attrs

from ...eventlog.masking import masked_url, masked_values
from .errors import BadBusUrl, BusUnavailable, MessageTooLarge
from .protocol import Message, Outgoing, Polled

PARTITIONS: Final = 8
"""Of a topic whose URL does not say."""
_MOST_PARTITIONS: Final = 1024
_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}"
_URL: Final = re.compile(rf"memory://({_NAME})/({_NAME})(?:\?(.*))?\Z")
_LOOK: Final = 0.05
"""Seconds after which one who waits for messages looks for members that have died."""


@attrs.define(eq=False)
class _Topic:
    partitions: list[list[Message]]
    #: Where the next message without a key goes.
    next: int = 0
    groups: dict[str, _Group] = attrs.field(factory=dict)


@attrs.define(eq=False)
class _Group:
    #: In the order in which they joined.
    members: dict[str, _Member] = attrs.field(factory=dict)
    #: Those that gave no sign of life for too long; they come back with their next poll.
    silent: dict[str, _Member] = attrs.field(factory=dict)
    #: Partition → the offset from which it is delivered to a new owner.
    acknowledged: dict[int, int] = attrs.field(factory=dict)


@attrs.define(eq=False)
class _Member:
    #: By the broker's clock.
    seen: float
    #: Partition → the offset that is delivered next. Its keys are what the member owns.
    position: dict[int, int] = attrs.field(factory=dict)
    paused: set[int] = attrs.field(factory=set)
    #: What its next poll tells.
    lost: list[int] = attrs.field(factory=list)
    gained: list[int] = attrs.field(factory=list)


class MemoryBroker:
    """Topics in this process's memory. Any thread may call.

    ``session`` is how many seconds of ``clock`` a member may be silent before it loses its partitions.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, session: float = 10.0, most_bytes: int = 96 << 20) -> None:
        self._clock, self._session, self.most_bytes = clock, session, most_bytes
        self._topics: dict[str, _Topic] = {}
        self._numbers = itertools.count(1)
        self._changed = threading.Condition()

    def create(self, topic: str, partitions: int = PARTITIONS) -> None:
        """Make the topic; one that is there stays as it is."""
        with self._changed:
            self._topics.setdefault(topic, _Topic([[] for _ in range(partitions)]))

    def publish(self, topic: str, messages: Iterable[Outgoing]) -> None:
        """All of them, or none when one is too large."""
        given = list(messages)
        for each in given:
            if len(each.value) > self.most_bytes:
                raise MessageTooLarge(f"A message of {len(each.value):,} bytes is more than {topic} takes, {self.most_bytes:,}; keep it elsewhere.")
        with self._changed:
            found = self._topics[topic]
            for each in given:
                number = self._partition_of(found, each.key)
                lane = found.partitions[number]
                lane.append(Message(each.key, each.value, dict(each.headers), number, len(lane)))
            self._changed.notify_all()

    def messages(self, topic: str) -> list[Message]:
        """Everything that was ever published there, by partition and offset."""
        with self._changed:
            return [message for lane in self._topics[topic].partitions for message in lane] if topic in self._topics else []

    def acknowledged(self, topic: str, group: str) -> dict[int, int]:
        """By partition, how many messages the group is done with."""
        with self._changed:
            return dict(self._group(topic, group).acknowledged)

    def join(self, topic: str, group: str, name: str = "") -> str:
        """A new member; its id."""
        with self._changed:
            member = f"{name or 'member'}-{next(self._numbers)}"
            found = self._group(topic, group)
            found.members[member] = _Member(self._clock())
            self._rebalance(topic, found)
            return member

    def leave(self, topic: str, group: str, member: str) -> None:
        """The member's partitions go to the others at once."""
        with self._changed:
            found = self._group(topic, group)
            found.silent.pop(member, None)
            if found.members.pop(member, None) is not None:
                self._rebalance(topic, found)

    def poll(self, topic: str, group: str, member: str, most: int, timeout: float) -> Polled:
        """See ``Source.poll``."""
        deadline = time.monotonic() + timeout
        with self._changed:
            while True:
                me = self._alive(topic, group, member)
                found = Polled(tuple(me.lost), tuple(me.gained), tuple(self._next(self._topics[topic], me, most)))
                me.lost, me.gained = [], []
                remaining = deadline - time.monotonic()
                if found != Polled() or remaining <= 0:
                    return found
                self._changed.wait(min(remaining, _LOOK))

    def acknowledge(self, topic: str, group: str, member: str, partition: int, offset: int) -> None:
        """See ``Source.acknowledge``."""
        with self._changed:
            found = self._group(topic, group)
            me = found.members.get(member)
            if me is not None and partition in me.position:
                me.seen = self._clock()
                found.acknowledged[partition] = max(found.acknowledged.get(partition, 0), offset + 1)

    def pause(self, topic: str, group: str, member: str, partition: int, paused: bool) -> None:
        """See ``Source.pause`` and ``resume``."""
        with self._changed:
            me = self._group(topic, group).members.get(member)
            if me is not None and partition in me.position:
                (me.paused.add if paused else me.paused.discard)(partition)

    def _partition_of(self, topic: _Topic, key: str | None) -> int:
        if key is None:
            topic.next += 1
            return topic.next % len(topic.partitions)
        return zlib.crc32(key.encode("utf-8", "surrogatepass")) % len(topic.partitions)

    def _group(self, topic: str, group: str) -> _Group:
        return self._topics[topic].groups.setdefault(group, _Group())

    def _alive(self, topic: str, group: str, member: str) -> _Member:
        """The member, which lives; others that have been silent for too long are put out."""
        found, now = self._group(topic, group), self._clock()
        me = found.members.get(member)
        if me is None:
            me = found.silent.pop(member, None)
            if me is None:
                raise BusUnavailable(f"{member} has left {group} on {topic}; join again")
            found.members[member] = me
            me.seen = now
            self._rebalance(topic, found)
        me.seen = now
        dead = [name for name, each in found.members.items() if now - each.seen > self._session]
        for name in dead:
            found.silent[name] = found.members.pop(name)
        if dead:
            self._rebalance(topic, found)
        return me

    def _rebalance(self, topic: str, group: _Group) -> None:
        """Every partition to one member, evenly; who keeps one keeps his place in it."""
        members = list(group.members.values())
        for number in range(len(self._topics[topic].partitions)):
            owner = members[number % len(members)] if members else None
            for each in (*members, *group.silent.values()):
                if each is not owner and each.position.pop(number, None) is not None:
                    each.paused.discard(number)
                    if number in each.gained:
                        each.gained.remove(number)
                    else:
                        each.lost.append(number)
            if owner is not None and number not in owner.position:
                owner.position[number] = group.acknowledged.get(number, 0)
                owner.gained.append(number)
        self._changed.notify_all()

    def _next(self, topic: _Topic, me: _Member, most: int) -> list[Message]:
        """A share of each partition, so that a long one does not keep the others back."""
        ready = [number for number in me.position if number not in me.paused and me.position[number] < len(topic.partitions[number])]
        share = -(-most // len(ready)) if ready else 0
        found: list[Message] = []
        for number in ready:
            begin = me.position[number]
            new = topic.partitions[number][begin : begin + min(share, most - len(found))]
            me.position[number] = begin + len(new)
            found += new
        return found


class MemorySource:
    """A member on one broker."""

    def __init__(self, broker: MemoryBroker, topic: str, group: str, name: str) -> None:
        self._broker, self._topic, self._group = broker, topic, group
        self._member = broker.join(topic, group, name)

    def poll(self, most: int, timeout: float) -> Polled:
        return self._broker.poll(self._topic, self._group, self._member, most, timeout)

    def acknowledge(self, partition: int, offset: int) -> None:
        self._broker.acknowledge(self._topic, self._group, self._member, partition, offset)

    def pause(self, partition: int) -> None:
        self._broker.pause(self._topic, self._group, self._member, partition, True)

    def resume(self, partition: int) -> None:
        self._broker.pause(self._topic, self._group, self._member, partition, False)

    def close(self) -> None:
        self._broker.leave(self._topic, self._group, self._member)


class MemorySink:
    """A topic of one broker."""

    def __init__(self, broker: MemoryBroker, topic: str) -> None:
        self._broker, self._topic = broker, topic
        self.most_bytes = broker.most_bytes

    def publish(self, messages: Sequence[Outgoing]) -> None:
        self._broker.publish(self._topic, messages)

    def close(self) -> None:
        """There is nothing to let go of."""


class MemoryBus:
    """Brokers by name. Those that are not handed in are made when they are first named, and belong to this object alone."""

    shared = False

    def __init__(self, brokers: Mapping[str, MemoryBroker] | None = None) -> None:
        self._brokers = dict(brokers or {})
        self._lock = threading.Lock()

    def check(self, url: str) -> None:
        parse_memory(url)

    def source(self, url: str, *, group: str, member: str) -> MemorySource:
        broker, topic = self._at(url)
        return MemorySource(broker, topic, group, member)

    def sink(self, url: str) -> MemorySink:
        broker, topic = self._at(url)
        return MemorySink(broker, topic)

    def close(self) -> None:
        """Brokers that were handed in live on with whoever did that."""

    def _at(self, url: str) -> tuple[MemoryBroker, str]:
        name, topic, partitions = parse_memory(url)
        with self._lock:
            broker = self._brokers.setdefault(name, MemoryBroker())
        broker.create(topic, partitions)
        return broker, topic


def parse_memory(url: str) -> tuple[str, str, int]:
    """Name, topic and number of partitions. Raises ``BadBusUrl``."""
    found = _URL.match(url)
    if found is None:
        raise BadBusUrl(f"{masked_url(url)!r:.300} is no memory bus: it is memory://NAME/TOPIC or memory://NAME/TOPIC?partitions=4")
    return found[1], found[2], partitions_of(url, found[3])


def partitions_of(url: str, query: str | None) -> int:
    """What ``partitions=`` says, and nothing else may be there. Raises ``BadBusUrl``."""
    given = dict(parse_qsl(query or "", keep_blank_values=True))
    number = given.pop("partitions", str(PARTITIONS))
    if given or not re.fullmatch(r"[0-9]{1,4}", number) or not 1 <= int(number) <= _MOST_PARTITIONS:
        raise BadBusUrl(f"{masked_values(url)!r:.300}: behind the '?' goes partitions=N, N from 1 to {_MOST_PARTITIONS}, and nothing else")
    return int(number)
