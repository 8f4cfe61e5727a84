"""The kill tests can fail: a program with one step in the wrong order passes while nobody kills it, and breaks a law as soon as somebody does."""

from __future__ import annotations

import pytest

from tests.acceptance.kill.laws import faults, killed_by_itself
from tests.acceptance.kill.lives import case, orders_of
from tests.stores import Sqlite

ORDERS = orders_of(("plain",), keys=1, each=2)

#: habit → where to kill it, and how the broken law is told.
BROKEN = {
    "uses_an_answer_before_it_is_in_the_journal": (
        "model.answered:2",
        "S-4.1: life-1 used an answer before it was durable: 2 answers of orders-plain0 were lost at once",
    ),
    "appends_a_turn_in_two_parts": ("turn.appended:1", "S-3.2: orders-plain0 ends in the middle of a turn: ['order.priced']"),
    "calls_a_tool_before_its_attempt_is_recorded": ("tool.called:1", "S-6.5: orders-plain0 reserve_plain took effect 2 times"),
    "saves_its_checkpoint_before_the_outcome": ("attempt.recorded:1", "has no outcome"),
}


@pytest.mark.parametrize("habit", BROKEN)
def test_a_wrong_order_of_steps_is_found_by_a_kill(habit, tmp_path):
    boundary, told = BROKEN[habit]
    with case(Sqlite(), tmp_path / "killed", ORDERS) as made:
        assert [] == killed_by_itself(made.live(crash=boundary, habit=habit))
        made.live(habit=habit)
        found = faults(made)
        assert any(told in fault for fault in found), found


@pytest.mark.parametrize("habit", BROKEN)
def test_without_a_kill_nobody_would_know(habit, tmp_path):
    with case(Sqlite(), tmp_path / "unkilled", ORDERS) as made:
        made.live(habit=habit)
        told_without_a_kill = [fault for fault in faults(made) if not fault.startswith(("after life-1: S-3.2", "S-9.2"))]
        assert [] == told_without_a_kill
