"""What a message bus must do to bring intents to an effector and take outcomes away.

Messages of one key lie in one partition, in the order in which they were published. Each partition belongs to one member of
a consumer group at a time, is delivered to it in order, and again from behind the last acknowledged message whenever it
changes hands. Nothing more is asked of a bus: that a message may come twice, and to two members at the same moment while a
partition changes hands, is what the dedup store is for.

Everything is synchronous, for so are the client libraries. An effector calls a source from one thread alone and a sink from
several, never from its event loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import attrs

NO_HEADERS: Final[Mapping[str, bytes]] = {}


def _size(value: bytes) -> str:
    return f"<{len(value)} bytes>"


@attrs.frozen
class Outgoing:
    """A message to be published."""

    #: Decides the partition; ``None`` leaves that to the bus. A key that came as bytes which are no UTF-8 holds surrogate escapes.
    key: str | None
    value: bytes = attrs.field(repr=_size)
    headers: Mapping[str, bytes] = NO_HEADERS


@attrs.frozen
class Message:
    """A message as it was delivered."""

    key: str | None
    value: bytes = attrs.field(repr=_size)
    headers: Mapping[str, bytes]
    partition: int
    #: Its place in the partition; grows, perhaps with holes.
    offset: int


@attrs.frozen
class Polled:
    """What a poll brought, in the order in which it came about: partitions went, partitions came, messages came."""

    #: Partitions that are no longer this member's. Whatever of them is not acknowledged is delivered to somebody else.
    revoked: tuple[int, ...] = ()
    #: Partitions that are this member's from now on, delivered from behind what is acknowledged. One may be revoked and assigned at once.
    assigned: tuple[int, ...] = ()
    #: In order within each partition.
    messages: tuple[Message, ...] = ()


class Source(Protocol):
    """One member of a consumer group on one topic. Every method but ``close`` raises ``BusUnavailable`` while the bus cannot be reached."""

    def poll(self, most: int, timeout: float) -> Polled:
        """Up to ``most`` messages; waits up to ``timeout`` seconds for something to tell, and returns as soon as there is.

        It is also the sign of life: a member that does not poll for long loses its partitions.
        """
        ...

    def acknowledge(self, partition: int, offset: int) -> None:
        """Everything in ``partition`` up to and including ``offset`` is done with, for the whole group and for good.

        An older offset than before changes nothing; neither does a partition that is no longer this member's.
        """
        ...

    def pause(self, partition: int) -> None:
        """Deliver nothing of ``partition`` until ``resume``; it stays this member's. Forgotten when the partition is revoked."""
        ...

    def resume(self, partition: int) -> None:
        """Deliver again, from where it was left."""
        ...

    def close(self) -> None:
        """Leave the group: others get the partitions at once. Closing twice is fine."""
        ...


class Sink(Protocol):
    """One topic to publish to. Any thread may call."""

    @property
    def most_bytes(self) -> int:
        """The largest value that is taken."""
        ...

    def publish(self, messages: Sequence[Outgoing]) -> None:
        """Durable, in this order within each key, when it returns. Raises ``BusUnavailable`` and ``MessageTooLarge``.

        After ``BusUnavailable`` any of them may be there; publishing them again is harmless to whoever reads by id.
        """
        ...

    def close(self) -> None:
        """Let go of the connection. Closing twice is fine."""
        ...


class Bus(Protocol):
    """What the scheme of a URL leads to; one object serves all topics that one process uses of it."""

    @property
    def shared(self) -> bool:
        """Whether effectors in other processes can be on it."""
        ...

    def check(self, url: str) -> None:
        """Raises ``BadBusUrl`` for a URL that cannot be. Connects to nothing."""
        ...

    def source(self, url: str, *, group: str, member: str) -> Source:
        """Join ``group`` on the topic of ``url``; ``member`` is a name for people. Raises ``BusUnavailable`` and ``BadBusUrl``."""
        ...

    def sink(self, url: str) -> Sink:
        """The topic of ``url`` to publish to. Raises ``BusUnavailable`` and ``BadBusUrl``."""
        ...

    def close(self) -> None:
        """Let go of what sources and sinks share. Closing twice is fine."""
        ...


def headers_of(**values: Any) -> dict[str, bytes]:
    """Headers of plain values, ``_`` in a name written as ``-``.

    >>> headers_of(dead_letter_offset=7)
    {'dead-letter-offset': b'7'}
    """
    return {name.replace("_", "-"): value if isinstance(value, bytes) else str(value).encode("utf-8", "replace") for name, value in values.items()}
