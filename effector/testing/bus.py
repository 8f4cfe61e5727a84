"""The conformance kit of buses: every promise of ``effector/bus/protocol.py``, one check each.

Each check uses topics of its own, and fails with an ``AssertionError`` that says what differs. To run them one by one,
parametrise over ``BUS_CHECKS``.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

import attrs

from ...eventlog.testing.maker import PATIENCE, expect, together
from ..bus.errors import BadBusUrl, MessageTooLarge
from ..bus.protocol import Bus, Message, Outgoing, Sink, Source

_names = itertools.count(1)


@attrs.frozen
class BusMaker:
    """A bus as the kit sees it."""

    name: str
    #: A connection of its own to the same bus each time, as another process would have it.
    make: Callable[[], Bus]
    #: The URL of a topic with that many partitions, which is empty when the name is new.
    url: Callable[[str, int], str]
    #: URLs that are refused; the word ``hunter2`` stands where a password may.
    bad_urls: Sequence[str] = ()
    #: Makes a member's process die without a word, and returns when the bus may know it; ``None`` where that cannot be done.
    kill: Callable[[Source], None] | None = None
    #: Seconds that a poll waits in the checks.
    wait: float = 0.2


@attrs.define(eq=False)
class _Member:
    """A member that keeps what it was told."""

    source: Source
    wait: float
    owned: set[int] = attrs.field(factory=set)
    got: list[Message] = attrs.field(factory=list)

    def poll(self, most: int = 100) -> list[Message]:
        """One poll; what it brought. Fails on news that does not fit what was told before."""
        told = self.source.poll(most, self.wait)
        assert set(told.revoked) <= self.owned, f"{told.revoked} were revoked, and {self.owned} were assigned"
        self.owned -= set(told.revoked)
        assert not self.owned & set(told.assigned), f"{told.assigned} were assigned, and {self.owned} were already"
        self.owned |= set(told.assigned)
        assert {each.partition for each in told.messages} <= self.owned, "a message of a partition that is not this member's"
        self.got += told.messages
        return list(told.messages)

    def values(self) -> list[bytes]:
        return [each.value for each in self.got]


@attrs.define(eq=False)
class _Scene:
    """A topic, and connections to it that are closed in the end."""

    maker: BusMaker
    stack: ExitStack
    partitions: int
    topic: str

    @property
    def url(self) -> str:
        return self.maker.url(self.topic, self.partitions)

    def bus(self) -> Bus:
        made = self.maker.make()
        self.stack.callback(made.close)
        return made

    def sink(self) -> Sink:
        sink = self.bus().sink(self.url)
        self.stack.callback(sink.close)
        return sink

    def member(self, group: str = "g") -> _Member:
        source = self.bus().source(self.url, group=group, member="m")
        self.stack.callback(source.close)
        return _Member(source, self.maker.wait)

    def publish(self, *values: bytes, key: str | None = "k") -> None:
        self.sink().publish([Outgoing(key, each) for each in values])

    def spread(self, keys: int, each: int = 1) -> list[tuple[str, bytes]]:
        """Publish ``each`` messages of many keys, round about; what was published."""
        made = [(f"k{key}", f"k{key}.{number}".encode()) for number in range(each) for key in range(keys)]
        self.sink().publish([Outgoing(key, value) for key, value in made])
        return made


@contextmanager
def _scene(maker: BusMaker, partitions: int = 1) -> Iterator[_Scene]:
    with ExitStack() as stack:
        yield _Scene(maker, stack, partitions, f"kit-{time.time_ns()}-{next(_names)}")


def _until(holds: Callable[[], bool], *members: _Member) -> None:
    """Poll until it holds."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, f"it never came to hold; told: {[(each.owned, each.values()) for each in members]}"
        for each in members:
            each.poll()


def what_is_published_is_delivered_whole(maker: BusMaker) -> None:
    """Key, value and headers come as they went, whatever bytes they are; a message without a key comes too."""
    given = [
        Outgoing("a-k", b"\x00\xff\r\n" * 9, {"kind": b"\xfe", "empty": b""}),
        Outgoing("a-schlüssel ✓", b""),
        Outgoing(None, b"without a key"),
        Outgoing("", b"an empty key is one"),
        Outgoing("big", b"x" * 700_000),
    ]
    with _scene(maker) as scene:
        me = scene.member()
        scene.sink().publish(given)
        _until(lambda: len(me.got) >= len(given), me)
        assert given == [Outgoing(each.key, each.value, each.headers) for each in me.got]
        assert {0} == {each.partition for each in me.got}
        offsets = [each.offset for each in me.got]
        assert offsets == sorted(set(offsets)), "offsets grow"


def a_key_keeps_its_partition_and_its_order(maker: BusMaker) -> None:
    """Messages of one key lie in one partition, in the order in which they were published, by however many calls."""
    with _scene(maker, 4) as scene:
        me, sink = scene.member(), scene.sink()
        for number in range(10):
            sink.publish([Outgoing(f"k{key}", f"k{key}.{number}".encode()) for key in range(13)])
        _until(lambda: len(me.got) >= 130, me)
        assert len({each.partition for each in me.got}) > 1, "keys are spread"
        for key in range(13):
            mine = [each for each in me.got if each.key == f"k{key}"]
            assert 1 == len({each.partition for each in mine})
            assert [f"k{key}.{number}".encode() for number in range(10)] == [each.value for each in mine]


