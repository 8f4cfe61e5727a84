"""Every bus keeps every promise of the kit, and the kit finds out those that do not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from intentlog.effector.bus import MemoryBroker, MemoryBus
from intentlog.effector.testing import BUS_CHECKS, BusMaker, check_bus
from tests.effector.bus.conftest import BAD


@pytest.mark.parametrize("check", BUS_CHECKS, ids=lambda check: check.__name__)
def test_the_bus_keeps_the_promise(maker: BusMaker, check: Callable[[BusMaker], None]):
    check(maker)


def test_every_check_says_what_it_promises_and_has_a_name_of_its_own():
    assert [] == [check.__name__ for check in BUS_CHECKS if not check.__doc__]
    assert len(BUS_CHECKS) == len({check.__name__ for check in BUS_CHECKS})


class Forgetful(MemoryBroker):
    def acknowledge(self, topic, group, member, partition, offset):
        """Nothing is ever done with."""


class GoingBack(MemoryBroker):
    def acknowledge(self, topic, group, member, partition, offset):
        super().acknowledge(topic, group, member, partition, offset)
        self._topics[topic].groups[group].acknowledged[partition] = offset + 1


class Losing(MemoryBroker):
    def join(self, topic, group, name=""):
        delivered = {number: len(lane) for number, lane in enumerate(self._topics[topic].partitions)}
        self._group(topic, group).acknowledged.update(delivered)
        return super().join(topic, group, name)


class Scattering(MemoryBroker):
    def _partition_of(self, topic, key):
        return super()._partition_of(topic, None)


class Deaf(MemoryBroker):
    def pause(self, topic, group, member, partition, paused):
        """Delivers all the same."""


class Generous(MemoryBroker):
    def poll(self, topic, group, member, most, timeout):
        return super().poll(topic, group, member, most * 3, timeout)


class Swallowing(MemoryBroker):
    def publish(self, topic, messages):
        super().publish(topic, [each for each in messages if each.value])


BROKEN = {
    Forgetful: "what_is_not_acknowledged_comes_again",
    GoingBack: "acknowledging_never_goes_back",
    Losing: "what_is_not_acknowledged_comes_again",
    Scattering: "a_key_keeps_its_partition_and_its_order",
    Deaf: "a_paused_partition_waits",
    Generous: "poll_brings_no_more_than_asked_for",
    Swallowing: "what_is_published_is_delivered_whole",
}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.__name__)
def test_a_bus_that_breaks_a_promise_is_found_out_by_name(broken: type[MemoryBroker], monkeypatch):
    monkeypatch.setattr("intentlog.effector.testing.bus.PATIENCE", 0.5)
    broker = broken()
    maker = BusMaker("broken", lambda: MemoryBus({"kit": broker}), lambda topic, partitions: f"memory://kit/{topic}?partitions={partitions}", BAD, wait=0.02)
    with pytest.raises(AssertionError):
        {check.__name__: check for check in BUS_CHECKS}[BROKEN[broken]](maker)
    with pytest.raises(AssertionError) as caught:
        check_bus(maker)
    assert caught.value.__notes__[0].startswith("broken: ")
