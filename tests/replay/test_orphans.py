"""Events that belong to nothing are found: a wrong correlation, an input that was sent and is not there."""

from __future__ import annotations

from typing import Any

import pytest

from intentlog.agents import App, Input, agent, send
from intentlog.replay.verify import FaultKind, verify_all
from tests.replay.world import STREAM, RefundAsked, World, app_of, copy_of, paying


async def order(ctx: Any, what: str) -> Any:
    return await ctx.call("packers", "p-1", what)


async def packer(ctx: Any, what: str) -> Any:
    return what


APP = App(agents=[agent("orders")(order), agent("packers")(packer)])


@pytest.fixture(scope="module")
def events():
    world = World()
    send(APP, world.log, Input("orders", "tea", "tea", "order-tea"))
    world.run(APP)
    yield list(world.log.read_all())
    world.log.close()


def orphans(log: Any, app: Any = APP) -> list[tuple[str, int]]:
    return [(each.stream, each.faults[FaultKind.ORPHAN].version) for each in verify_all(log, app) if FaultKind.ORPHAN in each.faults]


def test_what_was_sent_and_arrived_is_no_fault(events):
    with copy_of(events) as copy:
        assert [] == orphans(copy.log)


def test_what_was_sent_and_is_nowhere_is_found_where_it_was_sent(events):
    with copy_of(event for event in events if event.stream != "packers-p-1") as copy:
        sent = next(event for event in events if event.type == "input.sent")
        assert [("orders-tea", sent.version)] == orphans(copy.log)


def test_an_event_that_is_correlated_with_another_input_is_found(world):
    app = app_of(paying)
    world.story(app, RefundAsked("o-1", 1), RefundAsked("o-2", 2))
    events = list(world.log.read(STREAM))
    staged = [event for event in events if event.type == "intent.staged"]
    changed = [event._replace(correlation=staged[1].correlation) if event is staged[0] else event for event in events]
    with copy_of(changed) as copy:
        assert [(STREAM, staged[0].version)] == orphans(copy.log, app)
    assert [] == orphans(world.log, app)
