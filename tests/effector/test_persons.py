"""A person and an effector at the same intent: they never act at once, and the effector heeds what was said."""

from __future__ import annotations

import contextlib
from datetime import timedelta

import pytest

from intentlog.agents import ToolSet, facts, tool
from intentlog.agents.errors import RequestRefused
from intentlog.agents.operating import cancel, retry, settle, standing
from intentlog.agents.tool_policies import Retryable
from tests.effector.test_effector import Outside


def test_an_intent_that_a_person_puts_forward_is_tried_again_at_once_by_the_effector_that_runs():
    with Outside() as outside:
        calls: list[int] = []

        def flaky(name: str) -> str:
            calls.append(1)
            if len(calls) == 1:
                raise Retryable("later", after=timedelta(minutes=10))
            return name

        outside.tools = ToolSet([tool(side_effect=True)(flaky)])
        outside.stage("x", tool="flaky")
        asked = False

        def until() -> bool:
            nonlocal asked
            if not asked and standing(outside.log, "x").status == "POSTPONED":
                with contextlib.suppress(RequestRefused):  # the effector has yet to let go of the key, in the loop that waits here
                    retry(outside.log, "x", by="ada", patience=0.0)
                    asked = True
            return outside.statuses() != []

        outside.serve(until=until)
        assert (["OK"], 2) == (outside.statuses(), len(calls))
        assert [1, 2] == [each.attempt for each in outside.of(facts.IntentAttempted)]


def test_while_a_tool_runs_nobody_says_how_it_ends_and_an_intent_taken_back_before_is_never_begun():
    with Outside() as outside:
        refused: list[str] = []

        def meanwhile() -> str:
            with pytest.raises(RequestRefused) as problem:
                settle(outside.log, "x", "OK", by="ada", patience=0.0)
            refused.append(str(problem.value))
            return "mine"

        outside.do = {"x": meanwhile}
        outside.stage("x", "y")
        cancel(outside.log, "y", by="ada")
        outside.serve()
        assert ["CANCELLED", "OK"] == sorted(outside.statuses())
        assert (["x"], True) == (outside.begun, "an effector is at work on this key" in refused[0])
        assert "mine" == next(each.value for each in outside.of(facts.IntentSettled) if each.status == "OK")
