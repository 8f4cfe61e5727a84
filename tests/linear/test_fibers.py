"""The scheduler alone, on a script that is a list: who goes on when, and who is cancelled how."""

from __future__ import annotations

import types
from collections.abc import Callable, Generator, Sequence
from typing import Any

import attrs
import pytest

from intentlog.agents.errors import AgentExited
from intentlog.agents.fibers import End, Fibers, Parked, StepCancelled, fork, wait_for


@attrs.define
class Listed:
    """Outcomes in order; ``|`` begins what a later turn had seen."""

    outcomes: list[Any]
    left: list[str] = attrs.field(factory=list)

    def next_outcome(self, waits: Sequence[str]) -> str | BaseException | None:
        if self.outcomes and (isinstance(self.outcomes[0], BaseException) or self.outcomes[0] in waits):
            found: str | BaseException = self.outcomes.pop(0)
            return found
        return None

    def next_epoch(self, waits: Sequence[str]) -> bool:
        if self.outcomes and self.outcomes[0] == "|":
            self.outcomes.pop(0)
            return True
        return False

    def abandoned(self, waits: Sequence[str]) -> None:
        self.left += waits


def run(main: Any, *outcomes: Any) -> tuple[Any, Listed]:
    script = Listed(list(outcomes))
    fibers = Fibers(main, script, lambda coroutine, awaited: TypeError(f"not {awaited!r}"))
    core = fibers.run()
    try:
        next(core)
    except StopIteration as stop:
        return stop.value, script
    finally:
        fibers.close()
    raise AssertionError("it asked for something")


async def one(name: str) -> str:
    await wait_for(name)
    return name


async def several(first: bool, *children: Any) -> list[Any]:
    return [end.value if end.error is None else end.error for end in await fork(children, first)]


def test_children_end_in_the_order_of_the_outcomes():
    assert ["b", "c", "a"] == run(several(False, one("a"), one("b"), one("c")), "b", "c", "a")[0]


def test_it_parks_where_there_is_no_outcome_yet_with_all_that_is_waited_for():
    assert Parked(("a", "c")) == run(several(False, one("a"), one("b"), one("c")), "b")[0]


def test_what_a_later_turn_saw_is_served_only_when_all_wait():
    assert ["a", "b"] == run(several(False, one("a"), one("b")), "a", "|", "b")[0]


def test_the_first_to_end_cancels_the_others_and_what_they_forked():
    value, script = run(several(True, several(False, one("a"), one("b")), one("c")), "a", "c")
    assert ["c"] == value
    assert ["b"] == script.left


def test_a_wait_that_another_still_waits_for_is_not_abandoned():
    value, script = run(several(False, several(True, one("a"), one("b")), one("a")), "b", "a")
    assert [["b"], "a"] == value
    assert [] == script.left


def test_a_race_that_is_over_before_others_began_does_not_begin_them():
    async def never() -> None:
        raise AssertionError("it began")

    async def at_once() -> int:
        return 1

    assert [1] == run(several(True, several(False, one("a"), one("b")), at_once(), never()))[0]


def test_an_error_goes_to_the_main_fiber_after_its_children_cleaned_up():
    order: list[str] = []

    async def child(name: str) -> None:
        try:
            await wait_for(name)
        finally:
            await wait_for(f"clean {name}")
            order.append(name)

    async def main() -> str:
        try:
            await several(False, child("a"), several(False, child("b")))
        except ValueError as problem:
            order.append(str(problem))
        return await one("end")

    value, script = run(main(), ValueError("stop"), "clean b", "clean a", "end")
    assert "end" == value
    assert ["b", "a", "stop"] == order
    assert ["a", "b"] == script.left


def test_a_cancelled_fiber_that_takes_no_notice_ends_as_a_loser_all_the_same():
    async def deaf() -> str:
        try:
            await wait_for("a")
        except StepCancelled:
            await wait_for("b")
        return "deaf"

    assert ["c"] == run(several(True, deaf(), one("c")), "c", "b")[0]


def test_a_clean_up_that_raises_is_raised_where_the_race_was():
    async def torn() -> None:
        try:
            await wait_for("a")
        finally:
            raise ValueError("torn")

    with pytest.raises(ValueError, match="torn"):
        run(several(True, torn(), one("c")), "c")


def test_what_is_awaited_besides_is_refused_where_it_is_awaited():
    @types.coroutine
    def foreign() -> Generator[Any, Any, None]:
        yield "a socket"

    async def main() -> str:
        try:
            await foreign()
        except TypeError as problem:
            return str(problem)
        return ""

    assert "not 'a socket'" == run(main())[0]


def exits() -> None:
    raise SystemExit(3)


@pytest.mark.parametrize("where", ["main", "child", "clean-up"])
def test_what_would_end_the_process_ends_the_turn(where: str):
    async def child(leave: Callable[[], None]) -> None:
        try:
            await wait_for("a")
        finally:
            leave()

    async def main() -> None:
        if where == "main":
            exits()
        await several(True, child(exits), one("b"))

    with pytest.raises(AgentExited, match="SystemExit: 3"):
        run(main(), "b" if where == "clean-up" else "a")


def test_closing_closes_every_fiber_innermost_first():
    closed: list[str] = []

    async def held(name: str, inner: Any = None) -> None:
        try:
            await (several(True, *inner) if inner else wait_for(name))
        finally:
            closed.append(name)

    run(held("root", [held("middle", [held("leaf"), held("other")]), one("x")]))
    assert ["leaf", "other", "middle", "root"] == closed


def test_a_fork_of_nobody_is_over_at_once():
    assert [] == run(several(False))[0]
    assert End(0, 1) == End(0, 1, None)
