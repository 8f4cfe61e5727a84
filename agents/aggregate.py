"""Aggregates: state as the fold of domain events, in Python.

``class Account(Aggregate)`` becomes a frozen attrs class whose fields all have defaults (the state of a key nothing
has happened to), with one pure applier for each event type it listens to. Its *commands* are ordinary methods that return, or
yield, the events they decide on; ``ctx.do(Account.withdraw, 5)`` runs one and stages what it gave.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Final, Self, TypeVar, dataclass_transform

import attrs

from ..eventlog.codec import Codec
from ..eventlog.errors import InvalidName, LogError
from ..eventlog.names import check_agent
from ..eventlog.registry import EventRegistry
from .errors import DefinitionError
from .machine import StateMachine, check_machine

A = TypeVar("A", bound=Callable[..., Any])
_MARK: Final = "__applies__"


def applies(*event_types: type) -> Callable[[A], A]:
    """Mark a method ``(self, event) -> Self`` as the applier of these event classes. It must be pure."""
    for event_type in event_types:
        if not hasattr(event_type, "__event_type__"):
            raise DefinitionError(f"@applies({event_type!r}): not an event class; decorate it with @event(name, version=n)")

    def mark(method: A) -> A:
        setattr(method, _MARK, event_types)
        return method

    return mark


class _Namespace(dict[str, Any]):
    """A class body in which several appliers may all be called ``_``."""

    def __init__(self) -> None:
        super().__init__()
        self.appliers: dict[type, Callable[[Any, Any], Any]] = {}

    def __setitem__(self, name: str, value: Any) -> None:
        for event_type in getattr(value, _MARK, ()):
            if event_type in self.appliers:
                raise DefinitionError(f"{event_type.__name__} has two appliers in one class")
            self.appliers[event_type] = value
        super().__setitem__(name, value)


def _unshared(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """A class body in which every key gets containers of its own: one made for the class would be shared by all states."""
    body = dict(namespace)
    for name in body.get("__annotations__", ()):
        if isinstance(body.get(name), list | dict | set | bytearray):
            body[name] = attrs.field(factory=functools.partial(copy.deepcopy, body[name]))
    return body


def _keeps_values(made: type) -> bool:
    """Whether states keep something beside their fields, which a copy of the whole state would keep too."""
    return any(isinstance(each, functools.cached_property) for base in made.__mro__ for each in vars(base).values())


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(attrs.field,))
class _AggregateMeta(type):
    @classmethod
    def __prepare__(cls, name: str, bases: tuple[type, ...], /, **kwargs: Any) -> _Namespace:
        return _Namespace()

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: Any, *, category: str = "", **kwargs: Any) -> Any:
        made: Any = super().__new__(cls, name, bases, _unshared(namespace), **kwargs)
        if not isinstance(namespace, _Namespace):  # attrs rebuilds a slotted class from a plain dict
            return made
        inherited = {k: v for base in reversed(bases) for k, v in getattr(base, "__appliers__", {}).items()}
        made.__appliers__ = inherited | namespace.appliers
        if bases:
            made = attrs.define(frozen=True, slots=False, kw_only=True)(made)
            plain = all(f.init and f.converter is None and f.validator is None and f.alias == f.name for f in attrs.fields(made))
            hooked = any(hasattr(made, hook) for hook in ("__attrs_pre_init__", "__attrs_post_init__", "__attrs_init__"))
            made.__evolves_plainly__ = plain and not hooked and not _keeps_values(made)
            missing = [field.name for field in attrs.fields(made) if field.default is attrs.NOTHING]
            if missing:
                raise DefinitionError(f"aggregate {name}: {', '.join(missing)} need a default: the state before the first event")
            if category:
                made.__category__ = _checked_category(name, category)
            machines = [held for held in vars(made).values() if isinstance(held, StateMachine)]
            if len(machines) > 1:
                raise DefinitionError(f"aggregate {name} has {len(machines)} state machines; it can be in one state at a time")
            if machines:
                made.__machine__ = machines[0]
            if made.__machine__ is not None:
                check_machine(made, made.__machine__)
        return made

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: Any, **kwargs: Any) -> None:
        super().__init__(name, bases, dict(namespace))


def _checked_category(name: str, category: str) -> str:
    try:
        return check_agent(category)
    except InvalidName as problem:
        raise DefinitionError(f"aggregate {name}: {problem}") from None


class Aggregate(metaclass=_AggregateMeta):
    """Base class; a subclass's annotated fields are its state.

    ``class Account(Aggregate, category="accounts")`` says where its streams stand when others load it (``ctx.load``).
    """

    __appliers__: ClassVar[dict[type, Callable[[Any, Any], Any]]] = {}
    __category__: ClassVar[str] = ""
    __machine__: ClassVar[StateMachine | None] = None
    #: No field has a converter, a validator or a hook of its own, so a copy needs no call of ``__init__``.
    __evolves_plainly__: ClassVar[bool] = False

    def evolve(self, **changes: Any) -> Self:
        """A copy with these fields changed."""
        if self.__evolves_plainly__:
            twin = object.__new__(self.__class__)
            held = twin.__dict__
            held.update(self.__dict__)
            known = len(held)
            held.update(changes)
            if len(held) == known:
                return twin
        return attrs.evolve(self, **changes)  # type: ignore[misc]

    def evolve_in_place(self, **changes: Any) -> Self:
        """``evolve`` for a state that only the caller holds (see ``owning``). After an error the state is of no use."""
        held = self.__dict__
        known = len(held)
        held.update(changes)
        return self if len(held) == known else attrs.evolve(self, **changes)  # type: ignore[misc]

    def apply(self, event: object) -> Self:
        """The state after ``event``; the same state when no applier listens to it."""
        applier = self.__appliers__.get(type(event))
        if applier is None:
            return self
        state = applier(self, event)
        if not isinstance(state, type(self)):
            raise DefinitionError(f"the applier of {type(event).__name__} in {type(self).__name__} returned {state!r:.60}; it must return the new state")
        return state

    def admit(self, event: object) -> Self:
        """``apply`` for an event that is about to be staged: raises ``EventNotAllowed`` when the state machine has no way for it."""
        machine = self.__machine__
        if machine is None:
            return self.apply(event)
        to = machine.way(self, event)
        after = self.apply(event)
        machine.check_arrival(self, event, to, after)
        return after


def events_of_command(state: Any, command: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], *, checked: bool) -> tuple[object, ...]:
    """The events that ``command(state, …)`` decides on: one, several, or none. ``checked``: the state must allow it.

    Raises ``CommandNotAllowed``, ``DefinitionError`` when there is no such command, and whatever the command raises.
    """
    name = getattr(command, "__name__", "")
    if state is None or getattr(type(state), name, None) is not command:
        owner = "an agent without state" if state is None else type(state).__name__
        raise DefinitionError(f"{command!r:.80} is no command of {owner}: name a method of its class, for example ctx.do(Account.withdraw, …)")
    if checked and type(state).__machine__ is not None:
        type(state).__machine__.check_command(state, command)
    given = command(state, *args, **kwargs)
    if given is None:
        return ()
    if hasattr(type(given), "__event_type__"):
        return (given,)
    if isinstance(given, Iterable) and not isinstance(given, str | bytes):
        return tuple(given)
    raise DefinitionError(f"the command {type(state).__name__}.{name} returned {given!r:.60}; it must return or yield events")


def check_aggregate(state: type[Any]) -> None:
    """Raise ``DefinitionError`` unless ``state`` is an aggregate whose fields the codec can hold."""
    if not (isinstance(state, type) and issubclass(state, Aggregate)):
        raise DefinitionError(f"state={state!r} is not an Aggregate subclass")
    try:
        Codec(EventRegistry()).check_type(state)
    except LogError as problem:
        raise DefinitionError(f"aggregate {state.__name__}: {problem}") from problem
