"""Whether a log shows everything that is committed in it, asked once by whoever gives an answer that would look whole."""

from __future__ import annotations

import time
from typing import Final, Protocol, runtime_checkable

from .log import EventLog

_OLD: Final = 1.0
_AGAIN: Final = 0.25


class Holder(Protocol):
    """Who is in the way of a tail; as text it is a sentence that says what helps."""

    @property
    def transaction(self) -> int: ...
    @property
    def age(self) -> float | None: ...


@runtime_checkable
class Holdable(Protocol):
    """A log whose tail may stop below events that are committed."""

    def horizon(self) -> Holder | None:
        """Who is in the way now; ``None`` while every committed event can be shown."""
        ...


def held_back(log: EventLog) -> str:
    """Why not everything that is committed in ``log`` can be shown now, and who is in the way; empty when all can be.

    An append that is being made at this moment is in the way of others too, and gone before anybody could read of it: a
    young transaction counts when it is still there a quarter of a second later.
    """
    if not isinstance(log, Holdable) or (held := log.horizon()) is None:
        return ""
    if held.age is None or held.age < _OLD:
        time.sleep(_AGAIN)
        again = log.horizon()
        if again is None or again.transaction != held.transaction:
            return ""
        held = again
    return str(held)
