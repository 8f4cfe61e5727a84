"""Killed while suspended: the deadline is in the log, so whoever is there when it has come resumes the activation, once (S-7)."""

from __future__ import annotations

import json
import time

import pytest

from intentlog.agents import facts
from tests.acceptance.harness import folded, not_the_same
from tests.acceptance.kill.lives import Case, case
from tests.acceptance.kill.orders import app

#: Of these waits; longer than a life needs that is to end before it.
LENGTH_MS = 2_000
OUTCOMES = {"deadline": "timed out: TIMED_OUT", "timer": "in time: OK"}


def ask_to_wait(made: Case, what: str, milliseconds: int = LENGTH_MS) -> None:
    """The only input of the case."""
    line = {"agent": "waits", "key": "k", "type": "wait.asked", "payload": {"what": what, "milliseconds": milliseconds}, "id": what}
    made.file.write_text(json.dumps(line) + "\n", "utf-8")


def due(made: Case) -> float:
    """Seconds until the wait is over."""
    armed: list[int] = [fact.fires_at for _, fact in made.left.of(facts.TimerArmed)] + [fact.deadline for _, fact in made.left.of(facts.Suspended)]
    return min(armed) / 1e6 - time.time()


def outputs(made: Case) -> list[str]:
    return [fact.output for _, fact in made.left.of(facts.Completed)]


@pytest.mark.parametrize("what", OUTCOMES)
def test_a_wait_outlives_the_process_that_began_it(what, tmp_path, shared_store):
    with case(shared_store, tmp_path / "case", []) as made:
        ask_to_wait(made, what)
        assert made.live(crash="turn.appended").killed
        assert 0 == made.live().ended.code
        if due(made) > 0:
            assert ([], []) == (outputs(made), made.left.of(facts.TimerFired))
        time.sleep(max(0.0, due(made)) + 0.05)
        assert 0 == made.live().ended.code
        assert [OUTCOMES[what]] == outputs(made)
        ((_, fired),) = made.left.of(facts.TimerFired)
        ((_, suspended),) = made.left.of(facts.Suspended)
        armed = [fact.fires_at for _, fact in made.left.of(facts.TimerArmed)]
        assert [fired.due_at] == (armed or [suspended.deadline])
        events = len(made.left.events)
        made.live()
        assert events == len(made.left.events)


@pytest.mark.parametrize("boundary", ["turn.decided", "turn.appended"])
@pytest.mark.parametrize("what", OUTCOMES)
def test_killed_while_it_resumes_it_resumes_once(what, boundary, tmp_path, shared_store):
    with case(shared_store, tmp_path / "case", []) as made:
        ask_to_wait(made, what, 300)
        made.live(crash="turn.appended")
        time.sleep(max(0.0, due(made)) + 0.05)
        assert made.live(crash=boundary).killed
        assert (1, boundary == "turn.appended") == (len(made.left.of(facts.TimerFired)), bool(outputs(made)))
        assert 0 == made.live().ended.code
        assert ([OUTCOMES[what]], 1) == (outputs(made), len(made.left.of(facts.TimerFired)))
        assert [] == not_the_same(app, made.url)


def test_an_effect_that_comes_back_after_the_deadline_is_late_and_kept(tmp_path, shared_store):
    with case(shared_store, tmp_path / "case", []) as made:
        ask_to_wait(made, "effect", 300)
        assert made.live(crash="attempt.recorded").killed
        time.sleep(max(0.0, due(made)) + 0.05)
        assert 0 == made.live(verb="worker").ended.code
        assert ([OUTCOMES["deadline"]], {}) == (outputs(made), made.left.statuses)
        made.live()
        ((intent_id, status),) = made.left.statuses.items()
        assert ("OK", 2, 1) == (status, made.left.attempts[intent_id], len(made.world.moved))
        assert (intent_id,) == folded(app, made.url)["waits-k"].run.late
        assert [OUTCOMES["deadline"]] == outputs(made)
        assert [] == not_the_same(app, made.url)
