"""What a command of the shell gives back."""

from __future__ import annotations

from typing import Any

import attrs

from ...eventlog.console import OK


@attrs.frozen
class Answer:
    """Lines and tables to print, in order: text as it is, or anything that rich renders."""

    parts: tuple[Any, ...] = ()
    #: As a command of the terminal would have ended (``OK``, ``FOUND``, ``USAGE``, ``COULD_NOT``).
    code: int = OK
    #: The session is over.
    over: bool = False


def answer(*parts: Any) -> Answer:
    """An answer that found nothing wrong."""
    return Answer(parts)
