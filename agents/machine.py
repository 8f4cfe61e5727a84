"""State machines: which events and commands each state of an aggregate allows, and where an event leads.

The table is looked at when an event is *staged*. Folding never looks at it: the appliers alone say what a recorded event
does to the state (S-8.1), so a history written under an older table still folds. A staged event whose applier leads
somewhere else than the table says is refused too, so that table and appliers cannot drift apart unseen.

Everything that can be wrong with a table is found when the class is defined.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import attrs

from .errors import CommandNotAllowed, DefinitionError, EventNotAllowed

Guard: TypeAlias = Callable[[Any, Any], bool]
State: TypeAlias = "str | enum.Enum"


@attrs.frozen
class When:
    """Leads to ``to`` if ``guard(state, event)`` is true. The guard must be pure; it stands in errors and drawings by its name."""

    guard: Guard
    to: State

    @property
    def name(self) -> str:
        """What the guard is called."""
        return getattr(self.guard, "__name__", type(self.guard).__name__)


Target: TypeAlias = "State | When"


@attrs.frozen
class Arrow:
    """One line of the drawing: in ``source``, ``event`` leads to ``target``, if the guard named ``guard`` (or empty) says so."""

    source: str
    event: str
    target: str
    guard: str = ""


def _states(given: Iterable[State]) -> tuple[State, ...]:
    return tuple(given)


@attrs.frozen(eq=False)
class StateMachine:
    """``machine = StateMachine(…)`` in the body of an aggregate.

    ``allows`` gives, for a state, the event classes it allows and where each leads: a state, a ``When``, or several
    ``When`` of which the first that holds counts. A state that allows nothing is final. ``commands`` gives, for a state, the
    command methods it allows; a command that stands nowhere in it is allowed in every state. States are strings or
    members of an Enum, as the field holds them.
    """

    states: tuple[State, ...] = attrs.field(converter=_states)
    allows: Mapping[State, Mapping[type, Target | tuple[Target, ...]]]
    #: The state before the first event: the field's default.
    initial: State = attrs.field(default=attrs.Factory(lambda self: self.states[0] if self.states else "", takes_self=True))
    #: Name of the field that holds the state.
    field: str = "status"
    commands: Mapping[State, Iterable[Callable[..., Any]]] = attrs.field(factory=dict)

    def ways(self, state: State, event_type: type) -> tuple[Target, ...]:
        """Where the table says that the event leads; empty when the state does not allow it."""
        found = self.allows.get(state, {}).get(event_type, ())
        return found if isinstance(found, tuple) else (found,)

    def of(self, aggregate: Any) -> State:
        """The state that an aggregate is in."""
        state: State = getattr(aggregate, self.field)
        return state

    def arrows(self) -> Iterator[Arrow]:
        """The table, line by line, in the order of ``states``."""
        for source in self.states:
            for event_type in self.allows.get(source, {}):
                for way in self.ways(source, event_type):
                    to, guard = (way.to, way.name) if isinstance(way, When) else (way, "")
                    yield Arrow(label(source), event_label(event_type), label(to), guard)

    def final(self) -> tuple[str, ...]:
        """States that nothing leads out of."""
        return tuple(label(state) for state in self.states if not self.allows.get(state))

    # ── while a turn runs ───────────────────────────────────────────────────────────────────────────────────────────

    def way(self, before: Any, event: object) -> State:
        """Where ``event`` leads from here; raises ``EventNotAllowed`` when the table has no way for it or its guards refuse it."""
        source, kind = self.of(before), type(event)
        ways = self.ways(source, kind)
        if not ways:
            allowed = ", ".join(event_label(each) for each in self.allows.get(source, {})) or "nothing: it is a final state"
            raise EventNotAllowed(f"{type(before).__name__} is {label(source)!r}: {event_label(kind)} is not allowed there (allowed: {allowed})")
        for each in ways:
            if not isinstance(each, When):
                return each
            if each.guard(before, event):
                return each.to
        guards = ", ".join(each.name for each in ways if isinstance(each, When))
        raise EventNotAllowed(f"{type(before).__name__} is {label(source)!r}: {event_label(kind)} is refused there by its guard {guards}: {event!r:.200}")

    def check_arrival(self, before: Any, event: object, to: State, after: Any) -> None:
        """Raise ``EventNotAllowed`` when the applier did not lead where the table says."""
        if self.of(after) != to:
            raise EventNotAllowed(
                f"{type(before).__name__} is {label(self.of(before))!r}: the table says that {event_label(type(event))} leads to {label(to)!r}, but its "
                f"applier leads to {label(self.of(after))!r}. Change one of the two."
            )

    def check_command(self, aggregate: Any, command: Callable[..., Any]) -> None:
        """Raise ``CommandNotAllowed`` when ``commands`` names ``command``, but not for the present state."""
        named = {label(state) for state, commands in self.commands.items() if command in commands}
        state = self.of(aggregate)
        if named and label(state) not in named:
            allowed = ", ".join(each.__name__ for each in self.commands.get(state, ())) or "none of those in the table"
            name = getattr(command, "__name__", str(command))
            raise CommandNotAllowed(f"{type(aggregate).__name__} is {label(state)!r}: {name}() is not allowed there (allowed: {allowed})")


def label(state: Any) -> str:
    """A state as text."""
    return str(state.value) if isinstance(state, enum.Enum) else str(state)


def event_label(event_type: Any) -> str:
    """An event class as text: its registered name."""
    return getattr(event_type, "__event_type__", getattr(event_type, "__name__", str(event_type)))


def check_machine(aggregate: type[Any], machine: StateMachine) -> None:
    """Raise ``DefinitionError`` for whatever is wrong with the table of ``aggregate``."""
    for fault in _faults(aggregate, machine):
        raise DefinitionError(f"aggregate {aggregate.__name__}, state machine: {fault}")


def _faults(aggregate: type[Any], machine: StateMachine) -> Iterator[str]:
    fields = {field.name: field for field in attrs.fields(aggregate)}
    if machine.field not in fields:
        yield f"there is no field {machine.field!r} to hold the state; it has: {', '.join(fields) or 'none'}"
    elif fields[machine.field].default != machine.initial:
        yield f"it begins as {machine.initial!r}, but the default of {machine.field!r} is {fields[machine.field].default!r}"
    yield from _undeclared(machine)
    for state, row in machine.allows.items():
        for kind in row:
            if not hasattr(kind, "__event_type__"):
                yield f"state {label(state)!r} allows {kind!r:.60}, which is no event class; decorate it with @event(name, version=n)"
            elif kind not in aggregate.__appliers__:
                yield f"state {label(state)!r} allows {event_label(kind)}, which has no applier; write one with @applies({kind.__name__})"
    allowed = {kind for row in machine.allows.values() for kind in row}
    for kind in aggregate.__appliers__:
        if kind not in allowed:
            yield f"{event_label(kind)} has an applier, but no state allows it"
    yield from _misplaced_commands(aggregate, machine)
    unreachable = [label(state) for state in machine.states if state not in _reachable(machine)]
    if unreachable:
        yield f"nothing leads from {label(machine.initial)!r} to {', '.join(map(repr, unreachable))}"


def _undeclared(machine: StateMachine) -> Iterator[str]:
    declared = f"is not among its states ({', '.join(map(label, machine.states)) or 'none'})"
    if machine.initial not in machine.states:
        yield f"the initial state {label(machine.initial)!r} {declared}"
    for state in (*machine.allows, *machine.commands):
        if state not in machine.states:
            yield f"the state {label(state)!r} {declared}"
    for arrow in machine.arrows():
        if arrow.target not in {label(state) for state in machine.states}:
            yield f"{arrow.event} leads from {arrow.source!r} to {arrow.target!r}, which {declared}"


def _misplaced_commands(aggregate: type[Any], machine: StateMachine) -> Iterator[str]:
    for state, commands in machine.commands.items():
        for command in commands:
            name = getattr(command, "__name__", "")
            if not callable(command) or getattr(aggregate, name, None) is not command:
                yield f"state {label(state)!r} allows the command {command!r:.60}, which is no method of the class"


def _reachable(machine: StateMachine) -> set[State]:
    found, edge = {machine.initial}, [machine.initial]
    while edge:
        state = edge.pop()
        for kind in machine.allows.get(state, {}):
            for way in machine.ways(state, kind):
                to = way.to if isinstance(way, When) else way
                if to not in found:
                    found.add(to)
                    edge.append(to)
    return found
