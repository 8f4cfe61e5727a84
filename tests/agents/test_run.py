"""The fold, given facts by hand."""

from __future__ import annotations

from typing import Any

import pytest

from intentlog.agents import ModelRequest, ModelResponse, facts
from intentlog.agents.errors import ImpossibleHistory
from intentlog.agents.lifecycle import ActivationState, IntentState
from intentlog.agents.run import RunState, next_attention

FAILURE = facts.Failure("ValueError", "no")


def received(n: int = 0) -> facts.InputReceived:
    return facts.InputReceived(f"in-{n}", "", 0, "msgpack", b"\x01")


def staged(intent: str = "i", seq: int = 0, key: str = "") -> facts.IntentStaged:
    return facts.IntentStaged(intent, seq, 0, "pay", {}, b"", 99, key)


def suspended(*waits: str, seq: int = 0, mode: str = "all", deadline: int = 50) -> facts.Suspended:
    return facts.Suspended(seq, 1, 1, 0, waits, mode, deadline)


def completed(seq: int = 0) -> facts.Completed:
    return facts.Completed(seq, 1, 1, 0, "done")


def failed(attempt: int = 1, retry_at: int | None = 7, holds: bool = False, seq: int = 0) -> facts.ActivationFailed:
    return facts.ActivationFailed(seq, f"in-{seq}", attempt, FAILURE, 0, 0, retry_at, holds)


def settled(intent: str = "i") -> facts.IntentSettled:
    return facts.IntentSettled(intent, "OK", "v")


def model(step: int = 0) -> facts.ModelCallCached:
    return facts.ModelCallCached(0, step, 5, b"", ModelRequest([]), ModelResponse("x"))


def fold(*history: Any) -> RunState:
    run = RunState()
    for fact in history:
        run.apply(fact, 1)
    return run


HISTORIES = {
    "nothing": ((), None, None),
    "an input": ((received(),), ActivationState.QUEUED, 0),
    "a failed turn": ((received(), failed()), ActivationState.QUEUED, 7),
    "a parked input": ((received(), failed(3, None)), None, None),
    "a parked input that holds": ((received(), received(1), failed(3, None, True)), ActivationState.PARKED, None),
    "a parked input and the next": ((received(), received(1), failed(3, None)), ActivationState.QUEUED, 0),
    "redriven": ((received(), failed(3, None), facts.InputRedriven(0, "in-0", "me", "")), ActivationState.QUEUED, 0),
    "suspended": ((received(), staged(), suspended("i")), ActivationState.SUSPENDED, 50),
    "suspended with a timer": ((received(), facts.TimerArmed("t", 0, 0, 20), suspended("t")), ActivationState.SUSPENDED, 20),
    "settled": ((received(), staged(), suspended("i"), settled()), ActivationState.RESUMABLE, 0),
    "timed out": ((received(), staged(), suspended("i"), facts.TimerFired(0, "", 50)), ActivationState.RESUMABLE, 0),
    "completed": ((received(), completed()), None, None),
    "the second of two": ((received(), received(1), completed()), ActivationState.QUEUED, 0),
    "a resumed turn failed": ((received(), suspended(), facts.TimerFired(0, "", 50), failed(1, 70)), ActivationState.RESUMABLE, 70),
    "a resumed turn parked and redriven": (
        (received(), suspended(), facts.TimerFired(0, "", 50), failed(1, None), facts.InputRedriven(0, "in-0", "me", "")),
        ActivationState.RESUMABLE,
        0,
    ),
}


@pytest.mark.parametrize("name", HISTORIES)
def test_a_history_adds_up_to_a_state_and_a_moment_of_attention(name):
    history, state, attention = HISTORIES[name]
    run = fold(*history)
    assert state is (run.current.state if run.current else None)
    assert attention == next_attention(run)


IMPOSSIBLE = {
    "an end before a beginning": (completed(),),
    "a turn of an input that is not in line": (received(), failed(3, None), completed()),
    "two ends": (received(), completed(), completed()),
    "two answers to one step": (received(), model(), model()),
    "two reads at one place": (received(), *[facts.ToolCallCached(0, 0, 5, "read", b"", {}, 1)] * 2),
    "an intent staged twice": (received(), staged(), staged()),
    "an outcome of no intent": (received(), settled("nobody's")),
    "an attempt at no intent": (received(), facts.IntentAttempted("nobody's", 1, "e", 1)),
    "two outcomes": (received(), staged(), suspended("i"), settled(), settled()),
    "an attempt after the outcome": (received(), staged(), suspended("i"), settled(), facts.IntentAttempted("i", 1, "e", 1)),
    "a model call while suspended": (received(), suspended(), model()),
    "an end while suspended": (received(), suspended(), completed()),
    "a timer that was not armed": (received(), suspended(), facts.TimerFired(0, "t", 1)),
    "a deadline of what is not suspended": (received(), facts.TimerFired(0, "", 1)),
    "a redrive of what is not parked": (received(), facts.InputRedriven(0, "in-0", "me", "")),
    "a turn of a parked input": (received(), failed(3, None), model()),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_an_impossible_history_is_a_typed_error(name):
    *possible, impossible = IMPOSSIBLE[name]
    run = fold(*possible)
    with pytest.raises(ImpossibleHistory):
        run.apply(impossible, 1)


def test_a_finished_activation_leaves_its_counters_and_business_keys_behind():
    run = fold(received(), staged(), staged("keyed", key="k"), suspended("i", "keyed"), settled(), settled("keyed"), completed())
    assert (1, 1, [], {}, ["keyed"]) == (run.inputs, run.completed, run.line, run.open, list(run.intents))
    assert IntentState.SETTLED is run.intents["keyed"].state


def test_a_failed_reads_answer_is_forgotten_with_its_turn_and_a_paid_one_is_kept():
    good, bad = facts.ToolCallCached(0, 0, 5, "read", b"", {}, 1), facts.ToolCallCached(0, 1, 5, "read", b"", {}, None, FAILURE)
    run = fold(received(), model(), good, bad, failed())
    assert run.current is not None
    assert ([0], [0]) == (list(run.current.models), list(run.current.tools))
    assert (5, 1) == (run.current.turn_now, run.current.failures)


def test_only_the_last_hundred_late_outcomes_are_held():
    history: list[Any] = []
    for n in range(120):
        history += [received(n), staged(f"i{n}", n), suspended(f"i{n}", seq=n), facts.TimerFired(n, "", 50), completed(n)]
    run = fold(*history, *(settled(f"i{n}") for n in range(120)))
    assert [f"i{n}" for n in range(20, 120)] == list(run.late)
    assert {} == run.intents
