"""Other aggregates in a turn: seen on record, saved in its one append, run again when somebody else was first."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from intentlog.agents import Aggregate, WorkerSettings, applies, facts
from intentlog.agents.errors import StaleAggregate
from intentlog.agents.reading_streams import PlainFolder
from intentlog.eventlog.events import NewEvent
from intentlog.eventlog.registry import event
from intentlog.eventlog.versions import ANY
from intentlog.replay import replay_all
from tests.agents.world import STREAM, Asked, Ctx, Hands, Model, Paid, World


@event("cents.moved", version=1)
class Moved:
    cents: int


class Wallet(Aggregate, category="wallets"):
    cents: int = 0

    @applies(Moved)
    def _(self, e: Moved) -> Wallet:
        return self.evolve(cents=self.cents + e.cents)

    def put(self, cents: int) -> Moved:
        return Moved(cents)

    def take(self, cents: int) -> list[Moved]:
        if cents > self.cents:
            raise ValueError(f"only {self.cents}")
        return [Moved(-cents)]


class Bare(Aggregate):
    """Says nothing about where its streams stand."""


EVENTS = (Asked, Paid, Moved)


def put(world: World, cents: int, stream: str = "wallets-w") -> None:
    """Somebody else changes a wallet."""
    world.log.append(stream, [world.app.codec.stage(Moved(cents), event_id=world._ids())], ANY)


def cents(world: World, key: str = "w") -> int:
    return sum(moved.cents for moved in world.facts(Moved, f"wallets-{key}"))


def same(world: World) -> bool:
    """The agent's stream and those of the aggregates that it loads."""
    return {"same"} == {each.verdict.value for each in replay_all(world.log, world.app)}


class Meddler(Model):
    """While the model thinks, somebody else changes the wallet; only the first ``times``."""

    def __init__(self, times: int = 1) -> None:
        super().__init__("yes")
        self.world: Any = None
        self.times = times

    def complete(self, request: Any, *, idempotency_key: str) -> Any:
        if self.times > 0:
            self.times -= 1
            put(self.world, 100)
        return super().complete(request, idempotency_key=idempotency_key)


def test_another_aggregate_is_changed_in_the_turns_one_append():
    async def code(ctx: Ctx) -> int:
        wallet = await ctx.load(Wallet, "w")
        wallet.do(Wallet.put, 5)
        ctx.emit(Paid("r"))
        return wallet.state.cents

    with World(code, events=EVENTS) as world:
        put(world, 1)
        world.send()
        world.run()
        assert (["cents.moved", "cents.moved"], [6]) == (world.types("wallets-w"), world.outputs())
        assert ["input.received", "aggregate.loaded", "order.paid", "aggregate.saved", "activation.completed"] == world.types()
        loaded, saved = world.facts(facts.AggregateLoaded)[0], world.facts(facts.AggregateSaved)[0]
        assert ("wallets-w", 0, "wallets-w", 1, ("cents.moved",)) == (loaded.stream, loaded.version, saved.stream, saved.version, saved.types)
        assert same(world)


def test_money_is_moved_between_two_wallets_or_not_at_all():
    async def code(ctx: Ctx, amount: int) -> str:
        a, b = await ctx.load(Wallet, "a"), await ctx.load(Wallet, "b")
        b.do(Wallet.put, amount)
        try:
            a.do(Wallet.take, amount)
        except ValueError:
            if ctx.input == 7:
                raise
            return "poor"
        return "moved"

    with World(code, events=EVENTS, retry=None) as world:
        put(world, 10, "wallets-a")
        world.send(6)
        world.send(7)
        world.run()
        assert (4, 6) == (cents(world, "a"), cents(world, "b"))
        assert ["ValueError"] == [failure.type for failure in world.failures()]
        assert same(world)


def test_a_conflict_runs_the_turn_again_and_pays_no_model_twice():
    async def code(ctx: Ctx) -> int:
        wallet = await ctx.load(Wallet, "w")
        await ctx.call_model("the same whatever is in it")
        wallet.emit(Moved(5))
        return wallet.state.cents

    model = Meddler()
    with World(code, model=model, events=EVENTS) as world:
        model.world = world
        world.send()
        world.run()
        assert ([105], 105, 1, []) == (world.outputs(), cents(world), len(model.asked), world.failures())
        assert [-1, 0] == [loaded.version for loaded in world.facts(facts.AggregateLoaded)]
        assert same(world)


