"""Upcasters: how an event written under an older schema becomes one of today (S-8.3).

An upcaster is a pure function from the fields of version n to the fields of version n + 1, over the tree of the event:
a dict of field names to plain values (None, bool, int, float, str, bytes, list, dict, Decimal, datetime, UUID, …).
It runs on every path that reads an event, before the class sees the fields.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import attrs

from ._shapes import Refused, shown
from .errors import RegistrationError

Fields: TypeAlias = dict[str, Any]
Upcaster: TypeAlias = Callable[[Fields], Fields]
UpcasterT = TypeVar("UpcasterT", bound=Callable[[dict[str, Any]], dict[str, Any]])
_MARK: Final = "__upcasts__"


@attrs.frozen
class Step:
    """One marked upcaster: from ``from_version`` of ``type`` to the next."""

    type: str
    from_version: int
    function: Upcaster

    @property
    def name(self) -> str:
        """Module and name of the function, for errors."""
        return f"{self.function.__module__}.{getattr(self.function, '__qualname__', self.function)}"


def upcasts(type: str, *, from_version: int) -> Callable[[UpcasterT], UpcasterT]:
    """Mark a pure function that turns the fields of ``type`` at ``from_version`` into those of the next version.

    The mark alone changes nothing: give the function to a registry, ``EventRegistry(Cls, upcasters=[function])``.
    Raises ``RegistrationError`` for a version that is no int of at least 1.
    """
    if isinstance(from_version, bool) or not isinstance(from_version, int) or from_version < 1:
        raise RegistrationError(f"The upcaster of {type!r} has from_version {from_version!r}; it must be an int of at least 1.")

    def mark(function: UpcasterT) -> UpcasterT:
        try:
            setattr(function, _MARK, (type, from_version))
        except (AttributeError, TypeError):
            raise RegistrationError(f"{function!r} cannot be marked as an upcaster; write a plain function (def).") from None
        return function

    return mark


def step_of(function: Upcaster) -> Step:
    """The mark of an upcaster; raises ``RegistrationError`` when there is none."""
    mark = getattr(function, _MARK, None)
    if mark is None:
        raise RegistrationError(f"{function!r} is no upcaster; put @upcasts('type.name', from_version=n) on it.")
    return Step(mark[0], mark[1], function)


def missing_steps(type: str, version: int, steps: Sequence[Step]) -> str:
    """What is wrong with the chain of a type at ``version``; empty when it reaches from 1 to there without a gap."""
    have = {step.from_version for step in steps}
    absent = sorted(set(range(1, version)) - have)
    if absent:
        count = ", ".join(map(str, absent))
        way_out = f"write @upcasts({type!r}, from_version={absent[0]}) and register it"
        return f"{type} is at version {version} but no upcaster leads on from version {count}; {way_out}"
    beyond = sorted(have - set(range(1, version)))
    if beyond:
        way_out = f"raise the class to version {beyond[-1] + 1} or remove the upcaster"
        return f"{type} is at version {version}, yet an upcaster leads on from version {beyond[0]}; {way_out}"
    return ""


def upcast(fields: Any, steps: Sequence[Step]) -> Any:
    """Run the chain; raises ``Refused`` naming the upcaster that failed."""
    for step in steps:
        if type(fields) is not dict:
            raise Refused(f"expected the fields as a map, got {shown(fields)}")
        try:
            fields = step.function(fields)
        except Exception as fault:
            raise Refused(f"the upcaster {step.name} from version {step.from_version} raised {type(fault).__name__}: {fault}") from fault
        if type(fields) is not dict:
            raise Refused(f"the upcaster {step.name} from version {step.from_version} must return a dict of fields, not {shown(fields)}")
    return fields
