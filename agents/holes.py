"""The words for versions of a stream that are not there, or there twice: no append leaves that behind."""

from __future__ import annotations


def hole(stream: str, expected: int, found: int, *, stands: bool = True) -> str:
    """What is wrong with ``stream`` where ``found`` stands and ``expected`` should, and the way out. ``stands``: ``found`` is known to be there.

    >>> hole("a-1", 4, 5)[:60]
    'a-1 version 4 is missing: 5 stands in its place. Events were'
    """
    behind = "" if not stands or found < expected else f": {found} stands in its place" if found == expected + 1 else f": {found} comes next"
    return f"{stream} {missing(expected, found)}{behind}. Events were changed behind the log's back: see eventlog verify, and restore them from a backup."


def missing(expected: int, found: int) -> str:
    """What is wrong where version ``found`` stands and ``expected`` should; empty when nothing is.

    >>> missing(4, 5), missing(4, 6), missing(4, 3), missing(4, 4)
    ('version 4 is missing', 'versions 4 to 5 are missing', 'version 3 is there twice', '')
    """
    if found == expected:
        return ""
    if found < expected:
        return f"version {found} is there twice"
    return f"version {expected} is missing" if found == expected + 1 else f"versions {expected} to {found - 1} are missing"
