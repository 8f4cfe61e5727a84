"""A fork of a run that had loaded other aggregates takes them with it: it replays where it was put, and can go on for real."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

from intentlog.agents import App, Input, agent
from intentlog.agents.sending import send
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.versions import ANY
from intentlog.replay import Verdict, replay_all
from intentlog.replay.bundles import open_bundle
from intentlog.replay.errors import ForkRefused, MergeRefused
from intentlog.replay.forking.bringing_back import carry_out, plan_merge
from intentlog.replay.forking.edits import Edits, parse_edit
from intentlog.replay.forking.going_on import WhatIf, what_if
from intentlog.replay.forking.writing import live_name, write_copy, write_live
from intentlog.replay.verify import verify_all
from tests.replay.wallets import PaidIn, Wallet
from tests.replay.world import World

STREAM, WALLET = "accounts-acct-42", "wallets-w1"


@agent("accounts")
async def accounts(ctx: Any, cents: int) -> Any:
    wallet = await ctx.load(Wallet, "w1")
    wallet.emit(PaidIn(cents + wallet.state.cents // 100))
    await ctx.sleep(timedelta(hours=1))
    return (await ctx.load(Wallet, "w1")).state.cents


@pytest.fixture
def app(world: World) -> App:
    """Three inputs, each of them seen to its end."""
    app = App(agents=[accounts])
    for cents in (300, 100, 50):
        world.send(app, cents)
        world.run(app)
        world.clock.tick(3601)
        world.run(app)
    return app


def verdicts(log: Any, app: App) -> dict[str, Verdict]:
    assert all(report.sound for report in verify_all(log, app))
    return {each.stream: each.verdict for each in replay_all(log, app)}


def forked(world: World, app: App, *edits: str) -> WhatIf:
    return what_if(world.log, app, STREAM, None, Edits(tuple(parse_edit(0, each) for each in edits)), approvals=False)


@pytest.mark.parametrize("kind", ["bundle", "log"])
@pytest.mark.parametrize("edits", [(), ("payload=7",)])
def test_a_copy_has_what_its_turns_had_loaded_and_replays_where_it_stands(world, app, tmp_path, kind, edits):
    place = f"{tmp_path}/fork.bundle" if kind == "bundle" else f"sqlite:///{tmp_path}/fork.db"
    fork = forked(world, app, *edits)
    write_copy(fork, place, source_log=world.log.url, by="ann")
    log = open_bundle(place) if kind == "bundle" else open_log(place, create=False, read_only=True)
    assert [event._replace(position=0) for event in world.log.read(WALLET)] == [event._replace(position=0) for event in log.read(WALLET)]
    assert {STREAM: Verdict.SAME, WALLET: Verdict.SAME} == verdicts(log, app) == verdicts(fork.log, app)


def test_two_copies_share_what_both_had_loaded_and_another_stream_of_that_name_is_refused(world, app, tmp_path):
    place = f"sqlite:///{tmp_path}/fork.db"
    world.send(app, 1, key="other")
    world.run(app)
    for stream in (STREAM, "accounts-other"):
        write_copy(what_if(world.log, app, stream), place, source_log=world.log.url, by="ann")
    assert {STREAM: Verdict.SAME, "accounts-other": Verdict.SAME, WALLET: Verdict.SAME} == verdicts(open_log(place, create=False), app)
    with closing(open_log(f"sqlite:///{tmp_path}/else.db")) as other:
        other.append(WALLET, [app.codec.stage(PaidIn(1), event_id=bytes(16))], ANY)
    with pytest.raises(ForkRefused, match=f"a stream {WALLET} that is another one"):
        write_copy(forked(world, app), f"sqlite:///{tmp_path}/else.db", source_log=world.log.url, by="ann")


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_fork_goes_on_for_real_with_what_it_had_loaded(world, app, tmp_path, elsewhere):
    target = World(f"sqlite:///{tmp_path}/trial.db") if elsewhere else world
    name = live_name(target.log, STREAM)
    write_live(forked(world, app), app, target.log, name, source_log=world.log.url, by="ann")
    expected = {name, WALLET} | (set() if elsewhere else {STREAM})
    assert dict.fromkeys(expected, Verdict.SAME) == verdicts(target.log, app)


def test_a_turn_decided_anew_that_emits_to_an_aggregate_does_not_go_on_for_real(world, app):
    with pytest.raises(ForkRefused, match=f"emits to {WALLET}, to which a fork writes nothing"):
        write_live(forked(world, app, "payload=7"), app, world.log, live_name(world.log, STREAM), source_log=world.log.url, by="ann")
    assert -1 == world.log.head(f"{STREAM}~fork1")


def test_what_a_fork_emitted_in_another_log_is_not_brought_back_without_its_events(world, app, tmp_path):
    world.send(app, 5)
    trial = World(f"sqlite:///{tmp_path}/trial.db")
    trial.clock.now = world.clock.now
    name = live_name(trial.log, STREAM)
    write_live(forked(world, app), app, trial.log, name, source_log=world.log.url, by="ann")
    trial.run(app)
    with pytest.raises(MergeRefused, match=f"emitted paid.in to {WALLET} as version 3"):
        plan_merge(world.log, trial.log, app, name)


def test_what_a_fork_emitted_in_the_sources_own_log_is_brought_back(world, app):
    name = live_name(world.log, STREAM)
    write_live(forked(world, app), app, world.log, name, source_log=world.log.url, by="ann")
    send(app, world.log, Input("accounts", name.removeprefix("accounts-"), 5, "in-fork"))
    world.run(app)
    merge = plan_merge(world.log, world.log, app, name)
    assert "aggregate.saved" in {piece.type for piece in merge.plan.bring}
    carry_out(merge, world.log, world.log, app, by="ann")
    assert {name: Verdict.SAME, STREAM: Verdict.SAME, WALLET: Verdict.SAME} == verdicts(world.log, app)
