"""Names of events: the mark that ``@event`` puts on a class, and the registry a program chooses its classes with.

There is no global registry. A class carries its name and schema version; a program lists the classes it reads and
writes, and everything that could fail when an event is read fails here instead, when it is registered (S-1.5, S-8.3).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar, dataclass_transform

import attrs

from ._hooks import Shapes
from ._hooks_classes import EVENT_TYPE, EVENT_VERSION, to_float
from ._shapes import Refused, Shape, label_of
from .errors import RegistrationError
from .upcasting import Step, Upcaster, missing_steps, step_of

T = TypeVar("T")
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*\Z")
_FLOATS: Final = frozenset({"float", "float|None", "None|float", "Optional[float]", "typing.Optional[float]"})


def check_event_type(name: object) -> str:
    """``name`` itself when it is a valid event type name; raises ``RegistrationError``."""
    if not isinstance(name, str) or not _NAME.match(name):
        raise RegistrationError(f"Invalid event type name {name!r:.80}: it must match [a-z][a-z0-9_]*(\\.[a-z][a-z0-9_]*)*, for example 'refund.asked'.")
    return name


@dataclass_transform(frozen_default=True, field_specifiers=(attrs.field,))
def event(name: str, *, version: int = 1) -> Callable[[type[T]], type[T]]:
    """Make an annotated class an event: frozen, slotted, known in the log as ``name`` at schema ``version``.

    ``name`` matches ``[a-z][a-z0-9_]*(\\.[a-z][a-z0-9_]*)*``. Fields annotated ``float`` or ``float | None`` turn an int into
    a float, so that the value held is the one that comes back. A class that is frozen by attrs already is only marked.
    Raises ``RegistrationError`` for a bad name or version.

    >>> @event("refund.asked")
    ... class RefundAsked:
    ...     order_id: str
    ...     cents: int
    >>> RefundAsked("o-1", 4200)
    RefundAsked(order_id='o-1', cents=4200)
    """
    check_event_type(name)
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise RegistrationError(f"Invalid version {version!r:.80} of event type {name}: it must be an int of at least 1.")

    def mark(cls: type[T]) -> type[T]:
        if not isinstance(cls, type):
            raise RegistrationError(f"@event({name!r}) stands on {cls!r:.80}; it must stand on a class.")
        if "__attrs_attrs__" not in cls.__dict__:
            cls = attrs.define(cls, frozen=True, slots=True, field_transformer=_with_floats)
        elif getattr(cls.__setattr__, "__name__", "") != "_frozen_setattrs":
            raise RegistrationError(f"{label_of(cls)} is an attrs class that can change; events cannot. Use @attrs.frozen, or leave the attrs decorator out.")
        setattr(cls, EVENT_TYPE, name)
        setattr(cls, EVENT_VERSION, version)
        return cls

    return mark


def _with_floats(_: type, fields: list[attrs.Attribute[Any]]) -> list[attrs.Attribute[Any]]:
    return [field.evolve(converter=to_float) if field.converter is None and _is_float(field.type) else field for field in fields]


def _is_float(kind: Any) -> bool:
    if isinstance(kind, str):
        return kind.replace(" ", "") in _FLOATS
    return kind is float or kind == float | None


def event_name(cls: type) -> tuple[str, int]:
    """``(type, version)`` from the mark of an event class; raises ``RegistrationError`` when it has none of its own."""
    marks = getattr(cls, "__dict__", {})
    if EVENT_TYPE not in marks:
        shown = label_of(cls) if isinstance(cls, type) else f"{cls!r:.80}"
        raise RegistrationError(f"{shown} has no event type name; put @event('some.name', version=1) on the class.")
    return marks[EVENT_TYPE], marks[EVENT_VERSION]


@attrs.frozen(eq=False)
class Entry:
    """One registered class, compiled."""

    name: str
    version: int
    cls: type
    shape: Shape
    #: Upcasters in order, from version 1 on; complete once the registry is frozen.
    steps: tuple[Step, ...] = ()


class EventRegistry:
    """The event classes one program knows, by name. Not thread-safe until it is frozen.

    ``base``: what this registry knows now, upcasters too, is known from the beginning, and not compiled once more.
    """

    def __init__(self, *classes: type, upcasters: Iterable[Upcaster] = (), base: EventRegistry | None = None) -> None:
        self.shapes: Shapes = Shapes(base.shapes if base is not None else None)
        self._entries: dict[str, Entry] = dict(base._entries) if base is not None else {}
        self._steps: dict[tuple[str, int], Step] = dict(base._steps) if base is not None else {}
        self._frozen = False
        self.add(*classes)
        for function in upcasters:
            self.add_upcaster(function)

    def add(self, *classes: type) -> None:
        """Register classes, compiling how each is written and read.

        The same class again changes nothing; one reloaded under the same module and name takes the old one's place.
        Raises ``RegistrationError`` naming class and field for a missing or taken name, and a type that is not supported.
        """
        for cls in classes:
            name, version = event_name(cls)
            held = self._entries.get(name)
            if held is not None and held.cls is cls:
                continue
            if held is not None and (held.cls.__module__, held.cls.__qualname__) != (cls.__module__, cls.__qualname__):
                raise RegistrationError(f"The event type name {name!r} is taken by {_place(held.cls)}; {_place(cls)} needs another name.")
            self._check_open(_place(cls))
            try:
                shape = self.shapes.of(cls)
            except Refused as fault:
                raise RegistrationError(f"{_place(cls)}{fault.path}: {fault.reason}.") from fault
            self._entries[name] = Entry(name, version, cls, shape)

    def add_upcaster(self, function: Upcaster) -> None:
        """Register a function marked with ``@upcasts``; raises ``RegistrationError`` when its step is taken by another."""
        step = step_of(function)
        held = self._steps.get((step.type, step.from_version))
        if held is not None and held.function is function:
            return
        if held is not None and held.name != step.name:
            raise RegistrationError(f"{step.type} from version {step.from_version} is upcast by {held.name} already; {step.name} cannot be a second way.")
        self._check_open(step.name)
        self._steps[step.type, step.from_version] = step

    def freeze(self) -> EventRegistry:
        """Check that every chain of upcasters is whole, and take no more classes; the registry itself.

        Raises ``RegistrationError`` for a gap, an upcaster beyond its class, and one of an unknown type. Idempotent.
        """
        if self._frozen:
            return self
        strangers = sorted({name for name, _ in self._steps} - self._entries.keys())
        if strangers:
            raise RegistrationError(f"No class is registered for {', '.join(strangers)}, yet there are upcasters for it; add the class or leave them out.")
        for entry in self._entries.values():
            steps = tuple(step for _, step in sorted((key[1], step) for key, step in self._steps.items() if key[0] == entry.name))
            fault = missing_steps(entry.name, entry.version, steps)
            if fault:
                raise RegistrationError(f"{_place(entry.cls)}: {fault}.")
            self._entries[entry.name] = attrs.evolve(entry, steps=steps)
        self._frozen = True
        return self

    def get(self, name: str) -> Entry | None:
        """The entry under a name, or ``None``."""
        return self._entries.get(name)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def __contains__(self, cls: object) -> bool:
        return any(entry.cls is cls for entry in self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def _check_open(self, what: str) -> None:
        if self._frozen:
            raise RegistrationError(f"The registry is in use and takes no more: {what} came too late. Make a new registry, EventRegistry(…), with it.")


def _place(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
