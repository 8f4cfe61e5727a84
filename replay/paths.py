"""Paths into a state: ``run.intents['5f0c'].args.cents``, and for an aggregate's own fields just ``open_orders``.

A path is a tuple of keys. ``state``, ``run``, ``version`` and ``stream`` are where one may begin; a path that begins with
anything else is one into ``state``. Works on dicts, lists, tuples, sets (an element's key is itself) and attrs objects.
"""

from __future__ import annotations

import ast
import enum
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final, TypeAlias

import attrs

from ..eventlog.printing import as_text, plain
from .errors import BadPath

Path: TypeAlias = "tuple[Any, ...]"


class Absent(enum.Enum):
    """The type of ``ABSENT``."""

    ABSENT = "nothing there"

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = Absent.ABSENT
"""What stands where nothing stands; ``None`` is a value."""
ROOTS: Final = ("state", "run", "version", "stream")

#: Where no part comes or goes: the tree itself, the runtime's parts; and an aggregate that the agent has not.
_FIXED: Final = ((), ("run",), ("state",))
_LONGEST: Final = 1_000
_MOST: Final = 200
_NAMED: Final = 12
_SHORTEST: Final = 4
_NAME: Final = re.compile(r"[^.\[\]'\"\s]+")
_PLAIN: Final = re.compile(r"[^\W\d]\w*\Z")
_FORM: Final = "A path is names with dots, and keys in brackets: open_orders, run.intents['5f0c'].args.cents"


def parse_path(text: str) -> Path:
    """The keys of a path as a person writes it. Raises ``BadPath`` with the place it cannot be read at.

    >>> parse_path("run.intents['5f0c'].args.cents"), parse_path("open_orders"), parse_path("lines[0]")
    (('run', 'intents', '5f0c', 'args', 'cents'), ('state', 'open_orders'), ('state', 'lines', 0))
    """
    stripped = text.strip()
    if not stripped or len(stripped) > _LONGEST:
        raise BadPath(f"{stripped!r:.80} is no path: {'it is empty' if not stripped else f'it is longer than {_LONGEST} characters'}. {_FORM}")
    keys: list[Any] = []
    at = 0
    while at < len(stripped):
        if stripped[at] == "[":
            key, at = _bracketed(stripped, at)
        else:
            at += stripped[at] == "." and bool(keys)
            found = _NAME.match(stripped, at)
            if found is None:
                raise _bad(stripped, at, "a name")
            key, at = found.group(), found.end()
            if at < len(stripped) and stripped[at] not in ".[":
                raise _bad(stripped, at, "'.' or '['")
        keys.append(key)
    if keys[0] == "st":
        keys[0] = "state"
    return tuple(keys) if keys[0] in ROOTS else ("state", *keys)


def _bracketed(text: str, at: int) -> tuple[Any, int]:
    """The key in brackets at ``at`` and the place behind it: a Python literal, or bare text."""
    end = text.find("]", at)
    first = end
    while end > 0:
        try:
            key = ast.literal_eval(text[at + 1 : end].strip())
            hash(key)
            return key, end + 1
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            end = text.find("]", end + 1)
    bare = text[at + 1 : first].strip() if first > 0 else ""
    if not bare or any(quote in bare for quote in "'\"["):
        raise _bad(text, at, "a key in brackets, as in [0] or ['o-1']")
    return bare, first + 1


def _bad(text: str, at: int, expected: str) -> BadPath:
    found = f"{text[at : at + 20]!r}" if at < len(text) else "its end"
    return BadPath(f"{text!r:.80} is no path: expected {expected} at character {at}, found {found}. {_FORM}")


def path_text(path: Path) -> str:
    """The path as a person writes it; ``parse_path`` takes it back.

    >>> path_text(("state", "orders", "o-1", "cents")), path_text(("run", "line", 0))
    ("orders['o-1'].cents", 'run.line[0]')
    """
    keys = path[1:] if len(path) > 1 and path[0] == "state" and isinstance(path[1], str) and path[1] not in (*ROOTS, "st") and _PLAIN.match(path[1]) else path
    return "".join(_segment(key, first=place == 0) for place, key in enumerate(keys))


def _segment(key: Any, *, first: bool = False) -> str:
    if isinstance(key, str):
        return ("" if first else ".") + key if _PLAIN.match(key) else f"[{key!r}]"
    return f"[{key!r}]" if _is_literal(key) else f"[{_text_of(key)!r}]"


def _is_literal(key: Any) -> bool:
    if type(key) is tuple:
        return all(_is_literal(each) for each in key)
    return type(key) in (int, bool, str, bytes, type(None)) or (type(key) is float and key == key and abs(key) != float("inf"))


def _text_of(key: Any) -> str:
    return key if isinstance(key, str) else as_text(plain(key))


