"""The gate notices a wrong program: an effector that calls a tool first and records the attempt afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.kill.habits import calls_a_tool_before_its_attempt_is_recorded
from tests.effector.gate.laws import faults
from tests.effector.gate.log_ground import LogGround
from tests.effector.gate.moments import MADE
from tests.effector.gate.plans import Death, Plan
from tests.effector.gate.runs import run_of

#: One effector dies with its second call, the next one lives.
PLAN = Plan(1, ((Death(MADE, 2),),), (("mail", "mail"), ("charge", "mail")), 0)


@pytest.mark.parametrize("habit", [None, calls_a_tool_before_its_attempt_is_recorded.__name__])
def test_a_program_that_calls_before_it_records_is_found_out(habit: str | None, tmp_path: Path):
    ground = LogGround(f"sqlite:///{tmp_path}/log.db", {"GATE_HABIT": habit} if habit else {})
    with run_of(PLAN, tmp_path, ground) as run:
        run.live()
        found = faults(run) + ground.faults(run)
    ground.close()
    assert 1 == len(run.kills)
    if habit is None:
        assert [] == found
    else:
        assert any("took effect 2 times" in each or "has no attempt" in each for each in found), found