def poll_waits_and_comes_back(maker: BusMaker) -> None:
    """With nothing there a poll returns empty about when it was told to, and with something there at once."""
    with _scene(maker) as scene:
        me = scene.member()
        _until(lambda: bool(me.owned), me)
        begun = time.monotonic()
        assert () == me.source.poll(10, 0.3).messages
        assert time.monotonic() - begun < 20
        scene.publish(b"x")
        _until(lambda: me.values() == [b"x"], me)


def poll_brings_no_more_than_asked_for(maker: BusMaker) -> None:
    """``most`` is the most, and the rest comes with the next polls."""
    with _scene(maker, 3) as scene:
        me, made = scene.member(), scene.spread(9, 2)
        while len(me.got) < len(made):
            assert len(me.poll(4)) <= 4
        assert sorted(value for _, value in made) == sorted(me.values())


def what_is_not_acknowledged_comes_again(maker: BusMaker) -> None:
    """The next member gets what was not acknowledged, in order, and nothing that was."""
    with _scene(maker) as scene:
        first = scene.member()
        scene.publish(b"0", b"1", b"2", b"3")
        _until(lambda: len(first.got) == 4, first)
        first.source.acknowledge(0, first.got[1].offset)
        first.source.close()
        second = scene.member()
        _until(lambda: len(second.got) >= 2, second)
        assert first.got[2:] == second.got


def acknowledging_never_goes_back(maker: BusMaker) -> None:
    """An acknowledgement stands for everything before it, and an older one behind it changes nothing."""
    with _scene(maker) as scene:
        first = scene.member()
        scene.publish(b"0", b"1", b"2")
        _until(lambda: len(first.got) == 3, first)
        first.source.acknowledge(0, first.got[1].offset)
        first.source.acknowledge(0, first.got[0].offset)
        first.source.close()
        second = scene.member()
        _until(lambda: len(second.got) >= 1, second)
        assert [b"2"] == second.values()


def partitions_are_exclusive_and_all_served(maker: BusMaker) -> None:
    """However many members there are, each partition is one's; together they get every message once."""
    with _scene(maker, 6) as scene:
        members = [scene.member() for _ in range(3)]
        everything = set(range(6))
        _until(lambda: sorted(everything) == sorted(number for each in members for number in each.owned) and all(each.owned for each in members), *members)
        made = scene.spread(24)
        _until(lambda: sum(len(each.got) for each in members) >= len(made), *members)
        assert sorted(value for _, value in made) == sorted(value for each in members for value in each.values())


def one_who_joins_takes_over_and_one_who_leaves_gives_back(maker: BusMaker) -> None:
    """Both are told, and what was not acknowledged is delivered to the new owner from where the old one was done."""
    with _scene(maker, 4) as scene:
        first, made = scene.member(), scene.spread(16)
        _until(lambda: len(first.got) >= len(made), first)
        first.source.acknowledge(first.got[0].partition, first.got[0].offset)
        second = scene.member()
        _until(lambda: len(second.owned) == 2 and len(first.owned) == 2, first, second)
        moved = [each for each in first.got if each.partition in second.owned and each != first.got[0]]
        _until(lambda: len(second.got) >= len(moved), second)
        assert {each.value for each in moved} == set(second.values())
        second.source.close()
        before = len(first.got)
        _until(lambda: len(first.owned) == 4 and len(first.got) - before >= len(moved), first)
        assert {each.value for each in moved} == {each.value for each in first.got[before:]}


def a_revoked_partition_is_not_acknowledged(maker: BusMaker) -> None:
    """What a member says late of a partition that went to another changes nothing there."""
    with _scene(maker, 2) as scene:
        first, made = scene.member(), scene.spread(12)
        _until(lambda: len(first.got) >= len(made), first)
        second = scene.member()
        _until(lambda: bool(second.owned), first, second)
        (gone,) = second.owned
        _until(lambda: gone not in first.owned, first, second)
        first.source.acknowledge(gone, max(each.offset for each in first.got if each.partition == gone))
        second.source.close()
        third = scene.member()
        first.source.close()
        _until(lambda: len(third.owned) == 2, third)
        expected = sorted(each.value for each in first.got if each.partition == gone)
        _until(lambda: len({each.value for each in third.got if each.partition == gone}) >= len(expected), third)
        assert expected == sorted({each.value for each in third.got if each.partition == gone})


