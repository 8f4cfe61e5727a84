"""Appliers that change a state nobody else holds: which they are, and that nobody can tell."""

from __future__ import annotations

import functools
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intentlog.agents import ActivationContext, Aggregate, App, Complete, agent, applies
from intentlog.agents.owning import in_place
from intentlog.agents.reading_streams import Loaded, PlainFolder
from intentlog.agents.streams import Folder
from intentlog.eventlog import event
from intentlog.eventlog.events import Row


@event("owning.put", version=1)
class Put:
    amount: int


@event("owning.named", version=1)
class Named:
    name: str


@event("owning.kept", version=1)
class Kept:
    pass


@event("owning.reset", version=1)
class Reset:
    pass


@event("owning.skipped", version=1)
class Skipped:
    below: int


class Box(Aggregate):
    amount: int = 0
    names: tuple[str, ...] = ()
    earlier: tuple[int, ...] = ()

    @applies(Put)
    def _(self, put: Put) -> Box:
        return self.evolve(amount=self.amount + put.amount, earlier=(*self.earlier[-3:], self.amount))

    @applies(Named)
    def _(self, named: Named) -> Box:
        held = self.names
        return self.evolve(names=(*held, named.name))

    @applies(Kept)
    def _(self, kept: Kept) -> Box:
        twin = self.evolve(names=())
        return twin.evolve(earlier=(self.amount, len(self.names)))

    @applies(Reset)
    def _(self, reset: Reset) -> Box:
        return EMPTY

    @applies(Skipped)
    def _(self, skipped: Skipped) -> Box:
        if self.amount < skipped.below:
            return self
        return self.evolve(amount=0)


EMPTY = Box()
EVENTS = st.one_of(
    st.builds(Put, st.integers(-5, 5)), st.builds(Named, st.text("ab", max_size=2)), st.just(Kept()), st.just(Reset()), st.builds(Skipped, st.integers(-9, 9))
)


@agent("boxes", state=Box)
async def boxes(ctx: ActivationContext[Box]) -> Complete:
    return Complete()


APP = App([boxes])


def rows_of(events: list[object]) -> list[Row]:
    staged = [APP.codec.stage(each, event_id=number.to_bytes(16, "big")) for number, each in enumerate(events, 1)]
    return [(version, each.type, each.schema, each.data, each.event_id, 0) for version, each in enumerate(staged)]


def test_the_everyday_appliers_have_a_form_in_place() -> None:
    assert {kind.__name__ for kind, applier in Box.__appliers__.items() if in_place(applier, Box)} == {"Put", "Named", "Skipped"}


@given(st.lists(st.lists(EVENTS, max_size=8), max_size=6))
def test_a_fold_gives_what_applying_one_by_one_gives_and_leaves_the_states_before_it_alone(parts: list[list[object]]) -> None:
    folder, plain = Folder(APP.definitions["boxes"]), PlainFolder(APP.codec, Box)
    folded, loaded, expected = folder.empty("boxes-a"), Loaded(Box(), -1), Box()
    seen: list[tuple[Box, dict[str, Any]]] = [(EMPTY, dict(vars(Box())))]
    rows = rows_of([each for part in parts for each in part])
    for part in parts:
        now, rows = rows[: len(part)], rows[len(part) :]
        folder.fold(folded, now)
        loaded = plain.fold("boxes-a", loaded, now)
        for each in part:
            expected = expected.apply(each)
        assert folded.state == loaded.state == expected
        assert type(folded.state) is Box
        seen += [(folded.state, dict(vars(expected))), (loaded.state, dict(vars(expected)))]
        assert all(vars(state) == fields for state, fields in seen)


def _leaks(self: Box, put: Put) -> Box:
    KEPT.append(self)
    return self.evolve(amount=1)


def _wraps(self: Box, put: Put) -> Box:
    return max(self.evolve(amount=1), self, key=id)


def _reads_afterwards(self: Box, put: Put) -> Box:
    made = self.evolve(amount=1)
    return made if self.amount else self


def _tries(self: Box, put: Put) -> Box:
    try:
        return self.evolve(amount=1 // put.amount)
    except ZeroDivisionError:
        return self


def _finally(self: Box, put: Put) -> Box:
    try:
        return self.evolve(amount=1)
    finally:
        KEPT.append(self.amount)


def _closes(self: Box, put: Put) -> Box:
    KEPT.append(lambda: self.amount)
    return self.evolve(amount=1)


def _reflects(self: Box, put: Put) -> Box:
    KEPT.append(locals())
    return self.evolve(amount=1)


def _rebinds(self: Box, put: Put) -> Box:
    self = EMPTY
    return self.evolve(amount=1)


def _chooses_inside(self: Box, put: Put) -> Box:
    return self.evolve(amount=1 if self.amount else 2)


def _other_method(self: Box, put: Put) -> Box:
    return self.apply(put)


def _reads_no_field(self: Box, put: Put) -> Box:
    return self.evolve(amount=self.twice)  # type: ignore[attr-defined]


def _evolves_another(self: Box, put: Put) -> Box:
    EMPTY.evolve(amount=2)
    return self.evolve(amount=1)


def _nested(self: Box, put: Put) -> Box:
    return self.evolve(amount=self.evolve(amount=5).amount + self.amount)


def _loops(self: Box, put: Put) -> Box:
    for amount in range(put.amount):
        return self.evolve(amount=amount)
    return self


def _spreads(self: Box, *puts: Put) -> Box:
    return self.evolve(amount=len(puts))


KEPT: list[object] = []
COPYING = [
    _leaks, _wraps, _reads_afterwards, _tries, _finally, _closes, _reflects, _rebinds, _chooses_inside, _other_method, _reads_no_field,
    _evolves_another, _nested, _loops, _spreads, functools.partial(_leaks), len,
]  # fmt: skip


@pytest.mark.parametrize("applier", COPYING, ids=lambda each: getattr(each, "__name__", "partial"))
def test_whatever_does_more_with_its_state_keeps_copying(applier: Any) -> None:
    assert in_place(applier, Box) is None


def test_an_aggregate_with_ways_of_its_own_keeps_copying() -> None:
    def put(self: Any, put: Put) -> Any:
        return self.evolve(amount=put.amount)

    class Own(Aggregate):
        amount: int = 0

        def evolve(self, **changes: Any) -> Own:
            return super().evolve(**changes)

    class Checked(Aggregate):
        amount: int = attrs.field(default=0, validator=attrs.validators.ge(0))

    class Watched(Aggregate):
        amount: int = 0

        def __getattribute__(self, name: str) -> Any:
            return super().__getattribute__(name)

    class Plainly(Aggregate):
        amount: int = 0

    assert [in_place(put, kind) is None for kind in (Own, Checked, Watched, Plainly)] == [True, True, True, False]


def test_a_field_that_is_not_there_is_the_same_error_in_place() -> None:
    def misspelt(self: Box, put: Put) -> Box:
        return self.evolve(amuont=put.amount)

    here = in_place(misspelt, Box)
    assert here is not None
    with pytest.raises(TypeError) as copying:
        misspelt(Box(), Put(1))
    with pytest.raises(TypeError) as changing:
        here(Box(), Put(1))
    assert str(copying.value) == str(changing.value)


def test_what_a_state_has_worked_out_once_is_not_taken_over_by_the_next() -> None:
    class Sum(Aggregate):
        amounts: tuple[int, ...] = ()

        @functools.cached_property
        def total(self) -> int:
            return sum(self.amounts)

    first = Sum(amounts=(1, 2))
    assert (first.total, first.evolve(amounts=(1, 2, 3)).total) == (3, 6)