def test_a_question_that_depends_on_what_moved_is_asked_again_and_is_no_drift():
    async def code(ctx: Ctx) -> int:
        wallet = await ctx.load(Wallet, "w")
        await ctx.call_model(f"there are {wallet.state.cents}")
        await ctx.run_tool("read", what=str(wallet.state.cents))
        wallet.emit(Moved(5))
        return wallet.state.cents

    model = Meddler()
    with World(code, model=model, events=EVENTS) as world:
        model.world = world
        world.send()
        world.run()
        assert ["there are 0", "there are 100"] == [request.messages[0]["content"] for request in model.asked]
        assert ([105], []) == (world.outputs(), world.failures())
        assert same(world)


def test_another_path_may_be_taken_when_what_was_loaded_moved():
    async def code(ctx: Ctx) -> str:
        wallet = await ctx.load(Wallet, "w")
        if wallet.state.cents:
            ctx.act("pay", order="o")
            wallet.emit(Moved(-1))
            return "paid"
        await ctx.call_model("poor?")
        wallet.emit(Moved(1))
        return "poor"

    model = Meddler()
    with World(code, model=model, events=EVENTS) as world:
        model.world = world
        world.send()
        world.run()
        assert (["paid"], 99, []) == (world.outputs(), cents(world), world.failures())
        assert same(world)


@pytest.mark.parametrize("boundary", ["model.answered", "model.journalled", "turn.decided", "turn.appended"])
def test_a_crash_after_the_answer_sees_what_the_answer_was_given_for(boundary):
    async def code(ctx: Ctx) -> int:
        wallet = await ctx.load(Wallet, "w")
        await ctx.call_model(f"there are {wallet.state.cents}")
        wallet.emit(Moved(5))
        return wallet.state.cents

    with World(code, events=EVENTS) as world:
        world.send()
        world.run(crash=boundary)
        if boundary != "turn.appended":
            put(world, 100)
        world.run()
        assert cents(world) == world.outputs()[0]
        assert [] == world.failures()
        assert same(world)


def test_a_failed_turn_is_tried_again_with_what_is_there_then():
    async def code(ctx: Ctx) -> int:
        wallet = await ctx.load(Wallet, "w")
        await ctx.call_model("?")
        wallet.do(Wallet.take, 5)
        return wallet.state.cents

    with World(code, events=EVENTS) as world:
        world.send()
        world.run()
        assert ["ValueError"] == [failure.type for failure in world.failures()]
        put(world, 7)
        world.later(30)
        assert ([2], 1) == (world.outputs(), len(world.model.asked))
        assert same(world)


def test_what_moves_for_ever_is_tried_again_later():
    async def code(ctx: Ctx) -> int:
        wallet = await ctx.load(Wallet, "w")
        await ctx.call_model(f"there are {wallet.state.cents}")
        wallet.emit(Moved(1))
        return wallet.state.cents

    model = Meddler(times=22)
    with World(code, model=model, events=EVENTS) as world:
        model.world = world
        world.send()
        world.run()
        assert ["AggregateContended"] == [failure.type for failure in world.failures()]
        world.later(30)
        assert ([2201], 2201) == (world.outputs(), cents(world))
        assert same(world)


def test_a_linear_activation_sees_each_load_as_it_was_and_changes_only_fresh_ones():
    async def code(ctx: Ctx) -> list[int]:
        before = await ctx.load(Wallet, "w")
        before.do(Wallet.put, 5)
        await ctx.sleep(timedelta(seconds=60))
        after = await ctx.load(Wallet, "w")
        after.do(Wallet.put, 1)
        return [before.state.cents, after.state.cents]

    with World(code, events=EVENTS) as world:
        world.send()
        world.run()
        put(world, 100)
        world.later(61)
        assert ([[5, 106]], 106) == (world.outputs(), cents(world))
        assert same(world)


