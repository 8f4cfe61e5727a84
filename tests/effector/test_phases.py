"""Each phase alone: no log, no effector."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from intentlog.agents import IntentInfo, ToolSet, facts, tool
from intentlog.agents.app import runtime_codec
from intentlog.effector import phases
from intentlog.effector.outbox import Pending

CODEC = runtime_codec()


def pending(name: str = "echo", attempts: int = 0, expires_at: int = 100, **args: Any) -> Pending:
    return Pending("a-k", 1, b"e" * 16, b"c" * 16, facts.IntentStaged("i-1", 3, 5, name, args or {"text": "x"}, b"", expires_at), attempts)


class Odd(BaseException):
    pass


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


class Loud(str):
    __slots__ = ()

    def __getitem__(self, _: Any) -> str:
        raise SystemExit(2)


class Hostile(Exception):
    """Whatever is asked of it raises ``args[0]``."""

    def __str__(self) -> str:
        raise self.args[0]

    __repr__ = __str__


class Subtle(Exception):
    def __str__(self) -> str:
        return Loud("subtle")


@tool(side_effect=True, timeout=timedelta(milliseconds=50))
async def echo(text: str, *, intent: IntentInfo) -> str:
    return f"{text} {intent.intent_id} {intent.stream} {intent.seq} {intent.step_index} {intent.attempt}"


@tool(side_effect=True, idempotent=True)
def push(text: str) -> str:
    return text.upper()


@tool
def reading(text: str) -> str:
    return text


TOOLS = ToolSet([echo, push, reading])


def test_our_own_log_vouches_for_its_intents():
    assert phases.verify(pending()) is None


@pytest.mark.parametrize("now, expires_at, expired", [(99, 100, False), (100, 100, True), (101, 100, True), (0, 0, True), (5, -1, True)])
def test_a_deadline_is_over_at_its_moment_and_zero_always_is(now, expires_at, expired):
    assert expired is (phases.refuse_expired(pending(expires_at=expires_at), echo, now) is not None)


@pytest.mark.parametrize(
    ("expires_at", "why"),
    [(0, "never attempted; it was staged without a deadline, or with a ttl of zero or less"), (100, "never attempted; its deadline was 1970-01-01T")],
)
def test_an_intent_that_never_had_time_says_why(expires_at, why):
    outcome = phases.refuse_expired(pending(expires_at=expires_at), echo, 200)
    assert outcome is not None
    assert outcome.failure is not None
    assert outcome.failure.message.startswith(why)


@pytest.mark.parametrize("tool, attempts, status", [(echo, 0, "EXPIRED"), (None, 0, "EXPIRED"), (echo, 1, "UNKNOWN"), (push, 1, "ERROR"), (None, 1, "UNKNOWN")])
def test_what_an_intent_past_its_deadline_is_reported_as(tool, attempts, status):
    outcome = phases.refuse_expired(pending(attempts=attempts), tool, 200)
    assert outcome is not None
    assert (status, "Expired") == (outcome.status, outcome.failure.type)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "given, kind",
    [
        (pending("gone"), "UnknownTool"),
        (pending("reading"), "WrongToolKind"),
        (pending(text=7), "ArgumentRefused"),
        (pending(other=7), "ArgumentRefused"),
        (pending(text="x", intent={}), "ArgumentRefused"),
    ],
)
def test_what_does_not_fit_is_rejected_and_never_called(given, kind):
    outcome = phases.refuse_unfit(given, TOOLS, CODEC)
    assert isinstance(outcome, phases.Outcome)
    assert ("REJECTED", kind) == (outcome.status, outcome.failure.type)  # type: ignore[union-attr]


@pytest.mark.parametrize("given", ["gone", "reading"])
def test_what_was_attempted_elsewhere_is_never_said_not_to_have_run(given):
    """S-6.1: REJECTED never ran."""
    begun = phases.refuse_unfit(pending(given, attempts=1), TOOLS, CODEC)
    assert isinstance(begun, phases.Outcome) and begun.failure is not None
    assert ("UNKNOWN", True) == (begun.status, "its end was never seen" in begun.failure.message)
    failed = pending(given, attempts=1)
    failed.postponed[1] = facts.IntentPostponed("i", 1, facts.Failure("Busy", "later"), 5, "e")
    ended = phases.refuse_unfit(failed, TOOLS, CODEC)
    assert isinstance(ended, phases.Outcome) and ended.failure is not None
    assert ("ERROR", "Busy", "later") == (ended.status, ended.failure.type, ended.failure.message)


def test_what_fits_is_bound():
    assert (push, {"text": "x"}) == phases.refuse_unfit(pending("push"), TOOLS, CODEC)


def recovered(tool: Any, attempts: int) -> phases.Outcome | None:
    return asyncio.run(phases.recover(pending(attempts=attempts), tool, {"text": "x"}, CODEC))


def test_an_intent_nobody_attempted_needs_no_recovery():
    assert recovered(echo, 0) is None


def test_an_idempotent_tool_is_attempted_again_until_it_is_the_tool_that_kills_its_effector():
    assert recovered(push, 1) is None
    assert recovered(push, phases.MOST_ATTEMPTS - 1) is None
    outcome = recovered(push, phases.MOST_ATTEMPTS)
    assert outcome is not None
    assert ("ERROR", "GaveUp") == (outcome.status, outcome.failure.type)  # type: ignore[union-attr]


def test_without_reconcile_nobody_can_tell():
    assert "UNKNOWN" == recovered(echo, 1).status  # type: ignore[union-attr]


def raising(problem: BaseException) -> Any:
    def fn(info: IntentInfo, text: str) -> Any:
        raise problem

    return fn


async def told(info: IntentInfo, text: str) -> Any:
    return f"found {text} {info.attempt}"


@pytest.mark.parametrize(
    "reconcile, status",
    [
        (told, "OK"),
        (lambda info, text: None, "UNKNOWN"),
        (lambda info, text: object(), "UNKNOWN"),
        (raising(ValueError("x")), "UNKNOWN"),
        (raising(SystemExit(1)), "UNKNOWN"),
        (raising(StopIteration()), "UNKNOWN"),
        (raising(Unprintable()), "UNKNOWN"),
        (raising(Hostile(SystemExit(2))), "UNKNOWN"),
        (lambda info, text: Hostile(SystemExit(2)), "UNKNOWN"),
    ],
)
def test_reconcile_is_asked_and_whatever_it_does_there_is_an_outcome(reconcile, status):
    @tool(side_effect=True, reconcile=reconcile)
    async def transfer(text: str) -> Any: ...

    outcome = recovered(transfer, 1)
    assert outcome is not None
    assert status == outcome.status
    if status == "OK":
        assert "found x 1" == outcome.value


def executed(fn: Any, seconds: float = 5, **args: Any) -> phases.Outcome:
    made = tool(side_effect=True, timeout=timedelta(seconds=seconds))(fn) if not hasattr(fn, "side_effect") else fn
    return asyncio.run(phases.execute(pending(made.name, attempts=2), made, args, CODEC))


def test_the_tool_gets_its_arguments_and_who_it_acts_for():
    assert ("OK", "x i-1 a-k 3 5 2") == ((found := executed(echo, text="x")).status, found.value)
    assert ("OK", "X") == ((found := executed(push, text="x")).status, found.value)


PROBLEMS = [
    ValueError("no"),
    Odd("odd"),
    SystemExit(1),
    KeyboardInterrupt(),
    GeneratorExit(),
    asyncio.CancelledError("mine"),
    TimeoutError("its own"),
    StopIteration("s"),
    Unprintable(),
    Hostile(SystemExit(2)),
    Hostile(KeyboardInterrupt()),
    Hostile(asyncio.CancelledError()),
    Subtle(),
    ExceptionGroup("g", [ValueError("a")]),
    ValueError("\ud800"),
]


@pytest.mark.parametrize("blocking", [False, True], ids=["async", "blocking"])
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: type(problem).__name__)
def test_whatever_a_tool_raises_is_an_error_that_can_be_recorded(problem, blocking):
    async def waits() -> None:
        raise problem

    def blocks() -> None:
        raise problem

    outcome = executed(blocks if blocking else waits)
    assert "ERROR" == outcome.status
    assert outcome.failure is not None
    if not isinstance(problem, StopIteration):
        assert type(problem).__name__ == outcome.failure.type
    event = phases.settled_event(CODEC, pending(), outcome, "e")
    assert outcome.failure == CODEC.decode(event.type, event.schema, event.data).failure


UNRECORDABLE = {
    "an object": object(),
    "a set": {1, object()},
    "a function": lambda: None,
    "a built-in": open,
    "one that exits when it is shown": Hostile(SystemExit(2)),
    "one that cancels when it is shown": [Hostile(asyncio.CancelledError())],
}


@pytest.mark.parametrize("value", UNRECORDABLE.values(), ids=UNRECORDABLE)
def test_a_result_that_cannot_be_recorded_is_an_error_for_it_ran(value):
    async def gives() -> Any:
        return value

    outcome = executed(gives)
    assert ("ERROR", "Unencodable") == (outcome.status, outcome.failure.type)  # type: ignore[union-attr]


def test_a_result_of_another_type_than_the_annotation_says_is_an_error():
    async def gives() -> int:
        return "text"  # type: ignore[return-value]

    assert "Unencodable" == executed(gives).failure.type  # type: ignore[union-attr]


def test_a_tool_that_runs_too_long_is_an_error_and_a_tools_own_timeout_is_not_mistaken_for_it():
    async def slow() -> None:
        await asyncio.sleep(9)

    outcome = executed(slow, seconds=0.02)
    assert ("ERROR", "TimedOut") == (outcome.status, outcome.failure.type)  # type: ignore[union-attr]


def test_cancelling_the_effector_is_no_outcome():
    async def story() -> None:
        @tool(side_effect=True)
        async def slow() -> None:
            await asyncio.sleep(9)

        task = asyncio.create_task(phases.execute(pending(), slow, {}, CODEC))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(story())


def test_events_are_linked_to_the_intent_and_a_settlements_id_is_the_intents():
    attempt = phases.attempted_event(CODEC, pending(attempts=1), "e-1", 7)
    one = phases.settled_event(CODEC, pending(attempts=1), phases.Outcome("OK", "v"), "e-1")
    other = phases.settled_event(CODEC, pending(attempts=2), phases.Outcome("ERROR"), "e-2")
    assert facts.IntentAttempted("i-1", 2, "e-1", 7) == CODEC.decode(attempt.type, attempt.schema, attempt.data)
    assert {(b"c" * 16, b"e" * 16)} == {(each.correlation, each.causation) for each in (attempt, one, other)}
    assert one.event_id == other.event_id
    assert one.data != other.data
