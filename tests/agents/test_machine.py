"""State machines: what a state allows is decided when an event is staged, and a wrong table when the class is defined."""

from __future__ import annotations

import enum
from datetime import timedelta
from typing import Any

import pytest

from intentlog.agents import Aggregate, applies
from intentlog.agents.errors import CommandNotAllowed, DefinitionError, EventNotAllowed
from intentlog.agents.machine import Arrow, StateMachine, When
from intentlog.eventlog.registry import event
from intentlog.replay import replay_all
from tests.agents.world import Ctx, World


@event("parcel.packed", version=1)
class Packed:
    grams: int


@event("parcel.sent", version=1)
class Sent:
    by: str


@event("parcel.lost", version=1)
class Lost:
    where: str


class Status(enum.Enum):
    NEW = "new"
    PACKED = "packed"
    SENT = "sent"


def by_air(parcel: Any, sent: Sent) -> bool:
    return sent.by == "air" and parcel.grams < 100


class Parcel(Aggregate, category="parcels"):
    status: str = "new"
    grams: int = 0

    @applies(Packed)
    def _(self, e: Packed) -> Parcel:
        return self.evolve(status="packed", grams=e.grams)

    @applies(Sent)
    def _(self, e: Sent) -> Parcel:
        return self.evolve(status="sent")

    def pack(self, grams: int) -> Packed:
        return Packed(grams)

    def dispatch(self, by: str) -> list[Sent]:
        return [Sent(by)]

    machine = StateMachine(
        states=["new", "packed", "sent"],
        allows={"new": {Packed: "packed"}, "packed": {Packed: "packed", Sent: When(by_air, "sent")}},
        commands={"new": [pack], "packed": [pack, dispatch]},
    )


def parcel(**body: Any) -> type[Aggregate]:
    """A parcel whose table is given."""
    table = StateMachine(**body)

    class Given(Aggregate):
        status: str = "new"

        @applies(Packed)
        def _(self, e: Packed) -> Given:
            return self.evolve(status="packed")

        machine = table

    return Given


def test_an_event_that_the_state_allows_leads_on():
    assert Parcel(status="packed", grams=9) == Parcel().admit(Packed(9))
    assert "sent" == Parcel(status="packed", grams=9).admit(Sent("air")).status


def test_an_event_that_the_state_does_not_allow_names_state_event_and_what_is():
    with pytest.raises(EventNotAllowed, match=r"Parcel is 'new': parcel.sent is not allowed there \(allowed: parcel.packed\)"):
        Parcel().admit(Sent("air"))
    with pytest.raises(EventNotAllowed, match="allowed: nothing: it is a final state"):
        Parcel(status="sent").admit(Packed(1))


def test_a_guard_that_says_no_is_named():
    with pytest.raises(EventNotAllowed, match="refused there by its guard by_air"):
        Parcel(status="packed", grams=500).admit(Sent("air"))


def test_of_several_guards_the_first_that_holds_counts():
    table = StateMachine(states=["new", "light", "heavy"], allows={"new": {Packed: (When(lambda s, e: e.grams < 10, "light"), "heavy")}})
    assert ("light", "heavy") == (table.way(Parcel(), Packed(1)), table.way(Parcel(), Packed(99)))


def test_an_applier_that_leads_elsewhere_than_the_table_is_found_when_the_event_is_staged():
    made = parcel(states=["new", "packed", "gone"], allows={"new": {Packed: "gone"}, "gone": {Packed: "packed"}})
    with pytest.raises(EventNotAllowed, match="leads to 'gone', but its applier leads to 'packed'"):
        made().admit(Packed(1))


def test_folding_does_not_look_at_the_table():
    assert "packed" == Parcel(status="sent").apply(Packed(1)).status


def test_states_may_be_members_of_an_enum():
    class Boxed(Aggregate):
        status: Status = Status.NEW

        @applies(Packed)
        def _(self, e: Packed) -> Boxed:
            return self.evolve(status=Status.PACKED)

        @applies(Sent)
        def _(self, e: Sent) -> Boxed:
            return self.evolve(status=Status.SENT)

        machine = StateMachine(states=Status, allows={Status.NEW: {Packed: Status.PACKED}, Status.PACKED: {Sent: Status.SENT}})

    assert Boxed(status=Status.SENT) == Boxed().admit(Packed(1)).admit(Sent("sea"))
    with pytest.raises(EventNotAllowed, match="Boxed is 'new'"):
        Boxed().admit(Sent("sea"))
    assert [Arrow("new", "parcel.packed", "packed"), Arrow("packed", "parcel.sent", "sent")] == list(Boxed.machine.arrows())


def test_a_subclass_keeps_the_table():
    class Tagged(Parcel):
        tag: str = ""

    with pytest.raises(EventNotAllowed, match="Tagged is 'new'"):
        Tagged().admit(Sent("air"))