def test_a_handle_that_is_changed_after_a_wait_is_refused():
    async def code(ctx: Ctx) -> None:
        wallet = await ctx.load(Wallet, "w")
        await ctx.sleep(timedelta(seconds=60))
        wallet.emit(Moved(1))

    with World(code, events=EVENTS) as world:
        world.send()
        world.run()
        world.later(61)
        assert [StaleAggregate.__name__] == [failure.type for failure in world.failures()]
        assert "load it again" in world.failures()[0].message
        assert [] == world.types("wallets-w")


def test_changed_code_that_saves_something_else_has_diverged():
    def saving(amount: int) -> Any:
        async def code(ctx: Ctx) -> None:
            (await ctx.load(Wallet, "w")).emit(Moved(amount))

        return code

    with World(saving(1), events=EVENTS) as world:
        world.send()
        world.run()
        world.deploy(saving(2), events=EVENTS)
        (found,) = replay_all(world.log, world.app, [STREAM])
        assert ("diverged", "aggregate.saved") == (found.verdict.value, found.divergence and found.divergence.event)


def test_changed_code_under_a_suspended_run_that_saved_something_else_is_drift():
    def saving(amount: int) -> Any:
        async def code(ctx: Ctx) -> None:
            (await ctx.load(Wallet, "w")).emit(Moved(amount))
            await ctx.sleep(timedelta(seconds=60))

        return code

    with World(saving(1), events=EVENTS) as world:
        world.send()
        world.run()
        world.deploy(saving(2), events=EVENTS)
        world.later(61)
        assert ["StepDrift"] == [failure.type for failure in world.failures()]
        assert "the events of other aggregates" in world.failures()[0].message


def test_one_stream_is_one_handle_in_a_turn():
    async def code(ctx: Ctx) -> bool:
        return await ctx.load(Wallet, "w") is await ctx.load(Wallet, "w")

    with World(code, events=EVENTS) as world:
        world.send()
        world.run()
        assert ([True], 1) == (world.outputs(), len(world.facts(facts.AggregateLoaded)))


@pytest.mark.parametrize(
    "load, says",
    [
        (lambda ctx: ctx.load(Wallet, "w", category="a"), "is an agent of this app"),
        (lambda ctx: ctx.load(Bare, "w"), "category='…'"),
        (lambda ctx: ctx.load(Hands, "w"), "not an Aggregate"),
        (lambda ctx: ctx.load(Wallet, ""), "key"),
    ],
)
def test_what_cannot_be_loaded_is_refused_in_words(load, says):
    async def code(ctx: Ctx) -> None:
        await load(ctx)

    with World(code, events=EVENTS) as world:
        world.send()
        world.run()
        assert says in world.failures()[0].message


def test_the_stream_of_an_agent_is_no_plain_aggregate():
    async def code(ctx: Ctx) -> None:
        await ctx.load(Wallet, "w", category="other")

    with World(code, events=EVENTS) as world:
        received = world.app.codec.stage(facts.InputReceived("i", "", 0, "json", b"1"), event_id=bytes(16))
        world.log.append("other-w", [received], ANY)
        world.send()
        world.run()
        assert "stream of an agent" in world.failures()[0].message


def test_a_long_stream_leaves_a_snapshot_that_the_next_load_begins_at():
    async def code(ctx: Ctx) -> int:
        return (await ctx.load(Wallet, "w")).state.cents

    with World(code, events=EVENTS) as world:
        for _ in range(6):
            put(world, 1)
        world.send()
        world.run(settings=WorkerSettings(poll=0.005, snapshot_every=5))
        held = world.log.snapshots.load(["wallets-w"])["wallets-w"]
        folder = PlainFolder(world.app.codec, Wallet)
        assert (5, Wallet(cents=6)) == (held.version, folder.restore(held, None).state)
        assert Wallet() == folder.restore(held, 4).state
        put(world, 1)
        world.send()
        world.run(settings=WorkerSettings(poll=0.005, snapshot_every=5))
        assert [6, 7] == world.outputs()
        assert same(world)


def test_an_unknown_event_in_the_stream_fails_the_turn_and_names_its_place():
    async def code(ctx: Ctx) -> None:
        await ctx.load(Wallet, "w")

    with World(code, events=EVENTS) as world:
        world.log.append("wallets-w", [NewEvent(bytes(16), "never.heard", 1, b"\x80")], ANY)
        world.send()
        world.run()
        assert "wallets-w version 0" in world.failures()[0].message
