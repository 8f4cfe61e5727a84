"""Long lives: a run whose history grows is warned of once, and is loaded from a snapshot on."""

from __future__ import annotations

from typing import Any

from intentlog.agents.stats import open_history, stats
from intentlog.agents.worker import WorkerSettings
from tests.agents.world import STREAM, Ctx, World

SETTINGS = WorkerSettings(poll=0.005, warn_history=20, snapshot_every=10)


async def listens(ctx: Ctx, given: int) -> Any:
    heard = 0
    while heard < given:
        await ctx.signal("more")
        heard += 1
    return heard


def tell(world: World, count: int) -> None:
    from intentlog.agents import Client

    for _ in range(count):
        Client(world.log).signal("a", "k", "more")
        world.run(settings=SETTINGS)


def test_a_run_that_grows_is_warned_of_once():
    with World(listens) as world:
        world.send(30)
        world.run(settings=SETTINGS)
        tell(world, 4)
        assert [] == world.errors
    with World(listens) as world:
        world.send(40)
        from intentlog.agents import Client

        for _ in range(39):
            Client(world.log).signal("a", "k", "more")
        world.run(settings=SETTINGS)
        for _ in range(3):
            tell(world, 1)
        said = [each for each in world.errors if "HistoryWarning" in each]
        assert "serving a-k: HistoryWarning: a-k, activation 0, has a history of" in said[0]
        assert "ctx.continue_with" in said[0]


def test_one_worker_says_it_once():
    async def reads(ctx: Ctx, given: int) -> Any:
        for n in range(given):
            await ctx.run(str, n)
        return await ctx.signal("more")

    with World(reads) as world:
        world.send(30)
        world.send(30)
        from intentlog.agents import Client

        Client(world.log).signal("a", "k", "more")
        world.run(settings=SETTINGS)
        assert 1 == len([each for each in world.errors if "HistoryWarning" in each])


def test_many_short_runs_of_one_key_are_no_long_history():
    async def quick(ctx: Ctx, given: int) -> int:
        return given

    with World(quick) as world:
        for _ in range(60):
            world.send()
        world.run(settings=SETTINGS)
        assert (119, []) == (world.log.head(STREAM), world.errors)


def test_going_on_afresh_ends_the_warning():
    async def moves_on(ctx: Ctx, given: int) -> Any:
        await ctx.run(str, given)
        return ctx.continue_with(given - 1) if given else "done"

    with World(moves_on) as world:
        world.send(60)
        world.run(settings=SETTINGS)
        assert (["done"], []) == (world.outputs(), world.errors)


def test_the_figures_tell_the_open_activation_from_the_stream():
    with World(listens) as world:
        world.send(1)
        tell(world, 1)
        world.send(50)
        world.run(settings=SETTINGS)
        tell(world, 5)
        (each,) = stats(world.log, warn_history=10).longest
        assert (world.log.head(STREAM) + 1, True) == (each.events, each.warned)
        assert each.history == open_history(world.log, STREAM) < each.events


def test_a_long_run_is_loaded_from_its_snapshot_on():
    with World(listens) as world:
        world.send(60)
        tell(world, 12)
        taken = world.log.snapshots.load([STREAM])[STREAM].version
        read: list[int] = []
        rows_of = world.log.rows_of

        def noted(after: Any, **bound: Any) -> Any:
            read.extend(after.values())
            return rows_of(after, **bound)

        world.log.rows_of = noted  # type: ignore[method-assign]
        tell(world, 1)
        assert taken > 10
        assert taken <= min(read)


def test_a_long_history_is_taken_in_chunk_by_chunk():
    """3,000 events without a snapshot: never more of them at once than a chunk of the store's holds."""

    async def quick(ctx: Ctx, given: int) -> int:
        return given

    with World(quick) as world:
        for _ in range(1_500):
            world.send(7)
        most: list[int] = []
        rows_of, rows = world.log.rows_of, world.log.rows

        def noted_rows_of(after: Any, **bound: Any) -> Any:
            found = rows_of(after, **bound)
            most.extend(map(len, found.values()))
            return found

        def noted_rows(stream: str, **bound: Any) -> Any:
            for chunk in rows(stream, **bound):
                most.append(len(chunk))
                yield chunk

        world.log.rows_of, world.log.rows = noted_rows_of, noted_rows  # type: ignore[method-assign]
        settings = WorkerSettings(poll=0.005, snapshot_every=0)
        world.run(settings=settings)
        world.send(8)
        world.run(settings=settings)
        assert ([7] * 1_500 + [8], []) == (world.outputs(), world.errors)
        assert 512 <= max(most) <= 2_048
