"""A value as code would write it, the same every time: on one line, or over as many as the screen needs, coloured.

Sets are sorted, long texts and containers cut, bytes told by their length and digest.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time, timedelta
from typing import Any, Final

import attrs
from rich.console import Console, ConsoleOptions, RenderResult
from rich.highlighter import ReprHighlighter
from rich.pretty import Node
from rich.text import Text

from ...eventlog.printing import one_line

_MOST_CHILDREN: Final = 40
_LONGEST: Final = 400
_SHOWN_BYTES: Final = 24
_DEEPEST: Final = 20
_CONTAINERS: Final[dict[type, tuple[str, str, str]]] = {
    dict: ("{", "}", "{}"),
    list: ("[", "]", "[]"),
    tuple: ("(", ")", "()"),
    set: ("{", "}", "set()"),
    frozenset: ("{", "}", "frozenset()"),
}


@attrs.frozen
class Value:
    """Renders a value in the width there is."""

    shown: Any

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = Text(_tree(self.shown).render(max_width=options.max_width, indent_size=2), overflow="fold")
        yield _HIGHLIGHTER(text)


_HIGHLIGHTER: Final = ReprHighlighter()


def brief(shown: Any, width: int = 100) -> str:
    """A value on one line, cut to ``width`` cells.

    >>> brief({"b", "a"}), brief([b"", None])
    ("{'a', 'b'}", "[b'', None]")
    """
    return one_line(str(_tree(shown)), width)


def _tree(shown: Any, depth: int = 0) -> Node:
    if depth > _DEEPEST:
        return Node(value_repr="…")
    if isinstance(shown, tuple) and hasattr(shown, "_fields"):
        return _fields(type(shown).__name__, list(zip(shown._fields, shown, strict=True)), depth)
    kind = next((each for each in _CONTAINERS if isinstance(shown, each)), None)
    if kind is not None:
        return _container(shown, kind, depth)
    if attrs.has(type(shown)) and not isinstance(shown, type):
        return _fields(type(shown).__name__, [(field.name, getattr(shown, field.name)) for field in attrs.fields(type(shown)) if field.repr], depth)
    if isinstance(shown, Mapping):
        return _container(dict(shown), dict, depth)
    return Node(value_repr=_leaf(shown))


def _fields(name: str, pairs: list[tuple[str, Any]], depth: int) -> Node:
    return _braced(f"{name}(", ")", f"{name}()", [_named(_tree(each, depth + 1), key, "=") for key, each in pairs])


def _container(shown: Any, kind: type, depth: int) -> Node:
    opening, closing, empty = _CONTAINERS[kind]
    if kind is dict:
        children = [_named(_tree(each, depth + 1), _leaf(key), ": ") for key, each in list(shown.items())[:_MOST_CHILDREN]]
    else:
        ordered: Iterable[Any] = sorted(shown, key=repr) if kind in (set, frozenset) else shown
        children = [_tree(each, depth + 1) for _, each in zip(range(_MOST_CHILDREN), ordered, strict=False)]
    if len(shown) > len(children):
        children.append(Node(value_repr=f"… {len(shown) - len(children):,} more"))
    return _braced(opening, closing, empty, children, is_tuple=kind is tuple)


def _braced(opening: str, closing: str, empty: str, children: list[Node], *, is_tuple: bool = False) -> Node:
    if children:
        children[-1].last = True
    return Node(open_brace=opening, close_brace=closing, empty=empty, children=children, is_tuple=is_tuple)


def _named(node: Node, key: str, separator: str) -> Node:
    node.key_repr, node.key_separator = key, separator
    return node


def _leaf(shown: Any) -> str:
    if isinstance(shown, str):
        return _text(shown)
    if isinstance(shown, bytes):
        return repr(shown) if len(shown) <= _SHOWN_BYTES else f"<{len(shown):,} bytes, sha256 {hashlib.sha256(shown).hexdigest()[:12]}…>"
    if isinstance(shown, enum.Enum):
        return f"{type(shown).__name__}.{shown.name}"
    if isinstance(shown, datetime | date | time):
        return shown.isoformat()
    if isinstance(shown, timedelta):
        return str(shown)
    try:
        return one_line(repr(shown), _LONGEST)
    except Exception as problem:  # whatever a person's own class does there
        return f"<{type(shown).__name__}, whose repr fails with {type(problem).__name__}>"


def _text(shown: str) -> str:
    if len(shown) <= _LONGEST:
        return one_line(repr(str(shown)))
    return f"{one_line(repr(shown[:_LONGEST]))}… {len(shown) - _LONGEST:,} more characters"
