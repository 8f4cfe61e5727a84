"""Exceptions as data, whatever they do when they are asked for their text."""

from __future__ import annotations

import traceback

from .facts import Failure


def failure_of(problem: BaseException) -> Failure:
    """Type, text (at most 20,000 characters) and the innermost three frames of an exception."""
    try:
        message = str(problem)
    except Exception as fault:  # a user's __str__ may raise anything, and the failure must still be recorded
        message = f"(its text cannot be had: {type(fault).__name__})"
    message = message.encode("utf-8", "backslashreplace").decode()
    frames = traceback.extract_tb(problem.__traceback__)[-3:]
    return Failure(type(problem).__name__, message[:20_000], " ← ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames)))
