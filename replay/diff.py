"""What differs between two states, as changes that lead from one to the other. Pure.

Dicts, lists, tuples, sets and attrs objects of one class are gone through; anything else that differs is changed as a
whole. Equal is what is of one type and would be written in the same bytes: 1 is not True, 1.0 not 1, and 1.0 not 1.00.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, time
from decimal import Decimal
from typing import Any, Final

import attrs

from .copying import with_fields
from .paths import ABSENT, Path, field_names


class ChangeKind(enum.Enum):
    """What became of a part."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@attrs.frozen(eq=False)
class Change:
    """One difference. In lists, places of what was removed are those of before, of what was added those of after."""

    kind: ChangeKind
    path: Path
    #: ``ABSENT`` for what was added.
    before: Any
    #: ``ABSENT`` for what was removed.
    after: Any


_SEQUENCES: Final = (list, tuple)
_SETS: Final = (set, frozenset)


def diff(a: Any, b: Any, path: Path = ()) -> tuple[Change, ...]:
    """The changes from ``a`` to ``b``; none when they are the same. ``apply(diff(a, b), a)`` is ``b`` again.

    >>> [(change.kind.value, change.path) for change in diff({"a": [1, 2], "b": 1}, {"a": [1, 3, 4]})]
    [('changed', ('a', 1)), ('added', ('a', 2)), ('removed', ('b',))]
    """
    return tuple(_differences(a, b, path))


def same(a: Any, b: Any) -> bool:
    """Whether nothing differs."""
    return a is b or next(_differences(a, b, ()), None) is None


def _differences(a: Any, b: Any, path: Path) -> Iterator[Change]:
    if a is b:
        return
    kind = type(a)
    if kind is type(b):
        if kind is dict:
            yield from _of_dicts(a, b, path)
            return
        if kind in _SEQUENCES:
            yield from _of_sequences(a, b, path)
            return
        if kind in _SETS:
            yield from _of_sets(a, b, path)
            return
        if attrs.has(kind):
            for name in field_names(kind):
                yield from _differences(getattr(a, name), getattr(b, name), (*path, name))
            return
    if not _equal(a, b):
        kind_of = ChangeKind.ADDED if a is ABSENT else ChangeKind.REMOVED if b is ABSENT else ChangeKind.CHANGED
        yield Change(kind_of, path, a, b)


def _equal(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, float | Decimal):  # signs of zeros, trailing zeros and what is no number
        return repr(a) == repr(b)
    if isinstance(a, datetime | time):  # one moment in two zones
        return bool(a == b) and (a.isoformat(), a.fold) == (b.isoformat(), b.fold)
    return bool(a == b)


def _of_dicts(a: Mapping[Any, Any], b: Mapping[Any, Any], path: Path) -> Iterator[Change]:
    for key, value in a.items():
        if key in b:
            yield from _differences(value, b[key], (*path, key))
        else:
            yield Change(ChangeKind.REMOVED, (*path, key), value, ABSENT)
    for key, value in b.items():
        if key not in a:
            yield Change(ChangeKind.ADDED, (*path, key), ABSENT, value)


def _of_sets(a: Any, b: Any, path: Path) -> Iterator[Change]:
    for element in sorted(a - b, key=repr):
        yield Change(ChangeKind.REMOVED, (*path, element), element, ABSENT)
    for element in sorted(b - a, key=repr):
        yield Change(ChangeKind.ADDED, (*path, element), ABSENT, element)


def _of_sequences(a: Sequence[Any], b: Sequence[Any], path: Path) -> Iterator[Change]:
    """What both begin and end with is let be; what lies between is compared place by place."""
    begin, least = 0, min(len(a), len(b))
    while begin < least and same(a[begin], b[begin]):
        begin += 1
    end = 0
    while end < least - begin and same(a[-1 - end], b[-1 - end]):
        end += 1
    both = least - end
    for place in range(begin, both):
        yield from _differences(a[place], b[place], (*path, place))
    for place in range(both, len(a) - end):
        yield Change(ChangeKind.REMOVED, (*path, place), a[place], ABSENT)
    for place in range(both, len(b) - end):
        yield Change(ChangeKind.ADDED, (*path, place), ABSENT, b[place])


def apply(changes: Sequence[Change], a: Any) -> Any:
    """``a`` with the changes made; ``a`` itself stays as it is. ``changes`` are those of a ``diff`` that began with it."""
    return _made([(change.path, change) for change in changes], a)


def _made(changes: Sequence[tuple[Path, Change]], a: Any) -> Any:
    """``changes`` come with the rest of their paths, as seen from ``a``."""
    if not changes:
        return a
    if not changes[0][0]:
        return changes[0][1].after
    kind = type(a)
    if kind in _SETS:
        gone = {change.before for _, change in changes if change.kind is ChangeKind.REMOVED}
        return kind((a - gone) | {change.after for _, change in changes if change.kind is ChangeKind.ADDED})
    inner: dict[Any, list[tuple[Path, Change]]] = {}
    whole: list[tuple[Any, Change]] = []
    for path, change in changes:
        if len(path) == 1 and change.kind is not ChangeKind.CHANGED:
            whole.append((path[0], change))
        else:
            inner.setdefault(path[0], []).append((path[1:], change))
    if kind is dict:
        made = {**a, **{key: _made(each, a[key]) for key, each in inner.items()}}
        for key, change in whole:
            if change.kind is ChangeKind.REMOVED:
                del made[key]
            else:
                made[key] = change.after
        return made
    if kind in _SEQUENCES:
        return kind(_sequence(list(a), inner, whole))
    return with_fields(a, {name: _made(each, getattr(a, name)) for name, each in inner.items()})


def _sequence(made: list[Any], inner: Mapping[int, list[tuple[Path, Change]]], whole: Sequence[tuple[int, Change]]) -> list[Any]:
    for place, each in inner.items():
        made[place] = _made(each, made[place])
    gone = [place for place, change in whole if change.kind is ChangeKind.REMOVED]
    if gone:  # they lie side by side
        del made[gone[0] : gone[-1] + 1]
    added = [(place, change.after) for place, change in whole if change.kind is ChangeKind.ADDED]
    if added:
        made[added[0][0] : added[0][0]] = [value for _, value in added]
    return made
