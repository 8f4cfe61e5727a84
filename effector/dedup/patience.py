"""Waiting for a server that went away: the same transition again, with back-off, for a bounded time."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

from .errors import StoreUnavailable

T = TypeVar("T")
_FIRST_PAUSE: Final = 0.02
_LONGEST_PAUSE: Final = 1.0


class Away(Exception):
    """The server did not answer, and may soon; whether the transition took effect is unknown. Never leaves a store."""


def until_it_answers(transition: Callable[[], T], *, doing: str, url: str, seconds: float, closed: threading.Event) -> T:
    """What ``transition`` gives once it does not raise ``Away``. Raises ``StoreUnavailable`` after ``seconds``, or when ``closed`` is set."""
    began, pause, tries = time.monotonic(), _FIRST_PAUSE, 0
    while True:
        tries += 1
        try:
            return transition()
        except Away as reason:
            waited = time.monotonic() - began
            if waited + pause > seconds or closed.wait(pause * random.uniform(0.5, 1.0)):
                raise StoreUnavailable(
                    f"The dedup store {url} did not answer for {waited:.1f} s ({tries} tries to {doing}): {reason}. Whether the last took effect is not known. "
                    "Start the server or mend the way to it; nothing is carried out or acknowledged meanwhile."
                ) from reason.__cause__
        pause = min(pause * 2, _LONGEST_PAUSE)
