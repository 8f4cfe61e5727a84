"""What the codec knows about one type: how a value of it goes into a tree, comes back, and is told from others.

A *tree* is what MessagePack holds once its extension types are read: None, bool, int, float, str, bytes, list, dict
with str keys, and the values of ``wire``. Only the vocabulary lives here; each ``_hooks_*`` module fills it in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias

import attrs

MAX_DEPTH: Final = 100
"""Levels of nesting inside ``Any`` and inside a type that contains itself; what is deeper is refused."""


class Refused(Exception):
    """A value or a type that does not fit, and the path from the root to it (``.lines[2].cents``).

    Internal: the doors of the room turn it into ``Unencodable``, ``Undecodable`` or ``RegistrationError``.
    """

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path

    def inside(self, step: str) -> Refused:
        """The same refusal seen from one level further out."""
        return Refused(self.reason, step + self.path)


Encode: TypeAlias = Callable[[Any], Any]


class Decode(Protocol):
    """From a tree to a value. The second argument is the type, which cattrs hands over and nobody needs."""

    def __call__(self, tree: Any, _: Any = None, /) -> Any: ...


@attrs.frozen(eq=False)
class Shape:
    """One supported type, compiled."""

    #: The type's name in an error.
    label: str
    #: ``encoder(where)`` makes a hook whose refusals begin with the path ``where``.
    encoder: Callable[[str], Encode]
    decode: Decode
    #: Exact types of the values; a union is encoded by them.
    python: frozenset[type]
    #: Exact types of the trees; a union is decoded by them, so two members must not share one.
    wire: frozenset[type]
    #: Tree types that are also understood when no other member of a union claims them.
    lenient: frozenset[type] = frozenset()
    #: msgspec reads it straight from the bytes, with the same result.
    native: bool = False
    hashable: bool = True
    #: May be a dict's key.
    key: bool = False
    #: The attrs class, when it is one, and the tag that tells it from others.
    cls: type | None = None
    tag: str = ""


def located(hook: Encode) -> Callable[[str], Encode]:
    """The ``encoder`` of a shape whose hook does not build the path in by itself."""

    def encoder(where: str) -> Encode:
        if not where:
            return hook

        def encode(value: Any) -> Any:
            try:
                return hook(value)
            except Refused as fault:
                raise fault.inside(where) from None

        return encode

    return encoder


def label_of(kind: Any) -> str:
    """How an error calls a type."""
    if isinstance(kind, type) and not getattr(kind, "__args__", None):
        return kind.__qualname__.rpartition("<locals>.")[2]
    return repr(kind).replace("typing.", "")


def shown(value: Any) -> str:
    """A value for an error message, never long."""
    try:
        text = repr(value[:80]) if type(value) in (str, bytes, bytearray) else repr(value)
    except (ValueError, RecursionError):  # an int of more than 4300 digits, or a nest too deep to show
        return f"a {type(value).__name__}"
    return text if len(text) <= 80 else text[:77] + "…"


def mismatch(value: object, expected: str, where: str = "") -> Refused:
    """The refusal of a value that has another type."""
    found = type(value).__name__
    return Refused(f"expected {expected}, got {'' if value is None else found + ' '}{shown(value)}", where)
