from __future__ import annotations

import re

import attrs
import pytest

from intentlog.agents import Aggregate, applies
from intentlog.agents.aggregate import check_aggregate
from intentlog.agents.errors import DefinitionError
from tests.agents.world import Asked, Paid


class Account(Aggregate):
    orders: tuple[str, ...] = ()
    total: int = 0

    @applies(Asked)
    def _(self, e: Asked) -> Account:
        return self.evolve(orders=(*self.orders, e.order), total=self.total + e.cents)

    @applies(Paid)
    def _(self, e: Paid) -> Account:
        return self


def test_state_is_the_fold_of_events_and_each_step_is_a_new_value():
    empty = Account()
    one = empty.apply(Asked("o-1", 3))
    assert ((), ("o-1",), 3) == (empty.orders, one.orders, one.total)
    assert Account(orders=("o-1",), total=3) == one


def test_an_event_nobody_listens_to_changes_nothing():
    state = Account()
    assert state.apply(object()) is state


def test_state_cannot_be_changed_in_place():
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        Account().total = 1  # type: ignore[misc]


def test_a_subclass_listens_to_what_its_base_listens_to_and_may_answer_otherwise():
    class Counting(Account):
        paid: int = 0

        @applies(Paid)
        def _paid(self, e: Paid) -> Counting:
            return self.evolve(paid=self.paid + 1)

    state = Counting().apply(Asked("o", 1)).apply(Paid("r"))
    assert (("o",), 1) == (state.orders, state.paid)


def test_a_field_without_a_default_is_refused():
    with pytest.raises(DefinitionError, match="total need a default"):

        class Bad(Aggregate):
            total: int


def test_two_appliers_for_one_event_are_refused():
    with pytest.raises(DefinitionError, match="Asked has two appliers"):

        class Bad(Aggregate):
            @applies(Asked)
            def one(self, e: Asked) -> Bad:
                return self

            @applies(Asked)
            def other(self, e: Asked) -> Bad:
                return self


def test_an_applier_of_something_that_is_no_event_is_refused():
    with pytest.raises(DefinitionError, match="not an event class"):
        applies(int)


def test_an_applier_that_forgets_to_return_the_state_is_told_so():
    class Bad(Aggregate):
        @applies(Asked)
        def _(self, e: Asked) -> None: ...

    with pytest.raises(DefinitionError, match="the applier of Asked in Bad returned None"):
        Bad().apply(Asked("o"))


class Unrecordable(Aggregate):
    pattern: re.Pattern[str] | None = None


@pytest.mark.parametrize("state", [Unrecordable, int, Asked, "Account"], ids=str)
def test_a_state_that_no_snapshot_could_hold_is_refused(state):
    with pytest.raises(DefinitionError):
        check_aggregate(state)