@pytest.mark.parametrize(
    "table, says",
    [
        ({"states": [], "allows": {}}, "the default of 'status' is 'new'"),
        ({"states": ["new", "packed"], "allows": {"new": {Packed: "packd"}}}, "to 'packd', which is not among its states"),
        ({"states": ["new"], "allows": {"old": {Packed: "new"}, "new": {Packed: "new"}}}, "the state 'old' is not among its states"),
        ({"states": ["new", "packed", "odd"], "allows": {"new": {Packed: "packed"}}}, "nothing leads from 'new' to 'odd'"),
        ({"states": ["new", "packed"], "allows": {"new": {Packed: "packed", Sent: "packed"}}}, "parcel.sent, which has no applier"),
        ({"states": ["new", "packed"], "allows": {"new": {Packed: "packed", str: "packed"}}}, "no event class"),
        ({"states": ["new"], "allows": {}}, "parcel.packed has an applier, but no state allows it"),
        ({"states": ["packed", "new"], "allows": {"packed": {Packed: "new"}}}, "begins as 'packed', but the default of 'status' is 'new'"),
        ({"states": ["new", "packed"], "allows": {"new": {Packed: "packed"}}, "field": "mood"}, "no field 'mood'"),
        ({"states": ["new", "packed"], "allows": {"new": {Packed: "packed"}}, "commands": {"new": [print]}}, "no method of the class"),
    ],
)
def test_a_wrong_table_is_found_when_the_class_is_defined(table, says):
    with pytest.raises(DefinitionError, match=r"aggregate Given, state machine: .*") as refused:
        parcel(**table)
    assert says in str(refused.value)


def test_two_tables_in_one_class_are_refused():
    table = StateMachine(states=["new"], allows={})
    with pytest.raises(DefinitionError, match="2 state machines"):

        class Two(Aggregate):
            status: str = "new"
            one, two = table, StateMachine(states=["new"], allows={})


# ── in a turn ──


def test_a_refused_event_stages_nothing_and_can_be_handled():
    async def code(ctx: Ctx) -> str:
        try:
            ctx.emit(Sent("air"))
        except EventNotAllowed as refused:
            return str(refused)
        return ""

    with World(code, events=(Packed, Sent, Lost), state=Parcel) as world:
        world.send()
        world.run()
        assert ["Parcel is 'new': parcel.sent is not allowed there (allowed: parcel.packed)"] == world.outputs()
        assert "parcel.sent" not in world.types()


def test_commands_emit_and_are_refused_where_the_table_does_not_name_them():
    async def code(ctx: Ctx) -> list[object]:
        seen: list[object] = [len(ctx.do(Parcel.pack, 50))]
        ctx.do(Parcel.dispatch, by="air")
        try:
            ctx.do(Parcel.pack, 1)
        except CommandNotAllowed as refused:
            seen.append(str(refused))
        return [*seen, ctx.state.status]

    with World(code, events=(Packed, Sent), state=Parcel) as world:
        world.send()
        world.run()
        assert [[1, "Parcel is 'sent': pack() is not allowed there (allowed: none of those in the table)", "sent"]] == world.outputs()
        assert ["parcel.packed", "parcel.sent"] == [kind for kind in world.types() if kind.startswith("parcel")]
        assert ["same"] == [each.verdict.value for each in replay_all(world.log, world.app)]


def test_a_suspended_run_goes_on_after_its_table_has_changed():
    def waiting(state: Any) -> Any:
        async def code(ctx: Ctx) -> str:
            ctx.emit(Packed(1))
            await ctx.sleep(timedelta(seconds=60))
            return str(ctx.state.status)

        return code

    class Stricter(Aggregate):
        status: str = "new"

        @applies(Packed)
        def _(self, e: Packed) -> Stricter:
            return self.evolve(status="packed")

        machine = StateMachine(states=["new", "packed"], allows={"new": {Packed: When(lambda s, e: e.grams > 5, "packed")}})

    with World(waiting(Parcel), events=(Packed, Sent), state=Parcel) as world:
        world.send()
        world.run()
        world.deploy(waiting(Stricter), events=(Packed, Sent), state=Stricter)
        world.later(61)
        assert (["packed"], []) == (world.outputs(), world.failures())


@pytest.mark.parametrize("command, says", [(len, "is no command of Parcel"), (lambda state: 7, "is no command of Parcel")])
def test_what_is_no_command_is_refused(command, says):
    async def code(ctx: Ctx) -> None:
        ctx.do(command)

    with World(code, events=(Packed, Sent), state=Parcel) as world:
        world.send()
        world.run()
        assert says in world.failures()[0].message


def test_all_events_of_a_command_are_staged_or_none():
    class Hasty(Parcel):
        def rush(self) -> list[object]:
            return [Packed(1), Sent("sea")]

        def nothing(self) -> None:
            """Decides that nothing is to be done."""

        def wrong(self) -> int:
            return 7

    async def code(ctx: Ctx) -> list[object]:
        found: list[object] = [list(ctx.do(Hasty.nothing))]
        for command in (Hasty.rush, Hasty.wrong):
            try:
                ctx.do(command)
            except (EventNotAllowed, DefinitionError) as refused:
                found.append(type(refused).__name__)
        return found

    with World(code, events=(Packed, Sent), state=Hasty) as world:
        world.send()
        world.run()
        assert [[[], "EventNotAllowed", "DefinitionError"]] == world.outputs()
        assert "parcel.packed" not in world.types()
