"""Exceptions as data, whatever they do when they are asked for their text."""

from __future__ import annotations

import traceback
from typing import Final

from .facts import Failure

_MOST: Final = 20_000


def text_of(problem: BaseException) -> str:
    """The text of an exception, at most 20,000 characters of it.

    A user's ``__str__`` may raise anything, SystemExit included, or give a text with methods of its own; the failure must be
    recorded nevertheless, and nothing else may end by it.
    """
    try:
        return str.__getitem__(str(problem), slice(_MOST))
    except BaseException as fault:
        return f"(its text cannot be had: {type(fault).__name__})"


def failure_of(problem: BaseException) -> Failure:
    """Type, text and the innermost three frames of an exception."""
    message = text_of(problem).encode("utf-8", "backslashreplace").decode()
    frames = traceback.extract_tb(problem.__traceback__)[-3:]
    return Failure(type(problem).__name__, message[:_MOST], " ← ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames)))