def a_member_that_dies_is_replaced(maker: BusMaker) -> None:
    """One that stops polling without a word loses its partitions to the others, with all that it did not acknowledge."""
    if maker.kill is None:
        return
    with _scene(maker, 2) as scene:
        dead, heir = scene.member(), scene.member()
        _until(lambda: bool(dead.owned) and bool(heir.owned), dead, heir)
        made = scene.spread(12)
        _until(lambda: len(dead.got) + len(heir.got) >= len(made), dead, heir)
        maker.kill(dead.source)
        _until(lambda: len(heir.owned) == 2, heir)
        _until(lambda: len(set(heir.values())) >= len(made), heir)
        assert sorted(value for _, value in made) == sorted(set(heir.values()))


def a_paused_partition_waits(maker: BusMaker) -> None:
    """Nothing of it is delivered until it is resumed, then from where it was; the others go on meanwhile."""
    with _scene(maker, 2) as scene:
        me = scene.member()
        _until(lambda: len(me.owned) == 2, me)
        made = scene.spread(12)
        _until(lambda: len(me.got) >= len(made), me)
        held, free = (next(each.key or "" for each in me.got if each.partition == number) for number in (0, 1))
        me.source.pause(0)
        me.got.clear()
        scene.publish(b"held", key=held)
        scene.publish(b"free", key=free)
        _until(lambda: b"free" in me.values(), me)
        for _ in range(3):
            me.poll()
        assert [b"free"] == me.values()
        me.source.resume(0)
        _until(lambda: b"held" in me.values(), me)
        assert [b"free", b"held"] == me.values()


def groups_know_nothing_of_each_other(maker: BusMaker) -> None:
    """Every group gets every message."""
    with _scene(maker) as scene:
        first, second = scene.member("one"), scene.member("two")
        scene.publish(b"x", b"y")
        _until(lambda: len(first.got) >= 2, first)
        first.source.acknowledge(0, first.got[-1].offset)
        _until(lambda: len(second.got) >= 2, second)
        assert [b"x", b"y"] == first.values() == second.values()


def publishers_at_once_lose_nothing(maker: BusMaker) -> None:
    """Several that publish at the same time, over one sink and over several; each one's messages keep their order."""
    with _scene(maker, 3) as scene:
        shared, me = scene.sink(), scene.member()
        sinks = [shared, shared, scene.sink(), scene.sink()]

        def body(number: int, sink: Sink) -> Callable[[], None]:
            def publish() -> None:
                for count in range(20):
                    sink.publish([Outgoing(f"k{number}", f"{number}.{count}".encode())])

            return publish

        together(*(body(number, sink) for number, sink in enumerate(sinks)))
        _until(lambda: len(me.got) >= 80, me)
        for number in range(len(sinks)):
            assert [f"{number}.{count}".encode() for count in range(20)] == [each.value for each in me.got if each.key == f"k{number}"]


def a_message_that_is_too_large_is_refused(maker: BusMaker) -> None:
    """It is refused by name, and the sink goes on taking others."""
    with _scene(maker) as scene:
        sink, me = scene.sink(), scene.member()
        if sink.most_bytes < 1 << 22:
            with expect(MessageTooLarge):
                sink.publish([Outgoing("k", b"x" * (sink.most_bytes + 1))])
        sink.publish([Outgoing("k", b"y")])
        _until(lambda: b"y" in me.values(), me)
        assert [b"y"] == me.values()


def bad_urls_are_refused_without_their_passwords(maker: BusMaker) -> None:
    """By ``check``, ``source`` and ``sink`` alike."""
    with _scene(maker) as scene:
        bus = scene.bus()
        bus.check(scene.url)
        for url in maker.bad_urls:
            for use in (bus.check, bus.sink, lambda url: bus.source(url, group="g", member="m")):
                with expect(BadBusUrl) as refusal:
                    use(url)
                assert "hunter2" not in str(refusal.error)


def closing_twice_is_fine(maker: BusMaker) -> None:
    """For sources, sinks and the bus."""
    with _scene(maker) as scene:
        bus = scene.bus()
        source, sink = bus.source(scene.url, group="g", member="m"), bus.sink(scene.url)
        for each in (source, source, sink, sink, bus, bus):
            each.close()


BUS_CHECKS: Final[tuple[Callable[[BusMaker], None], ...]] = (
    what_is_published_is_delivered_whole,
    a_key_keeps_its_partition_and_its_order,
    poll_waits_and_comes_back,
    poll_brings_no_more_than_asked_for,
    what_is_not_acknowledged_comes_again,
    acknowledging_never_goes_back,
    partitions_are_exclusive_and_all_served,
    one_who_joins_takes_over_and_one_who_leaves_gives_back,
    a_revoked_partition_is_not_acknowledged,
    a_member_that_dies_is_replaced,
    a_paused_partition_waits,
    groups_know_nothing_of_each_other,
    publishers_at_once_lose_nothing,
    a_message_that_is_too_large_is_refused,
    bad_urls_are_refused_without_their_passwords,
    closing_twice_is_fine,
)
"""Every check."""


def check_bus(maker: BusMaker) -> None:
    """Run every check; raises the first ``AssertionError``, with the check's name and promise noted on it."""
    for check in BUS_CHECKS:
        try:
            check(maker)
        except Exception as error:
            error.add_note(f"{maker.name}: {check.__module__}.{check.__name__}: {check.__doc__}")
            raise
