"""A copy keeps its source's name, times and ids and is taken up by nobody; a live fork is somebody else, and goes on."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from intentlog.agents import ActivationContext
from intentlog.agents.asking import answer
from intentlog.eventlog.opening import open_log
from intentlog.replay import Verdict, replay_all, replay_stream
from intentlog.replay.bundles import open_bundle
from intentlog.replay.errors import ForkRefused
from intentlog.replay.forking.begun import begun, place_of
from intentlog.replay.forking.edits import Edits, parse_edit
from intentlog.replay.forking.going_on import what_if
from intentlog.replay.forking.writing import check_live, live_name, write_copy, write_live
from intentlog.replay.verify import verify_all
from tests.replay.world import STREAM, Account, RefundAsked, World, app_of, paying, refund, unanswered

FORK = f"{STREAM}~fork1"


@pytest.fixture
def app() -> Any:
    return app_of(paying, unanswered())


@pytest.fixture
def waiting(world: World) -> World:
    """A stream whose effect is staged and not carried out."""
    world.send(app_of(paying), RefundAsked("o-1", 4200))
    world.run(app_of(paying), effector=False)
    return world


def went_live(world: World, app: Any, at: int | None, edits: Edits | None = None) -> Any:
    fork = what_if(world.log, app, STREAM, at, edits, approvals=False)
    return write_live(fork, app, world.log, live_name(world.log, STREAM), source_log=world.log.url, by="ann")


@pytest.mark.parametrize("kind", ["bundle", "log"])
def test_a_copy_is_the_fork_event_by_event(world, app, tmp_path, kind):
    world.story(app_of(paying), RefundAsked("o-1", 4200), RefundAsked("o-2", 7))
    before = list(world.log.read_all())
    fork = what_if(world.log, app, STREAM, 10, Edits((parse_edit(8, "value=re_x"),)))
    place = f"{tmp_path}/fork.bundle" if kind == "bundle" else f"sqlite:///{tmp_path}/fork.db"
    written = write_copy(fork, place, source_log="postgresql://me:hunter2@db/log", by="ann")
    log = open_bundle(place) if kind == "bundle" else open_log(place, create=False, read_only=True)
    assert (place, STREAM, 11, False) == (written.log, written.stream, written.events, written.live)
    assert [piece.stored(STREAM, version)._replace(position=0) for version, piece in enumerate(fork.pieces)] == [
        event._replace(position=0) for event in log.read(STREAM)
    ]
    record = begun(log, STREAM)
    assert (STREAM, 10, 8, False, "postgresql://me:***@db/log") == (record.source, record.upto, record.first, record.live, record.source_log)
    assert ('edit 8 value="re_x"',) == record.edits
    assert [(STREAM, Verdict.SAME)] == [(each.stream, each.verdict) for each in replay_all(log, app)]
    assert all(report.sound for report in verify_all(log, app))
    assert before == list(world.log.read_all())
    log.close()


def test_an_effector_leaves_a_copys_effects_alone(waiting, app, shared_url):
    url = shared_url
    write_copy(what_if(waiting.log, app, STREAM), url, source_log="memory://", by="ann")
    other = World(url)
    other.send(app_of(paying), RefundAsked("o-9", 1), key="another")
    other.run(app_of(paying), worker=True, effector=False)
    log = open_log(url)
    assert {} == log.schedule.acquire("effect", [STREAM], "an effector", now=other.clock(), until=other.clock() + 10)
    assert {} == log.schedule.wakes("turn", [STREAM])
    assert [event.recorded_at for event in waiting.log.read(STREAM)] == [event.recorded_at for event in log.read(STREAM)]
    assert {"accounts-another": 1} == dict.fromkeys(log.schedule.acquire("effect", ["accounts-another"], "an effector", now=1, until=2), 1)
    log.close()
    other.log.close()


def test_a_copy_is_not_written_where_its_name_is_taken(waiting, app, tmp_path):
    url = f"sqlite:///{tmp_path}/fork.db"
    fork = what_if(waiting.log, app, STREAM)
    write_copy(fork, url, source_log="memory://", by="ann")
    with pytest.raises(ForkRefused, match="a copy keeps its name"):
        write_copy(fork, url, source_log="memory://", by="ann")


def test_a_live_fork_goes_on_under_its_own_ids(world):
    app = app_of(paying)
    world.send(app, RefundAsked("o-1", 4200))
    before = list(world.log.read(STREAM))
    written = went_live(world, app, None)
    assert (FORK, True, before) == (written.stream, written.live, list(world.log.read(STREAM)))
    world.run(app)
    ids = [{app.codec.decode_stored(each).intent_id for each in world.log.read(name) if each.type == "intent.settled"} for name in (STREAM, FORK)]
    assert ([1, 1], True) == ([len(each) for each in ids], ids[0].isdisjoint(ids[1]))
    assert [Verdict.SAME, Verdict.SAME] == [each.verdict for each in replay_all(world.log, app)]
    assert all(report.sound for report in verify_all(world.log, app))
    assert f"{STREAM}~fork2" == live_name(world.log, STREAM)
    assert STREAM == begun(world.log, FORK).source


@pytest.mark.parametrize("edits", [None, Edits((parse_edit(11, "cents=8"),))], ids=["alike", "edited"])
def test_of_two_forks_that_had_looked_for_a_name_at_one_moment_only_one_gets_it(world, edits):
    app = app_of(paying)
    world.story(app, RefundAsked("o-1", 4200))
    world.send(app, RefundAsked("o-2", 7))
    name = live_name(world.log, STREAM)
    write_live(what_if(world.log, app, STREAM, approvals=False), app, world.log, name, source_log=world.log.url, by="ann")
    first = list(world.log.read_all())
    with pytest.raises(ForkRefused, match=f"{name} was not written: somebody else"):
        write_live(what_if(world.log, app, STREAM, None, edits, approvals=False), app, world.log, name, source_log=world.log.url, by="ann")
    assert first == list(world.log.read_all())


def test_of_two_copies_made_into_one_log_at_one_moment_only_one_is_told_that_it_stands_there(world, app, tmp_path, monkeypatch):
    world.story(app_of(paying), RefundAsked("o-1", 4200))
    fork, place = what_if(world.log, app, STREAM), f"sqlite:///{tmp_path}/fork.db"
    write_copy(fork, place, source_log="memory://", by="ann")
    monkeypatch.setattr("intentlog.eventlog.composed.ComposedLog.head", lambda log, stream: -1)  # the second had looked before
    with pytest.raises(ForkRefused, match="somebody else writes"):
        write_copy(fork, place, source_log="memory://", by="ann")


def test_recorded_outcomes_are_a_live_forks_too_and_are_not_caused_again(world):
    app = app_of(paying)
    world.story(app, RefundAsked("o-1", 4200))
    went_live(world, app, 2)
    world.run(app)
    assert world.types() == world.types(FORK)
    found = replay_stream(world.log, app, FORK)
    assert (Verdict.SAME, 2) == (found.verdict, found.turns)
    settled = [app.codec.decode_stored(each) for each in world.log.read(FORK) if each.type == "intent.settled"]
    assert ["e"] == [each.settled_by for each in settled]


def test_what_the_source_has_to_carry_out_is_not_carried_out_by_a_fork(waiting, app):
    fork = what_if(waiting.log, app, STREAM)
    with pytest.raises(ForkRefused, match="is the source's to carry out"):
        check_live(fork, app)
    with pytest.raises(ForkRefused, match="Fork before it"):
        write_live(fork, app, waiting.log, FORK, source_log="memory://", by="ann")
    assert -1 == waiting.log.head(FORK) == waiting.log.head(place_of(FORK))


def test_code_that_depends_on_the_key_cannot_go_live_with_its_past(world):
    async def by_key(ctx: ActivationContext[Account], asked: RefundAsked) -> Any:
        await ctx.call_model(f"What of {ctx.key}?")
        return await ctx.perform(refund, order_id="a", cents=1)

    app = app_of(by_key)
    world.story(app, RefundAsked("o-1", 1))
    assert not what_if(world.log, app, STREAM, 0).differs  # as a copy it can be looked at
    with pytest.raises(ForkRefused, match="depends on the key"):
        went_live(world, app, None)


def test_an_approval_is_asked_again_on_a_live_fork(world):
    async def asking(ctx: ActivationContext[Account], asked: RefundAsked) -> Any:
        if not await ctx.approval("Pay?", channel="support", timeout=timedelta(hours=1)):
            return "denied"
        await ctx.sleep(timedelta(hours=1))
        return "paid"

    app = app_of(asking)
    world.story(app, RefundAsked("o-1", 1))
    answer(world.log, app.codec, STREAM, "approval-0-0", approved=True, by="grace", reason="")
    world.run(app)
    went_live(world, app, None)
    world.run(app)
    assert "approval.decided" not in world.types(FORK)
    answer(world.log, app.codec, FORK, "approval-0-0", approved=False, by="grace", reason="")
    world.run(app)
    outputs = [app.codec.decode_stored(each).output for each in world.log.read(FORK) if each.type == "activation.completed"]
    assert ["denied"] == outputs
