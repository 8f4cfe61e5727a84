"""Places in the open stream as they are typed: a version, a position, a moment, ``start``, ``now``."""

from __future__ import annotations

from typing import Final

import click

from ..errors import NoSuchVersion
from ..fold import NOW, parse_at, version_at
from .session import Session

START: Final = ("start", "first")
END: Final = (*NOW, "last")


def is_place(word: str) -> bool:
    """Whether ``word`` names a place, whether there is such a one in the stream or not."""
    if word.lower() in (*START, *END):
        return True
    try:
        parse_at(word)
    except NoSuchVersion:
        return False
    return True


def version_of(session: Session, word: str) -> int:
    """The version that ``word`` names; the end is where the history can be folded to, with what was appended meanwhile.

    Raises a usage error for what is no place, and ``NoSuchVersion`` for one that is not there.
    """
    if word.lower() in START:
        return 0
    if word.lower() in END:
        if session.grown():
            session.fold_again()
        return session.walk.last
    try:
        place = parse_at(word)
    except NoSuchVersion as problem:
        raise click.UsageError(str(problem)) from None
    version = version_at(session.log, session.stream, place)
    if version > session.walk.head:
        session.fold_again()
    return version
