"""Divergences that somebody knows of: patterns from a file, each with the reason why it may be (the CI gate's allow-list).

A line is ``STREAM [VERSION] [FIELD]  # why``. STREAM and FIELD are patterns in which ``*`` stands for anything and ``?``
for one character; nothing else is special, for fields are full of brackets. VERSION is a number, a range or ``*``. What
holds blanks stands in double quotes. Pure: where the text comes from is the command's affair.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from .errors import BadAllowList
from .verdicts import Divergence

_COMMENT: Final = re.compile(r"(?:^|\s)#(?:\s+(?P<why>.*))?$")
_WORD: Final = re.compile(r'"((?:[^"\\]|\\.)*)"|(\S+)')
_RANGE: Final = re.compile(r"(\d+)(?:-(\d+))?")
_CHARACTER: Final = re.compile(r" \(character \d+\)\Z")
_MOST: Final = 2**63


@attrs.frozen
class Allowance:
    """One line of the list."""

    #: Its number in the file, from 1.
    line: int
    stream: str
    first: int = 0
    last: int = _MOST
    field: str = "*"
    why: str = ""

    def covers(self, found: Divergence) -> bool:
        """Whether it lets ``found`` through. A field may be named without the character at which a text differs."""
        if not self.first <= found.version <= self.last or not matches(self.stream, found.stream):
            return False
        return any(matches(self.field, field) for field in (found.field, _CHARACTER.sub("", found.field)))


def read_allowances(text: str, name: str = "the allow-list") -> tuple[Allowance, ...]:
    """The lines of an allow-list; empty ones and those that are only a comment are left out.

    Raises ``BadAllowList`` naming the line.

    >>> read_allowances("accounts-* 3-9 args.cents  # rounding, see #12")
    (Allowance(line=1, stream='accounts-*', first=3, last=9, field='args.cents', why='rounding, see #12'),)
    """
    return tuple(found for number, line in enumerate(text.splitlines(), 1) if (found := _read(line, number, name)) is not None)


def _read(line: str, number: int, name: str) -> Allowance | None:
    comment = _COMMENT.search(line)
    said = line[: comment.start()] if comment else line
    words = [re.sub(r"\\(.)", r"\1", quoted) if quoted or not bare else bare for quoted, bare in _WORD.findall(said)]
    if not words:
        return None
    if len(words) > 3:
        raise BadAllowList(f"{name}, line {number}: {line.strip()!r:.120} has {len(words)} words. It must be STREAM [VERSION] [FIELD]  # why")
    first, last = _versions(words[1], number, name) if len(words) > 1 else (0, _MOST)
    return Allowance(number, words[0], first, last, words[2] if len(words) > 2 else "*", (comment["why"] or "").strip() if comment else "")


def _versions(word: str, number: int, name: str) -> tuple[int, int]:
    if word == "*":
        return 0, _MOST
    found = _RANGE.fullmatch(word)
    if found is None:
        raise BadAllowList(f"{name}, line {number}: {word!r:.60} is no version. It must be a number (17), a range (17-20) or *")
    return int(found[1]), int(found[2] or found[1])


def matches(pattern: str, text: str) -> bool:
    """Whether ``text`` fits a pattern of ``*`` and ``?``."""
    return re.fullmatch("".join(".*" if c == "*" else "." if c == "?" else re.escape(c) for c in pattern), text, re.DOTALL) is not None


def allowance_for(allowances: Sequence[Allowance], found: Divergence) -> Allowance | None:
    """The first line that lets ``found`` through."""
    return next((each for each in allowances if each.covers(found)), None)


def unused(allowances: Iterable[Allowance], used: Iterable[int]) -> list[Allowance]:
    """Lines that let nothing through: what they were for is mended, or they are misspelt."""
    lines = set(used)
    return [each for each in allowances if each.line not in lines]
