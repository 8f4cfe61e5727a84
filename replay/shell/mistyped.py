"""What a line that is neither a command nor Python that runs may have meant, in words."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Container, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final

from ...eventlog.printing import one_line

_WORDS: Final = re.compile(r"\s*(?P<first>[^\W\d][\w-]*)(?:\s+(?P<rest>[^\W_].*))?\s*\Z", re.DOTALL)
_PYTHON_OFF: Final = "Python is off here (--no-python); this takes commands only: help"


def meant(text: str, commands: Mapping[str, Any], known: Container[str]) -> str:
    """Which command was meant by ``text``, words that are no Python; empty when it looks like Python with a mistake in it.

    ``known``: names that Python finds here.
    """
    words = _WORDS.match(text)
    if words is None or words["first"] in commands:
        return ""
    first, rest = words["first"], words["rest"] or ""
    if outside := _outside(first, rest):
        return outside
    close = nearest(first, commands)
    if close:
        return f"There is no command {one_line(first, 40)!r}; did you mean {close!r}?"
    if first in known or keyword.iskeyword(first) or hasattr(builtins, first):
        return ""
    what = "command" if rest else "command and no name"
    return f"There is no {what} {one_line(first, 40)!r}. All commands: help"


def refused(text: str, commands: Mapping[str, Any]) -> str:
    """What is said of Python where none is taken."""
    said = meant(text, commands, ())
    return f"{said}   {_PYTHON_OFF}" if said else f"{one_line(text.strip(), 40)!r} is Python. {_PYTHON_OFF}"


def nearest(word: str, commands: Iterable[str]) -> str:
    """The command that ``word`` is nearly; empty when there is none."""
    close = get_close_matches(word, commands, n=1, cutoff=0.7)
    return close[0] if close else ""


def _outside(first: str, rest: str) -> str:
    from ...eventlog.cli import found

    return f"The shell only reads. Outside of it: eventlog {first} {rest.strip()}".rstrip() if first in found() else ""
