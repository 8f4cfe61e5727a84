"""Prefixes as ranges of an index: the first text behind everything that begins with a prefix."""

from __future__ import annotations

from typing import Final

from .. import prefixes

#: SQLite sorts every BLOB behind every TEXT: an upper bound that nothing reaches.
BEHIND_ALL_TEXT: Final = b""


def behind(prefix: str) -> str | bytes:
    """The least bound above all texts that begin with ``prefix``, in code point order.

    >>> behind("ab"), behind("a\\U0010ffff"), behind("")
    ('ac', 'b', b'')
    """
    end = prefixes.behind(prefix)
    return BEHIND_ALL_TEXT if end is None else end


def next_text(text: str) -> str:
    """The very next text behind ``text``: where a walk over keys goes on."""
    return text + "\0"


def is_storable(text: str) -> bool:
    """Whether ``text`` has a UTF-8 form; one with a lone surrogate is never in the file."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
