"""Prefixes as ranges of an index, and which texts a PostgreSQL column can hold at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..prefixes import behind


def is_storable(text: str) -> bool:
    """Whether a text column can hold ``text``; one with a lone surrogate or a NUL is never there.

    >>> is_storable("né"), is_storable("\\ud800"), is_storable("a\\0b")
    (True, False, False)
    """
    if "\0" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def ranged(sql: str, column: str, values: Sequence[Any], prefix: str, last: str | None) -> tuple[str, list[Any]]:
    """``sql`` with ``:range`` standing for what begins with ``prefix`` and comes behind ``last`` (``None``: from the first on).

    Its parameters are those of ``values`` and then the bounds.
    """
    end, next_one = behind(prefix), len(values) + 1
    condition = f"{column} {'>=' if last is None else '>'} ${next_one}"
    bounds = [prefix if last is None else last]
    if end is not None:
        condition += f" AND {column} < ${next_one + 1}"
        bounds.append(end)
    return sql.replace(":range", condition), [*values, *bounds]
