"""What a fork took over from its source happened once: no merge says that it was carried out there, too."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from intentlog.replay.bundles import open_bundle
from intentlog.replay.errors import ForkRefused
from intentlog.replay.forking.bringing_back import plan_merge
from intentlog.replay.forking.going_on import what_if
from intentlog.replay.forking.writing import write_copy
from tests.replay.forking.sides import FORK, Begun, attempt, effect, forked, intents, paying_twice, settle, turn
from tests.replay.world import STREAM, RefundAsked, World, app_of


@pytest.fixture
def app() -> Any:
    return app_of(paying_twice)


def settled_on_both(world: World, app: Any) -> None:
    """The source has carried out its first effect before it is forked; the tool ran once."""
    world.send(app, RefundAsked("o-1", 4200))
    turn(world, app)
    settle(world, app, STREAM)
    turn(world, app)


@pytest.mark.parametrize("kind", ["input.received", "intent.settled"])
def test_an_outcome_that_the_fork_only_copied_was_not_carried_out_twice(world, app, kind):
    settled_on_both(world, app)
    forked(world, app, world.types().index(kind))
    assert "intent.settled" in [each.type for each in world.log.read(FORK)]
    assert ((), ()) == ((plan := plan_merge(world.log, world.log, app, FORK).plan).notes, plan.conflicts)


def test_an_attempt_that_a_copy_only_copied_is_the_sources(world, app, tmp_path):
    world.send(app, RefundAsked("o-1", 4200))
    turn(world, app)
    attempt(world, app, STREAM)
    write_copy(what_if(world.log, app, STREAM, None), f"{tmp_path}/fork.bundle", source_log="memory://", by="ann")
    fork = open_bundle(f"{tmp_path}/fork.bundle")
    assert () == plan_merge(world.log, fork, app, STREAM).plan.conflicts
    settle(world, app, STREAM)
    assert () == plan_merge(world.log, fork, app, STREAM).plan.conflicts


steps = st.lists(st.sampled_from(["attempt", "settle", "turn", "cancel"]), max_size=7)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=steps, data=st.data(), after=st.lists(st.tuples(st.sampled_from(["attempt", "settle", "turn"]), st.sampled_from([STREAM, FORK])), max_size=6))
def test_what_is_said_to_be_carried_out_on_both_sides_was(before, data, after):
    world, app = World(), app_of(paying_twice)
    ran: dict[str, Begun] = {STREAM: Begun(), FORK: Begun()}

    def happens(what: str, stream: str) -> None:
        if what == "turn":
            turn(world, app)
        else:
            ran[stream] += effect(world, app, stream, what)

    try:
        world.send(app, RefundAsked("o-1", 4200))
        turn(world, app)
        for what in before:
            happens(what, STREAM)
        try:
            forked(world, app, data.draw(st.integers(0, world.log.head(STREAM))))
        except ForkRefused:
            assume(False)
        for what, stream in after:
            happens(what, stream)
        plan = plan_merge(world.log, world.log, app, FORK).plan
        places = {(fact.seq, fact.step): each for each, (fact, *_) in intents(world, app, STREAM).items()}
        both = {places[place] for place in ran[STREAM] if ran[STREAM][place] and ran[FORK][place] and place in places}
        noted = {note.split()[1] for note in plan.notes}
        assert noted <= both
        assert all(any(f"intent {each} " in text for text in (*plan.notes, *(c.what + " " for c in plan.conflicts))) for each in both)
        assert () == plan.notes or "on both sides" in plan.notes[0]
    finally:
        world.log.close()
