"""Prefixes as ranges of an index."""

from __future__ import annotations

from typing import Final

_LAST: Final = 0x10FFFF


def behind(prefix: str) -> str | None:
    """The least text above all texts that begin with ``prefix``, in code point order; ``None``: there is none.

    >>> behind("ab"), behind("a\\U0010ffff"), behind("")
    ('ac', 'b', None)
    """
    stem = prefix.rstrip(chr(_LAST))
    if not stem:
        return None
    following = ord(stem[-1]) + 1
    if 0xD800 <= following <= 0xDFFF:
        following = 0xE000  # surrogates have no UTF-8 form
    return stem[:-1] + chr(following)
