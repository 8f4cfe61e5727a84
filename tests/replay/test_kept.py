"""The aggregate that a worker kept in a snapshot is held against the fold of today's code, also where no decision depended on it."""

from __future__ import annotations

import pytest

from intentlog.agents import Aggregate, applies
from intentlog.agents.streams import Folder
from intentlog.replay import Kind, StateCheck, Verdict, state_at
from intentlog.replay.allowing import read_allowances
from intentlog.replay.replays import replay_all
from tests.replay.world import STREAM, Account, RefundAsked, RefundPaid, World, app_of


async def silent(ctx, asked: RefundAsked):
    """Emits, and never looks at its state."""
    ctx.emit(asked)
    ctx.emit(RefundPaid("r", asked.cents))
    return "done"


@pytest.fixture
def kept(world: World) -> World:
    """Two activations and a snapshot of the state behind the first."""
    app = app_of(silent)
    world.story(app, RefundAsked("o-1", 4200), RefundAsked("o-2", 100))
    folder = Folder(app.definitions["accounts"])
    world.log.snapshots.save(STREAM, folder.snapshot(state_at(world.log, app, STREAM, 3)))
    return world


class Doubled(Aggregate):
    refunded_cents: int = 0
    orders: frozenset[str] = frozenset()

    @applies(RefundAsked)
    def _(self, e: RefundAsked) -> Doubled:
        return self.evolve(orders=self.orders | {e.order_id})

    @applies(RefundPaid)
    def _(self, e: RefundPaid) -> Doubled:
        return self.evolve(refunded_cents=self.refunded_cents + 2 * e.cents)


class Begun(Account):
    refunded_cents: int = 1


class Larger(Account):
    currency: str = "EUR"


def test_the_same_code_keeps_the_same_state(kept):
    replayed = kept.replay(app_of(silent))
    assert (Verdict.SAME, StateCheck.COMPARED) == (replayed.verdict, replayed.state)


def test_a_stream_without_a_snapshot_says_that_its_state_was_not_compared(world):
    world.story(app_of(silent), RefundAsked("o-1", 4200))
    assert [StateCheck.NOT_COMPARED, StateCheck.NO_STATE] == [world.replay(app_of(silent, state=state)).state for state in (Account, None)]


@pytest.mark.parametrize(("state", "decided"), [(Doubled, "8400"), (Begun, "4201")])
def test_a_changed_applier_or_default_is_found_though_nobody_read_the_state(kept, state, decided):
    found = kept.replay(app_of(silent, state=state)).divergence
    assert found is not None
    assert (Kind.STATE, 3, "activation.completed", "state.refunded_cents", "4200", decided) == (
        found.kind,
        found.version,
        found.event,
        found.field,
        found.recorded,
        found.decided,
    )
    assert "the state at version 3" == found.place


def test_a_field_that_was_added_is_no_divergence(kept):
    assert Verdict.SAME == kept.replay(app_of(silent, state=Larger)).verdict


def test_a_state_that_differs_may_be_allowed(kept):
    (found,) = replay_all(kept.log, app_of(silent, state=Doubled), [STREAM], allowances=read_allowances("* * state.*"))
    assert (Verdict.ALLOWED, 1, 8) == (found.verdict, len(found.excused), found.events)