def look(tree: Any, path: Path) -> Any:
    """What stands at ``path``, or ``ABSENT``. An intent may be named by the beginning of its id."""
    value = tree
    for place, key in enumerate(path):
        found = child(value, key)
        if found is ABSENT and place == 2 and path[:2] == ("run", "intents") and isinstance(key, str):
            found = _by_beginning(value, key.rstrip("…"))
        if found is ABSENT:
            return ABSENT
        value = found
    return value


def _by_beginning(intents: Any, beginning: str) -> Any:
    if len(beginning) < _SHORTEST or not isinstance(intents, Mapping):
        return ABSENT
    fitting = [name for name in intents if name.startswith(beginning)]
    return intents[fitting[0]] if len(fitting) == 1 else ABSENT


def child(value: Any, key: Any) -> Any:
    """What stands under one key, or ``ABSENT``. A key that is no text is also found by its text: ``[7]`` by ``['7']``."""
    if isinstance(value, Mapping):
        if key in value:
            return value[key]
        name = _by_text(value, key)
        return ABSENT if name is ABSENT else value[name]
    if attrs.has(type(value)):
        return getattr(value, key) if isinstance(key, str) and key in field_names(type(value)) else ABSENT
    if isinstance(value, list | tuple):
        place = int(key) if isinstance(key, str) and re.fullmatch(r"[0-9]{1,18}", key) else key
        return value[place] if type(place) is int and -len(value) <= place < len(value) else ABSENT
    if isinstance(value, set | frozenset):
        return key if key in value else _by_text(value, key)
    return ABSENT


def field_names(kind: type) -> tuple[str, ...]:
    """The names of an attrs class's fields."""
    return tuple(field.name for field in attrs.fields(kind))


def _by_text(keys: Any, key: Any) -> Any:
    """The key among ``keys`` that reads like ``key``; keys that are all text are not searched for a text."""
    text = _text_of(key)
    first = next(iter(keys), None)
    if isinstance(first, str):
        return text if text in keys else ABSENT
    return next((each for each in keys if _text_of(each) == text), ABSENT)


def keys_of(value: Any) -> Iterator[Any]:
    """The keys that ``child`` knows in ``value``."""
    if isinstance(value, Mapping | set | frozenset):
        yield from value
    elif attrs.has(type(value)):
        yield from field_names(type(value))
    elif isinstance(value, list | tuple):
        yield from range(len(value))


def may_come(tree: Any, path: Path) -> bool:
    """Whether something may stand at ``path`` later, where nothing does now: a key of a mapping, a set or a list, or what is below one.

    The names of an aggregate's fields and of the runtime's own parts are fixed, and what is no container has no parts.
    """
    value, gone = tree, 0
    while gone < len(path) and (found := look(tree, path[: gone + 1])) is not ABSENT:
        value, gone = found, gone + 1
    if path[:gone] in _FIXED:
        return isinstance(value, Mapping | set | frozenset) and path[:gone] == ("state",)
    return value is None or isinstance(value, Mapping | set | frozenset | list | tuple)


def what_there_is(tree: Any, path: Path) -> str:
    """That nothing stands at ``path``, and what stands where it leaves the tree."""
    value, gone = tree, 0
    while gone < len(path) and (found := look(tree, path[: gone + 1])) is not ABSENT:
        value, gone = found, gone + 1
    if isinstance(value, list | tuple):
        held = {0: "is empty", 1: "has 0 only"}.get(len(value), f"has 0 to {len(value) - 1}")
        return f"nothing stands at {path_text(path)}; {path_text(path[:gone])} {held}"
    keys = [_text_of(key) for key, _ in zip(keys_of(value), range(_MOST), strict=False)]
    place = f"{path_text(path[:gone])} has" if gone else "there is"
    close = get_close_matches(_text_of(path[gone]), keys, n=3) if gone < len(path) else []
    known = ", ".join(close or keys[:_NAMED]) or "nothing"
    return f"nothing stands at {path_text(path)}; {place} {known}{' …' if len(keys) > len(close or keys[:_NAMED]) else ''}"


def paths_of(tree: Any, prefix: str = "") -> tuple[str, ...]:
    """How ``prefix`` may go on by one key, for completion: at most 200 whole paths that begin with it.

    >>> paths_of({"state": {"orders": {"o-1": 4}}, "run": {"line": []}}, "o"), paths_of({"state": {"orders": {"o-1": 4}}}, "orders[")
    (('orders',), ("orders['o-1']",))
    """
    cut = max(prefix.rfind("."), prefix.rfind("["))
    if cut <= 0:
        own = [*keys_of(look(tree, ("state",))), *(root for root in ROOTS if look(tree, (root,)) is not ABSENT)]
        texts = [_segment(key, first=True) for key in own]
    else:
        try:
            parent = parse_path(prefix[:cut])
        except BadPath:
            return ()
        texts = [prefix[:cut] + _segment(key) for key in keys_of(look(tree, parent))]
    return tuple([text for text in texts if text.startswith(prefix)][:_MOST])
