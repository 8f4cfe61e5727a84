"""A trace holds everything an input led to, across streams, under what caused it; and it is found by any id there is."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from intentlog.agents import App, Input, agent, facts, send, tool
from intentlog.agents.intents import intent_id_for
from intentlog.replay.errors import NoSuchId
from intentlog.replay.finding import find_event
from intentlog.replay.tracing import Traced, trace
from tests.replay.world import World


@tool(side_effect=True, idempotent=True)
async def ship(what: str) -> str:
    return what.upper()


async def order(ctx: Any, what: str) -> Any:
    parcel = await ctx.call("packers", "p-1", what)
    ctx.send("notes", "n-1", f"{what} is packed")
    word = await ctx.signal("word")
    return [await ctx.perform(ship, what=parcel), word]


async def packer(ctx: Any, what: str) -> Any:
    return await ctx.perform(ship, what=f"box of {what}")


async def note(ctx: Any, text: str) -> Any:
    if text.startswith("again"):
        return text
    return ctx.continue_with(f"again {text}")


@pytest.fixture(scope="module")
def shop():
    """Two orders, each packed by another agent, noted by a third, waiting for a signal."""
    world = World()
    app = App(agents=[agent("orders")(order), agent("packers")(packer), agent("notes")(note)], tools=[ship])
    for name in ("tea", "jam"):
        send(app, world.log, Input("orders", name, name, f"order-{name}"))
    world.run(app)
    from intentlog.agents.asking import signal

    for name in ("tea", "jam"):
        signal(world.log, app.codec, "orders", name, "word", "now", f"word-{name}")
    world.run(app)
    yield world, app
    world.log.close()


def events(root: Traced) -> list[tuple[str, str]]:
    return [(each.stored.stream, each.stored.type) for _, each in root.walk()]


def test_a_trace_holds_everything_of_its_input_and_nothing_of_another(shop):
    world, app = shop
    found = trace(world.log, find_event(world.log, "order-tea"), app)
    everything = [(event.stream, event.type, event.event_id) for event in world.log.read_all() if "jam" not in event.stream]
    streams = Counter(stream for stream, _ in events(found.root))
    assert streams["orders-tea"] == sum(stream == "orders-tea" for stream, *_ in everything)
    both = sum(stream in ("packers-p-1", "notes-n-1") for stream, *_ in everything)
    assert both / 2 == streams["packers-p-1"] + streams["notes-n-1"]
    assert not any("jam" in str(each.line.summary) for _, each in found.root.walk())
    assert (found.events, False) == (sum(streams.values()), found.cut)


def test_every_event_stands_below_its_cause(shop):
    world, app = shop
    found = trace(world.log, find_event(world.log, "order-tea"), app)
    nodes = {(each.stored.stream, each.stored.type): each for _, each in found.root.walk()}
    for child, parent in (
        (("packers-p-1", "input.received"), ("orders-tea", "input.sent")),
        (("packers-p-1", "intent.staged"), ("packers-p-1", "input.received")),
        (("packers-p-1", "intent.settled"), ("packers-p-1", "intent.staged")),
        (("packers-p-1", "activation.completed"), ("packers-p-1", "intent.settled")),
        (("orders-tea", "reply.received"), ("packers-p-1", "activation.completed")),
        (("orders-tea", "signal.taken"), ("orders-tea", "signal.received")),
    ):
        above = nodes[child].parent
        assert above is not None
        assert parent == (above.stored.stream, above.stored.type), child
    assert ("orders-tea", "input.received") == (found.root.stored.stream, found.root.stored.type)


@pytest.mark.parametrize("name", ["input", "position", "place", "intent", "short", "event", "correlation", "of another stream", "continued"])
def test_any_id_finds_the_tree(shop, name):
    world, app = shop
    packed = next(event for event in world.log.read("packers-p-1") if event.type == "intent.settled")
    first = next(iter(world.log.read("packers-p-1")))
    name_of_first = "order-tea" if "tea" in str(first.data) else "order-jam"
    root = find_event(world.log, name_of_first)
    last = list(world.log.read("notes-n-1"))[-1]
    wanted = {
        "input": name_of_first,
        "position": f"@{packed.position}",
        "place": "packers-p-1@0",
        "intent": intent_id_for("packers-p-1", 0, 0),
        "short": intent_id_for("packers-p-1", 0, 0)[:8],
        "event": str(packed.id),
        "correlation": first.event_id.hex(),
        "of another stream": f"packers-p-1@{packed.version}",
        "continued": f"notes-n-1@{last.version}",
    }[name]
    found = trace(world.log, find_event(world.log, wanted), app)
    if name == "continued":
        assert ("orders-", 0) == (found.root.stored.stream[:7], found.root.stored.version)
        assert found.asked.stored.event_id == last.event_id
    else:
        assert (root.stream, root.event_id) == (found.root.stored.stream, found.root.stored.event_id)


@pytest.mark.parametrize("wanted", ["no such input", "00000000-0000-4000-8000-000000000000", "0000", "@99999999", "orders-tea@999", f"@{2**63}"])
def test_an_id_that_is_not_there_is_refused_with_the_ways(shop, wanted):
    with pytest.raises(NoSuchId, match="STREAM@VERSION"):
        find_event(shop[0].log, wanted)


def test_a_trace_is_cut_where_it_is_told_to(shop):
    found = trace(shop[0].log, find_event(shop[0].log, "order-tea"), most=5)
    assert (5, True) == (found.events, found.cut)


def test_what_a_hand_appended_is_a_tree_of_its_own(world):
    from intentlog.eventlog.events import NewEvent
    from intentlog.eventlog.versions import ANY

    world.log.append("x-1", [NewEvent(bytes(16), "odd.thing", 1, world_bytes())], ANY)
    found = trace(world.log, find_event(world.log, "x-1@0"))
    assert (found.root, []) == (found.asked, found.root.children)


def world_bytes() -> bytes:
    from intentlog.agents.app import runtime_codec

    return runtime_codec().encode_value({"a": 1}, dict[str, int])


def test_facts_of_an_app_are_told_with_or_without_it(shop):
    world, app = shop
    names = [{each.line.name for _, each in trace(world.log, find_event(world.log, "order-tea"), known).root.walk()} for known in (None, app)]
    assert names[0] == names[1]
    assert facts.InputSent.__name__ in names[0]
