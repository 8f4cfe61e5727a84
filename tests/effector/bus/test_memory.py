"""The memory bus beyond what every bus promises."""

from __future__ import annotations

import pytest

from intentlog.effector.bus import BusUnavailable, MemoryBroker, MemoryBus, MessageTooLarge, Outgoing, Polled
from intentlog.effector.bus.memory import PARTITIONS, parse_memory


class Ticking:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_broker_is_shared_by_who_is_handed_it_and_by_nobody_else():
    broker = MemoryBroker()
    first, second, stranger = MemoryBus({"m": broker}), MemoryBus({"m": broker}), MemoryBus()
    first.sink("memory://m/t").publish([Outgoing("k", b"x")])
    source, other = second.source("memory://m/t", group="g", member="a"), stranger.source("memory://m/t", group="g", member="a")
    assert [b"x"] == [each.value for each in source.poll(10, 0.1).messages]
    assert () == other.poll(10, 0.0).messages


def test_a_topic_keeps_the_partitions_it_was_made_with():
    broker = MemoryBroker()
    broker.create("t", 3)
    broker.create("t", 5)
    assert 3 == len(MemoryBus({"m": broker}).source("memory://m/t?partitions=7", group="g", member="a").poll(1, 0.0).assigned)


def test_a_url_says_name_topic_and_partitions():
    assert (("m", "t", PARTITIONS), ("m-1", "t.x", 3)) == (parse_memory("memory://m/t"), parse_memory("memory://m-1/t.x?partitions=3"))


def test_one_silent_for_longer_than_its_session_is_replaced_and_told_so_when_it_comes_back():
    clock = Ticking()
    bus = MemoryBus({"m": MemoryBroker(clock=clock, session=5.0)})
    url = "memory://m/t?partitions=2"
    slow, quick = bus.source(url, group="g", member="slow"), bus.source(url, group="g", member="quick")
    assert (Polled(assigned=(0,)), Polled(assigned=(1,))) == (slow.poll(1, 0.0), quick.poll(1, 0.0))
    clock.now = 5.0
    assert Polled() == quick.poll(1, 0.0)
    clock.now = 5.1
    assert Polled(assigned=(0,)) == quick.poll(1, 0.0)
    assert Polled(revoked=(0,), assigned=(1,)) == slow.poll(1, 0.0)
    assert Polled(revoked=(1,)) == quick.poll(1, 0.0)


def test_of_messages_one_of_which_is_too_large_none_is_taken():
    broker = MemoryBroker(most_bytes=3)
    broker.create("t")
    with pytest.raises(MessageTooLarge, match="4 bytes is more than t takes, 3"):
        broker.publish("t", [Outgoing("k", b"xxx"), Outgoing("k", b"xxxx")])
    assert [] == broker.messages("t")


def test_a_member_that_left_can_poll_no_more():
    source = MemoryBus().source("memory://m/t", group="g", member="a")
    source.close()
    with pytest.raises(BusUnavailable):
        source.poll(1, 0.0)
