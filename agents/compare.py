"""Where two values first differ, as a path a person can read. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

_ABSENT: Final = "(absent)"
_WINDOW: Final = 60


@attrs.frozen
class Difference:
    """``path`` is where; ``left`` and ``right`` are short renderings of what stands there. An empty path: they are equal."""

    path: str
    left: str
    right: str


def first_difference(left: object, right: object, path: str = "") -> Difference:
    """The first place, in field order, then key order, then element order, where the two differ.

    >>> first_difference({"a": [1, 2]}, {"a": [1, 3]})
    Difference(path='a[1]', left='2', right='3')
    """
    if type(left) is not type(right):
        return Difference(path or "value", shown(left), shown(right))
    if attrs.has(type(left)):
        for field in attrs.fields(type(left)):  # type: ignore[arg-type]
            found = first_difference(getattr(left, field.name), getattr(right, field.name), _join(path, field.name))
            if found.path:
                return found
        return Difference("", shown(left), shown(right))
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return _mappings(left, right, path)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return _sequences(left, right, path)
    if left == right or (left != left and right != right):
        return Difference("", shown(left), shown(right))
    if isinstance(left, str) and isinstance(right, str):
        return _texts(left, right, path)
    return Difference(path or "value", shown(left), shown(right))


def _mappings(left: Mapping[Any, Any], right: Mapping[Any, Any], path: str) -> Difference:
    for key in sorted({*left, *right}, key=repr):
        place = _join(path, str(key))
        if key not in left or key not in right:
            return Difference(place, shown(left[key]) if key in left else _ABSENT, shown(right[key]) if key in right else _ABSENT)
        found = first_difference(left[key], right[key], place)
        if found.path:
            return found
    return Difference("", shown(left), shown(right))


def _sequences(left: Any, right: Any, path: str) -> Difference:
    for place, (a, b) in enumerate(zip(left, right, strict=False)):
        found = first_difference(a, b, f"{path}[{place}]")
        if found.path:
            return found
    if len(left) != len(right):
        place = min(len(left), len(right))
        return Difference(f"{path}[{place}]", shown(left[place]) if place < len(left) else _ABSENT, shown(right[place]) if place < len(right) else _ABSENT)
    return Difference("", shown(left), shown(right))


def _texts(left: str, right: str, path: str) -> Difference:
    at = next((n for n, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
    start = max(0, at - _WINDOW // 2)
    dots = "…" if start else ""
    return Difference(f"{path or 'value'} (character {at})", dots + shown(left[start : start + _WINDOW]), dots + shown(right[start : start + _WINDOW]))


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def shown(value: object, width: int = 120) -> str:
    """``repr`` cut to ``width`` characters; bytes as a length, and what cannot be shown as its type."""
    if isinstance(value, bytes) and len(value) > 32:
        return f"{len(value)} bytes {value[:8].hex()}…"
    try:
        text = repr(value)
    except Exception as problem:  # a user's __repr__ may raise anything; an error report must not
        return f"<{type(value).__name__}, whose repr raised {type(problem).__name__}>"
    return text if len(text) <= width else text[: width - 1] + "…"
