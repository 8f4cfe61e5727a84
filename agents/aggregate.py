"""Aggregates: state as the fold of domain events, in Python.

``class Account(Aggregate)`` becomes a frozen attrs class whose fields all have defaults (the state of a key nothing
has happened to), with one pure applier for each event type it listens to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final, Self, TypeVar, dataclass_transform

import attrs

from ..eventlog.codec import Codec
from ..eventlog.errors import LogError
from ..eventlog.registry import EventRegistry
from .errors import DefinitionError

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


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(attrs.field,))
class _AggregateMeta(type):
    @classmethod
    def __prepare__(cls, name: str, bases: tuple[type, ...], /, **kwargs: Any) -> _Namespace:
        return _Namespace()

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: Any, **kwargs: Any) -> Any:
        made: Any = super().__new__(cls, name, bases, dict(namespace), **kwargs)
        if not isinstance(namespace, _Namespace):  # attrs rebuilds a slotted class from a plain dict
            return made
        inherited = {k: v for base in reversed(bases) for k, v in getattr(base, "__appliers__", {}).items()}
        made.__appliers__ = inherited | namespace.appliers
        if bases:
            made = attrs.define(frozen=True, slots=False, kw_only=True)(made)
            plain = all(f.init and f.converter is None and f.validator is None and f.alias == f.name for f in attrs.fields(made))
            made.__evolves_plainly__ = plain and not any(hasattr(made, hook) for hook in ("__attrs_pre_init__", "__attrs_post_init__", "__attrs_init__"))
            missing = [field.name for field in attrs.fields(made) if field.default is attrs.NOTHING]
            if missing:
                raise DefinitionError(f"aggregate {name}: {', '.join(missing)} need a default: the state before the first event")
        return made


class Aggregate(metaclass=_AggregateMeta):
    """Base class; a subclass's annotated fields are its state."""

    __appliers__: ClassVar[dict[type, Callable[[Any, Any], Any]]] = {}
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

    def apply(self, event: object) -> Self:
        """The state after ``event``; the same state when no applier listens to it."""
        applier = self.__appliers__.get(type(event))
        if applier is None:
            return self
        state = applier(self, event)
        if not isinstance(state, type(self)):
            raise DefinitionError(f"the applier of {type(event).__name__} in {type(self).__name__} returned {state!r:.60}; it must return the new state")
        return state


def check_aggregate(state: type[Any]) -> None:
    """Raise ``DefinitionError`` unless ``state`` is an aggregate whose fields the codec can hold."""
    if not (isinstance(state, type) and issubclass(state, Aggregate)):
        raise DefinitionError(f"state={state!r} is not an Aggregate subclass")
    try:
        Codec(EventRegistry()).check_type(state)
    except LogError as problem:
        raise DefinitionError(f"aggregate {state.__name__}: {problem}") from problem
