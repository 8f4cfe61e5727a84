"""S-8: folding from zero, from any snapshot and live agree, with linear activations in progress and with loaded aggregates."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from intentlog.agents import Aggregate, WorkerSettings, applies
from intentlog.agents.reading_streams import Loaded, PlainFolder
from intentlog.agents.streams import Folder, StreamState
from intentlog.eventlog.codec import Codec
from intentlog.eventlog.registry import EventRegistry, event
from intentlog.eventlog.upcasting import upcasts
from intentlog.eventlog.versions import ANY
from intentlog.replay import replay_all
from tests.agents.world import STREAM, Asked, Ctx, Paid, World


@event("step.made", version=2)
class Made:
    by: int
    note: str


@upcasts("step.made", from_version=1)
def noted(fields: dict[str, Any]) -> dict[str, Any]:
    return {"by": fields["by"], "note": f"before notes: {fields['by']}"}


class Path(Aggregate, category="paths"):
    length: int = 0
    notes: tuple[str, ...] = ()

    @applies(Made)
    def _(self, e: Made) -> Path:
        return self.evolve(length=self.length + e.by, notes=(*self.notes, e.note))


class Before:
    """Yesterday's code. Apps look for events in the globals of an agent's module, and this one is not to be found there."""

    @event("step.made", version=1)
    class Made:
        by: int

    codec = Codec(EventRegistry(Made))


EVENTS = (Asked, Paid, Made)
SLOW = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))


async def walking(ctx: Ctx, plan: list[Any]) -> list[Any]:
    """Does what its input says: emit, wait, or walk on somebody else's path."""
    seen: list[Any] = []
    for what, much in plan:
        if what == "emit":
            ctx.emit(Made(much, f"n{much}"))
        elif what == "sleep":
            await ctx.sleep(timedelta(seconds=much + 1))
        elif what == "ask":
            await ctx.call_model(f"{ctx.state.length}?")
        elif what == "pay":
            await ctx.perform("pay", order=str(much))
        else:
            other = await ctx.load(Path, str(much % 2))
            other.emit(Made(much, "other"))
            seen.append(other.state.length)
        seen.append(ctx.state.length)
    return seen


PLANS = st.lists(
    st.lists(st.tuples(st.sampled_from(["emit", "sleep", "ask", "pay", "other"]), st.integers(0, 9)).map(list), max_size=6), min_size=1, max_size=4
)


def comparable(state: StreamState) -> Any:
    run = state.run
    return (
        state.version,
        state.state,
        state.bases,
        run.line,
        run.intents,
        {seq: (a.state, a.step, a.epochs, a.emitted, a.loads, a.saves, a.models.keys(), a.kinds) for seq, a in run.open.items()},
    )


@given(PLANS, st.lists(st.integers(0, 4), max_size=8))
@SLOW
def test_from_zero_from_any_snapshot_and_live_agree(plans, pauses):
    with World(walking, events=EVENTS, upcasters=[noted], state=Path) as world:
        for plan in plans:
            world.send(plan)
        for pause in pauses:
            world.later(pause, settings=WorkerSettings(poll=0.005, snapshot_every=3))
        folder = Folder(world.app.definitions["a"])
        rows = world.log.rows_of({STREAM: -1})[STREAM]
        whole = folder.fold(folder.empty(STREAM), rows)
        for cut in range(len(rows) + 1):
            part = folder.fold(folder.empty(STREAM), rows[:cut])
            again = folder.restore(STREAM, folder.snapshot(part)) if _between_appends(part) else folder.fold(folder.empty(STREAM), rows[:cut])
            assert comparable(part) == comparable(again)
            assert comparable(whole) == comparable(folder.fold(again, rows[cut:]))
        # What the worker folded while it ran went on from its own snapshots: had it seen another state, its code had decided otherwise.
        assert {"same"} == {each.verdict.value for each in replay_all(world.log, world.app)}
        assert [] == world.failures()


def _between_appends(state: StreamState) -> bool:
    """A worker takes snapshots of what it committed, never of half an append."""
    return not state.run.emitting


@given(PLANS)
@SLOW
def test_every_linear_activation_ends_the_same_whatever_was_dropped_between_its_turns(plans):
    def outcome(drop: bool) -> list[Any]:
        with World(walking, events=EVENTS, upcasters=[noted], state=Path) as world:
            for plan in plans:
                world.send(plan)
            for _ in range(60):
                if not world.fold().run.line:
                    break
                world.later(5, settings=WorkerSettings(poll=0.002, snapshot_every=2))
                if drop:
                    world.log.snapshots.delete()
            assert [] == world.failures()
            return world.outputs()

    assert outcome(False) == outcome(True)


@given(st.lists(st.tuples(st.booleans(), st.integers(-5, 5)), max_size=12))
@settings(max_examples=60, deadline=None)
def test_a_plain_aggregate_is_the_same_from_any_snapshot_whatever_version_its_events_have(steps):
    today = Codec(EventRegistry(Made, upcasters=[noted]))
    encoded = [Before.codec.encode(Before.Made(by)) if old else today.encode(Made(by, "now")) for old, by in steps]
    rows = [(version, kind, schema, blob, bytes(16), 0) for version, (kind, schema, blob) in enumerate(encoded)]
    folder = PlainFolder(today, Path)
    whole = folder.fold("paths-1", Loaded(Path(), -1), rows)
    assert Path(length=sum(by for _, by in steps), notes=tuple(f"before notes: {by}" if old else "now" for old, by in steps)) == whole.state
    for cut in range(len(rows) + 1):
        part = folder.fold("paths-1", Loaded(Path(), -1), rows[:cut])
        assert part == folder.restore(folder.snapshot(part), None)
        assert whole == folder.fold("paths-1", folder.restore(folder.snapshot(part), None), rows[cut:])


def test_an_event_of_an_older_version_reaches_agent_load_and_replay(log_url):
    async def code(ctx: Ctx) -> list[str]:
        other = await ctx.load(Path, "p")
        other.emit(Made(1, "new"))
        return [*other.state.notes, str(other.state.length)]

    with World(code, events=EVENTS, upcasters=[noted], state=Path, url=log_url) as world:
        world.log.append("paths-p", [Before.codec.stage(Before.Made(4), event_id=bytes(16))], ANY)
        world.send()
        world.run()
        assert [["before notes: 4", "new", "5"]] == world.outputs()
        assert {"same"} == {each.verdict.value for each in replay_all(world.log, world.app)}
