"""S-8: state is a pure fold; snapshots are never needed; what cannot be read stops one key only."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest

from intentlog.agents import Aggregate, App, WorkerSettings, agent, applies, facts
from intentlog.agents.dead_letters import dead_letters, redrive
from intentlog.agents.streams import Folder
from intentlog.eventlog.codec import Codec
from intentlog.eventlog.log import Snapshot
from intentlog.eventlog.registry import EventRegistry, event
from intentlog.eventlog.upcasting import upcasts
from tests.agents.world import STREAM, Account, Asked, Ctx, Paid, World, waiting


async def busy(ctx: Ctx, asked: Asked) -> object:
    """A bit of everything."""
    if not ctx.is_resume:
        ctx.emit(asked)
        await ctx.run_tool("read", what="x")
        answer = await ctx.call_model("hi")
        if asked.order == "bad" and answer:
            raise ValueError("no")
        ctx.act("pay", order=asked.order)
        ctx.act("push", text="x", key=f"k-{asked.order}")
        ctx.arm(timedelta(seconds=30))
        return waiting(wait="any", timeout=timedelta(minutes=1))
    if not ctx.timed_out and ctx.step_index < 6:
        ctx.act("fragile", what="y")
        return waiting(timeout=timedelta(minutes=2))
    ctx.emit(Paid(f"re_{asked.order}"))
    return "done"


def lived(world: World) -> None:
    for order in ("o-1", "bad", "o-2"):
        world.send(Asked(order))
    for _ in range(12):
        world.later(10)


def test_folding_from_zero_from_any_snapshot_and_step_by_step_is_the_same_at_every_version():
    """S-8.1"""
    with World(busy, state=Account) as world:
        lived(world)
        folder = Folder(world.app.definitions["a"])
        rows = world.log.rows_of({STREAM: -1})[STREAM]
        assert {"input.received", "activation.failed", "timer.fired", "intent.settled", "activation.completed"} <= set(world.types())
        live = folder.empty(STREAM)
        for cut in range(len(rows)):
            live = folder.fold(live, rows[cut : cut + 1])
            from_zero = folder.fold(folder.empty(STREAM), rows[: cut + 1])
            restored = folder.restore(STREAM, folder.snapshot(from_zero))
            assert (
                (from_zero.run, from_zero.state, from_zero.version) == (live.run, live.state, live.version) == (restored.run, restored.state, restored.version)
            )
            rest = folder.fold(restored, rows[cut + 1 :])
            whole = folder.fold(folder.empty(STREAM), rows)
            assert (whole.run, whole.state, whole.version) == (rest.run, rest.state, rest.version)


def test_what_the_agent_sees_in_its_turn_is_what_a_fold_gives_afterwards():
    """S-8.1"""
    seen: list[Account] = []

    async def code(ctx: Ctx, asked: Asked) -> str:
        ctx.emit(asked)
        ctx.emit(Paid("r"))
        seen.append(ctx.state)
        return "done"

    with World(code, state=Account) as world:
        for n in range(3):
            world.send(Asked(f"o-{n}"))
        world.run()
        assert seen[-1] == world.fold().state


def test_what_a_worker_holds_after_a_turn_is_what_a_fold_of_its_append_gives(monkeypatch):
    """S-8.1"""
    taken, found = Folder.fold_staged, []

    def compared(self: Folder, into: Any, events: Any, read: Any) -> None:
        other = self.restore(into.stream, self.snapshot(into))
        self.fold(other, [(into.version + place, each.type, each.schema, each.data, each.event_id, 0) for place, each in enumerate(events, 1)])
        taken(self, into, events, read)
        found.append((None in read, (into.run, into.state, into.version) == (other.run, other.state, other.version)))

    monkeypatch.setattr(Folder, "fold_staged", compared)
    with World(busy, state=Account) as world:
        lived(world)
    assert set(found) == {(True, True), (False, True)}


def test_deleting_every_snapshot_loses_nothing():
    """S-8.2"""
    types = []
    for delete in (False, True):
        with World(busy, state=Account) as world:
            world.send(Asked("o-1"))
            world.run(settings=WorkerSettings(poll=0.005, snapshot_every=1), effector=False)
            assert STREAM in world.log.snapshots.load([STREAM])
            if delete:
                assert 1 == world.log.snapshots.delete()
            world.later(31)
            world.later(31)
            types.append(world.types())
            assert ["done"] == world.outputs()
    assert sorted(types[0]) == sorted(types[1])  # the effector and a due timer race


@pytest.mark.parametrize("field", ["fingerprint", "data", "empty"])
def test_a_snapshot_that_does_not_fit_is_ignored(field):
    """S-8.2"""
    with World(busy, state=Account) as world:
        world.send(Asked("o-1"))
        world.run(effector=False)
        folder = Folder(world.app.definitions["a"])
        good = folder.snapshot(world.fold())
        bad = {
            "fingerprint": Snapshot(good.version, "other", good.data),
            "data": Snapshot(good.version, good.fingerprint, good.data[:-5]),
            "empty": Snapshot(good.version, good.fingerprint, b"\x80"),
        }[field]
        assert folder.empty(STREAM) == folder.restore(STREAM, bad)
        world.log.snapshots.save(STREAM, bad)
        world.later(31)
        world.later(31)
        assert ["done"] == world.outputs()


def test_a_changed_applier_changes_the_fingerprint():
    """S-8.2"""

    class Other(Aggregate):
        orders: tuple[str, ...] = ()

        @applies(Asked)
        def _(self, e: Asked) -> Other:
            return self.evolve(orders=(e.order,))

    prints = {Folder(App(agents=[agent("a", state=state)(busy)]).definitions["a"]).fingerprint for state in (Account, Other, None)}
    assert 3 == len(prints)


def releases() -> tuple[type, type, Any]:
    """An event as it is, as later code has it, and the way from here to there."""

    @event("order.closed", version=1)
    class Closed:
        order: str

    @event("order.closed", version=2)
    class Closed2:
        order: str
        currency: str

    @upcasts("order.closed", from_version=1)
    def in_euros(tree: dict[str, Any]) -> dict[str, Any]:
        return tree | {"currency": "EUR"}

    return Closed, Closed2, in_euros


def stranger() -> type:
    """An event that this code has never heard of."""

    @event("never.heard.of")
    class Stranger:
        x: int

    return Stranger


def test_old_events_are_upcast_when_an_agent_loads_them_and_when_it_is_handed_them():
    """S-8.3"""
    closed, closed2, in_euros = releases()

    class Now(Aggregate):
        closed: tuple[str, ...] = ()

        @applies(closed2)
        def _(self, e: Any) -> Now:
            return self.evolve(closed=(*self.closed, f"{e.order} {e.currency}"))

    async def old(ctx: Ctx) -> str:
        ctx.emit(ctx.input)
        return "done"

    async def new(ctx: Ctx) -> object:
        ctx.emit(ctx.input)
        return list(ctx.state.closed)

    with World(old, events=(closed,)) as world:
        world.send(closed("o-1"))
        world.run()
        world.send(closed("o-2"))
        world.deploy(new, state=Now, events=(closed2,), upcasters=(in_euros,))
        world.run()
        assert ["done", ["o-1 EUR", "o-2 EUR"]] == world.outputs()


def newer() -> Any:
    _, kind, way = releases()
    return kind("o-9", "EUR"), Codec(EventRegistry(kind, upcasters=[way])), "NewerSchema", "schema version 2"


def unknown() -> Any:
    kind = stranger()
    return kind(1), Codec(EventRegistry(kind)), "UnknownEventType", "never.heard.of"


@pytest.mark.parametrize("case", [unknown, newer])
def test_an_event_this_code_cannot_read_stops_its_key_with_a_typed_error_and_no_other(case):
    """S-8.3"""
    foreign, codec, kind, said = case()

    async def code(ctx: Ctx) -> str:
        return "done"

    with World(code, events=(releases()[0],)) as world:
        world.send()
        world.run()
        world.append(foreign, codec=codec)
        world.send(2)
        world.send(2, key="other")
        world.run()
        (blocked,) = [world.app.codec.decode_stored(each) for each in world.log.read(STREAM) if each.type == "stream.blocked"]
        assert (kind, 2) == (blocked.failure.type, blocked.at_version)
        assert f"{STREAM} version 2" in blocked.failure.message
        assert said in blocked.failure.message
        assert ["done"] == world.outputs("a-other")
        assert 0 == world.log.schedule.due("turn", now=world.clock())
        world.send(3)
        world.run()
        assert 1 == world.types().count("stream.blocked")


def test_a_blocked_stream_goes_on_once_code_that_can_read_it_is_deployed():
    """S-8.3"""

    async def code(ctx: Ctx) -> str:
        return "done"

    kind = stranger()
    with World(code) as world:
        world.append(kind(1), codec=Codec(EventRegistry(kind)))
        world.send()
        world.run()
        assert ["BlockedStream"] == [type(letter).__name__ for letter in dead_letters(world.log)]
        world.deploy(code, events=(Asked, Paid, kind))
        redrive(world.log, STREAM, by="test")
        world.run()
        assert (["done"], []) == (world.outputs(), dead_letters(world.log))


class Brittle(Aggregate):
    n: int = 0

    @applies(Paid)
    def _(self, e: Paid) -> Brittle:
        return self.evolve(n=int(e.receipt))


def test_an_event_that_an_applier_cannot_take_stops_its_key_and_no_other():
    """S-8.3"""

    async def code(ctx: Ctx) -> str:
        return "done"

    with World(code, state=Brittle) as world:
        world.append(Paid("no number"))
        world.send()
        world.send(key="other")
        world.run()
        (blocked,) = world.facts(facts.StreamBlocked)
        assert "a-k version 0" in blocked.failure.message
        assert "invalid literal for int()" in blocked.failure.message
        assert ["done"] == world.outputs("a-other")


def test_an_event_that_its_applier_cannot_take_is_not_staged_even_if_the_agent_catches_it():
    """S-8.3"""

    async def code(ctx: Ctx) -> str:
        try:
            ctx.emit(Paid("no number"))
        except ValueError:
            return "caught"
        return "?"

    with World(code, state=Brittle) as world:
        world.send()
        world.run()
        assert (["caught"], 0) == (world.outputs(), world.types().count("order.paid"))


@pytest.mark.parametrize(
    "end, field",
    [
        (lambda ctx: object(), "activation.completed.output"),
        (lambda ctx: {"a": [1, object()]}, "activation.completed.output"),
        (lambda ctx: ctx.emit(Paid(Path("x"))), "order.paid.receipt"),  # type: ignore[arg-type]
        (lambda ctx: ctx.trace("x", what=object()), "traced.fields"),
    ],
    ids=["output", "nested output", "event", "trace"],
)
def test_what_would_not_come_back_exactly_is_refused_when_appended_and_the_field_is_named(end, field):
    """S-8.4"""

    async def code(ctx: Ctx) -> object:
        return end(ctx)

    with World(code) as world:
        world.send()
        world.run()
        (failure,) = world.failures()
        assert "Unencodable" == failure.type
        assert field in failure.message
        assert ["input.received", "activation.failed"] == world.types()


def test_a_read_whose_value_cannot_be_recorded_fails_the_read():
    """S-8.4"""

    async def code(ctx: Ctx) -> object:
        return await ctx.run_tool("read", what="x")

    with World(code) as world:
        world.hands.script = [object()]
        world.send()
        world.run()
        assert ["Unencodable"] == [failure.type for failure in world.failures()]


def size_of(state: Any) -> int:
    return len(str(attrs.asdict(state.run)))


def test_storage_and_state_grow_by_what_happened_and_not_by_what_the_state_holds():
    """S-8.5"""

    async def code(ctx: Ctx, asked: Asked) -> str:
        ctx.emit(asked)
        return "done"

    with World(code, state=Account) as world:
        sizes, held = [], []
        for n in range(60):
            world.send(Asked(f"{n:08}"))
            if n % 20 == 19:
                world.run(settings=WorkerSettings(poll=0.005, snapshot_every=0))
                sizes.append(sum(len(each.data) for each in world.log.read(STREAM)))
                held.append(size_of(world.fold()))
        assert abs((sizes[2] - sizes[1]) - (sizes[1] - sizes[0])) < 100
        assert held[0] + 10 > held[2]
