"""A typed line: is it a command of the shell, or Python? Pure.

A command is a bare word, as in ``back 3`` or ``until st.open_orders``. The same words are names in Python, so a line is
Python where a word is followed by what only Python puts there: ``st.open_orders``, ``log[3]``, ``prev == st``.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Container
from typing import Final, TypeAlias

import attrs
import click

_WORD: Final = re.compile(r"\s*(?P<word>[a-z][a-z-]*)(?:\s+(?P<rest>\S.*?))?\s*\Z", re.DOTALL)
_GOES_ON: Final = re.compile(r"[=.,;:)\]}]|[-+*/%@&|^<>!]=?(?:\s|\Z)|[<>*/]{2}|[<>!=]=|(?:in|is|and|or|if|for|not\s+in)\s")
_OPENS: Final = re.compile(r"[(\[]")
_ASSIGNS: Final = re.compile(r"(?:[-+*/%@&|^]|\*\*|//|<<|>>)?=(?!=)|[.,]")
#: Commands whose rest is an expression, and may begin with nearly anything.
TAKES_EXPRESSION: Final = frozenset({"until", "break", "back", "bisect", "why", "watch", "help"})


@attrs.frozen
class Command:
    """A command and what stands behind it."""

    word: str
    rest: str = ""


@attrs.frozen
class Code:
    """Python, one line or many."""

    text: str


Line: TypeAlias = "Command | Code | None"


def read_line(text: str, commands: Container[str]) -> Line:
    """What ``text`` is; ``None`` when there is nothing in it.

    >>> read_line("back 3", {"back"}), read_line("st.open_orders", {"st"})
    (Command(word='back', rest='3'), Code(text='st.open_orders'))
    """
    if not text.strip():
        return None
    if text.lstrip().startswith("#"):
        return None
    found = _WORD.match(text)
    if found is None or found["word"] not in commands or (text[:1].isspace() and "\n" in text.strip()):
        return Code(text)
    word, rest = found["word"], found["rest"] or ""
    if rest and (_ASSIGNS.match(rest) if word in TAKES_EXPRESSION else _GOES_ON.match(rest) or _OPENS.match(rest)):
        return Code(text)
    return Command(word, rest)


def words_of(rest: str) -> list[str]:
    """The words behind a command, quoted as in a Unix shell; raises ``click.UsageError`` for a quote that is not closed."""
    try:
        return shlex.split(rest)
    except ValueError as problem:
        raise click.UsageError(f"{rest!r}: {str(problem).lower()}. Close the quote, or leave it out.") from None


def unquoted(rest: str) -> str:
    """An expression without the quotes around the whole of it, which are needed outside of this shell only.

    >>> unquoted('"not st.open_orders"'), unquoted("st.name == 'a'")
    ('not st.open_orders', "st.name == 'a'")
    """
    if rest[:1] in ("'", '"') and rest[-1:] == rest[:1]:
        try:
            inner = ast.literal_eval(rest)
        except (ValueError, SyntaxError):
            return rest
        return inner if isinstance(inner, str) else rest
    return rest


def number_of(rest: str, *, default: int, most: int) -> int:
    """How many; raises ``click.UsageError`` for what is no whole number from 1 to ``most``."""
    if not rest:
        return default
    if not re.fullmatch(r"[0-9]{1,18}", rest) or not 1 <= int(rest) <= most:
        raise click.UsageError(f"{rest!r:.80} is no number of events: give a whole number from 1 on, for example 3.")
    return int(rest)
