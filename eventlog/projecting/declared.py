"""What a projection is: a name, a version, and the code that builds its view. Nothing here runs."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Protocol, TypeAlias

import attrs

from ..errors import InvalidName, RegistrationError
from ..events import StoredEvent
from ..log import View

_VIEW: Final = re.compile(r"(.+)@v([1-9][0-9]*)", re.DOTALL)


class Decoder(Protocol):
    """The part of a codec that a projection needs."""

    def decode_stored(self, event: StoredEvent) -> object: ...


Handler: TypeAlias = Callable[[View, StoredEvent, Any], None]
"""``handle(view, event, decoded)``; ``decoded`` is None when the projection runs without a codec."""


class OnError(enum.Enum):
    """What a poison event does to its projection."""

    STOP = "stop"
    """Everything before it is kept; then ``ProjectionFailed``. The next run meets the same event again."""
    PARK = "park"
    """It is parked with its error, together with the checkpoint that passes it, and the projection goes on."""


@attrs.frozen
class Projection:
    """A named view and the code that builds it.

    Each version has a view of its own, ``name@v1``; readers ask for ``name`` and see the version that is live. Raise the
    version when ``handle`` would build other rows from the same events. Raises ``InvalidName``.
    """

    #: What readers ask for. Anything printable without ``@``.
    name: str
    handle: Handler
    #: Event types it wants; empty: all of them.
    types: tuple[str, ...] = ()
    on_error: OnError = OnError.STOP
    version: int = 1

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or "@" in self.name or not self.name.isprintable():
            raise InvalidName(f"{self.name!r:.80} names no projection: printable text without '@' does, for example 'open-orders'.")
        if isinstance(self.version, bool) or not isinstance(self.version, int) or self.version < 1:
            raise InvalidName(f"The version of projection {self.name!r} must be a whole number from 1 on, not {self.version!r:.80}.")
        if isinstance(self.types, str):
            raise InvalidName(f"The types of projection {self.name!r} must be a tuple, not one text: types=({self.types!r},)")

    @property
    def view(self) -> str:
        """The name of this version's own view and checkpoint: ``open-orders@v2``."""
        return view_of(self.name, self.version)


class Projections:
    """The projections that some code declares, and the codec that decodes events for them.

    Two versions of one name may stand beside each other, as during a swap. Raises ``RegistrationError`` when one version is
    declared twice.
    """

    def __init__(self, projections: Iterable[Projection], codec: Decoder | None = None) -> None:
        self.codec = codec
        self._by_view: dict[str, Projection] = {}
        for each in projections:
            if not isinstance(each, Projection):
                raise RegistrationError(f"{each!r:.80} is no projection. Make one: Projection('name', handle)")
            if self._by_view.setdefault(each.view, each) is not each:
                raise RegistrationError(f"Two projections are declared as {each.view}. Give the newer one version={each.version + 1}.")

    def __iter__(self) -> Iterator[Projection]:
        return iter(self._by_view.values())

    def __len__(self) -> int:
        return len(self._by_view)

    def names(self) -> list[str]:
        """The names, each once, sorted."""
        return sorted({each.name for each in self})

    def find(self, name: str, version: int | None = None) -> Projection | None:
        """The projection of this version (the newest declared one unless given), or None."""
        found = [each for each in self if each.name == name and version in (None, each.version)]
        return max(found, key=lambda each: each.version, default=None)


def view_of(name: str, version: int) -> str:
    """The view of one version.

    >>> view_of("open-orders", 2)
    'open-orders@v2'
    """
    return f"{name}@v{version}"


def version_in(view: str) -> tuple[str, int] | None:
    """Name and version of a projection's view; None for what is none, as the effector's checkpoint.

    >>> version_in("open-orders@v2"), version_in("effector")
    (('open-orders', 2), None)
    """
    found = _VIEW.fullmatch(view)
    return (found[1], int(found[2])) if found else None
